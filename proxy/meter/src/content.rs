//! What a request and its answer say, as the messages of OpenTelemetry's GenAI conventions.
//!
//! Images, sound and files are named and never carried. What cannot be read is left out.
//!
//! Source: the conventions' JSON schemas of messages, system instructions and tool definitions, as
//! of 2026-05-11.

mod asked;
mod draft;
mod part;
mod transcript;

pub use asked::Asked;
pub use transcript::Transcript;
