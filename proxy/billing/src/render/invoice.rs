//! The invoice for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rust_decimal::{Decimal, RoundingStrategy};

use super::columns::{
    PLACES_MIN, TextColumn, grouped, money, printable, requests_of, rounded, shorten, sum_of,
    write_columns, write_rounding, write_status,
};
use crate::credit::{Covered, Credit};
use crate::invoice::{Invoice, InvoiceLine, TenantInvoice};

/// Token prices are shown for this number of tokens.
const PRICED_TOKENS: i64 = 1_000_000;

/// The invoice as a table with at most `width` characters per line, if the names allow it. It has a
/// line for each meter and price, a subtotal for each tenant, the total, and notes about the
/// numbers.
///
/// Each amount is rounded to 6 places, half to even. A note says so. `≈` marks a sum of which the
/// rounded parts add up to another number. `empty` takes the place of an invoice without requests.
#[must_use]
pub fn invoice(invoice: &Invoice, width: usize, empty: &str) -> String {
    let heading = invoice.period.heading(&invoice.zone);
    let mut out = format!("Invoice for {heading}");
    write_status(&mut out, invoice.status.as_ref(), &invoice.zone);
    if invoice.tenants.is_empty() {
        return out + empty + "\n";
    }
    let mut columns = columns(invoice);
    shorten(&mut columns, 2, width);
    write_columns(&mut out, &columns);
    write_notes(&mut out, invoice);
    out
}

/// An amount of which nothing is known.
const UNKNOWN: &str = "unknown";

/// The cells of one line, from left to right.
type LineCells = [String; 7];

const HEADS: [(&str, bool); 7] = [
    ("tenant", false),
    ("model", false),
    ("meter", false),
    ("quantity", true),
    ("unit price", true),
    ("amount", true),
    ("counted", true),
];

fn columns(invoice: &Invoice) -> Vec<TextColumn> {
    let places = places(invoice);
    let mut lines: Vec<LineCells> = Vec::new();
    for part in &invoice.tenants {
        lines.extend(part_lines(part, places));
    }
    let mut total = LineCells::default();
    total[0] = "total".to_owned();
    let subtotals = |currency: &str| {
        invoice.tenants.iter().filter_map(|part| part.totals.get(currency).copied()).collect()
    };
    let lines_of = |currency: &str| {
        invoice.tenants.iter().flat_map(|part| part_amounts(part, currency)).collect()
    };
    let unknown = invoice.tenants.iter().any(|part| part.unknown_cost_requests > 0);
    let totals =
        amounts(&invoice.totals, places, |currency| vec![subtotals(currency), lines_of(currency)]);
    total[5] = at_least(unknown, totals);
    HEADS
        .iter()
        .enumerate()
        .map(|(index, (head, right))| TextColumn {
            head: (*head).to_owned(),
            cells: lines.iter().filter_map(|line| line.get(index).cloned()).collect(),
            total: total.get(index).cloned().unwrap_or_default(),
            right: *right,
        })
        .collect()
}

/// The name of a tenant or a model stands only on its first line.
fn part_lines(part: &TenantInvoice, places: u32) -> Vec<LineCells> {
    let mut lines: Vec<LineCells> = Vec::new();
    let mut model = None;
    for line in &part.lines {
        let shown = line.model.as_deref().map_or("(none)".to_owned(), printable);
        let repeated = model.as_ref() == Some(&shown);
        lines.push([
            String::new(),
            if repeated { String::new() } else { shown.clone() },
            meter(line),
            quantity(line.quantity),
            unit_price(line),
            format!("{} {}", money(line.amount, places), line.currency),
            share(line),
        ]);
        model = Some(shown);
    }
    for credit in &part.credits {
        let mut line = LineCells::default();
        line[2] = free(credit);
        line[3] = credit.tokens.map(quantity).unwrap_or_default();
        line[5] = format!("{} {}", money(-credit.amount, places), credit.currency);
        lines.push(line);
    }
    if part.unknown_cost_requests > 0 {
        let mut unknown = LineCells::default();
        unknown[2] = "requests".to_owned();
        unknown[3] = grouped(&part.unknown_cost_requests.to_string());
        unknown[5] = UNKNOWN.to_owned();
        lines.push(unknown);
    }
    if part.lines.len() + part.credits.len() > 1 {
        let mut subtotal = LineCells::default();
        subtotal[4] = "subtotal".to_owned();
        let totals =
            amounts(&part.totals, places, |currency| vec![part_amounts(part, currency).collect()]);
        subtotal[5] = at_least(part.unknown_cost_requests > 0, totals);
        lines.push(subtotal);
    }
    if let Some([tenant, ..]) = lines.first_mut() {
        *tenant = printable(&part.tenant);
    }
    lines
}

/// The amounts of a tenant's lines in one currency, with what is free below zero.
fn part_amounts<'a>(
    part: &'a TenantInvoice,
    currency: &'a str,
) -> impl Iterator<Item = Decimal> + 'a {
    let lines = part.lines.iter().filter(move |line| line.currency == currency);
    let credits = part.credits.iter().filter(move |credit| credit.currency == currency);
    lines.map(|line| line.amount).chain(credits.map(|credit| -credit.amount))
}

fn meter(line: &InvoiceLine) -> String {
    let name = line.meter.replace('_', " ");
    if line.correction { format!("{name} (correction)") } else { name }
}

fn free(credit: &Credit) -> String {
    match &credit.covered {
        Covered::Meter(meter) => format!("{} (free)", meter.replace('_', " ")),
        Covered::Money => "free".to_owned(),
    }
}

fn quantity(quantity: Decimal) -> String {
    let text = quantity.to_string();
    let (whole, fraction) =
        text.split_once('.').map_or((text.as_str(), None), |(a, b)| (a, Some(b)));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let fraction = fraction.map(|fraction| format!(".{fraction}")).unwrap_or_default();
    format!("{sign}{}{fraction}", grouped(digits))
}

/// Exact: `0.15 / 1M tokens`.
fn unit_price(line: &InvoiceLine) -> String {
    if line.unit != "tokens" {
        let unit = line.unit.strip_suffix('s').unwrap_or(&line.unit);
        return format!("{} / {unit}", line.unit_price.normalize());
    }
    let million = line.unit_price.checked_mul(Decimal::from(PRICED_TOKENS));
    million.map_or_else(
        || format!("{} / token", line.unit_price.normalize()),
        |price| format!("{} / 1M", price.normalize()),
    )
}

/// The part of the quantity that Taximeter counted.
fn share(line: &InvoiceLine) -> String {
    let hundred = Decimal::ONE_HUNDRED;
    match line.counted.checked_mul(hundred).and_then(|part| part.checked_div(line.quantity)) {
        _ if line.counted.is_zero() => "-".to_owned(),
        None => "?".to_owned(),
        Some(share) => match share.round_dp_with_strategy(0, RoundingStrategy::MidpointNearestEven)
        {
            // Not all, and not none.
            rounded if rounded == hundred && line.counted != line.quantity => "> 99 %".to_owned(),
            rounded if rounded.is_zero() => "< 1 %".to_owned(),
            rounded => format!("{rounded} %"),
        },
    }
}

/// A sum that lacks what is unknown is at least so much.
fn at_least(unknown: bool, amounts: String) -> String {
    if unknown && amounts != UNKNOWN { format!("at least {amounts}") } else { amounts }
}

/// The totals by currency. `parts` are the lists of amounts that each may be added up from.
fn amounts(
    totals: &BTreeMap<String, Decimal>,
    places: u32,
    parts: impl Fn(&str) -> Vec<Vec<Decimal>>,
) -> String {
    let amounts: Vec<_> = totals
        .iter()
        .map(|(currency, amount)| {
            format!("{} {currency}", sum_of(*amount, places, &parts(currency)))
        })
        .collect();
    if amounts.is_empty() { UNKNOWN.to_owned() } else { amounts.join(" + ") }
}

fn places(invoice: &Invoice) -> u32 {
    let lines = invoice.tenants.iter().flat_map(|part| &part.lines).map(|line| line.amount);
    let needed =
        lines.chain(invoice.totals.values().copied()).map(|amount| rounded(amount).scale());
    needed.max().unwrap_or_default().max(PLACES_MIN)
}

fn write_notes(out: &mut String, invoice: &Invoice) {
    let parts = || invoice.tenants.iter();
    let requests: u64 = parts().map(|part| part.requests).sum();
    let unknown: u64 = parts().map(|part| part.unknown_cost_requests).sum();
    let _ = write!(out, "\n{}.", requests_of(requests));
    if unknown > 0 {
        let unknown = grouped(&unknown.to_string());
        let _ = write!(out, " The cost of {unknown} of them is unknown: no price, or no usage.");
        if parts().any(|part| part.unknown_cost_requests > 0 && !part.lines.is_empty()) {
            let _ = write!(out, " What is known of it is in the lines.");
        }
    }
    out.push('\n');
    let lines = || parts().flat_map(|part| &part.lines);
    if lines().any(|line| !line.counted.is_zero()) {
        let _ = writeln!(
            out,
            "`counted` is the part that the engine did not report and Taximeter counted."
        );
    }
    if lines().any(|line| line.list_unit_price != line.unit_price) {
        let _ =
            writeln!(out, "Prices are contracted ones; csv, json and focus have list prices too.");
    }
    match &invoice.provisional {
        Some(provisional) if !provisional.forecast.is_empty() => {
            let forecast = amounts(&provisional.forecast, PLACES_MIN, |_| Vec::new());
            let _ = writeln!(
                out,
                "Forecast for the whole period: {forecast}, as it went in the last days (7 at most)."
            );
        }
        Some(_) if !invoice.totals.is_empty() => {
            let _ = writeln!(out, "No forecast yet: it needs at least one day.");
        }
        _ => {}
    }
    let all = lines().map(|line| line.amount).chain(invoice.totals.values().copied());
    write_rounding(out, all);
}
