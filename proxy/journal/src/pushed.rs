//! What can happen to entries that are pushed to a receiver.

use taximeter_ledger::RequestId;

/// The result of pushing events.
#[derive(Debug)]
pub enum PushOutcome<'a> {
    /// The receiver has them.
    Stored {
        /// How many.
        events: usize,
    },
    /// The receiver refuses this event. It was set aside.
    Rejected {
        /// Its request, or its correction.
        id: RequestId,
        /// What the receiver said.
        reason: &'a str,
    },
    /// The receiver took nothing. The events are sent again.
    Failed {
        /// Why.
        reason: &'a str,
    },
    /// The journal has removed entries that were not sent.
    Lost {
        /// Their first sequence number.
        first: u64,
        /// Their last.
        last: u64,
    },
    /// The journal is a different one than before. All of it is sent.
    Replaced,
}
