//! `taximeter prices show MODEL`: all prices of one model, in all versions.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::bail;
use comfy_table::{CellAlignment, Table};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use taximeter_collections::Gather as _;
use taximeter_pricing::{
    Combination, CombinedRates, Everywhere, Found, MeterName, NoRow, PriceBook, PriceMatch, Row,
    Rule, ServiceTier, Threshold,
};

use super::list::{price, table};

/// Most names in the message that the price book does not have a model.
const NEAREST: usize = 5;

/// Prints each price of the model, with what finds its row, and why a provider's row does not price
/// it.
///
/// Errors: the price book has none.
pub(super) fn show(
    book: &PriceBook,
    model: &str,
    now: Timestamp,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let today = now.to_zoned(TimeZone::UTC).date();
    let all = book.everywhere(model, now);
    let rows: Vec<_> =
        book.rows().filter_map(|row| Some((row, found(row, model, &all)?))).collect();
    if rows.is_empty() {
        bail!(none(book, model, now, &all));
    }
    for (row, found) in rows {
        writeln!(out, "price_match: {found}")?;
        show_row(row, today, out)?;
    }
    let regions = all.missing.iter().filter(|(_, why)| matches!(why, NoRow::Region { .. }));
    for (_, why) in regions {
        writeln!(out, "{why}\n")?;
    }
    writeln!(
        out,
        "Prices are per 1,000,000 tokens, or per unit for other meters. The cost of a request that \
         needs a missing rate is unknown."
    )?;
    Ok(())
}

/// What finds the row, if the model does: its own names find rows of any time.
fn found(row: &Row, model: &str, all: &Everywhere<'_>) -> Option<String> {
    if row.model == model {
        return Some(PriceMatch::EXACT.to_string());
    }
    let is_same =
        |found: &&Found<'_>| (&found.row.provider, &found.row.model) == (&row.provider, &row.model);
    if let Some(found) = all.found.iter().find(is_same) {
        let region = found.region.as_ref().map(|region| format!(", with the price of {region}"));
        return Some(format!("{}{}", found.how, region.unwrap_or_default()));
    }
    let has_alias = row.aliases.iter().any(|alias| alias == model);
    has_alias.then(|| PriceMatch::from(Rule::Alias).to_string())
}

/// Why no row has the name, and names that are like it.
fn none(book: &PriceBook, model: &str, now: Timestamp, all: &Everywhere<'_>) -> String {
    let why = match all.missing.first() {
        Some((_, why)) => why.to_string(),
        None => format!("the book has no price for {model:?}"),
    };
    let nearest = book.nearest(model, now, NEAREST);
    let like = match nearest.is_empty() {
        true => String::new(),
        false => format!("; names like it: {}", nearest.join(", ")),
    };
    format!("{why}{like}; see `taximeter prices list`")
}

fn show_row(row: &Row, today: Date, out: &mut impl Write) -> anyhow::Result<()> {
    let combinations = row.combinations();
    let priced: Vec<_> = combinations.iter().filter(|combined| combined.has_rates()).collect();
    writeln!(out, "{} · {}{}", row.price_id, row.currency, in_force(row, today))?;
    writeln!(out, "{}", rates(row, &priced))?;
    for gap in row.gaps() {
        writeln!(out, "no rate: {gap}")?;
    }
    for whole in MeterName::ALL {
        let parts = MeterName::ALL.into_iter().filter(|part| row.costs_as(*part) == Some(whole));
        let parts: Vec<_> = parts.map(MeterName::as_str).collect();
        if !parts.is_empty() {
            writeln!(out, "as {whole}: {}", parts.join(", "))?;
        }
    }
    for (condition, words) in &row.when {
        for (word, effect) in words {
            if let Some(times) = effect.times {
                writeln!(out, "{} {word}: tokens × {times}", condition.as_str())?;
            }
        }
    }
    if let Some(off_peak) = &row.off_peak {
        let windows: Vec<_> = off_peak.windows.iter().map(ToString::to_string).collect();
        writeln!(out, "off-peak, UTC: {}", windows.join("; "))?;
    }
    writeln!(out)?;
    Ok(())
}

fn in_force(row: &Row, today: Date) -> String {
    let from = row.from.map_or_else(String::new, |from| format!(" from {from}"));
    let until = row.until.map_or_else(String::new, |until| format!(" until {until}"));
    let now = if row.holds_on(today) { "" } else { " (not today)" };
    match from.is_empty() && until.is_empty() {
        true => String::new(),
        false => format!(" ·{from}{until}{now}"),
    }
}

/// A line for each combination with rates, and a column for each meter.
fn rates(row: &Row, priced: &[&CombinedRates]) -> Table {
    let meters: BTreeSet<_> = priced
        .iter()
        .flat_map(|combined| {
            combined.rates.iter().map(|(meter, _)| meter).chain(combined.lacking.clone())
        })
        .gather_set();
    let short = match row.long_context.first().map(|long| long.threshold) {
        Some(Threshold::Over(tokens)) => format!("≤ {tokens}"),
        Some(Threshold::AtLeast(tokens)) => format!("< {tokens}"),
        None => String::new(),
    };
    let context = |threshold| match threshold {
        Some(Threshold::Over(tokens)) => format!("> {tokens}"),
        Some(Threshold::AtLeast(tokens)) => format!("≥ {tokens}"),
        None => short.clone(),
    };
    let has_others = priced.iter().any(|combined| !others(&combined.combination).is_empty());
    let before =
        ["service tier", "context", "when"].into_iter().take(if has_others { 3 } else { 2 });
    let columns = before.clone().count();
    let header: Vec<_> = before.chain(meters.iter().map(|meter| meter.as_str())).collect();
    let mut table = table(&header);
    for CombinedRates { combination, rates, .. } in priced {
        let tier = combination.tier.map_or("standard", ServiceTier::as_str).to_owned();
        let before = [tier, context(combination.context), others(combination)];
        let prices = meters.iter().map(|meter| match rates.rate(*meter) {
            Some(_) => price(rates, *meter),
            None => "unknown".to_owned(),
        });
        table.add_row(before.into_iter().take(columns).chain(prices));
    }
    for column in table.column_iter_mut().skip(columns) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// The hours and the conditions.
fn others(combination: &Combination) -> String {
    let off_peak = combination.off_peak.then(|| "off-peak".to_owned());
    let conditions = combination.conditions.iter();
    let words = conditions.map(|(condition, word)| format!("{} {word}", condition.as_str()));
    off_peak.into_iter().chain(words).collect::<Vec<_>>().join(", ")
}
