//! The error with which an answer breaks off.

/// The connection breaks, as it was told to.
#[derive(Debug)]
pub(crate) struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the simulated engine breaks the connection, as it was told to")
    }
}

impl std::error::Error for Broken {}
