//! For people. The one place where money is rounded.

use std::fmt::Write as _;

use rust_decimal::{Decimal, RoundingStrategy};

use crate::bill::Bill;
use crate::sums::Sums;

/// Decimal places of money in the table.
const PLACES: u32 = 6;
/// Decimal places that money has at least, as on a receipt.
const PLACES_MIN: u32 = 2;
/// Longest name shown when there is room, in characters.
const NAME_CHARS_MAX: usize = 48;
/// Names are not shortened further than this to fit the width, in characters.
const NAME_CHARS_MIN: usize = 12;
/// Between two columns.
const GAP: &str = "  ";

/// The bill as a table of at most `width` characters a line where the names allow it, with a total
/// and, below it, what to know about the numbers.
///
/// Money is rounded to 6 places, half to even, and says so. `≥` marks a sum that lacks requests
/// whose number is unknown.
#[must_use]
pub fn table(bill: &Bill, width: usize) -> String {
    let mut out = format!("Bill for {} (UTC)\n\n", bill.period);
    if bill.rows.is_empty() {
        let _ = writeln!(out, "No request was admitted in this period.");
        return out;
    }
    let mut columns = name_columns(bill);
    let names = columns.len();
    columns.extend(number_columns(bill));
    columns.push(cost_column(bill));
    shorten(&mut columns, names, width);
    write_columns(&mut out, &columns);
    write_notes(&mut out, bill);
    out
}

/// One column: its head, a cell per row, and the cell of the total.
struct Column {
    head: String,
    cells: Vec<String>,
    total: String,
    right: bool,
}

impl Column {
    fn width(&self) -> usize {
        let texts = self.cells.iter().chain([&self.head, &self.total]);
        texts.map(|text| text.chars().count()).max().unwrap_or_default()
    }

    fn write(&self, out: &mut String, text: &str, width: usize) {
        let _ =
            if self.right { write!(out, "{text:>width$}") } else { write!(out, "{text:<width$}") };
    }
}

fn name_columns(bill: &Bill) -> Vec<Column> {
    let dimensions = bill.by.dimensions().iter().enumerate();
    dimensions
        .map(|(index, dimension)| {
            let name = |key: &Option<String>| key.as_deref().map_or("(none)".to_owned(), printable);
            Column {
                head: printable(&dimension.to_string()),
                cells: bill.rows.iter().filter_map(|row| row.keys.get(index).map(name)).collect(),
                total: if index == 0 { "total".to_owned() } else { String::new() },
                right: false,
            }
        })
        .collect()
}

fn number_columns(bill: &Bill) -> Vec<Column> {
    let column = |head: &str, of: fn(&Sums) -> Option<u64>| Column {
        head: head.to_owned(),
        cells: bill.rows.iter().map(|row| tokens(&row.sums, of)).collect(),
        total: tokens(&bill.total, of),
        right: true,
    };
    let mut columns = vec![Column {
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

fn cost_column(bill: &Bill) -> Column {
    let all = || bill.rows.iter().map(|row| &row.sums).chain([&bill.total]);
    let needed = all().filter_map(|sums| sums.cost).map(|cost| rounded(cost).scale()).max();
    let places = needed.unwrap_or_default().max(PLACES_MIN);
    let cell = |sums: &Sums| {
        let Some(cost) = sums.cost else { return "unknown".to_owned() };
        format!("{}{}", at_least(sums.unknown_costs()), money(cost, places))
    };
    Column {
        head: bill
            .currency
            .as_ref()
            .map_or("cost".to_owned(), |code| format!("cost ({})", printable(code))),
        cells: bill.rows.iter().map(|row| cell(&row.sums)).collect(),
        total: cell(&bill.total),
        right: true,
    }
}

fn tokens(sums: &Sums, of: fn(&Sums) -> Option<u64>) -> String {
    of(sums).map_or("unknown".to_owned(), |tokens| {
        format!("{}{}", at_least(sums.unknown_usage_requests), grouped(&tokens.to_string()))
    })
}

const fn at_least(unknown_requests: u64) -> &'static str {
    if unknown_requests == 0 { "" } else { "≥" }
}

/// Without idle zeros.
fn rounded(cost: Decimal) -> Decimal {
    cost.round_dp_with_strategy(PLACES, RoundingStrategy::MidpointNearestEven).normalize()
}

/// An amount that is too small to show is not shown as zero.
fn money(cost: Decimal, places: u32) -> String {
    let shown = rounded(cost);
    if shown.is_zero() && !cost.is_zero() {
        let sign = if cost.is_sign_negative() { ">-" } else { "<" };
        return format!("{sign}0.{:0>width$}", 1, width = PLACES as usize);
    }
    let text = format!("{shown:.width$}", width = places as usize);
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    format!("{sign}{}.{fraction}", grouped(digits))
}

/// `1234567` → `1,234,567`.
fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A name from outside may not move the cursor or reorder the line.
fn printable(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for (index, character) in name.chars().enumerate() {
        if index == NAME_CHARS_MAX {
            out.push('…');
            break;
        }
        match character {
            '"' | '\'' | '\\' => out.push(character),
            _ => out.extend(character.escape_debug()),
        }
    }
    out
}

/// Takes characters from the widest names until the line fits.
fn shorten(columns: &mut [Column], names: usize, width: usize) {
    let gaps = GAP.len() * columns.len().saturating_sub(1);
    let mut excess =
        (columns.iter().map(Column::width).sum::<usize>() + gaps).saturating_sub(width);
    while excess > 0 {
        let names = columns.iter_mut().take(names);
        let Some(widest) = names.max_by_key(|column| column.width()) else { return };
        let chars = widest.width();
        if chars <= NAME_CHARS_MIN {
            return;
        }
        for text in widest.cells.iter_mut().chain([&mut widest.head]) {
            if text.chars().count() == chars {
                *text = text.chars().take(chars - 2).chain(['…']).collect();
            }
        }
        excess -= 1;
    }
}

fn write_columns(out: &mut String, columns: &[Column]) {
    let widths: Vec<_> = columns.iter().map(Column::width).collect();
    let line = |out: &mut String, text: &dyn Fn(&Column) -> String| {
        for (index, (column, width)) in columns.iter().zip(&widths).enumerate() {
            out.push_str(if index == 0 { "" } else { GAP });
            column.write(out, &text(column), *width);
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    };
    let rule = "─".repeat(widths.iter().sum::<usize>() + GAP.len() * (widths.len() - 1)) + "\n";
    line(out, &|column| column.head.clone());
    out.push_str(&rule);
    let rows = columns.first().map_or(0, |column| column.cells.len());
    for row in 0..rows {
        line(out, &|column| column.cells.get(row).cloned().unwrap_or_default());
    }
    out.push_str(&rule);
    line(out, &|column| column.total.clone());
}

fn write_notes(out: &mut String, bill: &Bill) {
    let total = &bill.total;
    let sources = [
        (total.reported_requests(), "reported by the engine"),
        (total.counted_requests, "counted by Taximeter"),
        (total.unknown_usage_requests, "unknown"),
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
    if total.unknown_costs() + total.unknown_usage_requests > 0 {
        let _ = writeln!(out, "≥ marks a sum that lacks what is unknown.");
    }
    let costs = bill.rows.iter().map(|row| &row.sums).chain([total]).filter_map(|sums| sums.cost);
    if costs.into_iter().any(|cost| rounded(cost) != cost) {
        let _ = writeln!(
            out,
            "Costs are rounded to {PLACES} places each, so the column may differ from its total in \
             the last place; csv and json are exact."
        );
    }
}

fn requests_of(count: u64) -> String {
    format!("{} request{}", grouped(&count.to_string()), if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
