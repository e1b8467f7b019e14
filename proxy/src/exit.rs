//! Exit codes (`spec.md` §1), and the words that go with them.

use std::io::Write as _;
use std::process::ExitCode;

/// How a command ends when it is not simply good.
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

/// A fault with its causes; a cause that the text before it already has is left out.
pub(crate) fn told(fault: &anyhow::Error) -> String {
    fault.chain().map(ToString::to_string).fold(String::new(), |told, cause| {
        match (told.is_empty(), told.contains(&cause)) {
            (true, _) => cause,
            (false, true) => told,
            (false, false) => format!("{told}: {cause}"),
        }
    })
}

/// Says on stderr what is wrong.
pub(crate) fn complain(message: &str) {
    // A closed stderr changes nothing about the exit code.
    let _ = writeln!(std::io::stderr().lock(), "{message}");
}
