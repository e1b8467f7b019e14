//! What many series have in common, kept once: a thousand engines print the same names.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _};
use std::sync::Arc;

use foldhash::fast::FixedState;

use crate::quantity::Quantity;
use crate::reading::{Measured, Unknown};

/// The pool is looked through for what nobody has any more when it has grown so much.
const GROWN_BY: usize = 1_000;

/// What a series is, whoever it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct What {
    /// The quantity.
    pub quantity: &'static Quantity,
    /// What else tells it apart.
    pub attributes: Vec<(String, String)>,
    /// The short name of the program.
    pub program: &'static str,
    /// The metric that it is from.
    pub from: String,
    /// What was done to the metric's value; empty if nothing.
    pub how: String,
}

impl What {
    /// Whether a quantity of a scrape is of this kind.
    pub(crate) fn is_of(&self, measured: &Measured) -> bool {
        self.quantity == measured.quantity
            && self.program == measured.program
            && self.from == measured.from
            && self.how == measured.how
            && self.attributes == measured.attributes
    }
}

/// Everything that is there once.
#[derive(Debug, Default)]
pub struct Pool {
    whats: Shelf<What>,
    unknowns: Shelf<Vec<Unknown>>,
    bounds: Shelf<Vec<f64>>,
}

#[derive(Debug)]
struct Shelf<T> {
    by_hash: HashMap<u64, Vec<Arc<T>>, FixedState>,
    /// How many there are, and how many there were after the last look.
    all: usize,
    kept: usize,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { by_hash: HashMap::default(), all: 0, kept: 0 }
    }
}

impl<T> Shelf<T> {
    fn get(&mut self, hash: u64, is_it: impl Fn(&T) -> bool, make: impl FnOnce() -> T) -> Arc<T> {
        if let Some(found) =
            self.by_hash.get(&hash).and_then(|all| all.iter().find(|one| is_it(one)))
        {
            return found.clone();
        }
        if self.all >= self.kept + GROWN_BY {
            self.sweep();
        }
        let made = Arc::new(make());
        self.by_hash.entry(hash).or_default().push(made.clone());
        self.all += 1;
        made
    }

    /// Drops what nobody else has.
    fn sweep(&mut self) {
        self.by_hash.retain(|_, all| {
            all.retain(|one| Arc::strong_count(one) > 1);
            !all.is_empty()
        });
        self.all = self.by_hash.values().map(Vec::len).sum();
        self.kept = self.all;
    }
}

impl Pool {
    /// The kind of a quantity of a scrape.
    pub(crate) fn what(&mut self, measured: Measured) -> Arc<What> {
        let mut hasher = FixedState::default().build_hasher();
        measured.quantity.name.hash(&mut hasher);
        measured.attributes.hash(&mut hasher);
        (measured.program, &measured.from, &measured.how).hash(&mut hasher);
        let hash = hasher.finish();
        let Measured { quantity, attributes, program, from, how, .. } = measured;
        let made = What { quantity, attributes, program, from, how };
        self.whats.get(hash, |one| *one == made, || made.clone())
    }

    /// The bounds of a histogram.
    pub(crate) fn bounds(&mut self, bounds: Vec<f64>) -> Arc<Vec<f64>> {
        let mut hasher = FixedState::default().build_hasher();
        bounds.iter().for_each(|bound| bound.to_bits().hash(&mut hasher));
        self.bounds.get(hasher.finish(), |one| *one == bounds, || bounds.clone())
    }

    /// What a scrape does not tell.
    pub(crate) fn unknown(&mut self, unknown: Vec<Unknown>) -> Arc<Vec<Unknown>> {
        let mut hasher = FixedState::default().build_hasher();
        for one in &unknown {
            (one.quantity.name, &one.attributes, one.program, &one.why).hash(&mut hasher);
            one.of.hash(&mut hasher);
        }
        let hash = hasher.finish();
        self.unknowns.get(hash, |one| *one == unknown, || unknown.clone())
    }

    /// How many kinds it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.whats.all
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.whats.all == 0
    }
}
