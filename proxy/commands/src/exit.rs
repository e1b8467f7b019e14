//! Exit codes and error messages of the process.

use std::io::Write as _;
use std::process::ExitCode;

/// Why a command ends, if not by success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The command found something wrong, or something failed.
    Failed,
    /// The arguments are wrong.
    Usage,
    /// A file has mistakes.
    Configuration,
    /// The receiver of an export does not take all of it, or the single requests that it needs are gone.
    Refused,
    /// What the command needs cannot be reached.
    Unavailable,
    /// Another process uses it.
    InUse,
}

impl Exit {
    /// Its number. Those above 2 are of `sysexits.h`.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Configuration => 64,
            Self::Refused => 65,
            Self::Unavailable => 69,
            Self::InUse => 75,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
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

#[cfg(test)]
mod tests {
    use super::Exit::{Configuration, Failed, InUse, Refused, Unavailable, Usage};

    #[test]
    fn the_page_of_exit_codes_has_each_of_them() {
        let page = include_str!("../../../docs/reference/exit-codes.md");
        let codes = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
        let codes: Vec<u8> = codes.filter_map(|code| code.parse().ok()).collect();
        let all =
            [Failed, Usage, Configuration, Refused, Unavailable, InUse].map(super::Exit::code);
        assert_eq!(codes, [&[0][..], &all].concat());
    }
}
