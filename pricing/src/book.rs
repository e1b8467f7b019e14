//! The look-up rule: which row prices an answer.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rust_decimal::Decimal;

use crate::builtin;
use crate::currency::{Currency, ExchangeRate};
use crate::file::{self, BookError, Names};
use crate::row::Row;

/// What is known of a request when its price is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query<'a> {
    /// `gen_ai.provider.name`: who answers.
    pub provider: Option<&'a str>,
    /// `model` of the answer.
    pub response_model: Option<&'a str>,
    /// `model` of the request.
    pub request_model: Option<&'a str>,
    /// Service tier that was really used.
    pub service_tier: Option<&'a str>,
    /// Admission.
    pub at: Timestamp,
}

/// Prices of models, by name, provider and date.
///
/// A row that names a provider prices that provider's answers and no others: an engine of one's own
/// that calls its model `gpt-4o` does not owe OpenAI's price, and Azure does not charge OpenAI's
/// everywhere. A row without a provider prices whoever answers; only overrides have such rows.
/// There is no guessing by family: a name that is not in the book has no price.
#[derive(Debug, Clone)]
pub struct PriceBook {
    /// By preference: overrides before built-in, a provider's own before any provider's, later
    /// before earlier.
    rows: Vec<Row>,
    /// How many of them, from the first, are overrides.
    overrides: usize,
    /// Positions in `rows` of a model name or alias, by preference.
    named: HashMap<String, Vec<usize>>,
    version: String,
    /// Of the bills.
    currency: Currency,
    /// What other currencies are worth in it; later ones first.
    exchange: Vec<ExchangeRate>,
}

impl PriceBook {
    /// The prices that come with the program, in US dollars.
    ///
    /// Errors: a mistake in our own files, which a test reads too.
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

    /// A book of nothing, to lay files over.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            rows: Vec::new(),
            overrides: 0,
            named: HashMap::new(),
            version: "none".to_owned(),
            currency: Currency::USD,
            exchange: Vec::new(),
        }
    }

    /// The rows of the file `text` and no others: the fixed prices of a customer, whose name the
    /// book's version begins with. `file` is what messages call it.
    ///
    /// Errors: the first mistake in it, with line and column.
    pub fn fixed(customer: &str, text: &str, file: &str) -> Result<Self, BookError> {
        let read = file::read(customer, file, text, &mut Names::new())?;
        let version = file::version(customer, read.version);
        Ok(Self { rows: by_preference(read.rows), version, ..Self::empty() }.indexed())
    }

    /// Lays the file `text`, called `name` in messages, over this book.
    ///
    /// Several files stand side by side: of two rows of a model the one that begins later holds,
    /// whichever file it is in.
    ///
    /// Errors: the first mistake in it, with line and column; a row that another file has too.
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

    /// The same book for bills in `currency`, with what other currencies are worth in it.
    ///
    /// A row in a currency without an exchange rate in force prices nothing.
    #[must_use]
    pub fn in_currency(self, currency: Currency, mut exchange: Vec<ExchangeRate>) -> Self {
        exchange.sort_by_key(|rate| Reverse(rate.since));
        Self { currency, exchange, ..self }
    }

    fn indexed(self) -> Self {
        // An alias holds for every row of its model, so that a later price need not repeat it.
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
        Self { named, ..self }
    }

    /// The row that prices such a request; `None` when the book does not know.
    ///
    /// The model of the answer comes before that of the request, a name as it stands before the
    /// same name without its date (`-2026-11-20`, `-20261120`).
    #[must_use]
    pub fn find(&self, query: &Query<'_>) -> Option<&Row> {
        let day = day(query.at);
        [query.response_model, query.request_model].into_iter().flatten().find_map(|model| {
            self.find_named(model, query.provider, day)
                .or_else(|| self.find_named(without_date(model)?, query.provider, day))
        })
    }

    fn find_named(&self, name: &str, provider: Option<&str>, day: Date) -> Option<&Row> {
        let positions = self.named.get(name)?;
        let mut rows = positions.iter().filter_map(|&position| self.rows.get(position));
        rows.find(|row| row.prices(provider, day) && self.exchange_on(row.currency, day).is_some())
    }

    /// Money in the currency of the bills for one of `from`; `None` when nobody said.
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

    /// Of the bills.
    #[must_use]
    pub const fn currency(&self) -> Currency {
        self.currency
    }

    /// Currencies that rows are in and that have no exchange rate at `at`: their prices are
    /// unknown.
    #[must_use]
    pub fn without_exchange(&self, at: Timestamp) -> BTreeSet<Currency> {
        let currencies = self.rows.iter().map(|row| row.currency);
        currencies.filter(|currency| self.exchange(*currency, at).is_none()).collect()
    }

    /// Every row, by preference.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter()
    }

    /// Which books in which versions: `overrides@2026-12-01+builtin@2026-11-20`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }
}

fn day(at: Timestamp) -> Date {
    TimeZone::UTC.to_datetime(at).date()
}

/// Within one book a provider's own rows come before any provider's, later ones before earlier
/// ones.
fn by_preference(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|row| (row.provider.is_none(), Reverse(row.from)));
    rows
}

/// `name` without a final `-YYYY-MM-DD` or `-YYYYMMDD`.
fn without_date(name: &str) -> Option<&str> {
    ["-dddd-dd-dd", "-dddddddd"].into_iter().find_map(|pattern| {
        let (model, date) = name.split_at_checked(name.len().checked_sub(pattern.len())?)?;
        let fits = date.bytes().zip(pattern.bytes()).all(|(byte, pattern)| match pattern {
            b'd' => byte.is_ascii_digit(),
            other => byte == other,
        });
        fits.then_some(model)
    })
}

#[cfg(test)]
mod tests;
