//! The keys under `prices` and `billing`.

use std::path::PathBuf;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use taximeter_pricing::Currency;

use crate::json_schema::{default, required, without};
use crate::model::UnknownPrice;
use crate::money::Rate;
use crate::reader::{List, OneOrMore, Optional, Required, Spanned, keys};
use crate::values::Book;

keys! {
    /// What tokens cost.
    RawPrices {
        /// The ISO 4217 currency of costs and bills. Prices in another currency need `exchange`.
        currency: Optional<Spanned<Currency>> = default("USD").example("EUR"),
        /// Exchange rates from other currencies into `currency`. The built-in book is in USD. Where
        /// a rate is missing, costs are unknown.
        exchange: Optional<List<RawExchange>> = without("no rates"),
        /// The price book to begin with.
        book: Optional<Spanned<Book>> = default("builtin").example("builtin"),
        /// A price file, a folder with price files that end in `.yaml`, or a list of both. Their
        /// prices replace those of the book.
        overrides: Optional<OneOrMore<Spanned<PathBuf>>> =
            without("no files").example("prices.yaml"),
        /// Models without a price: `meter` serves them at unknown cost, `refuse` answers 400
        /// `unknown_price`.
        unknown: Optional<Spanned<UnknownPrice>> = default("meter").example("refuse"),
    }
}

keys! {
    /// How Taximeter makes bills.
    RawBilling {
        /// The time zone of bills, statements and allowances, by its IANA name. Their months, days
        /// and hours begin there. Exports are in UTC.
        zone: Optional<Spanned<TimeZone>> = default("UTC").example("Europe/Berlin"),
    }
}

keys! {
    /// The exchange rate of one currency.
    RawExchange {
        /// The other currency.
        from: Required<Spanned<Currency>> = required().example("EUR"),
        /// What one unit of it is worth in `prices.currency`; above 0, exact.
        rate: Required<Spanned<Rate>> = required().example("1.08"),
        /// The first day of the rate, UTC. A request has the rate of the day of its admission.
        since: Optional<Spanned<Date>> = without("from the beginning").example("2026-11-01"),
    }
}
