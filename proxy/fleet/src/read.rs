//! Samples to quantities.

mod group;
mod owner;
mod who;

use std::collections::HashMap;
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;
use jiff::Timestamp;

use self::group::{Group, Part};
use self::owner::Owners;
use self::who::Who;
use crate::identity::Field;
use crate::names::Names;
use crate::quantity::{Instrument, Quantity, Valid};
use crate::reading::Reading;
use crate::recognise::{self, Claim, Found, NAMES_MAX};
use crate::row::{Derived, Refuse, Row, Source};
use crate::sample::{Label, Sample, Samples, value};
use crate::source::SOURCES;
use crate::unknown::Known;

/// Most metrics without a row that are named.
const UNREAD_MAX: usize = 200;

/// What `samples` say in the schema. `at` is when they came; only ages of values are made from it.
#[must_use]
pub fn read(samples: &Samples<'_>, at: Timestamp) -> Reading {
    let names = Names::of(samples);
    let mut reading = Reading::default();
    let mut claimed = vec![false; names.metrics.len()];
    for source in SOURCES {
        let Some(claim) = Claim::of(source, &names) else { continue };
        let rows: Vec<_> =
            names.metrics.iter().map(|metric| meant(&claim, metric.name, &mut reading)).collect();
        let own = names.metrics.iter().map(|metric| claim.bare(metric.name).is_some());
        claimed.iter_mut().zip(own).for_each(|(claimed, own)| *claimed |= own);
        if claim.program.is_read {
            let mut reader = Reader::new(&claim, samples, &names);
            for (number, (sample, labels)) in samples.iter().enumerate() {
                let metric = names.of.get(number).and_then(|of| rows.get(*of as usize));
                if let Some(Some((part, found))) = metric {
                    reader.take(*part, found, sample, labels);
                }
            }
            reader.finish(at, &mut reading);
        }
        reading.programs.push(claim.program);
    }
    let free = names.metrics.iter().zip(&claimed).filter(|(_, claimed)| !**claimed);
    let free: Vec<&str> = free.map(|(metric, _)| metric.name).collect();
    reading.programs.extend(recognise::others(&free));
    for name in free {
        unread(&mut reading, name);
    }
    reading
}

fn unread(reading: &mut Reading, name: &str) {
    let of_histogram = Part::OF_HISTOGRAM.iter().find_map(|(part, _)| name.strip_suffix(part));
    let name = of_histogram.unwrap_or(name);
    let is_told = reading.unread.last().is_some_and(|last| last == name);
    if reading.unread.len() < UNREAD_MAX && !name.ends_with("_created") && !is_told {
        reading.unread.push(name.to_owned());
    }
}

/// What a metric is in the program's table. One that no row has is told as unread.
fn meant(claim: &Claim, name: &str, reading: &mut Reading) -> Option<(Part, Vec<Found>)> {
    let bare = claim.bare(name)?;
    let of = |bare: &str, histogram: bool| -> Vec<Found> {
        let is_so =
            |(_, row): &&Found| (row.quantity.instrument == Instrument::Histogram) == histogram;
        claim.rows_of(bare).iter().filter(is_so).copied().collect()
    };
    let plain = of(&bare, false);
    if !plain.is_empty() {
        return Some((Part::Number, plain));
    }
    for (suffix, part) in Part::OF_HISTOGRAM {
        let found = bare.strip_suffix(suffix).map(|stem| of(stem, true)).unwrap_or_default();
        if !found.is_empty() {
            return Some((part, found));
        }
    }
    if claim.source.node_of.is_none_or(|(info, _)| info != name) {
        unread(reading, name);
    }
    None
}

/// Reads the samples of one program.
struct Reader<'c, 'a> {
    claim: &'c Claim,
    groups: Vec<Group>,
    /// The place of each by the hash of what it is. Of two with one hash, the second stands at the next one.
    index: HashMap<u64, usize, RandomState>,
    hasher: RandomState,
    who: Who<'a>,
    known: Known,
    owners: Owners,
    /// The last piece of a histogram: its row, its labels, and its group.
    last: Option<(usize, &'a [Label<'a>], usize)>,
}

impl<'c, 'a> Reader<'c, 'a> {
    fn new(claim: &'c Claim, samples: &'a Samples<'a>, names: &Names<'a>) -> Self {
        Self {
            claim,
            groups: Vec::new(),
            index: HashMap::default(),
            hasher: RandomState::default(),
            who: Who::new(claim.source, samples, names),
            known: Known::new(claim.source),
            owners: Owners::default(),
            last: None,
        }
    }

    fn take(&mut self, part: Part, found: &[Found], sample: &Sample<'_>, labels: &'a [Label<'a>]) {
        if self.claim.source.foreign.iter().any(|(label, _)| value(labels, label).is_some()) {
            return;
        }
        let fits = |(_, row): &&Found| row.takes(sample, labels);
        let Some(&(rank, row)) = found.iter().find(fits) else { return };
        if part != Part::Number {
            return self.piece(part, rank, row, sample, labels);
        }
        if let Some(why) = self.refusal(row, sample.value, labels) {
            return self.refuse(rank, labels, why);
        }
        if !row.product.is_empty() {
            let factors = row.product.iter().map(|label| value(labels, label)?.parse::<f64>().ok());
            let Some(product) = factors.product::<Option<f64>>() else {
                return self.refuse(rank, labels, "a label that it is made from is no number");
            };
            let sample = Sample { value: product, ..*sample };
            return self.number(rank, row, &sample, labels, None);
        }
        if row.bits.is_empty() {
            return self.number(rank, row, sample, labels, None);
        }
        for &(bit, reason) in row.bits {
            let held = bits(sample.value) & u64::from(bit) != 0;
            let sample = Sample { value: f64::from(u8::from(held)), ..*sample };
            self.number(rank, row, &sample, labels, Some(reason));
        }
    }

    fn refuse(&mut self, rank: usize, labels: &'a [Label<'a>], why: &'static str) {
        let (who, _) = self.who.of(labels);
        self.known.refused(rank / NAMES_MAX, who, &self.who.get(who), why);
    }

    /// Why `value` is no value of the quantity.
    fn refusal(&self, row: &Row, value: f64, labels: &[Label<'_>]) -> Option<&'static str> {
        if value.is_nan() {
            return Some("its value is NaN");
        }
        if value.is_infinite() {
            return Some("its value is infinite");
        }
        if let Some(why) = self.claim.source.blank.and_then(|blank| blank(value)) {
            return Some(why);
        }
        for refuse in row.refuse {
            match refuse {
                Refuse::Zero(why) if value == 0.0 => return Some(why),
                Refuse::ZeroBeyondFirst(label, why)
                    if value == 0.0
                        && crate::sample::value(labels, label).is_some_and(|part| part != "0") =>
                {
                    return Some(why);
                }
                Refuse::Negative(why) if value < 0.0 => return Some(why),
                Refuse::Always(why) => return Some(why),
                _ => {}
            }
        }
        match row.quantity.valid {
            _ if !row.bits.is_empty() => None,
            Valid::NotNegative | Valid::Ratio if value < 0.0 => Some("its value is negative"),
            // Programs count a little beyond the whole.
            Valid::Ratio if row.in_unit(value) > 1.01 => Some("its value is beyond 100 %"),
            _ => None,
        }
    }

    fn number(
        &mut self,
        rank: usize,
        row: &'static Row,
        sample: &Sample<'_>,
        labels: &'a [Label<'a>],
        reason: Option<&'static str>,
    ) {
        let at = self.group(rank, row, sample.name, labels, reason);
        let Some(group) = self.groups.get_mut(at) else { return };
        if !group.is_better_than(rank) && group.number(row, sample) {
            self.who.note(format!(
                "{}: series differ only in labels that tell nothing; the first of them counts",
                sample.name
            ));
        }
    }

    /// A piece of a histogram.
    fn piece(
        &mut self,
        part: Part,
        rank: usize,
        row: &'static Row,
        sample: &Sample<'_>,
        labels: &'a [Label<'a>],
    ) {
        let at = match self.last {
            Some((last, of, at)) if last == rank && same_but_bound(of, labels) => at,
            _ => self.group(rank, row, part.stem(sample.name), labels, None),
        };
        self.last = Some((rank, labels, at));
        if let Some(group) = self.groups.get_mut(at)
            && !group.is_better_than(rank)
        {
            group.piece(part, sample, value(labels, "le"));
        }
    }

    /// The group of a series. It is made if there is none.
    fn group(
        &mut self,
        rank: usize,
        row: &'static Row,
        name: &str,
        labels: &'a [Label<'a>],
        reason: Option<&'static str>,
    ) -> usize {
        let (who, plain) = self.who.of(labels);
        let attributes = match row.is_plain() && reason.is_none() {
            true => plain.clone(),
            false => self.attributes(row, labels, reason),
        };
        let found = self.find(row.quantity, who, &attributes);
        if let Ok(at) = found {
            if let Some(group) = self.groups.get_mut(at) {
                group.prefer(rank, row, name);
            }
            return at;
        }
        let identity = self.who.get(who);
        if identity.get(Field::Gpu).is_some() {
            self.owners.saw(who, &identity, labels);
        }
        let at = self.groups.len();
        self.index.extend(found.err().map(|free| (free, at)));
        self.groups.push(Group::new(rank, row, name, who, attributes));
        at
    }

    /// The group of a quantity of somebody, or the hash at which it is to stand.
    fn find(
        &self,
        quantity: &'static Quantity,
        who: usize,
        attributes: &[(String, String)],
    ) -> Result<usize, u64> {
        let of_attributes = attributes.iter().map(|attribute| self.hasher.hash_one(attribute));
        let of_attributes = of_attributes.fold(0, u64::wrapping_add);
        let mut hash = self.hasher.hash_one((quantity.name, who, of_attributes));
        while let Some(&at) = self.index.get(&hash) {
            let group = self.groups.get(at);
            if group.is_some_and(|group| group.is_of(quantity, who, attributes)) {
                return Ok(at);
            }
            hash = hash.wrapping_add(1);
        }
        Err(hash)
    }

    fn attributes(
        &self,
        row: &Row,
        labels: &[Label<'_>],
        reason: Option<&'static str>,
    ) -> Vec<(String, String)> {
        let source = self.claim.source;
        let fixed = row.fixed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let mut attributes: Vec<_> = fixed.collect();
        attributes.extend(reason.map(|reason| ("reason".to_owned(), reason.to_owned())));
        for label in labels {
            let name = label.name;
            let known = source.knows(name)
                || row.sum_over.contains(&name)
                || row.only.is_some_and(|(is, _)| is == name)
                || !row.product.is_empty();
            if known || label.value.is_empty() {
                continue;
            }
            let named = row.labels.iter().find(|(is, _)| *is == name);
            let name = named.map_or(name, |(_, attribute)| attribute);
            attributes.push((name.to_owned(), label.value.clone().into_owned()));
        }
        attributes
    }

    fn finish(mut self, at: Timestamp, reading: &mut Reading) {
        for derived in self.claim.source.derived {
            self.derive(derived);
        }
        let program = self.claim.source.name;
        for group in self.groups {
            let identity = self.who.get(group.who);
            match group.row_number() {
                Some(row) => self.known.measured(row, group.who, &identity),
                None => self.known.made(group.row.quantity, group.who, &identity),
            }
            reading.measured.push(group.measured(program, identity, at));
        }
        self.owners.tell(self.claim.source, &mut self.known, &mut reading.measured);
        let (unknown, all) = self.known.unknown();
        reading.unknown.extend(unknown);
        if !all {
            self.who.note("too many subjects to say of each what is unknown".to_owned());
        }
        let (notes, versions) = self.who.finish();
        reading.notes.extend(notes);
        reading.versions.extend(versions);
    }

    /// Makes a quantity from others, for each subject that has them all and not it.
    fn derive(&mut self, derived: &'static Derived) {
        let Some((first, others)) = derived.of.split_first() else { return };
        for number in 0..self.groups.len() {
            let Some(base) = self.groups.get(number).filter(|is| is.row.quantity == *first) else {
                continue;
            };
            let mut of = vec![base];
            of.extend(others.iter().filter_map(|other| self.beside(base, other)));
            if of.len() != derived.of.len() || self.beside(base, derived.row.quantity).is_some() {
                continue;
            }
            if let Some(made) = Group::derived(derived, &of) {
                let free = self.find(derived.row.quantity, made.who, &made.attributes).err();
                self.index.extend(free.map(|free| (free, self.groups.len())));
                self.groups.push(made);
            }
        }
    }

    /// The group of another quantity of the same.
    fn beside(&self, base: &Group, quantity: &'static Quantity) -> Option<&Group> {
        let at = self.find(quantity, base.who, &base.attributes).ok()?;
        self.groups.get(at)
    }
}

impl Source {
    /// Whether a label is no attribute, whatever the row.
    pub(crate) fn knows(&self, label: &str) -> bool {
        self.identity.iter().any(|(is, _)| *is == label)
            || self.ignored.contains(&label)
            || label == "le"
    }
}

impl Row {
    /// Whether it says nothing of labels.
    const fn is_plain(&self) -> bool {
        self.fixed.is_empty()
            && self.labels.is_empty()
            && self.only.is_none()
            && self.sum_over.is_empty()
            && self.product.is_empty()
    }

    fn takes(&self, sample: &Sample<'_>, labels: &[Label<'_>]) -> bool {
        let only = self.only.is_none_or(|(label, values)| {
            value(labels, label).is_some_and(|value| values.is_empty() || values.contains(&value))
        });
        only && self.declared.is_none_or(|declared| declared == sample.declared)
    }
}

/// The bits of a number that is a whole one.
fn bits(value: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is bounded")]
    let bits = value.clamp(0.0, 9e15) as u64;
    bits
}

/// Whether two series of buckets differ in nothing but the bound.
fn same_but_bound(one: &[Label<'_>], other: &[Label<'_>]) -> bool {
    let plain = |label: &&Label<'_>| label.name != "le";
    one.iter().filter(plain).eq(other.iter().filter(plain))
}
