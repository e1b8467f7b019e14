//! The content of a request and its answer, as messages of OpenTelemetry's GenAI conventions.
//!
//! A message names images, audio and files, and does not carry them. The reader leaves out what it
//! cannot read.
//!
//! Source: the conventions' JSON schemas of messages, system instructions and tool definitions, as
//! of 2026-05-11.

mod asked;
mod draft;
mod part;
mod transcript;

pub use asked::Asked;
pub use transcript::Transcript;
