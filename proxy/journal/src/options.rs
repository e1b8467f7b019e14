//! The settings with which a journal is opened, and the events that it reports.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use taximeter_config::{Durability, OnDamage, OnUnavailable};

use super::error::{AppendError, Loss};

/// How a journal is written.
pub struct Options {
    /// The gateway's name in segment headers and in records that are made at a start.
    pub gateway: String,
    /// When an entry counts as written.
    pub durability: Durability,
    /// What happens to damage before the end.
    pub recovery: OnDamage,
    /// What happens to reservations while writing fails.
    pub unavailable: OnUnavailable,
    /// Maximum of bytes in memory for entries that are not yet as durable as `durability` says.
    pub queue_bytes_max: usize,
    /// Length in bytes at which a segment ends and the next one begins.
    pub segment_bytes: u64,
    /// The wall clock.
    pub now: fn() -> Timestamp,
    /// Receives the events that an operator should know. Any thread may call it.
    pub tell: Box<dyn Fn(&Event<'_>) + Send + Sync>,
}

impl Options {
    /// Whether what is written is synced, sooner or later.
    pub(super) fn is_synced(&self) -> bool {
        self.durability != Durability::Os
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("gateway", &self.gateway)
            .field("durability", &self.durability)
            .field("recovery", &self.recovery)
            .field("unavailable", &self.unavailable)
            .field("queue_bytes_max", &self.queue_bytes_max)
            .field("segment_bytes", &self.segment_bytes)
            .finish_non_exhaustive()
    }
}

/// An event that an operator should know.
#[derive(Debug)]
pub enum Event<'a> {
    /// Writing fails. The journal refuses reservations until `Recovered`. It keeps what is queued
    /// and tries again.
    WriteFailed {
        /// Segment.
        path: &'a Path,
        /// First cause.
        error: &'a io::Error,
    },
    /// Writing succeeds again. Nothing that was queued meanwhile is lost.
    Recovered,
    /// A sync failed. What was not synced is written again to a new segment.
    SyncFailed {
        /// Cause.
        error: &'a io::Error,
    },
    /// A closed segment cannot be compressed. It stays as it is, and the journal tries again. It is
    /// told once until it succeeds.
    NotCompressed {
        /// Segment.
        path: &'a Path,
        /// Cause.
        error: &'a io::Error,
    },
    /// Another program removed, replaced or truncated the segment. A new segment follows.
    SegmentLost {
        /// Segment.
        path: &'a Path,
    },
    /// The disk took longer than it should.
    Slow {
        /// What it did.
        action: &'static str,
        /// How long it took.
        took: Duration,
    },
    /// A start left out entries that it could not read.
    Salvaged(&'a Loss),
    /// Requests whose usage is pending are no longer kept, because there are too many. Their cost
    /// stays unknown.
    PendingDropped {
        /// How many.
        requests: u64,
    },
    /// The queue refused an entry for which nobody waits. The entry is lost.
    EntryLost {
        /// Cause.
        error: AppendError,
    },
}
