//! Bytes and times of one exchange in, one `Measurement` out.
//!
//! No socket, no clock, no async: time and bytes are arguments. A fault in here never reaches the client.
//! Refuses to know tenants and prices.

mod dialect;
mod measurement;
mod prompt;
mod request;
mod wire;

pub use dialect::Dialect;
pub use measurement::{Counts, Ending, GapHistogram, Measurement, Reported, StreamEnd, Timing};
pub use prompt::{Prompt, prompt_text};
pub use request::{JSON_DEPTH_MAX, RequestFacts, RequestFault, RequestReader, Splice};
pub use wire::Wire;
