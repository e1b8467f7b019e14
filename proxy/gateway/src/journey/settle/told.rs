//! What metrics were told of a stream while it runs.

use std::sync::Arc;

use taximeter_telemetry::StreamSeries;

/// What was told so far.
#[derive(Default)]
pub(crate) struct ToldStream {
    /// Its series, once something was told.
    pub(super) series: Option<Arc<StreamSeries>>,
    /// Its wait for the first token was.
    pub(crate) has_wait: bool,
    /// So many tokens of its output were.
    pub(super) output_tokens: u64,
}
