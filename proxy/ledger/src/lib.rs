//! Journal entries, their framing, and what they add up to.
//!
//! Begin with `entry.rs` (what an entry is) and `record.rs` (what is kept of a request), then
//! `frame.rs` and `reader.rs` (its bytes).
//!
//! # Invariants
//!
//! - The ledger is append-only: reserve → progress… → post or void. An entry never changes. A
//!   correction is an entry of its own.
//! - Each request that was reserved ends in exactly one post or void.
//! - Ids make retries harmless.
//! - Each entry has a CRC and a place in the chain of CRCs. Each segment contains the SHA-256 of
//!   the segment before it (`digest`).
//!
//! This crate knows no files, provider dialects or export formats. `journal` writes and recovers
//! the files. Its front page explains marks, digests, damage and retention.
//!
//! `tally` keeps the sums of a journal, and a checkpoint writes them down. `fold` replays entries:
//! open requests, balances, and contradictions. `mark` says up to which entry everything is on
//! disk. `resume` finds where to read on after damage.

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
    Counted, End, Identity, Record, RecordCost, RecordError, RecordLine, RecordTiming, RecordUsage,
};
pub use resume::{Resumed, resume};
pub use segment::{FORMAT_VERSION, HEADER_BYTES, SegmentHeader};
pub use stages::{Stage, Stages};
pub use tally::{Change, Money, Tally};
