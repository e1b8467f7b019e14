//! Keeps the idle connections of one worker, by upstream. It hands out the connection that was used
//! last, because the engine is least likely to have closed that one.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::Context;
use std::time::{Duration, Instant};

use super::exchange::Link;

/// Idle connections kept per upstream and worker.
const IDLE_CONNECTIONS_MAX: usize = 256;

/// A connection and until when it may be used again.
struct Idle {
    link: Box<Link>,
    until: Instant,
}

/// Idle connections, one list per upstream.
pub struct Pool {
    idle: Vec<Arc<Mutex<Vec<Idle>>>>,
    keep_alive: Duration,
}

impl Pool {
    /// An empty pool for upstreams `0..upstreams`. A connection idles for at most `keep_alive`.
    pub fn new(upstreams: usize, keep_alive: Duration) -> Self {
        Self { idle: (0..upstreams).map(|_| Arc::default()).collect(), keep_alive }
    }

    /// A pool for other upstreams. Each of them shares its list with one of these upstreams, or
    /// gets a new list.
    pub fn under(&self, upstreams: &[Option<usize>], keep_alive: Duration) -> Self {
        let list = |same: &Option<usize>| {
            same.and_then(|index| self.idle.get(index)).cloned().unwrap_or_default()
        };
        Self { idle: upstreams.iter().map(list).collect(), keep_alive }
    }

    /// An open connection to `upstream`, if there is one. Connections that were closed meanwhile
    /// are dropped.
    pub fn take(&self, upstream: usize, now: Instant, cx: &mut Context<'_>) -> Option<Box<Link>> {
        let mut idle = self.idle.get(upstream)?.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(Idle { mut link, until }) = idle.pop() {
            if now < until && link.is_open(cx) {
                return Some(link);
            }
        }
        None
    }

    /// Keeps a connection for the next request to `upstream`.
    pub fn put(&self, upstream: usize, now: Instant, link: Box<Link>) {
        let until = now + link.idle_max(self.keep_alive);
        let Some(idle) = self.idle.get(upstream) else { return };
        let mut idle = idle.lock().unwrap_or_else(PoisonError::into_inner);
        if until > now && idle.len() < IDLE_CONNECTIONS_MAX {
            idle.push(Idle { link, until });
        }
    }

    /// Closes connections that have idled for too long.
    pub fn sweep(&self, now: Instant) {
        for idle in &self.idle {
            idle.lock().unwrap_or_else(PoisonError::into_inner).retain(|idle| now < idle.until);
        }
    }
}
