//! What a scrape could tell and does not: of whom, and why.

use std::collections::{BTreeMap, HashMap, HashSet};

use foldhash::fast::RandomState;

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

/// Collects what is known of whom. Identities are told by the number that their owner gave them.
pub(crate) struct Known {
    source: &'static Source,
    slots: Vec<Slot>,
    /// The slot of each row of the table.
    of_rows: Vec<usize>,
    subjects: Vec<Identity>,
    numbers: HashMap<Identity, usize, RandomState>,
    /// The subject of each identity, where it has been asked for.
    of_identities: Vec<Option<usize>>,
    known: HashSet<(usize, usize), RandomState>,
    refused: HashMap<(usize, usize), &'static str, RandomState>,
}

impl Known {
    pub(crate) fn new(source: &'static Source) -> Self {
        let mut known = Self {
            source,
            slots: Vec::new(),
            of_rows: Vec::new(),
            subjects: Vec::new(),
            numbers: HashMap::default(),
            of_identities: Vec::new(),
            known: HashSet::default(),
            refused: HashMap::default(),
        };
        for row in source.rows {
            let slot = known.slot(row.quantity, row.fixed, Some(row), row.absent);
            known.of_rows.push(slot);
        }
        for derived in source.derived {
            known.slot(derived.row.quantity, &[], None, "");
        }
        for (quantity, why) in source.never {
            known.slot(quantity, &[], None, why);
        }
        known
    }

    /// The number of a slot. It is made if there is none.
    fn slot(
        &mut self,
        quantity: &'static Quantity,
        fixed: Fixed,
        row: Option<&'static Row>,
        why: &'static str,
    ) -> usize {
        let is_it = |slot: &Slot| slot.quantity == quantity && slot.fixed == fixed;
        if let Some(number) = self.slots.iter().position(is_it) {
            if let Some(slot) = self.slots.get_mut(number).filter(|slot| slot.why.is_empty()) {
                slot.why = why;
            }
            return number;
        }
        self.slots.push(Slot { quantity, fixed, row, why });
        self.slots.len() - 1
    }

    /// The number of the subject that identity number `who` is about. Beyond the most that are looked
    /// at all are one.
    fn subject(&mut self, who: usize, identity: &Identity) -> usize {
        if let Some(Some(subject)) = self.of_identities.get(who) {
            return *subject;
        }
        let subject = identity.part(self.source.subject);
        let number = match self.numbers.get(&subject) {
            Some(number) => *number,
            None if self.subjects.len() > SUBJECTS_MAX => SUBJECTS_MAX,
            None => {
                self.numbers.insert(subject.clone(), self.subjects.len());
                self.subjects.push(subject);
                self.subjects.len() - 1
            }
        };
        if self.of_identities.len() <= who {
            self.of_identities.resize(who + 1, None);
        }
        if let Some(of) = self.of_identities.get_mut(who) {
            *of = Some(number);
        }
        number
    }

    /// The quantity of row number `row` is known.
    pub(crate) fn measured(&mut self, row: usize, who: usize, identity: &Identity) {
        if let Some(&slot) = self.of_rows.get(row) {
            let subject = self.subject(who, identity);
            self.known.insert((slot, subject));
        }
    }

    /// A quantity without attributes is known that no row has.
    pub(crate) fn made(&mut self, quantity: &'static Quantity, who: usize, identity: &Identity) {
        let slot = self.slot(quantity, &[], None, "");
        let subject = self.subject(who, identity);
        self.known.insert((slot, subject));
    }

    /// There is a value for row number `row`, which is none.
    pub(crate) fn refused(
        &mut self,
        row: usize,
        who: usize,
        identity: &Identity,
        why: &'static str,
    ) {
        if let Some(&slot) = self.of_rows.get(row) {
            let subject = self.subject(who, identity);
            self.refused.entry((slot, subject)).or_insert(why);
        }
    }

    /// The quantities that are not known, and of whom, and whether all subjects were looked at.
    pub(crate) fn unknown(self) -> (Vec<Unknown>, bool) {
        let all = self.subjects.len() <= SUBJECTS_MAX;
        let whole = self.whole_subjects(all);
        let mut unknown = Vec::new();
        for (number, slot) in self.slots.iter().enumerate() {
            if !all && self.known.iter().any(|(known, _)| *known == number) {
                continue;
            }
            let mut by_why: BTreeMap<String, Vec<Identity>> = BTreeMap::new();
            for (subject, above) in &whole {
                if above.iter().any(|is| self.known.contains(&(number, *is))) {
                    continue;
                }
                let refused = above.iter().find_map(|is| self.refused.get(&(number, *is)));
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

    /// Subjects that are not a coarser word for others (a board with MIG instances is told by those),
    /// each with the numbers of all coarser words for it.
    fn whole_subjects(&self, all: bool) -> Vec<(&Identity, Vec<usize>)> {
        if !all || self.subjects.is_empty() {
            const NOBODY: &Identity = &Identity::NOBODY;
            return vec![(NOBODY, (0..self.subjects.len()).collect())];
        }
        let is_coarser =
            |one: &Identity| self.subjects.iter().any(|other| other != one && one.is_within(other));
        let above = |subject: &Identity| -> Vec<usize> {
            let numbered = self.subjects.iter().enumerate();
            numbered.filter(|(_, is)| is.is_within(subject)).map(|(number, _)| number).collect()
        };
        let mut whole: Vec<_> =
            self.subjects.iter().filter(|subject| !is_coarser(subject)).collect();
        taximeter_collections::sort(&mut whole);
        whole.into_iter().map(|subject| (subject, above(subject))).collect()
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
