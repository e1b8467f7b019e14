//! Wire formats: the shape of a route's requests and answers. One file each.

mod chat_completions;
mod choices;
mod completions;
mod embeddings;
mod error;
mod messages;
mod responses;

use crate::facts::Format;

/// Shape of an exchange; follows from the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// `/v1/chat/completions`
    ChatCompletions,
    /// `/v1/completions`
    Completions,
    /// `/v1/responses`
    Responses,
    /// `/v1/messages`
    Messages,
    /// `/v1/embeddings`, also rerank and score: input only
    Embeddings,
    /// Anything else: times are measured, usage stays unknown.
    Opaque,
}

impl Wire {
    /// How answers of this shape are read; `None` where they are not.
    pub(crate) fn format(self) -> Option<&'static dyn Format> {
        match self {
            Self::ChatCompletions => Some(&chat_completions::ChatCompletions),
            Self::Completions => Some(&completions::Completions),
            Self::Responses => Some(&responses::Responses),
            Self::Messages => Some(&messages::Messages),
            Self::Embeddings => Some(&embeddings::Embeddings),
            Self::Opaque => None,
        }
    }
}
