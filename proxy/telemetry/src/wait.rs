//! How the wait for a first token ended.

use std::time::Duration;

use ::metrics::Label;

use super::names::key;

/// What ended a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitOutcome {
    /// The first token, or all of an answer.
    Token,
    /// The client left.
    Left,
    /// The engine or the gateway failed.
    Failed,
}

/// One request's wait for its first token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// Whether the request is a stream. Otherwise its first token comes with its whole answer.
    pub is_stream: bool,
    /// What ended it.
    pub outcome: WaitOutcome,
    /// From the head of the request to the end of the wait.
    pub duration: Duration,
}

impl Wait {
    /// What distinguishes it among the waits of the same kind of request.
    pub(super) fn labels(&self) -> impl Iterator<Item = Label> {
        let stream = self.is_stream.then(|| Label::new(key::STREAM, "true"));
        stream.into_iter().chain([Label::new(key::OUTCOME, self.outcome.as_str())])
    }
}

impl WaitOutcome {
    /// How many there are.
    pub(crate) const COUNT: usize = 3;

    /// The word in labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Left => "left",
            Self::Failed => "failed",
        }
    }
}
