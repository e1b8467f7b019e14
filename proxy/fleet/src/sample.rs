//! Named samples: what one scrape says, before anybody knows what it means.

use std::borrow::Cow;

/// One label of a sample.
#[derive(Debug, Clone, Eq)]
pub struct Label<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its value, without escapes.
    pub value: Cow<'a, str>,
}

impl PartialEq for Label<'_> {
    /// Labels of neighbours are often the same text at the same place, which need not be compared.
    fn eq(&self, other: &Self) -> bool {
        let same = |a: &str, b: &str| std::ptr::eq(a, b) || a == b;
        same(self.name, other.name) && same(&self.value, &other.value)
    }
}

/// What a program declares its metric to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Declared {
    /// It only grows, until its program starts again.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts below bounds.
    Histogram,
    /// Anything else, or nothing.
    #[default]
    Nothing,
}

/// One value of one series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample<'a> {
    /// Name of the metric, as it was printed.
    pub name: &'a str,
    /// What the program declared it to be.
    pub declared: Declared,
    /// The value. Also NaN and the infinities.
    pub value: f64,
    /// The program's own time of the value, in milliseconds since 1970.
    pub stamped: Option<i64>,
    /// The line that it stands in, from 1 on.
    pub line: u32,
}

/// The samples of one scrape, with their labels. Two lists, however many series there are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Samples<'a> {
    samples: Vec<(Sample<'a>, u32)>,
    labels: Vec<Label<'a>>,
}

impl<'a> Samples<'a> {
    /// Room for `samples` samples of some five labels each.
    #[must_use]
    pub fn with_capacity(samples: usize) -> Self {
        let labels = samples.saturating_mul(5);
        Self { samples: Vec::with_capacity(samples), labels: Vec::with_capacity(labels) }
    }

    /// Adds a sample, with the labels in `labels`, which is empty afterwards.
    pub fn push(&mut self, sample: Sample<'a>, labels: &mut Vec<Label<'a>>) {
        self.labels.append(labels);
        self.samples.push((sample, u32::try_from(self.labels.len()).unwrap_or(u32::MAX)));
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Sample number `at`, from 0 on.
    #[must_use]
    pub fn get(&self, at: usize) -> Option<(&Sample<'a>, &[Label<'a>])> {
        let begin = match at.checked_sub(1) {
            Some(before) => self.samples.get(before)?.1 as usize,
            None => 0,
        };
        let (sample, end) = self.samples.get(at)?;
        Some((sample, self.labels.get(begin..*end as usize)?))
    }

    /// The labels of the last one.
    #[must_use]
    pub fn last_labels(&self) -> &[Label<'a>] {
        self.get(self.samples.len().saturating_sub(1)).map(|(_, labels)| labels).unwrap_or_default()
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&Sample<'a>, &[Label<'a>])> {
        let mut begin = 0;
        self.samples.iter().map(move |(sample, end)| {
            let labels = self.labels.get(begin..*end as usize).unwrap_or_default();
            begin = *end as usize;
            (sample, labels)
        })
    }
}

/// The value of a label.
pub(crate) fn value<'s>(labels: &'s [Label<'_>], name: &str) -> Option<&'s str> {
    labels.iter().find(|label| label.name == name).map(|label| label.value.as_ref())
}
