//! The meter: bytes and times of one exchange in, one `Measurement` out.
//!
//! Begin with `meter.rs`.
//!
//! # Invariants
//!
//! - Time and bytes are arguments. There is no socket, no clock, no async and no logging.
//! - Where one read ends and the next begins never changes the result.
//! - A fault in here never reaches the client. The bytes go on, and the usage becomes unknown.
//! - Memory is bounded by named constants. The length of a line, an event or a document is not: a long
//!   one is condensed while it comes.
//! - Only `timing.rs` looks at the times that the caller passes.
//!
//! This crate knows no tenants, prices or sockets.
//!
//! # Wire formats and dialects
//!
//! A wire format (`wire/`, one file each) is the shape of a route's requests and answers. A dialect
//! (`dialect/`, one file each) is the habits of one engine or provider within a wire format: when
//! it reports usage, and what it accepts. A provider is the name that telemetry and prices use. To
//! add an engine, add its file in `dialect/`, its line in the table of `dialect.rs`, and a fixture.
//! Usage objects are read by the names of their members (`usage/`), so that a provider behind
//! another dialect is read correctly.
//!
//! # How an answer is read
//!
//! The crate `framing` decides the kind of the body and cuts a stream into events. Each wire format
//! turns an event into a few facts (`facts`): content began, usage is this, the stream is over.
//! What was generated (`generated`) goes to `output_text`, which keeps it for counting. Engines send
//! some text twice: `channel_text` tells what of it is new.
//! `delivery` says which bytes may go on at once and which wait because something must be removed.
//! An encoded answer passes as it came while a decoder reads a copy, and stops at damage or at its
//! limits. `template` is a shortcut for chunks that differ only in their text. `content` turns a
//! request and its answer into messages of the GenAI conventions, for traces.
//!
//! Answers are read leniently, because their bytes have already gone to the client. The crate
//! `request` reads requests.

mod answer;
mod answer_reader;
mod asking;
mod calls;
mod channel_text;
mod content;
mod cut;
mod delivery;
mod dialect;
mod dialect_detector;
mod exponential_histogram;
mod facts;
mod generated;
mod json;
mod measurement;
mod meter;
mod output_text;
mod provider_error;
mod reports;
mod template;
mod timing;
mod tool_calls;
mod tool_names;
mod usage;
mod wire;

pub use answer_reader::Setup;
pub use asking::{Hidden, UsageAsk};
pub use content::{Asked, Transcript};
pub use delivery::Delivery;
pub use dialect::Dialect;
pub use exponential_histogram::ExponentialHistogram;
pub use measurement::{
    Counts, Ending, GapHistogram, Kinds, Measurement, Reported, StreamEnd, Timing,
};
pub use meter::{Framing, Meter};
pub use provider_error::ProviderError;
pub use wire::{Output, Wire};
