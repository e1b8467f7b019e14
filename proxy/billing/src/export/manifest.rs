//! What a receiver needs to prove that nothing of an export is missing.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize, Serializer};
use taximeter_ledger::{Correction, Record};

use super::error::ExportError;
use super::focus::Charge;
use super::item::Item;
use crate::hours::Hour;
use crate::period::Period;
use crate::sums::add_exactly;

/// The form of the manifest itself.
const MANIFEST_VERSION: u32 = 1;

/// What was written, file by file, and what it adds up to. Written last: while it is not there, the
/// export is not whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// Of this form.
    pub manifest_version: u32,
    /// The program that wrote it.
    pub producer: &'static str,
    /// `focus`, `records` and so on.
    pub format: &'static str,
    /// Version of a format that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format_version: Option<&'static str>,
    /// What it is about.
    pub period: ManifestPeriod,
    /// The only tenant in it; `None` is all.
    pub tenant: Option<String>,
    /// In the order in which they were written.
    pub files: Vec<ManifestFile>,
    /// What they add up to.
    #[serde(flatten)]
    pub tally: Tally,
}

/// Start included, end not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManifestPeriod {
    /// First instant.
    pub from: Timestamp,
    /// First instant after.
    pub to: Timestamp,
    /// `final`, or `provisional` while requests may still be admitted in it.
    pub status: &'static str,
}

/// One file of the export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManifestFile {
    /// Relative to the manifest.
    pub path: String,
    /// Rows, lines or events in it.
    pub rows: u64,
    /// Its size.
    pub bytes: u64,
    /// Of its bytes, hexadecimal.
    pub sha256: String,
}

/// What the rows of an export add up to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Rows of all files.
    pub rows: u64,
    /// Money by currency, in alphabetical order; exact.
    pub sums: BTreeMap<String, CurrencySum>,
    /// What is owed for the period by currency, as the bill has it, where that is more than the rows:
    /// records have neither their corrections, nor shares of GPUs, nor credits.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub owed: BTreeMap<String, Decimal>,
    /// Requests that the rows are made of.
    pub requests: u64,
    /// Those of them whose cost is unknown: they are in no sum, and in no row of charges.
    pub unknown_cost_requests: i64,
    /// Which entries of which gateway's journal the requests are.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sequences: BTreeMap<String, SequenceRange>,
    /// How many corrections of requests the rows have in them; formats of records have none.
    #[serde(skip_serializing_if = "is_zero")]
    pub corrections: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Requests and corrections, as entries of journals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entries {
    /// The requests' entries, by gateway.
    pub sequences: BTreeMap<String, SequenceRange>,
    /// How many corrections.
    pub corrections: u64,
}

/// Money in one currency.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CurrencySum {
    /// What is owed.
    #[serde(serialize_with = "without_idle_zeros")]
    pub billed_cost: Decimal,
    /// The same at list price.
    #[serde(serialize_with = "without_idle_zeros")]
    pub list_cost: Decimal,
}

/// Equal sums read the same, whatever was added up to them.
fn without_idle_zeros<S: Serializer>(sum: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
    Serialize::serialize(&sum.normalize(), serializer)
}

/// Entries of one gateway's journal. Numbers between belong to other entries (reservations, voids),
/// or to requests of another period or tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceRange {
    /// Lowest sequence number.
    pub first: u64,
    /// Highest.
    pub last: u64,
    /// How many records.
    pub records: u64,
}

impl Manifest {
    /// A manifest of nothing yet. The period is final when it is over at `now`.
    #[must_use]
    pub fn new(format: &'static str, period: Period, tenant: Option<&str>, now: Timestamp) -> Self {
        let status = if period.to() <= now { "final" } else { "provisional" };
        Self {
            manifest_version: MANIFEST_VERSION,
            producer: concat!("taximeter ", env!("CARGO_PKG_VERSION")),
            format,
            format_version: None,
            period: ManifestPeriod { from: period.from(), to: period.to(), status },
            tenant: tenant.map(str::to_owned),
            files: Vec::new(),
            tally: Tally::default(),
        }
    }

    /// As it is written: JSON over several lines.
    ///
    /// # Errors
    /// None in practice: its members are strings and numbers.
    pub fn to_json(&self) -> Result<Vec<u8>, ExportError> {
        let mut json = serde_json::to_vec_pretty(self)?;
        json.push(b'\n');
        Ok(json)
    }
}

impl SequenceRange {
    /// Adds entry `seq` of a gateway's journal.
    pub fn add(ranges: &mut BTreeMap<String, Self>, gateway: &str, seq: u64) {
        Self { first: seq, last: seq, records: 1 }.add_to(ranges, gateway);
    }

    fn add_to(&self, ranges: &mut BTreeMap<String, Self>, gateway: &str) {
        if let Some(range) = ranges.get_mut(gateway) {
            (range.first, range.last) = (range.first.min(self.first), range.last.max(self.last));
            range.records += self.records;
        } else {
            ranges.insert(gateway.to_owned(), self.clone());
        }
    }
}

impl Tally {
    /// One request, in `rows` rows.
    ///
    /// # Errors
    /// [`ExportError::TooLarge`].
    pub fn add_request(&mut self, record: &Record, rows: u64) -> Result<(), ExportError> {
        let cost = record.cost.as_ref();
        let cost = cost.map(|cost| (cost.currency.as_str(), cost.amount, cost.list_amount));
        self.add_one(&record.gateway, record.seq, cost, rows)
    }

    /// A request that is entry `seq` of a gateway's journal; its cost is a currency, what is owed, and
    /// that at list price.
    pub(super) fn add_one(
        &mut self,
        gateway: &str,
        seq: u64,
        cost: Option<(&str, Decimal, Decimal)>,
        rows: u64,
    ) -> Result<(), ExportError> {
        SequenceRange::add(&mut self.sequences, gateway, seq);
        self.rows += rows;
        self.requests += 1;
        match cost {
            Some((currency, amount, list)) => self.add_money(currency, amount, list),
            None => {
                self.unknown_cost_requests += 1;
                Ok(())
            }
        }
    }

    /// What other requests, and nothing else, have been added up to.
    ///
    /// # Errors
    /// [`ExportError::TooLarge`].
    pub fn add_requests(&mut self, others: &Self) -> Result<(), ExportError> {
        self.rows += others.rows;
        self.requests += others.requests;
        self.unknown_cost_requests += others.unknown_cost_requests;
        for (gateway, other) in &others.sequences {
            other.add_to(&mut self.sequences, gateway);
        }
        let mut sums = others.sums.iter();
        sums.try_for_each(|(currency, sum)| {
            self.add_money(currency, sum.billed_cost, sum.list_cost)
        })
    }

    /// The last request's cost is not unknown: it owes a share of GPUs, which is an item.
    pub const fn owes_share(&mut self) {
        self.unknown_cost_requests -= 1;
    }

    /// A correction; its items are added one by one. It may make a cost known, or unknown.
    pub const fn add_correction(&mut self, correction: &Correction) {
        self.corrections += 1;
        let (before, after) = (correction.before.is_none(), correction.after.is_none());
        self.unknown_cost_requests += after as i64 - before as i64;
    }

    /// One item, in `rows` rows.
    ///
    /// # Errors
    /// [`ExportError::TooLarge`].
    pub fn add_item(&mut self, item: &Item<'_>, rows: u64) -> Result<(), ExportError> {
        self.rows += rows;
        self.add_money(item.currency, item.cost, item.list_cost)
    }

    /// What an hour owes, where rows do not say it.
    ///
    /// # Errors
    /// [`ExportError::TooLarge`].
    pub fn owe(&mut self, currency: &str, amount: Decimal) -> Result<(), ExportError> {
        let owed = self.owed.entry(currency.to_owned()).or_default();
        let too_large = ExportError::TooLarge { what: "the sum of the costs" };
        *owed = add_exactly(*owed, amount).ok_or(too_large)?.normalize();
        Ok(())
    }

    /// What the rows cost, where nothing else is owed.
    ///
    /// # Errors
    /// [`ExportError::TooLarge`].
    pub fn owe_sums(&mut self) -> Result<(), ExportError> {
        let sums = self.sums.clone();
        sums.iter().try_for_each(|(currency, sum)| self.owe(currency, sum.billed_cost))
    }

    /// The requests of an hour; its charges are added one by one.
    pub fn add_hour(&mut self, hour: &Hour) {
        self.requests += hour.sums.requests;
        self.unknown_cost_requests += hour.sums.unknown_cost_requests;
    }

    /// One charge, in a row.
    ///
    /// # Errors
    /// [`ExportError::TooLarge`].
    pub fn add_charge(&mut self, charge: &Charge<'_>) -> Result<(), ExportError> {
        self.rows += 1;
        self.add_money(charge.currency, charge.cost, charge.list_cost)
    }

    fn add_money(
        &mut self,
        currency: &str,
        cost: Decimal,
        list: Decimal,
    ) -> Result<(), ExportError> {
        let too_large = ExportError::TooLarge { what: "the sum of the costs" };
        let sum = match self.sums.get_mut(currency) {
            Some(sum) => sum,
            None => self.sums.entry(currency.to_owned()).or_default(),
        };
        let added = add_exactly(sum.billed_cost, cost).zip(add_exactly(sum.list_cost, list));
        (sum.billed_cost, sum.list_cost) = added.ok_or(too_large)?;
        Ok(())
    }
}
