//! The terminal: switched to full screen, read for keys, and always restored at the end.

use std::io;
use std::thread;

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};
use tokio::sync::mpsc::{Receiver, channel};

/// Most events in the queue.
const EVENTS_MAX: usize = 64;

/// A terminal in full-screen mode. It is restored on drop, and before a panic message.
pub(super) struct FullScreen {
    pub(super) terminal: DefaultTerminal,
}

impl FullScreen {
    /// Errors: there is no terminal, or it cannot be switched.
    pub(super) fn new() -> io::Result<Self> {
        match ratatui::try_init() {
            Ok(terminal) => Ok(Self { terminal }),
            Err(fault) => {
                // It may be switched in part.
                let _ = ratatui::try_restore();
                Err(fault)
            }
        }
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        // A closed terminal needs no restore.
        let _ = self.terminal.show_cursor();
        let _ = ratatui::try_restore();
    }
}

/// Key and resize events. The channel ends when the terminal is closed.
///
/// Errors: the system has no thread for it.
pub(super) fn events() -> io::Result<Receiver<Event>> {
    let (sender, receiver) = channel(EVENTS_MAX);
    // The thread waits for the terminal until the process ends. Nothing joins it.
    thread::Builder::new().name("keys".to_owned()).spawn(move || {
        while let Ok(event) = event::read() {
            if sender.blocking_send(event).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    #[ignore = "panics, in the terminal of the test below"]
    fn a_panic_in_a_terminal() {
        let mut taken = FullScreen::new().unwrap();
        taken.terminal.draw(|frame| frame.render_widget("picture", frame.area())).unwrap();
        panic!("what went wrong");
    }

    #[test]
    fn a_terminal_is_given_back_before_a_panic_is_told() {
        let program = std::env::current_exe().unwrap();
        let test = module_path!().split_once("::").unwrap().1;
        let panics = format!(
            "stty rows 24 cols 80; {} --ignored --nocapture --exact {test}::a_panic_in_a_terminal; stty -a",
            program.display()
        );
        // `script` runs a command in a new terminal.
        let output = Command::new("script")
            .args(["--quiet", "--return", "--command", &panics, "/dev/null"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text:?} in {said:?}"));
        let (taken, given_back) = (at("\u{1b}[?1049h"), at("\u{1b}[?1049l"));
        assert!(taken < at("picture") && at("picture") < given_back, "{said:?}");
        assert!(given_back < at("what went wrong"), "{said:?}");
        assert!(said.contains("\u{1b}[?25h"), "the cursor is shown: {said:?}");
        let modes: Vec<_> = said.split([' ', ';', '\r', '\n']).collect();
        assert!(["icanon", "echo", "isig"].iter().all(|mode| modes.contains(mode)), "{said:?}");
    }
}
