//! The distinct metrics of a scrape.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::sample::{Label, Samples};

/// One metric: its name, and the labels of its first sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metric<'a> {
    pub name: &'a str,
    pub labels: &'a [Label<'a>],
}

/// All of them, and which one each sample is of.
pub(crate) struct Names<'a> {
    pub metrics: Vec<Metric<'a>>,
    pub of: Vec<u32>,
}

impl<'a> Names<'a> {
    pub(crate) fn of(samples: &'a Samples<'a>) -> Self {
        let mut names = Self { metrics: Vec::new(), of: Vec::with_capacity(samples.len()) };
        let mut seen: HashMap<&str, u32, RandomState> = HashMap::default();
        let mut last = ("", 0);
        for (sample, labels) in samples.iter() {
            if last.0 != sample.name || names.of.is_empty() {
                let next = u32::try_from(names.metrics.len()).unwrap_or(u32::MAX);
                let number = *seen.entry(sample.name).or_insert(next);
                if number == next {
                    names.metrics.push(Metric { name: sample.name, labels });
                }
                last = (sample.name, number);
            }
            names.of.push(last.1);
        }
        names
    }
}
