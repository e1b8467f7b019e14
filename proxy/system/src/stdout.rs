//! Notices that whoever reads the standard output has left, as `head` does when it has enough. Without
//! anything to write, a program would never be told.

use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Time between two looks.
const LOOK_PERIOD: Duration = Duration::from_millis(200);

/// Ready when the reader of the standard output has left; never where that is a file.
pub async fn reader_left() {
    while has_reader(&io::stdout()) {
        tokio::time::sleep(LOOK_PERIOD).await;
    }
}

/// Whether somebody may still read what is written: the other end of a pipe or socket is open.
fn has_reader(output: &impl std::os::fd::AsFd) -> bool {
    // These are told without being asked for.
    let gone = PollFlags::ERR | PollFlags::HUP;
    let mut look = [PollFd::new(output, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let told = poll(&mut look, Some(&at_once));
    told.is_err() || !look.iter().any(|output| output.revents().intersects(gone))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_pipe_or_socket_that_nobody_reads_has_no_reader() {
        let (reader, writer) = io::pipe().unwrap();
        assert!(has_reader(&writer));
        drop(reader);
        assert!(!has_reader(&writer));
        let (one, other) = UnixStream::pair().unwrap();
        assert!(has_reader(&one));
        drop(other);
        assert!(!has_reader(&one));
        assert!(has_reader(&tempfile::tempfile().unwrap()));
    }
}
