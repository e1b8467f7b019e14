//! Metrics of engines, GPUs and hosts, in one schema.
//!
//! Named samples and a time in, quantities out. Begin with `read.rs`; what the schema has is in
//! `quantity.rs`, and what each program calls it in `source/`, one table for each. `series.rs` goes from
//! one scrape of a source to the next, `kubelet.rs` reads whose each GPU is, `target.rs` has all sources as
//! they are now, `join.rs` says which of them serve an upstream, `memory.rs` makes samples of them that are
//! kept, and `events.rs` finds changes.
//!
//! # Invariants
//!
//! - What a program does not tell is unknown, with the reason, and never 0.
//! - Each quantity says from which metric it is, and what was done to it.
//! - A program is recognised by several marks, and the reading says which. Two programs may stand in
//!   one scrape.
//! - Values that a program repeats under an old name and a new one are never added.
//! - A value holds for three periods of its source, which are learnt from when values change.
//! - A source has at most [`SERIES_MAX`] series, and what they have in common is kept once.
//!
//! This crate does not know where samples come from, which text they stood in, or who asks.

mod events;
mod histogram;
mod identity;
mod join;
mod kubelet;
mod memory;
mod names;
mod period;
mod pool;
mod quantity;
mod read;
mod reading;
mod recognise;
mod row;
mod sample;
mod series;
mod source;
mod target;
mod unknown;

pub use events::event::{Event, EventKind};
pub use events::facts::Fact;
pub use events::held::{EVENTS_MAX, EVENTS_OF_ONE_MAX, FACTS_MAX};
pub use events::watcher::{Known, Own, Watcher};
pub use histogram::{Buckets, Distribution, Percentile};
pub use identity::{Field, Identity, fields_of_device};
pub use join::{Basis, Join, Link, Links, Upstream, Whereabouts, joined};
pub use kubelet::{Held, read_held};
pub use memory::grid::Grid;
pub use memory::key::{SampleKey, WHO};
pub use memory::recorder::{FOLLOWED_MAX, Recorder, Told, WAITING_MAX};
pub use memory::roll::{At, Share, roll, settle, shares};
pub use memory::scale::{scale_of, value, whole};
pub use memory::statistic::Statistic;
pub use period::Period;
pub use pool::{Pool, What};
pub use quantity::{Instrument, Layer, QUANTITIES, Quantity, Valid};
pub use read::read;
pub use reading::{Component, Measured, Program, Reading, Unknown, Value, Version};
pub use row::{Derived, Mark, Op, Refuse, Row, Source};
pub use sample::{Declared, Label, Sample, Samples};
pub use series::{Counts, Quantities, SERIES_MAX, Series};
pub use source::{PROC_FILES, PROC_NEVER, PROC_ROWS, ProcRow, SOURCES, read_proc};
pub use target::{Board, Silence, Target, TargetKind, TargetState};
