//! What a scrape could tell and does not: of whom, and why.

use std::collections::{BTreeMap, BTreeSet};

use crate::identity::{Field, Identity};
use crate::quantity::Quantity;
use crate::reading::Unknown;
use crate::row::{Row, Source};

/// Most subjects (GPUs, engines, hosts) of a scrape that are looked at one by one.
const SUBJECTS_MAX: usize = 256;

type Fixed = &'static [(&'static str, &'static str)];

/// A quantity that the program can tell.
struct Slot {
    quantity: &'static Quantity,
    fixed: Fixed,
    row: Option<&'static Row>,
    why: &'static str,
}

/// Collects what is known of whom.
pub(crate) struct Known {
    source: &'static Source,
    slots: Vec<Slot>,
    known: BTreeSet<(usize, Identity)>,
    refused: BTreeMap<(usize, Identity), &'static str>,
    subjects: BTreeSet<Identity>,
}

impl Known {
    pub(crate) fn new(source: &'static Source) -> Self {
        let mut slots: Vec<Slot> = Vec::new();
        let rows = source.rows.iter().map(|row| (row.quantity, row.fixed, Some(row), row.absent));
        let derived =
            source.derived.iter().map(|derived| (derived.row.quantity, [].as_slice(), None, ""));
        let never =
            source.never.iter().map(|(quantity, why)| (*quantity, [].as_slice(), None, *why));
        for (quantity, fixed, row, why) in rows.chain(derived).chain(never) {
            let is_there = |slot: &Slot| slot.quantity == quantity && slot.fixed == fixed;
            match slots.iter_mut().find(|slot| is_there(slot)) {
                Some(slot) if slot.why.is_empty() => slot.why = why,
                Some(_) => {}
                None => slots.push(Slot { quantity, fixed, row, why }),
            }
        }
        Self {
            source,
            slots,
            known: BTreeSet::new(),
            refused: BTreeMap::new(),
            subjects: BTreeSet::new(),
        }
    }

    fn slot(&self, quantity: &Quantity, fixed: Fixed) -> Option<usize> {
        self.slots.iter().position(|slot| slot.quantity == quantity && slot.fixed == fixed)
    }

    fn subject(&mut self, identity: &Identity) -> Identity {
        let subject = identity.part(self.source.subject);
        if self.subjects.len() <= SUBJECTS_MAX {
            self.subjects.insert(subject.clone());
        }
        subject
    }

    /// The quantity is known of `identity`.
    pub(crate) fn measured(&mut self, quantity: &Quantity, fixed: Fixed, identity: &Identity) {
        if let Some(slot) = self.slot(quantity, fixed) {
            let subject = self.subject(identity);
            self.known.insert((slot, subject));
        }
    }

    /// There is a value, which is none.
    pub(crate) fn refused(&mut self, row: &Row, identity: &Identity, why: &'static str) {
        if let Some(slot) = self.slot(row.quantity, row.fixed) {
            let subject = self.subject(identity);
            self.refused.entry((slot, subject)).or_insert(why);
        }
    }

    /// The quantities that are not known, and of whom, and whether all subjects were looked at.
    pub(crate) fn unknown(self) -> (Vec<Unknown>, bool) {
        let all = self.subjects.len() <= SUBJECTS_MAX;
        let whole = self.whole_subjects(all);
        let above = |subject: &&Identity| -> Vec<_> {
            self.subjects.iter().filter(|is| is.is_within(subject)).collect()
        };
        let whole: Vec<(&Identity, Vec<&Identity>)> =
            whole.into_iter().map(|subject| (subject, above(&subject))).collect();
        let mut unknown = Vec::new();
        for (number, slot) in self.slots.iter().enumerate() {
            let mut by_why: BTreeMap<String, Vec<Identity>> = BTreeMap::new();
            for (subject, above) in &whole {
                if all && above.iter().any(|is| self.known.contains(&(number, (*is).clone()))) {
                    continue;
                }
                if !all && self.known.iter().any(|(known, _)| *known == number) {
                    continue;
                }
                let refused =
                    above.iter().find_map(|is| self.refused.get(&(number, (*is).clone())));
                let why = refused.map_or_else(|| self.why(slot, subject), |why| (*why).to_owned());
                by_why.entry(why).or_default().push((*subject).clone());
            }
            for (why, mut of) in by_why {
                if of.len() == whole.len() {
                    of.clear();
                }
                let attributes = slot.fixed.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
                unknown.push(Unknown {
                    quantity: slot.quantity,
                    attributes: attributes.collect(),
                    program: self.source.name,
                    why,
                    of,
                });
            }
        }
        (unknown, all)
    }

    /// Subjects that are not a coarser word for others: a board with MIG instances is told by those.
    fn whole_subjects(&self, all: bool) -> Vec<&Identity> {
        if !all || self.subjects.is_empty() {
            const NOBODY: &Identity = &Identity::NOBODY;
            return vec![NOBODY];
        }
        let is_coarser =
            |one: &Identity| self.subjects.iter().any(|other| other != one && one.is_within(other));
        self.subjects.iter().filter(|subject| !is_coarser(subject)).collect()
    }

    fn why(&self, slot: &Slot, subject: &Identity) -> String {
        let in_part = slot.row.map(|row| row.absent_in_part).unwrap_or_default();
        if !in_part.is_empty() && subject.get(Field::Part).is_some() {
            return in_part.to_owned();
        }
        if !slot.why.is_empty() {
            return slot.why.to_owned();
        }
        match slot.row.and_then(|row| row.names.first()) {
            Some(name) => {
                let kept = !self.source.anchors.is_empty();
                let prefix = self.source.prefixes.first().filter(|_| !kept).unwrap_or(&"");
                format!("no {prefix}{name}")
            }
            None => "what it is made from is not there".to_owned(),
        }
    }
}
