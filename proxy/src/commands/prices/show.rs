//! `taximeter prices show MODEL`: all prices of one model, in all versions.

use std::io::Write;

use anyhow::bail;
use comfy_table::CellAlignment;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use taximeter_pricing::{
    Everywhere, Found, MeterName, NoRow, PriceBook, PriceMatch, Rates, Row, Rule, ServiceTier,
    Threshold, When,
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
        "Prices are per 1,000,000 tokens, or per unit for other meters. `-` means no own price."
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
    let lines = lines(row);
    let mut meters: Vec<MeterName> = Vec::new();
    for (.., rates) in &lines {
        meters.extend(rates.iter().map(|(meter, _)| meter));
    }
    meters.sort_unstable();
    meters.dedup();

    let header: Vec<&str> =
        ["service tier", "context"].into_iter().chain(meters.iter().map(|m| m.as_str())).collect();
    let mut table = table(&header);
    for (tier, context, rates) in &lines {
        let prices = meters.iter().map(|meter| price(rates, *meter));
        table.add_row([tier.clone(), context.clone()].into_iter().chain(prices));
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out, "{} · {}{}", row.price_id, row.currency, in_force(row, today))?;
    writeln!(out, "{table}")?;
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

/// Each line: service tier or condition, context, rates.
fn lines(row: &Row) -> Vec<(String, String, &Rates)> {
    let long = row.long_context.iter().map(|long| {
        let word = match long.threshold {
            Threshold::Over(tokens) => format!("> {tokens}"),
            Threshold::AtLeast(tokens) => format!("≥ {tokens}"),
        };
        (word, &long.card)
    });
    let short = match row.long_context.first().map(|long| long.threshold) {
        Some(Threshold::Over(tokens)) => format!("≤ {tokens}"),
        Some(Threshold::AtLeast(tokens)) => format!("< {tokens}"),
        None => String::new(),
    };
    let mut lines = Vec::new();
    for (context, card) in std::iter::once((short, &row.card)).chain(long) {
        lines.push(("standard".to_owned(), context.clone(), &card.rates));
        let tiers = ServiceTier::ALL.map(|tier| (tier, card.tiers.rates(tier)));
        let priced = tiers.into_iter().filter_map(|(tier, rates)| Some((tier, rates?)));
        lines
            .extend(priced.map(|(tier, rates)| (tier.as_str().to_owned(), context.clone(), rates)));
    }
    lines.extend(
        row.off_peak.iter().map(|off_peak| ("off-peak".to_owned(), String::new(), &off_peak.rates)),
    );
    lines.extend(conditional(&row.when));
    lines
}

fn conditional(when: &When) -> impl Iterator<Item = (String, String, &Rates)> {
    when.iter().flat_map(|(condition, words)| {
        let priced = words.iter().filter(|(_, effect)| !effect.rates.is_empty());
        priced.map(|(word, effect)| {
            (format!("{} {word}", condition.as_str()), String::new(), &effect.rates)
        })
    })
}
