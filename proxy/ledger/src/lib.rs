//! Journal entries, their framing, and what they add up to.
//!
//! Append-only: reserve → post | void. An entry is never changed; ids make retries harmless. Every request that
//! was reserved ends in exactly one post or void. Refuses to know files, provider dialects and export formats.

mod entry;
mod record;

pub use entry::{Entry, Reserve, Void, VoidReason};
pub use record::{
    Counted, End, Identity, Record, RecordCost, RecordLine, RecordTiming, RecordUsage, RequestId,
    TenantId,
};
