//! Measures one exchange: takes bytes and times, and returns one `Measurement`.
//!
//! The crate has no socket, no clock and no async code. A fault in it never reaches the client. It
//! does not know tenants or prices.

mod answer;
mod asking;
mod blocks;
mod body;
mod calls;
mod content;
mod cut;
mod decode;
mod dialect;
mod elements;
mod exponential;
mod facts;
mod form;
mod frames;
mod json;
mod lines;
mod listener;
mod measurement;
mod meter;
mod partial;
mod passage;
mod prompt;
mod reader;
mod recogniser;
mod reports;
mod request;
mod sniff;
mod sse;
mod template;
mod timing;
mod usage;
mod wire;

pub use asking::{Hidden, UsageAsk};
pub use content::{Asked, Transcript};
pub use decode::{DecodeFault, DecodeLimits, Decoder, is_identity, is_readable};
pub use dialect::Dialect;
pub use exponential::Exponential;
pub use frames::exception;
pub use listener::Setup;
pub use measurement::{
    Counts, Ending, GapHistogram, Kinds, Measurement, Reported, StreamEnd, Timing,
};
pub use meter::{Framing, Meter, ReadLimits};
pub use passage::Passage;
pub use prompt::{Prompt, prompt_chats, prompt_text, spoken_characters};
pub use reader::RequestReader;
pub use request::{Parameter, Question, RequestFacts, RequestFault, Splice};
pub use wire::{Output, Wire};
