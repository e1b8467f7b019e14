//! The terminal: taken over, read for keys, and given back as it was, whatever happens.

use std::io;
use std::thread;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc::{Receiver, channel};

/// Events that wait to be read.
const EVENTS_MAX: usize = 64;

/// A terminal that is ours; given back when dropped, and before a panic is told.
pub(super) struct Taken {
    pub(super) terminal: DefaultTerminal,
}

impl Taken {
    /// Errors: it is none, or does not obey.
    pub(super) fn new() -> io::Result<Self> {
        match ratatui::try_init() {
            Ok(terminal) => Ok(Self { terminal }),
            Err(fault) => {
                // It may be ours in part.
                let _ = ratatui::try_restore();
                Err(fault)
            }
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = self.terminal.show_cursor();
        let _ = ratatui::try_restore();
    }
}

/// Keys and sizes, as they come; ends with the terminal.
///
/// Errors: the system has no thread for it.
pub(super) fn events() -> io::Result<Receiver<Event>> {
    let (tell, told) = channel(EVENTS_MAX);
    // Waits for the terminal as long as the process lives: nobody joins it.
    thread::Builder::new().name("keys".to_owned()).spawn(move || {
        while let Ok(event) = event::read() {
            if tell.blocking_send(event).is_err() {
                return;
            }
        }
    })?;
    Ok(told)
}
