//! The memory of the fleet, without its files: samples on a grid of times, as whole numbers.
//!
//! `recorder.rs` takes what sources tell, and gives out what is over: each second of a minute, and the
//! minute made from it. Until then samples wait in `waiting.rs`. `roll.rs` makes an hour of its minutes. `statistic.rs` says what is kept of which
//! quantity, and `scale.rs` how a value becomes a whole number.
//!
//! # Invariants
//!
//! - Where nothing came there is no sample. A gap is never 0.
//! - A value that a source repeats because it has no newer one is one sample.
//! - Of a counter is kept by how much it grew since the sample before, and nothing where that is not
//!   known: at its first sample, and after a silence.
//! - A coarser grid is made from the finer one, so that it can be made again after a crash.

pub(crate) mod grid;
pub(crate) mod key;
mod line;
pub(crate) mod recorder;
pub(crate) mod roll;
pub(crate) mod scale;
pub(crate) mod statistic;
mod waiting;
