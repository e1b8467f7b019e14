//! Samples to quantities.

mod group;
mod owner;

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;
use jiff::Timestamp;

use self::group::{Group, Part, key};
use self::owner::Owners;
use crate::identity::{Field, Identity};
use crate::names::Names;
use crate::quantity::{Instrument, Quantity, Valid};
use crate::reading::Reading;
use crate::recognise::{self, Claim, Found};
use crate::row::{Derived, Refuse, Row};
use crate::sample::{Label, Sample, Samples};
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
    index: HashMap<String, usize, RandomState>,
    known: Known,
    owners: Owners,
    /// Name of the node by the address that samples were taken from.
    nodes: HashMap<Option<&'a str>, &'a str>,
    /// Another scraper renamed the exporter's own labels.
    is_exported: bool,
    notes: BTreeSet<String>,
    key: String,
    /// The last bucket: its row, its labels, and its group.
    last: Option<(usize, &'a [Label<'a>], usize)>,
}

impl<'c, 'a> Reader<'c, 'a> {
    fn new(claim: &'c Claim, samples: &'a Samples<'a>, names: &Names<'a>) -> Self {
        let of_gpus = claim.source.subject.contains(&Field::Gpu);
        let labels = names.metrics.iter().flat_map(|metric| metric.labels);
        let is_exported = of_gpus && labels.into_iter().any(|label| label.name == "exported_pod");
        let mut nodes = HashMap::new();
        if let Some((info, label)) = claim.source.node_of {
            let infos = samples.iter().filter(|(sample, _)| sample.name == info);
            for (_, labels) in infos {
                if let Some(node) = value(labels, label) {
                    nodes.insert(value(labels, "instance"), node);
                }
            }
        }
        let mut notes = BTreeSet::new();
        if is_exported {
            notes.insert(
                "labels pod, namespace and container are of the exporter: the GPU's owner is in \
                 exported_pod, exported_namespace, exported_container"
                    .to_owned(),
            );
        }
        Self {
            claim,
            groups: Vec::new(),
            index: HashMap::default(),
            known: Known::new(claim.source),
            owners: Owners::default(),
            nodes,
            is_exported,
            notes,
            key: String::new(),
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
            let identity = self.identity(labels);
            self.known.refused(row, &identity, why);
            return;
        }
        if !row.product.is_empty() {
            let factors = row.product.iter().map(|label| value(labels, label)?.parse::<f64>().ok());
            let Some(product) = factors.product::<Option<f64>>() else {
                let identity = self.identity(labels);
                self.known.refused(row, &identity, "a label that it is made from is no number");
                return;
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
                        && self::value(labels, label).is_some_and(|part| part != "0") =>
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
            self.notes.insert(format!(
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
        let identity = self.identity(labels);
        let attributes = self.attributes(row, labels, reason);
        key(&mut self.key, row.quantity, &identity, &attributes);
        if let Some(&at) = self.index.get(self.key.as_str()) {
            if let Some(group) = self.groups.get_mut(at) {
                group.prefer(rank, row, name);
            }
            return at;
        }
        if identity.get(Field::Gpu).is_some() {
            self.owners.saw(&identity, labels);
        }
        let at = self.groups.len();
        self.index.insert(self.key.clone(), at);
        self.groups.push(Group::new(rank, row, name, identity, attributes));
        at
    }

    fn identity(&mut self, labels: &'a [Label<'a>]) -> Identity {
        let mut identity = Identity::default();
        for (name, field) in self.claim.source.identity {
            let owner = matches!(field, Field::Pod | Field::Namespace | Field::Container);
            if self.is_exported && owner && !name.starts_with("exported_") {
                continue;
            }
            if let Some(value) = value(labels, name) {
                if *field == Field::Gpu && value.contains("::") {
                    self.notes.insert(format!(
                        "{value}: what stands behind `::` is a number that a plugin gave, and is left \
                         out"
                    ));
                }
                identity.set(*field, value);
            }
        }
        if let Some(node) = self.nodes.get(&value(labels, "instance")) {
            identity.set(Field::Node, node);
        }
        identity
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
            let known = source.identity.iter().any(|(is, _)| *is == name)
                || source.ignored.contains(&name)
                || row.sum_over.contains(&name)
                || row.only.is_some_and(|(is, _)| is == name)
                || !row.product.is_empty()
                || name == "le";
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
            self.known.measured(group.row.quantity, group.row.fixed, &group.identity);
            reading.measured.push(group.measured(program, at));
        }
        self.owners.tell(self.claim.source, &mut self.known, &mut reading.measured);
        let (unknown, all) = self.known.unknown();
        reading.unknown.extend(unknown);
        if !all {
            self.notes.insert("too many subjects to say of each what is unknown".to_owned());
        }
        reading.notes.extend(self.notes);
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
                key(&mut self.key, derived.row.quantity, &made.identity, &made.attributes);
                self.index.insert(self.key.clone(), self.groups.len());
                self.groups.push(made);
            }
        }
    }

    /// The group of another quantity of the same.
    fn beside(&self, base: &Group, quantity: &'static Quantity) -> Option<&Group> {
        let mut wanted = String::new();
        key(&mut wanted, quantity, &base.identity, &base.attributes);
        self.index.get(&wanted).and_then(|at| self.groups.get(*at))
    }
}

impl Row {
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

fn value<'s>(labels: &'s [Label<'_>], name: &str) -> Option<&'s str> {
    labels.iter().find(|label| label.name == name).map(|label| label.value.as_ref())
}

/// Whether two series of buckets differ in nothing but the bound.
fn same_but_bound(one: &[Label<'_>], other: &[Label<'_>]) -> bool {
    let plain = |label: &&Label<'_>| label.name != "le";
    one.iter().filter(plain).eq(other.iter().filter(plain))
}
