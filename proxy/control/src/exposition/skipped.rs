//! Lines that cannot be read.

use std::fmt;

/// Why a line was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// Its bytes are not UTF-8.
    NotUtf8,
    /// It is longer than [`super::Bounds::line_bytes`].
    LongLine,
    /// It does not begin with the name of a metric.
    Name,
    /// A quoted name has an escape.
    EscapedName,
    /// A label has no name, no `=`, or no quote before its value.
    Label,
    /// The value of a label does not end.
    OpenLabel,
    /// The labels do not end with `}`.
    OpenLabels,
    /// Two labels have the same name.
    LabelTwice,
    /// It has more labels than [`super::Bounds::labels`].
    ManyLabels,
    /// There is no value.
    NoValue,
    /// The value is no number.
    Value,
    /// The time stamp is no number.
    Stamp,
    /// Something stands behind value and time stamp.
    Behind,
    /// `# TYPE` names no type that there is.
    Type,
    /// There are already [`super::Bounds::samples`] samples.
    ManySamples,
    /// It stands behind `# EOF`.
    BehindEnd,
    /// The same series has another sample.
    Twice,
    /// The text ends in the middle of it.
    Cut,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotUtf8 => "it is not UTF-8",
            Self::LongLine => "it is too long",
            Self::Name => "it does not begin with the name of a metric",
            Self::EscapedName => "its name has an escape",
            Self::Label => "a label is not name=\"value\"",
            Self::OpenLabel => "the value of a label has no closing quote",
            Self::OpenLabels => "its labels have no closing brace",
            Self::LabelTwice => "two of its labels have the same name",
            Self::ManyLabels => "it has too many labels",
            Self::NoValue => "it has no value",
            Self::Value => "its value is no number",
            Self::Stamp => "its time stamp is no number",
            Self::Behind => "something stands behind its value",
            Self::Type => "it declares a type that does not exist",
            Self::ManySamples => "there are too many samples before it",
            Self::BehindEnd => "it stands behind `# EOF`",
            Self::Twice => "the series has another sample",
            Self::Cut => "the text ends in it, so that its value may be cut off",
        })
    }
}

/// The lines that were skipped. All are counted; the first ones are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    count: u64,
    told: Vec<(u64, Why)>,
    most: usize,
}

impl Skipped {
    pub(super) fn new(most: usize) -> Self {
        Self { count: 0, told: Vec::new(), most }
    }

    pub(super) fn add(&mut self, line: u64, why: Why) {
        self.count += 1;
        if self.told.len() < self.most {
            self.told.push((line, why));
        }
    }

    pub(super) fn sort(&mut self) {
        self.told.sort_by_key(|(line, _)| *line);
    }

    /// How many lines.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first of them: number of the line, from 1 on, and why.
    #[must_use]
    pub fn told(&self) -> &[(u64, Why)] {
        &self.told
    }
}
