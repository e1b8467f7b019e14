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
    /// Our name in segment headers and in records made at start.
    pub gateway: String,
    /// When an entry counts as written.
    pub durability: Durability,
    /// What becomes of damage before the end.
    pub recovery: OnDamage,
    /// What becomes of reservations while writing fails.
    pub unavailable: OnUnavailable,
    /// Entries held in memory until they are where `durability` wants them, in bytes.
    pub queue_bytes_max: usize,
    /// A segment that is this long is followed by another one, in bytes.
    pub segment_bytes: u64,
    /// The wall clock.
    pub now: fn() -> Timestamp,
    /// Called for what an operator should know, from whichever thread notices.
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

/// What an operator should know.
#[derive(Debug)]
pub enum Event<'a> {
    /// Reservations are refused until `Recovered`; what is queued is kept and tried again.
    WriteFailed {
        /// Segment.
        path: &'a Path,
        /// First cause.
        error: &'a io::Error,
    },
    /// Writing succeeds again; what was queued meanwhile is not lost.
    Recovered,
    /// What was not synced yet is written anew to a fresh segment.
    SyncFailed {
        /// Cause.
        error: &'a io::Error,
    },
    /// The segment was removed, replaced or truncated by somebody else; a fresh one follows.
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
    /// Entries that could not be read are left out from now on.
    Salvaged(&'a Loss),
    /// An entry that nobody waits for could not be taken: it is lost.
    EntryLost {
        /// Cause.
        error: AppendError,
    },
}
