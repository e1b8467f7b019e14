//! Progress of long work. It is shown only on a terminal, and removed at the end.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use taximeter_system::clock;

/// Steps between two readings of the clock.
const LOOK_STEPS: u64 = 1024;
/// Time between two updates.
const SHOW_INTERVAL: Duration = Duration::from_millis(100);

/// Counts the steps of one task, and shows them on stderr if that is a terminal.
#[derive(Debug)]
pub(super) struct Progress {
    what: &'static str,
    steps: u64,
    /// The last update. `None` if stderr is no terminal.
    shown: Option<Instant>,
}

impl Progress {
    pub(super) fn new(what: &'static str) -> Self {
        let shown = io::stderr().is_terminal().then(clock::now);
        Self { what, steps: 0, shown }
    }

    /// Counts one step.
    pub(super) fn advance(&mut self) {
        self.steps += 1;
        if !self.steps.is_multiple_of(LOOK_STEPS) {
            return;
        }
        if let Some(shown) = &mut self.shown {
            let now = clock::now();
            if now.duration_since(*shown) >= SHOW_INTERVAL {
                *shown = now;
                // The terminal may be closed.
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

    /// Removes the progress from the terminal.
    pub(super) fn end(self) {
        if self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
