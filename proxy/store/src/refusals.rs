//! Requests that have no record, as `taximeter refusals`, `/api/v1/refusals` and the console tell them.

mod render;
mod sums;

pub use render::RefusalsFormat;
pub use sums::{Every, RefusalQuestion, RefusalSum, RefusalSums};
