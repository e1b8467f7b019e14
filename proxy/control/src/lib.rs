//! What engines, GPUs and hosts expose, for `fleet`.
//!
//! Begin with `exposition.rs`: the text of a scrape in, samples out.
//!
//! # Invariants
//!
//! - A line that cannot be read is skipped, counted, and told with its number and the reason. It never
//!   costs the other lines.
//! - Bytes, lengths of lines, labels, samples and what is told of skipped lines are bounded
//!   ([`exposition::Bounds`]).
//! - Reading allocates nothing per line: samples borrow from the text and stand in two lists. Only a
//!   label's value with an escape in it is a copy.
//!
//! This crate does not know what a metric means. That is `fleet`.

pub mod exposition;
