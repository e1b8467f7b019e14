//! The keys under `prices` → `Prices`.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

use taximeter_pricing::{Currency, ExchangeRate};

use crate::mistake::Invalid;
use crate::model::Prices;
use crate::reader::{List, Optional, Reader, Spanned};
use crate::schema::{RawExchange, RawPrices};
use crate::values::Book;

/// The prices. Reports mistakes.
pub(crate) fn prices(raw: RawPrices, reader: &mut Reader<'_>) -> Prices {
    let default = Prices::default();
    let Book::Builtin = raw.book.or(Book::Builtin);
    let currency = raw.currency.or(default.currency);
    let overrides = raw.overrides.given().map_or(Vec::new(), |given| overrides(given.0, reader));
    let exchange = raw.exchange.given().map_or(Vec::new(), |list| exchange(list, currency, reader));
    Prices { currency, exchange, overrides, unknown: raw.unknown.or(default.unknown) }
}

fn overrides(given: Vec<Spanned<PathBuf>>, reader: &mut Reader<'_>) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for at in given {
        let path = reader.resolve(&at.value);
        match (reader.read_file)(&path) {
            Err(error) if error.kind() != io::ErrorKind::IsADirectory => {
                let why = Invalid::new(
                    format!("cannot be read: {error}"),
                    "a price file, or a folder with price files",
                );
                reader.invalid::<PathBuf>(&at.location, &at.written, &why);
            }
            _ => paths.push(path),
        }
    }
    paths
}

fn exchange(
    list: List<RawExchange>,
    currency: Currency,
    reader: &mut Reader<'_>,
) -> Vec<ExchangeRate> {
    let mut taken = BTreeSet::new();
    let built = list.items.into_iter().filter_map(|raw| {
        let from = raw.from.0?;
        let is_dated = !matches!(raw.since, Optional::Wrong);
        let since = raw.since.given().map(|at| at.value);
        if from.value == currency {
            let why = Invalid::new("is the currency of the bills", "another currency");
            reader.invalid::<Currency>(&from.location, &from.written, &why);
        } else if is_dated && !taken.insert((from.value, since)) {
            let why = Invalid::new("has a rate for that day already", "another `since`");
            reader.invalid::<Currency>(&from.location, &from.written, &why);
        }
        Some(ExchangeRate { from: from.value, rate: raw.rate.0?.value.0, since })
    });
    built.collect()
}
