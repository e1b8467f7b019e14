//! Metrics of engines, GPUs and hosts, in one schema.
//!
//! Named samples and a time in, quantities out. Begin with `read.rs`; what the schema has is in
//! `quantity.rs`, and what each program calls it in `source/`, one table for each.
//!
//! # Invariants
//!
//! - What a program does not tell is unknown, with the reason, and never 0.
//! - Each quantity says from which metric it is, and what was done to it.
//! - A program is recognised by several marks, and the reading says which. Two programs may stand in
//!   one scrape.
//! - Values that a program repeats under an old name and a new one are never added.
//!
//! This crate does not know where samples come from, which text they stood in, or who asks.

mod histogram;
mod identity;
mod names;
mod quantity;
mod read;
mod reading;
mod recognise;
mod row;
mod sample;
mod source;
mod unknown;

pub use histogram::{Distribution, Percentile};
pub use identity::{Field, Identity};
pub use quantity::{Instrument, Layer, QUANTITIES, Quantity, Valid};
pub use read::read;
pub use reading::{Measured, Program, Reading, Unknown, Value};
pub use row::{Derived, Mark, Op, Refuse, Row, Source};
pub use sample::{Declared, Label, Sample, Samples};
pub use source::SOURCES;
