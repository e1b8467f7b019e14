//! Exemplars: for each bucket of a histogram, the last request that fell into it.

use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use taximeter_ledger::RequestId;

use super::trace::Found;

/// The origin of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The id of the request, as in its record and in the client's `x-taximeter-request-id`.
    pub request: RequestId,
    /// Its place in a trace; `None` if its trace is not kept.
    pub trace: Option<Found>,
    /// When the sample was taken.
    pub at: Timestamp,
}

/// A sample and where it comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Exemplar {
    pub(crate) bucket: usize,
    pub value: f64,
    pub origin: Origin,
}

/// The last exemplar of each bucket that has ever had one: never more than there are buckets.
#[derive(Debug, Default)]
pub(crate) struct Exemplars(Mutex<Vec<Exemplar>>);

impl Exemplars {
    /// Keeps this one in place of its bucket's last. Nobody waits to do so: one of two that come
    /// together is as good an example as the other.
    pub(crate) fn keep(&self, new: Exemplar) {
        let Ok(mut kept) = self.0.try_lock() else { return };
        match kept.iter_mut().find(|kept| kept.bucket == new.bucket) {
            Some(old) => *old = new,
            None => kept.push(new),
        }
    }

    /// All of them, in no order.
    pub(crate) fn all(&self) -> Vec<Exemplar> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_keeps_its_last() {
        let exemplars = Exemplars::default();
        let origin = Origin {
            request: RequestId(uuid::Uuid::nil()),
            trace: None,
            at: Timestamp::UNIX_EPOCH,
        };
        for (bucket, value) in [(3, 1.0), (0, 0.1), (3, 2.0)] {
            exemplars.keep(Exemplar { bucket, value, origin });
        }
        let kept: Vec<_> = exemplars.all().iter().map(|e| (e.bucket, e.value)).collect();
        assert_eq!(kept, [(3, 2.0), (0, 0.1)]);
    }
}
