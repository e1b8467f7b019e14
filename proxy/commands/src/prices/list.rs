//! `taximeter prices list`: all models with their standard prices.

use std::collections::BTreeSet;
use std::io::Write;

use comfy_table::{CellAlignment, Table, presets};
use jiff::civil::Date;
use taximeter_collections::Gather as _;
use taximeter_pricing::{Currency, MeterName, PriceBook, Rates, Row, list_price};

/// Meters with their own column. The last column has all others.
const COLUMNS: [(&str, MeterName); 5] = [
    ("input", MeterName::Input),
    ("cache read", MeterName::CacheRead),
    ("cache write", MeterName::CacheWrite),
    ("long write", MeterName::CacheWriteLong),
    ("output", MeterName::Output),
];

/// Prints every price in force on `today` whose model has `filter` in its name.
pub(super) fn list(
    book: &PriceBook,
    filter: &str,
    today: Date,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let columns = COLUMNS.map(|(name, _)| name);
    let header: Vec<&str> =
        ["provider", "model"].into_iter().chain(columns).chain(["other"]).collect();
    let mut table = table(&header);
    let of_filter = |row: &&Row| row.holds_on(today) && row.model.contains(filter);
    let mut rows: Vec<&Row> = book.rows().filter(of_filter).collect();
    // The first row of a model is the one in force.
    taximeter_collections::sort_by_key(&mut rows, |row| (&row.provider, &row.model));
    rows.dedup_by_key(|row| (&row.provider, &row.model));
    for row in &rows {
        let mut cells = vec![row.provider.clone().unwrap_or_default(), row.model.clone()];
        cells.extend(COLUMNS.map(|(_, meter)| price(&row.card.rates, meter)));
        cells.push(other(row));
        table.add_row(cells);
    }
    for column in table.column_iter_mut().skip(2).take(COLUMNS.len()) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let currencies: BTreeSet<_> = rows.iter().map(|row| row.currency.as_str()).gather_set();
    let currencies = currencies.into_iter().collect::<Vec<_>>().join(", ");
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "{currencies} per 1,000,000 tokens, or per unit for other meters · {} models · book {}",
        rows.len(),
        book.version()
    )?;
    Ok(())
}

/// The last column: other meters, and the currency if it is not USD.
fn other(row: &Row) -> String {
    let others = row
        .card
        .rates
        .iter()
        .filter(|(meter, _)| COLUMNS.iter().all(|(_, column)| column != meter));
    let mut words: Vec<String> =
        others.map(|(meter, _)| format!("{meter} {}", price(&row.card.rates, meter))).collect();
    if row.currency != Currency::USD {
        words.push(format!("in {}", row.currency));
    }
    words.join(", ")
}

/// The price per million tokens, or per unit. `-` means no own price.
pub(super) fn price(rates: &Rates, meter: MeterName) -> String {
    let price = rates.rate(meter).and_then(|rate| list_price(meter, rate));
    price.map_or_else(|| "-".to_owned(), |price| price.to_string())
}

pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header.iter().copied());
    table
}
