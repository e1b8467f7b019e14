//! What engines, GPUs and hosts expose, for `fleet`: asks them, and reads their text.
//!
//! Begin with `scraper.rs`, the thread that asks all sources. `schedule.rs` says when, `ask.rs` is one
//! question, `exposition.rs` makes samples of its text, and `plan.rs` says who is asked. `host.rs`
//! reads `/proc`, `kubelet.rs` asks the kubelet, `version.rs` engines for their version, and
//! `annotations.rs` reads the annotations of our own pod.
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
//! - A source is asked one question at a time, which has limits of time and bytes, also of what is
//!   decoded. Redirects are not followed. A credential goes only to the address that it is for.
//! - No request waits for a scrape: the thread shares nothing with those that carry requests but a
//!   count for each upstream.
//!
//! This crate does not know what a metric means. That is `fleet`.

mod annotations;
mod ask;
pub mod exposition;
mod host;
mod kubelet;
mod plan;
mod schedule;
mod scraper;
mod version;

pub use annotations::{Annotations, AnnotationsFile};
pub use plan::{Address, Looked, Plan, Source};
pub use schedule::{Outcome, Schedule};
pub use scraper::Scraper;
