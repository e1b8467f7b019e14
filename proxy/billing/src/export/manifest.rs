//! The manifest of an export. With it, a receiver can prove that nothing is missing.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize, Serializer};
use taximeter_ledger::{Correction, Record, RecordCost};

use super::error::ExportError;
use super::focus::Charge;
use super::item::BillItem;
use super::window::OutsideWindow;
use crate::closing::PeriodStatus;
use crate::hours::Hour;
use crate::period::Period;
use crate::sums::add_exactly;

/// The version of the manifest format.
const MANIFEST_VERSION: u32 = 1;

/// The files of an export, and their sums. It is written last: an export without a manifest is not
/// complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// Version of the manifest format.
    pub manifest_version: u32,
    /// The program that wrote the export.
    pub producer: &'static str,
    /// `focus`, `records` and so on.
    pub format: &'static str,
    /// Version of the export format, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format_version: Option<&'static str>,
    /// The period of the export.
    pub period: ManifestPeriod,
    /// The only tenant in the export. `None` means all tenants.
    pub tenant: Option<String>,
    /// In the order in which they were written.
    pub files: Vec<ManifestFile>,
    /// The sums of all files.
    #[serde(flatten)]
    pub totals: ExportTotals,
}

/// A period. The start is included, the end is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManifestPeriod {
    /// First instant.
    pub from: Timestamp,
    /// First instant after the period.
    pub to: Timestamp,
    /// Whether it is final, and why not.
    #[serde(flatten)]
    pub status: PeriodStatus,
}

/// One file of the export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManifestFile {
    /// Path relative to the manifest.
    pub path: String,
    /// Number of rows, lines or events.
    pub rows: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
}

/// The sums of the rows of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ExportTotals {
    /// Rows of all files.
    pub rows: u64,
    /// Money by currency, exact. The currencies are in alphabetical order.
    pub sums: BTreeMap<String, CurrencySum>,
    /// The total of the bill for the period, by currency, if it differs from the rows: records
    /// contain no corrections, no shares of GPUs and no credits.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub owed: BTreeMap<String, Decimal>,
    /// Number of requests in the rows.
    pub requests: u64,
    /// Number of requests whose cost is unknown. Sums and FOCUS rows have only what is known of it.
    pub unknown_cost_requests: i64,
    /// The journal entries of the requests, by gateway.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sequences: BTreeMap<String, SequenceRange>,
    /// Number of corrections in the rows. Formats of records have none.
    #[serde(skip_serializing_if = "is_zero")]
    pub corrections: u64,
    /// The events that the receiver does not take, because of their time. `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside_window: Option<OutsideWindow>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The requests and corrections of an export, as journal entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entries {
    /// The entries of requests, by gateway.
    pub sequences: BTreeMap<String, SequenceRange>,
    /// Number of corrections.
    pub corrections: u64,
}

/// Money in one currency.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CurrencySum {
    /// The billed cost.
    #[serde(serialize_with = "without_trailing_zeros")]
    pub billed_cost: Decimal,
    /// The cost at list price.
    #[serde(serialize_with = "without_trailing_zeros")]
    pub list_cost: Decimal,
}

/// Removes zeros at the end, so that equal sums have the same text.
fn without_trailing_zeros<S: Serializer>(sum: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
    Serialize::serialize(&sum.normalize(), serializer)
}

/// A range of entries in one gateway's journal. Some numbers in it belong to other entries
/// (reservations, voids), or to requests of other periods or tenants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceRange {
    /// Lowest sequence number.
    pub first: u64,
    /// Highest sequence number.
    pub last: u64,
    /// Number of records.
    pub records: u64,
}

impl Manifest {
    /// A manifest without files.
    #[must_use]
    pub fn new(
        format: &'static str,
        period: Period,
        tenant: Option<&str>,
        status: PeriodStatus,
    ) -> Self {
        Self {
            manifest_version: MANIFEST_VERSION,
            producer: concat!("taximeter ", env!("CARGO_PKG_VERSION")),
            format,
            format_version: None,
            period: ManifestPeriod { from: period.from(), to: period.to(), status },
            tenant: tenant.map(str::to_owned),
            files: Vec::new(),
            totals: ExportTotals::default(),
        }
    }

    /// The manifest as JSON over several lines.
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

impl ExportTotals {
    /// Adds one request with this number of rows.
    ///
    /// # Errors
    /// [`ExportError::TooLarge`].
    pub fn add_request(&mut self, record: &Record, rows: u64) -> Result<(), ExportError> {
        let owed = record.owed();
        self.unknown_cost_requests += i64::from(RecordCost::is_unknown(owed));
        let owed = owed.map(|cost| (cost.currency.as_str(), cost.amount, cost.list_amount));
        self.add_entry(&record.gateway, record.seq, owed, rows)
    }

    /// Adds a request, which is entry `seq` of a gateway's journal, without counting an unknown
    /// cost. `owed` has the currency, the billed cost and the list cost, as far as they are known.
    pub(super) fn add_entry(
        &mut self,
        gateway: &str,
        seq: u64,
        owed: Option<(&str, Decimal, Decimal)>,
        rows: u64,
    ) -> Result<(), ExportError> {
        SequenceRange::add(&mut self.sequences, gateway, seq);
        self.rows += rows;
        self.requests += 1;
        owed.map_or(Ok(()), |(currency, amount, list)| self.add_money(currency, amount, list))
    }

    /// Adds the sums of other requests. `others` has nothing but requests.
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

    /// Corrects the count for the last request: its cost is not unknown, because it pays a share of
    /// GPUs, which is an item.
    pub const fn subtract_unknown_cost(&mut self) {
        self.unknown_cost_requests -= 1;
    }

    /// Adds a correction without its items, which are added one by one. It can make an unknown cost
    /// known, or a known cost unknown.
    pub const fn add_correction(&mut self, correction: &Correction) {
        self.corrections += 1;
        let before = RecordCost::is_unknown(correction.before.as_ref());
        let after = RecordCost::is_unknown(correction.after.as_ref());
        self.unknown_cost_requests += after as i64 - before as i64;
    }

    /// Adds one item with this number of rows.
    ///
    /// # Errors
    /// [`ExportError::TooLarge`].
    pub fn add_item(&mut self, item: &BillItem<'_>, rows: u64) -> Result<(), ExportError> {
        self.rows += rows;
        if item.currency.is_empty() {
            return Ok(());
        }
        self.add_money(item.currency, item.cost, item.list_cost)
    }

    /// Adds the cost of an hour to the total of the bill.
    ///
    /// # Errors
    /// [`ExportError::TooLarge`].
    pub fn add_bill_cost(&mut self, currency: &str, amount: Decimal) -> Result<(), ExportError> {
        let owed = self.owed.entry(currency.to_owned()).or_default();
        let too_large = ExportError::TooLarge { what: "the sum of the costs" };
        *owed = add_exactly(*owed, amount).ok_or(too_large)?.normalize();
        Ok(())
    }

    /// Adds the sums of the rows to the total of the bill, if there are no other charges.
    ///
    /// # Errors
    /// [`ExportError::TooLarge`].
    pub fn add_bill_sums(&mut self) -> Result<(), ExportError> {
        let sums = self.sums.clone();
        sums.iter().try_for_each(|(currency, sum)| self.add_bill_cost(currency, sum.billed_cost))
    }

    /// Adds the requests of an hour without its charges, which are added one by one.
    pub fn add_hour(&mut self, hour: &Hour) {
        self.requests += hour.sums.requests;
        self.unknown_cost_requests += hour.sums.unknown_cost_requests;
    }

    /// Adds one charge, which is one row.
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
