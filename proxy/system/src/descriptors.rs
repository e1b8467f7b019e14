//! Says how near this process is to its limit of file descriptors.
//!
//! The kernel gives out the lowest free number. So the next number says how many descriptors are
//! open. Sockets of clients leave room for connections to engines. These leave room for the ledger,
//! the store and the admin address.

use std::os::fd::{AsFd, AsRawFd as _};

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Descriptors that are reserved for the ledger, the store, the admin address and files that are
/// read again: a sixteenth of all, between these bounds.
const KEPT_MIN: u64 = 16;
const KEPT_MAX: u64 = 256;

/// Whether a client may keep the socket that was just opened for it. A quarter of all descriptors
/// is reserved for what its request needs.
pub fn may_serve_client(opened: &impl AsFd) -> bool {
    number(opened) < for_clients(most())
}

/// Whether there is room for another client.
pub fn has_room_for_client() -> bool {
    next().is_some_and(|next| next < for_clients(most()))
}

/// Whether there is room for another connection to an engine.
pub fn has_room_for_engine() -> bool {
    next().is_some_and(|next| next < for_engines(most()))
}

/// Whether this error code of the system means that no descriptor is left.
pub fn is_used_up(code: i32) -> bool {
    [Errno::MFILE, Errno::NFILE].iter().any(|none_left| none_left.raw_os_error() == code)
}

/// The number that is given out next; `None` where there is none.
fn next() -> Option<u64> {
    match rustix::io::dup(std::io::stderr()) {
        Ok(next) => Some(number(&next)),
        // Whoever started us has closed what is free then.
        Err(Errno::BADF) => Some(2),
        Err(_) => None,
    }
}

fn number(opened: &impl AsFd) -> u64 {
    opened.as_fd().as_raw_fd().unsigned_abs().into()
}

/// As the system says now: it can be changed from outside.
fn most() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn for_engines(most: u64) -> u64 {
    most.saturating_sub((most / 16).clamp(KEPT_MIN, KEPT_MAX))
}

fn for_clients(most: u64) -> u64 {
    (most - most / 4).min(for_engines(most))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn clients_leave_room_for_engines_and_those_for_the_ledger() {
        let shares = |most| (for_clients(most), for_engines(most));
        assert_eq!(shares(1_024), (768, 960));
        assert_eq!(shares(64), (48, 48));
        assert_eq!(shares(16), (0, 0));
        assert_eq!(shares(0), (0, 0));
        let most = 1 << 20;
        assert_eq!(shares(most), (most / 4 * 3, most - 256));
        assert!(for_clients(u64::MAX) > u64::MAX / 2);
    }

    #[test]
    fn the_number_of_what_was_opened_last_tells_how_many_there_are() {
        let held: Vec<_> = (0..100).map(|_| File::open("/dev/null").unwrap()).collect();
        assert!(held.iter().map(number).max() >= Some(100));
        let before = next();
        assert!(before.is_some() && has_room_for_client() && has_room_for_engine());
        assert!(is_used_up(Errno::MFILE.raw_os_error()) && !is_used_up(0));
    }
}
