//! The trait of an event.

use super::log::Log;
use super::metrics::Metrics;

/// Something that happened.
pub trait Event {
    /// What it adds to the metrics.
    fn count(&self, to: &Metrics);

    /// Its log line, if it has one.
    fn line(&self, _to: &Log) {}
}
