//! What can happen to entries that are pushed to a receiver.

use taximeter_ledger::RequestId;

/// Something that became of events.
#[derive(Debug)]
pub enum PushOutcome<'a> {
    /// The receiver has them.
    Stored {
        /// How many.
        events: usize,
    },
    /// The receiver takes all but this one, which was set aside.
    Rejected {
        /// Its request, or its correction.
        id: RequestId,
        /// What the receiver said.
        reason: &'a str,
    },
    /// Nothing was taken; it is sent again.
    Failed {
        /// Why.
        reason: &'a str,
    },
    /// The journal has dropped entries that were not sent.
    Lost {
        /// Their first sequence number.
        first: u64,
        /// Their last.
        last: u64,
    },
    /// The journal is another one than before; all of it is sent.
    Replaced,
}
