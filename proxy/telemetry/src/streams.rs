//! What is told of a stream while it runs: its wait for the first token when that comes, and its
//! output as far as it is known.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use ::metrics::{CounterFn as _, Label};
use dashmap::DashMap;

use super::attributes::{KeptNames, RequestNames, genai};
use super::bounded::OTHER;
use super::exemplar::Origin;
use super::instruments::{Buckets, Count, Instruments, SeriesSlot};
use super::names::{Instrument, key};
use super::wait::Wait;

/// The series of streams with the same names, each made when it is first needed.
pub struct StreamSeries {
    names: KeptNames,
    server: Option<[Label; 2]>,
    wait: SeriesSlot<Buckets>,
    output: SeriesSlot<Count>,
}

/// The series of all streams that ran. They are found by a hash, so that a look-up copies no name.
pub(super) struct Streams {
    hasher: RandomState,
    known: DashMap<u64, Arc<StreamSeries>>,
    max: usize,
}

impl Streams {
    /// No series yet; at most so many kinds of streams have some of their own.
    pub(super) fn new(max: usize) -> Self {
        Self { hasher: RandomState::new(), known: DashMap::new(), max }
    }

    /// The series for these names, which may be labels. `server` is asked for a kind that is new.
    pub(super) fn series(
        &self,
        mut names: RequestNames<'_>,
        server: impl FnOnce() -> Option<[Label; 2]>,
    ) -> Arc<StreamSeries> {
        let mut hash = self.hasher.hash_one(names);
        if let Some(series) = self.found(hash, names) {
            return series;
        }
        if self.known.len() >= self.max {
            names.tenant = OTHER;
            names.request_model = names.request_model.map(|_| OTHER);
            names.response_model = names.response_model.map(|_| OTHER);
            hash = self.hasher.hash_one(names);
            if let Some(series) = self.found(hash, names) {
                return series;
            }
        }
        let made = Arc::new(StreamSeries::new(names, server()));
        let kept = self.known.entry(hash).or_insert_with(|| made.clone()).clone();
        // Another kind has the same hash: that one stays, and both have the right labels.
        if kept.names.get() == names { kept } else { made }
    }

    /// Forgets which series there are. Their numbers stay.
    pub(super) fn clear(&self) {
        self.known.clear();
    }

    fn found(&self, hash: u64, names: RequestNames<'_>) -> Option<Arc<StreamSeries>> {
        let series = self.known.get(&hash)?;
        (series.names.get() == names).then(|| series.clone())
    }
}

impl StreamSeries {
    fn new(names: RequestNames<'_>, server: Option<[Label; 2]>) -> Self {
        Self { names: names.into(), server, wait: SeriesSlot::new(), output: SeriesSlot::new() }
    }

    /// Records the wait for a first token, which has come.
    pub(super) fn waited(&self, to: &Instruments, wait: Wait, origin: Origin) {
        self.wait
            .get_or_init(|| {
                let mut labels = genai(self.names.get(), self.server.as_ref());
                labels.extend(wait.labels());
                to.buckets(Instrument::FirstTokenWait, labels)
            })
            .record_from(wait.duration.as_secs_f64(), origin);
    }

    /// So many more tokens of output.
    pub(super) fn generated(&self, to: &Instruments, tokens: u64) {
        self.output
            .get_or_init(|| {
                let RequestNames { tenant, upstream, request_model, .. } = self.names.get();
                let model = request_model.map(|model| (key::GEN_AI_REQUEST_MODEL, model));
                let labels = [(key::TENANT, tenant), (key::UPSTREAM, upstream)]
                    .into_iter()
                    .chain(model)
                    .map(|(key, value)| Label::new(key, value.to_owned()))
                    .collect();
                to.count(Instrument::RunningOutput, labels)
            })
            .increment(tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tenant: &str) -> RequestNames<'_> {
        RequestNames {
            tenant,
            operation: "chat",
            upstream: "e",
            provider: "vllm",
            request_model: Some("m"),
            response_model: None,
        }
    }

    #[test]
    fn streams_with_the_same_names_share_series_and_those_beyond_the_maximum_share_one() {
        let streams = Streams::new(2);
        let of = |tenant| streams.series(names(tenant), || None);
        assert!(Arc::ptr_eq(&of("a"), &of("a")));
        assert!(!Arc::ptr_eq(&of("a"), &of("b")));
        let (c, d) = (of("c"), of("d"));
        assert!(Arc::ptr_eq(&c, &d));
        let rest = RequestNames { request_model: Some(OTHER), ..names(OTHER) };
        assert_eq!(c.names.get(), rest);
        assert_eq!(of("a").names.get(), names("a"));
        streams.clear();
        assert!(Arc::ptr_eq(&of("c"), &of("c")) && of("c").names.get() == names("c"));
    }

    #[test]
    fn a_kind_whose_hash_is_another_s_has_its_own_labels() {
        let streams = Streams::new(9);
        let other = Arc::new(StreamSeries::new(names("other kind"), None));
        streams.known.insert(streams.hasher.hash_one(names("a")), other.clone());
        let series = streams.series(names("a"), || None);
        assert_eq!(series.names.get(), names("a"));
        assert_eq!(other.names.get(), names("other kind"));
    }
}
