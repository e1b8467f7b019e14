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
    /// The receiver of an export does not take all of it.
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
    use taximeter_tests::generated::is_fresh;

    use super::Exit;

    /// When a command ends so, and what to do.
    const fn explained(exit: Exit) -> (&'static str, &'static str) {
        match exit {
            Exit::Failed => (
                "The command found something wrong: `verify`, `prices diff`, `healthy`, \
                 `count --against`, `inject` (an unknown kind with containers). Or something failed: \
                 the ledger cannot be opened, an address is in use, a result cannot be written.",
                "Read the message on stderr.",
            ),
            Exit::Usage => (
                "The arguments are wrong, or do not fit together.",
                "See `taximeter COMMAND --help`.",
            ),
            Exit::Configuration => (
                "The configuration, a price file or a manifest has mistakes.",
                "Correct the lines that the messages name.",
            ),
            Exit::Refused => (
                "Nothing is exported: the receiver takes some of the events no more \
                 (`bill --strict`).",
                "Export a shorter period, or without `--strict`.",
            ),
            Exit::Unavailable => (
                "A store, an object store, an engine or a gateway cannot be reached, or there is no \
                 data directory.",
                "Try again when it can be reached; check the path or the URL.",
            ),
            Exit::InUse => (
                "Another process uses the data directory, or another `rerate` writes corrections.",
                "Try again when it has ended.",
            ),
        }
    }

    const ALL: [Exit; 6] = [
        Exit::Failed,
        Exit::Usage,
        Exit::Configuration,
        Exit::Refused,
        Exit::Unavailable,
        Exit::InUse,
    ];

    const HEAD: &str = "\
# Exit codes

Every command of `taximeter` ends with one of these codes. Messages are on stderr. A command whose reader leaves, as in
`taximeter records | head`, ends with 0.

| code | when | what to do |
|---|---|---|
| 0 | Success. For `serve`, a normal stop after SIGTERM. | |
";

    #[test]
    fn the_page_of_exit_codes_is_fresh() {
        let rows = ALL.map(|exit| {
            let (when, action) = explained(exit);
            format!("| {} | {when} | {action} |\n", exit.code())
        });
        let page = HEAD.to_owned() + &rows.concat();
        assert_eq!(is_fresh("docs/reference/exit-codes.md", |_| page.clone()), Ok(()));
    }
}
