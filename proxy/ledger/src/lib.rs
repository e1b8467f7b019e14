//! The entries of the journal: what they say, how they are encoded, and what they add up to.
//!
//! Begin with `entry.rs` (the kinds of entries) and `record.rs` (the record of a request). Then
//! read `frame.rs` and `reader.rs` (the bytes of an entry).
//!
//! # Invariants
//!
//! - The ledger is append-only. An entry never changes. A correction is an entry of its own.
//! - The entries of a request come in this order: reservation, progress (any number), then one post
//!   or one void.
//! - Each request with a reservation ends in exactly one post or void.
//! - An entry that is read twice counts once: ids identify requests and corrections.
//! - A request whose usage is pending is completed at most once: the id of that correction follows
//!   from the id of the request.
//! - Each entry has a CRC and a place in a chain of CRCs. Each segment contains the SHA-256 of the
//!   segment before it (`digest`).
//!
//! This crate knows no files, provider dialects or export formats. `journal` writes and recovers
//! the files. Its front page explains sync marks, digests, damage and retention.
//!
//! `running_totals` keeps the sums of a journal, and a checkpoint stores them. `carried` has the
//! requests that are open where a segment begins. `fold` replays
//! entries: open reservations, balances and contradictions. `sync_mark` says up to which entry the
//! journal is on disk. `resume` finds the next readable entry after damage. `format4` reads journals
//! of the format before this one.

mod carried;
mod charge;
mod completion;
mod digest;
mod dimensions;
mod encoding;
mod entry;
mod fold;
pub mod format4;
mod frame;
mod framed;
mod gaps;
mod id;
mod id_set;
mod kind;
mod place;
mod reader;
mod record;
mod refusals;
mod resume;
mod running_totals;
mod segment;
mod stages;
mod sync_mark;
mod unknown_cost;

#[cfg(test)]
mod tests;

pub use carried::CarriedRequest;
pub use charge::{Charge, used_nothing};
pub use completion::{
    Completion, PENDING_AGE_MAX, PENDING_BYTES_MAX, PENDING_MAX, PendingRequest, PendingRequests,
};
pub use digest::{Digest, Digester};
pub use dimensions::{Dimensions, RequestKind, SessionSource};
pub use encoding::{
    CostNumbers, DecodeError, LineQuantities, Payload, PostBytes, PostNumbers, PostNumbersReader,
    PostView, RecordDecoder, StringsSoFar, TOKENS_MAX, join_payload,
};
pub use entry::{
    Checkpoint, Completed, Correction, Entry, Progress, Reserve, Settled, Void, VoidReason,
};
pub use fold::{
    Balance, COUNT_TOKENS, Contradiction, OpenReservation, Replay, Settlement, gateway_died_record,
};
pub use frame::{
    ENTRY_BYTES_MAX, EncodeError, EncodedEntry, FRAME_BYTES_MIN, Framer, Position, frame_bytes,
};
pub use framed::{Fault, FramedEntry};
pub use gaps::{GAP_BUCKETS, Gaps};
pub use id::{LedgerId, RequestId, TENANT_BYTES_MAX, TenantId, TenantIdError};
pub use kind::Kind;
pub use place::Place;
pub use reader::Reader;
pub use record::{
    Counted, End, Identity, Record, RecordCost, RecordError, RecordLine, RecordTiming, RecordUsage,
};
pub use refusals::{RefusalCount, RefusalKind, Refusals};
pub use resume::{ResumePoint, find_resume_point};
pub use running_totals::{Change, Money, RunningTotals};
pub use segment::{FORMAT_VERSION, HEADER_BYTES, SegmentHeader};
pub use stages::{Stage, Stages};
pub use sync_mark::SyncMark;
pub use unknown_cost::{UnknownCost, UnknownCostReason};
