//! What a table of a source is made of.

use crate::identity::Field;
use crate::quantity::Quantity;
use crate::reading::Component;
use crate::sample::Declared;

/// One metric of a program, and the quantity that it is.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its names, without the program's prefix and without `_total`. Where two stand side by side in
    /// one scrape, the earlier counts. They are never added.
    pub names: &'static [&'static str],
    /// What it is. Of two rows with the same quantity and attributes the earlier counts.
    pub quantity: &'static Quantity,
    /// What the value is multiplied with.
    pub scale: f64,
    /// The program's own unit, if it is another one.
    pub unit: &'static str,
    /// Attributes that the metric's name stands for.
    pub fixed: &'static [(&'static str, &'static str)],
    /// Labels that are attributes: their name, and the attribute's.
    pub labels: &'static [(&'static str, &'static str)],
    /// Only series of which this label has one of these values; of none, any value.
    pub only: Option<(&'static str, &'static [&'static str])>,
    /// Only if the metric was declared so.
    pub declared: Option<Declared>,
    /// What is taken for granted where the metric was declared to be nothing.
    pub undeclared: &'static str,
    /// Labels that tell series apart which are one quantity: they are added.
    pub sum_over: &'static [&'static str],
    /// If the value is a set of bits: each bit, and the reason that it stands for.
    pub bits: &'static [(u32, &'static str)],
    /// If the value is a product of labels: which. All other labels tell nothing then.
    pub product: &'static [&'static str],
    /// Values that are no values, and why.
    pub refuse: &'static [Refuse],
    /// Why it may be missing from a scrape.
    pub absent: &'static str,
    /// Why it is missing where the subject is a part of a GPU.
    pub absent_in_part: &'static str,
}

/// A value that stands for something else.
#[derive(Debug, Clone, Copy)]
pub enum Refuse {
    /// Zero means that there is nothing to tell.
    Zero(&'static str),
    /// Zero means the same where this label has another value than `0`.
    ZeroBeyondFirst(&'static str, &'static str),
    /// Below zero means that there is nothing to tell.
    Negative(&'static str),
    /// What the value means is not known.
    Always(&'static str),
}

/// A row without anything special.
pub(crate) const fn row(names: &'static [&'static str], quantity: &'static Quantity) -> Row {
    Row {
        names,
        quantity,
        scale: 1.0,
        unit: "",
        fixed: &[],
        labels: &[],
        only: None,
        declared: None,
        undeclared: "",
        sum_over: &[],
        bits: &[],
        product: &[],
        refuse: &[],
        absent: "",
        absent_in_part: "",
    }
}

impl Row {
    /// A value of the program in the quantity's unit. Thousandths are divided, which is exact more often
    /// than multiplying.
    pub(crate) fn in_unit(&self, value: f64) -> f64 {
        match self.scale < 1.0 {
            true => value / (1.0 / self.scale).round(),
            false => value * self.scale,
        }
    }

    pub(crate) const fn scaled(mut self, unit: &'static str, scale: f64) -> Self {
        self.unit = unit;
        self.scale = scale;
        self
    }

    pub(crate) const fn fixed(mut self, fixed: &'static [(&'static str, &'static str)]) -> Self {
        self.fixed = fixed;
        self
    }

    pub(crate) const fn labels(mut self, labels: &'static [(&'static str, &'static str)]) -> Self {
        self.labels = labels;
        self
    }

    pub(crate) const fn only(
        mut self,
        label: &'static str,
        values: &'static [&'static str],
    ) -> Self {
        self.only = Some((label, values));
        self
    }

    pub(crate) const fn declared(mut self, declared: Declared) -> Self {
        self.declared = Some(declared);
        self
    }

    pub(crate) const fn undeclared(mut self, how: &'static str) -> Self {
        self.undeclared = how;
        self
    }

    pub(crate) const fn sum_over(mut self, labels: &'static [&'static str]) -> Self {
        self.sum_over = labels;
        self
    }

    pub(crate) const fn bits(mut self, bits: &'static [(u32, &'static str)]) -> Self {
        self.bits = bits;
        self
    }

    pub(crate) const fn product(mut self, labels: &'static [&'static str]) -> Self {
        self.product = labels;
        self
    }

    pub(crate) const fn refuse(mut self, refuse: &'static [Refuse]) -> Self {
        self.refuse = refuse;
        self
    }

    pub(crate) const fn absent(mut self, why: &'static str) -> Self {
        self.absent = why;
        self
    }

    pub(crate) const fn absent_in_part(mut self, why: &'static str) -> Self {
        self.absent_in_part = why;
        self
    }
}

/// A quantity made from others, where it is not told itself. The first that can be made counts.
#[derive(Debug, Clone, Copy)]
pub struct Derived {
    /// What it is. The row has no metric.
    pub row: Row,
    /// How it is made.
    pub how: Op,
    /// From what.
    pub of: &'static [&'static Quantity],
    /// What should be known of it.
    pub note: &'static str,
}

/// A quantity made from others.
pub(crate) const fn derived(
    quantity: &'static Quantity,
    how: Op,
    of: &'static [&'static Quantity],
    note: &'static str,
) -> Derived {
    Derived { row: row(&[], quantity), how, of, note }
}

/// How a quantity is made from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// All added.
    Sum,
    /// The first by the second.
    Ratio,
}

/// What tells a program.
#[derive(Debug, Clone, Copy)]
pub enum Mark {
    /// This metric, without the program's prefix.
    Metric(&'static str),
    /// This label at one of the program's metrics.
    Label(&'static str),
    /// This label with a value that begins so.
    LabelBegins(&'static str, &'static str),
    /// A metric without the program's prefix at all.
    OwnMetric(&'static str),
}

/// One program and its table.
#[derive(Debug)]
pub struct Source {
    /// Its short name.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// What its metrics begin with, in the order of what is tried.
    pub prefixes: &'static [&'static str],
    /// Whether upper and lower case are the same in names of metrics.
    pub any_case: bool,
    /// Whether its operator may put any text before its names; metrics by which it is found then.
    pub anchors: &'static [&'static str],
    /// What tells it, beside its prefix.
    pub marks: &'static [Mark],
    /// A label by which a sample is of another program, and which.
    pub foreign: &'static [(&'static str, &'static str)],
    /// Its generations, newest first: a mark, and what it tells.
    pub generations: &'static [(Mark, &'static str)],
    /// Labels that say whom a sample is about. Of two for one field the earlier counts.
    pub identity: &'static [(&'static str, Field)],
    /// What a subject is, from the coarse to the fine.
    pub subject: &'static [Field],
    /// An info metric, without prefix, of which a label is the node's name.
    pub node_of: Option<(&'static str, &'static str)>,
    /// Labels that tell nothing.
    pub ignored: &'static [&'static str],
    /// Labels that are the version of something.
    pub versions: &'static [(&'static str, Component)],
    /// Paths beside that of its metrics at which it tells its own version, the newest first, and the member
    /// of the JSON there.
    pub version_at: &'static [(&'static str, &'static str)],
    /// What it measures.
    pub rows: &'static [Row],
    /// What follows from that.
    pub derived: &'static [Derived],
    /// A value that stands for "nothing to tell" in all its metrics.
    pub blank: Option<fn(f64) -> Option<&'static str>>,
    /// What it never tells, and why.
    pub never: &'static [(&'static Quantity, &'static str)],
}
