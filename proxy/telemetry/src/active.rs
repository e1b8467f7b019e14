//! Counts the requests that run, by method. Every request adds one and takes one away.

use std::sync::{Arc, OnceLock};

use ::metrics::{GaugeFn as _, Label};
use http::Method;

use super::attributes::{METHODS, method_label};
use super::instruments::{Instruments, Number, Series};
use super::names::{Instrument, key};

/// Requests that run, by method; a method that nobody uses has no series.
#[derive(Default)]
pub(super) struct ActiveRequests([OnceLock<Arc<Series<Number>>>; METHODS.len()]);

/// A running request. It counts as running until this is dropped.
pub struct Active(Option<Arc<Series<Number>>>);

impl ActiveRequests {
    /// One more.
    pub(super) fn begin(
        &self,
        instruments: &Instruments,
        method: &Method,
        scheme: &'static str,
    ) -> Active {
        let label = method_label(method);
        let slot = METHODS.iter().position(|known| *known == label);
        let series = slot.and_then(|slot| self.0.get(slot)).map(|series| {
            series.get_or_init(|| {
                let labels = vec![
                    Label::new(key::HTTP_REQUEST_METHOD, label),
                    Label::new(key::URL_SCHEME, scheme),
                ];
                instruments.number(Instrument::HttpServerActiveRequests, labels)
            })
        });
        let active = Active(series.cloned());
        if let Some(series) = &active.0 {
            series.increment(1.0);
        }
        active
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        if let Some(series) = &self.0 {
            series.decrement(1.0);
        }
    }
}
