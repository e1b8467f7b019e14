//! Wire formats: the shape of a route's requests and answers. One file each.

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
