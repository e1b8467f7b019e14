//! The bill for people.

use std::fmt::Write as _;

use super::columns::{
    PLACES_MIN, TextColumn, grouped, money, printable, requests_of, rounded, shorten, sum_of,
    write_columns, write_rounding, write_status,
};
use rust_decimal::Decimal;

use crate::bill::Bill;
use crate::credit::{Covered, Credit};
use crate::sums::Sums;

/// The bill as a table with at most `width` characters per line, if the names allow it. It has a
/// total and notes about the numbers.
///
/// Money is rounded to 6 places, half to even. A note says so. `≥` marks a sum without the requests
/// whose number is unknown, `≈` a total of which the rounded lines add up to another number. `empty`
/// takes the place of a bill without requests.
#[must_use]
pub fn table(bill: &Bill, width: usize, empty: &str) -> String {
    let mut out = format!("Bill for {}", bill.period.heading(&bill.zone));
    write_status(&mut out, bill.status.as_ref(), &bill.zone);
    if bill.rows.is_empty() {
        return out + empty + "\n";
    }
    let mut columns = name_columns(bill);
    let names = columns.len();
    columns.extend(number_columns(bill));
    columns.push(cost_column(bill));
    add_credits(&mut columns, bill);
    shorten(&mut columns, names, width);
    write_columns(&mut out, &columns);
    write_notes(&mut out, bill);
    out
}

fn name_columns(bill: &Bill) -> Vec<TextColumn> {
    let dimensions = bill.by.dimensions().iter().enumerate();
    dimensions
        .map(|(index, dimension)| {
            let name = |key: &Option<String>| key.as_deref().map_or("(none)".to_owned(), printable);
            TextColumn {
                head: printable(&dimension.to_string()),
                cells: bill.rows.iter().filter_map(|row| row.keys.get(index).map(name)).collect(),
                total: if index == 0 { "total".to_owned() } else { String::new() },
                right: false,
            }
        })
        .collect()
}

fn number_columns(bill: &Bill) -> Vec<TextColumn> {
    let column = |head: &str, of: fn(&Sums) -> Option<u64>| TextColumn {
        head: head.to_owned(),
        cells: bill.rows.iter().map(|row| tokens(&row.sums, of)).collect(),
        total: tokens(&bill.total, of),
        right: true,
    };
    let mut columns = vec![TextColumn {
        head: "requests".to_owned(),
        cells: bill.rows.iter().map(|row| grouped(&row.sums.requests.to_string())).collect(),
        total: grouped(&bill.total.requests.to_string()),
        right: true,
    }];
    columns.push(column("input", |sums| sums.input_tokens));
    if bill.total.cache_read_input_tokens.is_some_and(|tokens| tokens > 0) {
        columns.push(column("cached", |sums| sums.cache_read_input_tokens));
    }
    columns.push(column("output", |sums| sums.output_tokens));
    if bill.total.reasoning_output_tokens.is_some_and(|tokens| tokens > 0) {
        columns.push(column("reasoning", |sums| sums.reasoning_output_tokens));
    }
    columns
}

/// Adds a line for each credit: its name in the first column, its amount in the last.
fn add_credits(columns: &mut [TextColumn], bill: &Bill) {
    let places = places(bill);
    for credit in &bill.credits {
        for column in &mut *columns {
            column.cells.push(String::new());
        }
        let text = |column: &mut TextColumn, text| column.cells.last_mut().map(|cell| *cell = text);
        columns.first_mut().and_then(|column| text(column, credit_text(credit)));
        columns.last_mut().and_then(|column| text(column, money(-credit.amount, places)));
    }
}

fn credit_text(credit: &Credit) -> String {
    let what = match (&credit.covered, credit.tokens) {
        (Covered::Meter(meter), Some(tokens)) => {
            format!(": {} {meter} tokens", grouped(&tokens.normalize().to_string()))
        }
        _ => String::new(),
    };
    let month = credit.month.strftime("%Y-%m");
    format!("{}, free in {month}{what}", printable(&credit.tenant))
}

fn places(bill: &Bill) -> u32 {
    let all = bill.rows.iter().map(|row| &row.sums).chain([&bill.total]);
    let credits = bill.credits.iter().map(|credit| credit.amount);
    let needed = all.filter_map(|sums| sums.cost).chain(credits).map(|cost| rounded(cost).scale());
    needed.max().unwrap_or_default().max(PLACES_MIN)
}

fn cost_column(bill: &Bill) -> TextColumn {
    let places = places(bill);
    let cell = |sums: &Sums, parts: &[Vec<Decimal>]| {
        let Some(cost) = sums.cost else { return "unknown".to_owned() };
        format!("{}{}", at_least(sums.unknown_costs()), sum_of(cost, places, parts))
    };
    let lines = bill.rows.iter().filter_map(|row| row.sums.cost);
    let lines = lines.chain(bill.credits.iter().map(|credit| -credit.amount)).collect();
    TextColumn {
        head: bill
            .currency
            .as_ref()
            .map_or("cost".to_owned(), |code| format!("cost ({})", printable(code))),
        cells: bill.rows.iter().map(|row| cell(&row.sums, &[])).collect(),
        total: cell(&bill.total, &[lines]),
        right: true,
    }
}

fn tokens(sums: &Sums, of: fn(&Sums) -> Option<u64>) -> String {
    of(sums).map_or("unknown".to_owned(), |tokens| {
        format!("{}{}", at_least(sums.unknown_usages()), grouped(&tokens.to_string()))
    })
}

const fn at_least(unknown_requests: u64) -> &'static str {
    if unknown_requests == 0 { "" } else { "≥" }
}

fn write_notes(out: &mut String, bill: &Bill) {
    let total = &bill.total;
    let sources = [
        (total.reported_requests(), "reported by the engine"),
        (total.counted_requests, "counted by Taximeter"),
        (total.unknown_usages(), "unknown"),
    ];
    let parts: Vec<_> = sources
        .iter()
        .filter(|(requests, _)| *requests > 0)
        .map(|(requests, source)| format!("{} {source}", requests_of(*requests)))
        .collect();
    let _ = writeln!(out, "\nTokens: {}.", parts.join(", "));
    if total.unknown_costs() > 0 {
        let requests = requests_of(total.unknown_costs());
        let _ = writeln!(out, "The cost of {requests} is unknown: no price, or no usage.");
    }
    if total.unknown_costs() + total.unknown_usages() > 0 {
        let _ = writeln!(out, "≥ means at least: the sum lacks what is unknown.");
    }
    let costs = bill.rows.iter().map(|row| &row.sums).chain([total]).filter_map(|sums| sums.cost);
    write_rounding(out, costs);
}

#[cfg(test)]
mod tests;
