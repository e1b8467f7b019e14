//! What a series says at a moment.

use taximeter_meter::ExponentialHistogram;

use super::exemplar::Exemplar;

/// A histogram at a moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution {
    /// Upper bounds of all buckets but the last, which has none.
    pub bounds: &'static [f64],
    /// Samples in each bucket.
    pub counts: Vec<u64>,
    pub sum: f64,
    /// At most one a bucket, in no order.
    pub(crate) exemplars: Vec<Exemplar>,
    /// The same samples in native buckets, where these were asked for.
    pub(crate) native: Option<ExponentialHistogram>,
}

/// The value of a series at a moment.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Count(u64),
    Number(f64),
    Distribution(Distribution),
}

impl Value {
    /// The value that a series of this kind begins with.
    pub(crate) fn at_birth(self) -> Self {
        match self {
            Self::Count(_) => Self::Count(0),
            Self::Number(_) => Self::Number(0.0),
            Self::Distribution(read) => Self::Distribution(Distribution {
                bounds: read.bounds,
                counts: vec![0; read.counts.len()],
                sum: 0.0,
                exemplars: Vec::new(),
                native: read.native.map(|_| ExponentialHistogram::default()),
            }),
        }
    }
}
