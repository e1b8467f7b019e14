//! Exit codes and error messages of the process.

use std::io::Write as _;
use std::process::ExitCode;

/// Exit codes with their own meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The configuration has mistakes.
    Configuration = 64,
    /// The data directory is in use by another process.
    InUse = 75,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Configuration => 64,
            Exit::InUse => 75,
        })
    }
}

/// The text of an error and its causes. A cause that the text already has is left out.
pub(crate) fn text(fault: &anyhow::Error) -> String {
    fault.chain().map(ToString::to_string).fold(String::new(), |text, cause| {
        match (text.is_empty(), text.contains(&cause)) {
            (true, _) => cause,
            (false, true) => text,
            (false, false) => format!("{text}: {cause}"),
        }
    })
}

/// Prints an error to stderr.
pub(crate) fn complain(message: &str) {
    // A closed stderr changes nothing about the exit code.
    let _ = writeln!(std::io::stderr().lock(), "{message}");
}
