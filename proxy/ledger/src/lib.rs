//! Journal entries, their framing, and what they add up to.
//!
//! Append-only: reserve → progress… → post | void. An entry is never changed; a correction is an
//! entry of its own, ids make retries harmless. Every request that was reserved ends in exactly one
//! post or void. Refuses to know files, provider dialects and export formats.

mod compact;
mod digest;
mod entry;
mod fold;
mod frame;
mod gaps;
mod id;
mod id_set;
mod mark;
mod members;
mod reader;
mod record;
mod resume;
mod segment;
mod stages;
mod tally;

#[cfg(test)]
mod tests;

pub use digest::{Digest, Digester};
pub use entry::{Checkpoint, Correction, Entry, Progress, Reserve, Void, VoidReason};
pub use fold::{Balance, Contradiction, Open, Replay, Settlement, died};
pub use frame::{Draft, ENTRY_BYTES_MAX, EncodeError, FRAME_BYTES_MIN, Kind, Position};
pub use gaps::{GAP_BUCKETS, Gaps};
pub use id::{RequestId, TENANT_BYTES_MAX, TenantId, TenantIdError};
pub use mark::Mark;

pub use reader::{Fault, Framed, Reader};
pub use record::{
    Counted, End, Identity, Record, RecordCost, RecordLine, RecordTiming, RecordUsage,
};
pub use resume::{Resumed, resume};
pub use segment::{FORMAT_VERSION, HEADER_BYTES, SegmentHeader};
pub use stages::{Stage, Stages};
pub use tally::{Change, Money, Tally};
