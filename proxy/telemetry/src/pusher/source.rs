//! What is pushed: batches of one signal.

use bytes::Bytes;

/// A batch that is sent in one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The request's protobuf.
    pub body: Bytes,
    /// Data points, spans or log records in it.
    pub items: usize,
}

/// A source of batches.
pub trait Source: Send {
    /// Begins a round with the current content. Returns how many items were lost before it, because
    /// too many came.
    fn begin(&mut self) -> usize;

    /// The next batch of the round.
    fn next(&mut self) -> Option<Batch>;

    /// Notes that the collector has the last batch.
    fn taken(&mut self);

    /// Ends the round, also after a panic. Returns how many of its items were never given out.
    fn abandon(&mut self) -> usize;
}
