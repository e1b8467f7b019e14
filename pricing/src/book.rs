//! The rows of a book, in order of preference and by name.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;

use crate::builtin;
use crate::currency::{Currency, ExchangeRate};
use crate::file::{self, BookError, Names};
use crate::row::Row;

/// What is known of a request when its price is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query<'a> {
    /// `gen_ai.provider.name` of the answer.
    pub provider: Option<&'a str>,
    /// `model` of the answer.
    pub response_model: Option<&'a str>,
    /// `model` of the request.
    pub request_model: Option<&'a str>,
    /// Service tier of the answer.
    pub service_tier: Option<&'a str>,
    /// Time of admission.
    pub at: Timestamp,
}

/// Prices of models, by name, provider and date.
///
/// A row with a provider prices only the answers of that provider. So a self-hosted engine whose
/// model is called `gpt-4o` does not get OpenAI's price, and neither does Azure. A row without a
/// provider prices the answers of any provider. Only overrides have such rows. `lookup.rs` has the
/// rules by which a name finds its row. The book does not guess by model family: a name without a row
/// by these rules has no price.
#[derive(Debug, Clone)]
pub struct PriceBook {
    /// Another one for each content that a book has had in this process.
    number: u64,
    /// In order of preference: overrides before built-in rows, rows with a provider before rows
    /// without, later rows before earlier ones.
    rows: Vec<Row>,
    /// The first rows, this many, are overrides.
    overrides: usize,
    /// Positions in `rows` of a model name or alias, in order of preference.
    named: HashMap<String, Vec<usize>>,
    /// The same in small letters, for names with capitals.
    small: HashMap<String, Vec<usize>>,
    /// The providers of rows that have such names.
    with_capitals: BTreeSet<String>,
    version: String,
    /// The currency of the bills.
    currency: Currency,
    /// Exchange rates to that currency, later ones first.
    exchange: Vec<ExchangeRate>,
}

impl PriceBook {
    /// The prices that come with the program, in US dollars.
    ///
    /// Errors: a mistake in a built-in file. A test checks that there is none.
    pub fn builtin() -> Result<Self, BookError> {
        let mut rows = Vec::new();
        let mut version = None;
        let mut names = Names::new();
        for (name, text) in builtin::FILES {
            let file = file::read("builtin", name, text, &mut names)?;
            version = version.max(file.version);
            rows.extend(file.rows);
        }
        let version = file::version("builtin", version);
        Ok(Self { rows: by_preference(rows), version, ..Self::empty() }.indexed())
    }

    /// A book without prices. Overrides can be added to it.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            number: next_number(),
            rows: Vec::new(),
            overrides: 0,
            named: HashMap::new(),
            small: HashMap::new(),
            with_capitals: BTreeSet::new(),
            version: "none".to_owned(),
            currency: Currency::USD,
            exchange: Vec::new(),
        }
    }

    /// The rows of the file `text` and no others: the fixed prices of a customer. The version of
    /// the book begins with the customer's name. Messages call the file `file`.
    ///
    /// Errors: the first mistake in the file, with line and column.
    pub fn fixed(customer: &str, text: &str, file: &str) -> Result<Self, BookError> {
        let read = file::read(customer, file, text, &mut Names::new())?;
        let version = file::version(customer, read.version);
        Ok(Self { rows: by_preference(read.rows), version, ..Self::empty() }.indexed())
    }

    /// Adds the file `text` as overrides. Messages call it `name`.
    ///
    /// Several override files are equal: if two files have rows of a model, the row that begins
    /// later is in force.
    ///
    /// Errors: the first mistake in the file, with line and column, or a row that another file has
    /// too.
    pub fn with_overrides(mut self, text: &str, name: &str) -> Result<Self, BookError> {
        let builtin = self.rows.split_off(self.overrides);
        let mut names: Names = self.rows.iter().flat_map(file::names).collect();
        let file = file::read("overrides", name, text, &mut names)?;
        self.version = format!("{}+{}", file::version("overrides", file.version), self.version);
        self.rows.extend(file.rows);
        self.rows = by_preference(self.rows);
        self.overrides = self.rows.len();
        self.rows.extend(builtin);
        Ok(self.indexed())
    }

    /// The same book for bills in `currency`, with exchange rates to it.
    ///
    /// A row prices nothing while its currency has no exchange rate.
    #[must_use]
    pub fn in_currency(self, currency: Currency, mut exchange: Vec<ExchangeRate>) -> Self {
        taximeter_collections::sort_by_key(&mut exchange, |rate| Reverse(rate.since));
        Self { number: next_number(), currency, exchange, ..self }
    }

    fn indexed(self) -> Self {
        // An alias holds for every row of its model, so a later row need not repeat it.
        let mut names: HashMap<_, BTreeSet<&str>> = HashMap::new();
        for row in &self.rows {
            let names = names.entry((&row.provider, &row.model)).or_default();
            names.insert(&row.model);
            names.extend(row.aliases.iter().map(String::as_str));
        }
        let mut named: HashMap<String, Vec<usize>> = HashMap::new();
        for (position, row) in self.rows.iter().enumerate() {
            for name in names.get(&(&row.provider, &row.model)).into_iter().flatten() {
                named.entry((*name).to_owned()).or_default().push(position);
            }
        }
        let mut small: HashMap<String, Vec<usize>> = HashMap::new();
        for (name, positions) in &named {
            if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
                small.entry(name.to_ascii_lowercase()).or_default().extend(positions);
            }
        }
        small.values_mut().for_each(|positions| positions.sort_unstable());
        let rows = small.values().flatten().filter_map(|&position| self.rows.get(position));
        let with_capitals = rows.filter_map(|row| row.provider.clone()).collect();
        Self { number: next_number(), named, small, with_capitals, ..self }
    }

    /// The row that prices a request. `None` if the book has none. [`lookup`](Self::lookup) says why.
    #[must_use]
    pub fn find(&self, query: &Query<'_>) -> Option<&Row> {
        self.lookup(query).ok().map(|found| found.row)
    }

    /// The rows with `name` as their own or an alias, in order of preference.
    pub(crate) fn rows_named(&self, name: &str) -> impl Iterator<Item = &Row> {
        self.positioned(self.named.get(name))
    }

    /// The rows whose name or alias has capitals and is `small` without them. None if `provider` has
    /// no such names.
    pub(crate) fn rows_in_small_letters(
        &self,
        small: &str,
        provider: &str,
    ) -> impl Iterator<Item = &Row> {
        let has_any = self.with_capitals.contains(provider);
        self.positioned(has_any.then(|| self.small.get(small)).flatten())
    }

    fn positioned<'a>(
        &'a self,
        positions: Option<&'a Vec<usize>>,
    ) -> impl Iterator<Item = &'a Row> {
        positions.into_iter().flatten().filter_map(|&position| self.rows.get(position))
    }

    /// Tells this book from all others. Those with the same number have the same content.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// The row at a position.
    pub(crate) fn row(&self, position: usize) -> Option<&Row> {
        self.rows.get(position)
    }

    /// The position of one of the rows.
    pub(crate) fn position(&self, row: &Row) -> Option<usize> {
        self.rows.element_offset(row)
    }

    /// Whether costs at the prices of `row` can be billed on `day`.
    pub(crate) fn has_rate(&self, row: &Row, day: Date) -> bool {
        self.exchange_on(row.currency, day).is_some()
    }

    /// Money in the currency of the bills for one unit of `from`. `None` without an exchange rate.
    pub(crate) fn exchange(&self, from: Currency, at: Timestamp) -> Option<Decimal> {
        self.exchange_on(from, day(at))
    }

    fn exchange_on(&self, from: Currency, day: Date) -> Option<Decimal> {
        if from == self.currency {
            return Some(Decimal::ONE);
        }
        let mut rates = self.exchange.iter().filter(|rate| rate.from == from);
        rates.find(|rate| rate.since.is_none_or(|since| since <= day)).map(|rate| rate.rate)
    }

    /// The currency of the bills.
    #[must_use]
    pub const fn currency(&self) -> Currency {
        self.currency
    }

    /// The currencies of rows that have no exchange rate at `at`. Prices in them are unknown.
    #[must_use]
    pub fn without_exchange(&self, at: Timestamp) -> BTreeSet<Currency> {
        let currencies = self.rows.iter().map(|row| row.currency);
        currencies.filter(|currency| self.exchange(*currency, at).is_none()).collect()
    }

    /// Every row, in order of preference.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    /// The books that prices are from, and their dates, where they have one.
    pub fn dates(&self) -> impl Iterator<Item = (&str, Date)> {
        let books = self.version.split('+').filter_map(|book| book.split_once('@'));
        books.filter_map(|(name, date)| Some((name, date.parse().ok()?)))
    }

    /// The books and their versions: `overrides@2026-12-01+builtin@2026-11-20`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }
}

fn next_number() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed)
}

pub(crate) fn day(at: Timestamp) -> Date {
    TimeZone::UTC.to_datetime(at).date()
}

/// Within one book, rows with a provider come before rows without one, and later rows before
/// earlier ones.
fn by_preference(mut rows: Vec<Row>) -> Vec<Row> {
    taximeter_collections::sort_by_key(&mut rows, |row| {
        (row.provider.is_none(), Reverse(row.from))
    });
    rows
}

#[cfg(test)]
mod tests;
