//! A statement: the cost of one tenant in one period, in a form that can be signed and checked.
//!
//! A statement contains all numbers that make up its total, so its reader can add them up again. A
//! signature covers its canonical bytes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use taximeter_collections::Gather as _;
use taximeter_pricing::Source;

use crate::closing::{Finality, LostRequests, PeriodStatus, SilentGateway, WaitedGateway};
use crate::credit::Credit;
use crate::hours::{Hour, HourKey};
use crate::period::{Period, PeriodError};
use crate::sums::{add_exactly, exact_product};
use crate::zone::Zone;

/// The version of the form that is written. Readers accept all versions up to it.
pub const STATEMENT_VERSION: u32 = 2;

/// The cost of one tenant in one period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// [`STATEMENT_VERSION`].
    pub version: u32,
    /// The tenant that pays.
    pub tenant: String,
    /// First instant. The statement has the requests that were admitted from then on.
    pub from: Timestamp,
    /// First instant after the period.
    pub to: Timestamp,
    /// The time zone of the month. Absent if it is UTC.
    #[serde(default = "utc", skip_serializing_if = "is_utc")]
    pub zone: String,
    /// Whether the period was not closed when the statement was made, or the statement is not
    /// recorded. Then the cost can change.
    pub provisional: bool,
    /// Its number among the final statements of the tenant for the period, from 1 on. Each one after
    /// the first states the difference to the ones before it. A provisional one has no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u32>,
    /// The statement before it, if it states a difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follows: Option<StatementBefore>,
    /// When the period closes, of a provisional one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closes_at: Option<Timestamp>,
    /// The gateways that a provisional one waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<WaitedGateway>,
    /// The gateways that were silent when a final one was made. Their requests can be missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silent: Vec<SilentGateway>,
    /// The first instant with single requests, if those of the period before it were gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details_from: Option<Timestamp>,
    /// Requests that were lost when it was made, if some may be of the period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<LostRequests>,
    /// Whether it is provisional because it could not be recorded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unrecorded: bool,
    /// Number of requests.
    pub requests: i64,
    /// Number of requests whose cost is unknown. The lines have what is known of it.
    pub unknown_cost_requests: i64,
    /// In the order of model, meter and price.
    pub lines: Vec<StatementLine>,
    /// The credits, by month and what they cover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credits: Vec<Credit>,
    /// Sums of the lines by currency, reduced by the credits, exact.
    pub totals: BTreeMap<String, Decimal>,
    /// The state of the journals that contain the entries. With them, a reader can tell whether the
    /// journals have changed since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub journals: Vec<StatementJournal>,
}

/// The statement before one that states a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementBefore {
    /// Its number.
    pub number: u32,
    /// SHA-256 of its canonical form, in hexadecimal.
    pub sha256: String,
}

/// The state of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementJournal {
    /// `journal` has the requests, `corrections` has the corrections.
    pub name: String,
    /// The gateway that writes the journal.
    pub gateway: String,
    /// Sequence number of its last entry.
    pub last_seq: u64,
    /// Digest of its last segment up to that entry. Each segment contains the digest of the one
    /// before.
    pub sha256: String,
}

/// One meter of one model at one price.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatementLine {
    /// The model that answered.
    pub model: Option<String>,
    /// `input`, `cache_read`, `output` and so on.
    pub meter: String,
    /// What is counted.
    pub unit: String,
    /// Source of the quantity.
    pub source: Source,
    /// Whether this is a later correction.
    pub correction: bool,
    /// Version and row of the price book.
    pub price_id: String,
    /// ISO 4217.
    pub currency: String,
    /// Contracted price of one.
    pub unit_price: Decimal,
    /// The quantity.
    pub quantity: Decimal,
    /// `quantity` × `unit_price`, exact.
    pub amount: Decimal,
}

/// What is wrong in a statement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StatementFault {
    /// The statement has another version.
    #[error(
        "the statement has version {found}, but this taximeter reads versions up to \
         {STATEMENT_VERSION}"
    )]
    Version {
        /// Its version.
        found: u32,
    },
    /// The amount of a line is not the product of its quantity and price.
    #[error(
        "line {number} ({meter}): {quantity} × {unit_price} is not {amount}",
        meter = line.meter, quantity = line.quantity,
        unit_price = line.unit_price, amount = line.amount
    )]
    Amount {
        /// From 1.
        number: usize,
        /// The line.
        line: Box<StatementLine>,
    },
    /// A credit takes nothing off, or belongs to another tenant. In a difference it may take back.
    #[error("credit {number} belongs to another tenant than {tenant}, or takes nothing off")]
    Credit {
        /// From 1.
        number: usize,
        /// The tenant of the statement.
        tenant: String,
    },
    /// A total is not the sum of its lines, reduced by its credits.
    #[error("the total in {currency} is {total}, but its lines add up to {sum}")]
    Total {
        /// ISO 4217.
        currency: String,
        /// The total in the statement.
        total: Decimal,
        /// The sum of its lines and credits.
        sum: Decimal,
    },
    /// A sum has more digits than can be kept exactly.
    #[error("the sums of the statement are too large to be kept exactly")]
    TooLarge,
}

impl Statement {
    /// The statement of `tenant` for `period`, a month of `zone`. `hours` may contain other
    /// tenants, which are ignored. `credits` are the tenant's credits. The statement names no
    /// journals.
    ///
    /// # Errors
    /// [`StatementFault::TooLarge`].
    pub fn new<'a>(
        tenant: &str,
        period: Period,
        zone: &Zone,
        status: PeriodStatus,
        hours: impl IntoIterator<Item = (&'a HourKey, &'a Hour)>,
        credits: Vec<Credit>,
    ) -> Result<Self, StatementFault> {
        let (mut requests, mut unknown) = (0_i64, 0_i64);
        let mut quantities: BTreeMap<StatementLine, Decimal> = BTreeMap::new();
        for (key, hour) in hours {
            if key.tenant != tenant || !period.contains(key.hour) {
                continue;
            }
            requests = requests.saturating_add_unsigned(hour.sums.requests);
            unknown = unknown.saturating_add(hour.sums.unknown_cost_requests);
            for (line, quantity) in &hour.lines {
                let currency = key.currency.clone().unwrap_or_default();
                let blank = StatementLine {
                    model: line.model.clone().or_else(|| key.model.clone()),
                    meter: line.meter.clone(),
                    unit: line.unit.clone(),
                    source: line.source,
                    correction: key.correction,
                    price_id: line.price_id.clone(),
                    currency,
                    unit_price: line.unit_price,
                    quantity: Decimal::ZERO,
                    amount: Decimal::ZERO,
                };
                let sum = quantities.entry(blank).or_default();
                *sum = add_exactly(*sum, *quantity).ok_or(StatementFault::TooLarge)?;
            }
        }
        let line = |(blank, quantity): (StatementLine, Decimal)| {
            let amount = exact_product(quantity, blank.unit_price)?;
            Some(StatementLine { quantity: quantity.normalize(), amount, ..blank })
        };
        let lines: Vec<_> = quantities
            .into_iter()
            .filter(|(_, quantity)| !quantity.is_zero())
            .map(|entry| line(entry).ok_or(StatementFault::TooLarge))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            version: STATEMENT_VERSION,
            tenant: tenant.to_owned(),
            from: period.from(),
            to: period.to(),
            zone: zone.to_string(),
            provisional: !status.is_final(),
            number: None,
            follows: None,
            closes_at: status.closes_at,
            waits_for: status.waits_for,
            silent: status.silent,
            details_from: status.details_from,
            lost: status.lost,
            unrecorded: false,
            requests,
            unknown_cost_requests: unknown,
            totals: totals(&lines, &credits)?,
            lines,
            credits,
            journals: Vec::new(),
        })
    }

    /// Adds up the statement again.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), StatementFault> {
        if !(1..=STATEMENT_VERSION).contains(&self.version) {
            return Err(StatementFault::Version { found: self.version });
        }
        for (index, line) in self.lines.iter().enumerate() {
            if exact_product(line.quantity, line.unit_price) != Some(line.amount) {
                let (number, line) = (index + 1, Box::new(line.clone()));
                return Err(StatementFault::Amount { number, line });
            }
        }
        let is_good = |credit: &Credit| {
            credit.tenant == self.tenant
                && (credit.amount.is_sign_positive() || self.follows.is_some())
        };
        if let Some(index) = self.credits.iter().position(|credit| !is_good(credit)) {
            let (number, tenant) = (index + 1, self.tenant.clone());
            return Err(StatementFault::Credit { number, tenant });
        }
        let sums = totals(&self.lines, &self.credits)?;
        for currency in self.totals.keys().chain(sums.keys()) {
            let of = |totals: &BTreeMap<String, Decimal>| {
                totals.get(currency).copied().unwrap_or_default()
            };
            let (total, sum) = (of(&self.totals), of(&sums));
            if total != sum {
                return Err(StatementFault::Total { currency: currency.clone(), total, sum });
            }
        }
        Ok(())
    }

    /// Whether it is final, in words.
    #[must_use]
    pub fn status_words(&self) -> String {
        let waits = self.closes_at.is_some() || !self.waits_for.is_empty();
        if self.unrecorded {
            return "provisional: it could not be recorded".to_owned();
        }
        if self.provisional && !waits {
            return "provisional: made before the end of the period".to_owned();
        }
        let status = if self.provisional { Finality::Provisional } else { Finality::Final };
        let status = PeriodStatus {
            status,
            closes_at: self.closes_at,
            waits_for: self.waits_for.clone(),
            silent: self.silent.clone(),
            details_from: self.details_from,
            lost: self.lost,
            until: None,
        };
        status.words(&self.zone.parse().unwrap_or_default())
    }

    /// The period of the statement.
    ///
    /// # Errors
    /// It ends before it begins.
    pub fn period(&self) -> Result<Period, PeriodError> {
        Period::new(self.from, self.to)
    }

    /// SHA-256 of the canonical form, in hexadecimal. A later statement names it.
    #[must_use]
    pub fn sha256(&self) -> String {
        let digest = Sha256::digest(self.canonical());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The bytes that a signature covers: JSON without blanks, with the members in the order of
    /// their names (RFC 8785).
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut out = String::new();
        // The members are strings, whole numbers and lists of them, so this cannot fail.
        write_canonical(&serde_json::to_value(self).unwrap_or_default(), &mut out);
        out
    }
}

fn utc() -> String {
    Zone::UTC.to_string()
}

fn is_utc(zone: &String) -> bool {
    *zone == Zone::UTC.name()
}

pub(crate) fn totals(
    lines: &[StatementLine],
    credits: &[Credit],
) -> Result<BTreeMap<String, Decimal>, StatementFault> {
    let lines = lines.iter().map(|line| (&line.currency, line.amount));
    let credits = credits.iter().map(|credit| (&credit.currency, -credit.amount));
    let mut totals: BTreeMap<String, Decimal> = BTreeMap::new();
    for (currency, amount) in lines.chain(credits) {
        let total = totals.entry(currency.clone()).or_default();
        *total = add_exactly(*total, amount).ok_or(StatementFault::TooLarge)?.normalize();
    }
    Ok(totals)
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<_, _> = members.iter().gather();
            out.push('{');
            for (index, (name, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(&Value::from(name.as_str()), out);
                out.push(':');
                write_canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

#[cfg(test)]
mod tests;
