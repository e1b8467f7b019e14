//! How far long work is: on a terminal only, and gone when it ends.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use taximeter_system::clock;

/// Steps between two looks at the clock.
const LOOK_STEPS: u64 = 1024;
/// Between two lines.
const SHOW_INTERVAL: Duration = Duration::from_millis(100);

/// Steps of one piece of work, shown on stderr if that is a terminal.
#[derive(Debug)]
pub(super) struct Progress {
    what: &'static str,
    steps: u64,
    /// `None` where nobody watches.
    shown: Option<Instant>,
}

impl Progress {
    pub(super) fn new(what: &'static str) -> Self {
        let shown = io::stderr().is_terminal().then(clock::now);
        Self { what, steps: 0, shown }
    }

    /// One step further.
    pub(super) fn advance(&mut self) {
        self.steps += 1;
        if !self.steps.is_multiple_of(LOOK_STEPS) {
            return;
        }
        if let Some(shown) = &mut self.shown {
            let now = clock::now();
            if now.duration_since(*shown) >= SHOW_INTERVAL {
                *shown = now;
                // A terminal that went away needs no progress.
                let _ = write!(io::stderr(), "\r{}: {}\x1b[K", self.what, self.steps);
            }
        }
    }

    /// One step further in the work called `what`, which may follow another one.
    pub(super) fn advance_in(&mut self, what: &'static str) {
        if self.what != what {
            (self.what, self.steps) = (what, 0);
        }
        self.advance();
    }

    /// Takes it off the terminal.
    pub(super) fn end(self) {
        if self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
