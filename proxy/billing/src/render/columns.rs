//! Columns of text, and money for people. This is the only place that rounds money.

use std::fmt::Write as _;

use rust_decimal::{Decimal, RoundingStrategy};

use crate::closing::PeriodStatus;
use crate::zone::Zone;

/// Most decimal places of money in tables.
pub(super) const PLACES: u32 = 6;
/// Fewest decimal places of money, as on a receipt.
pub const PLACES_MIN: u32 = 2;
/// Longest name if there is room, in characters.
pub(super) const NAME_CHARS_MAX: usize = 48;
/// Names are not shortened to fewer characters than this.
const NAME_CHARS_MIN: usize = 12;
/// Before a sum that the shown amounts do not add up to.
const APPROXIMATE: &str = "≈";
/// Between two columns.
const GAP: &str = "  ";

/// One column: its head, one cell for each row, and the cell of the total.
#[derive(Debug)]
pub struct TextColumn {
    /// Above the cells.
    pub head: String,
    /// From top to bottom.
    pub cells: Vec<String>,
    /// Below the cells.
    pub total: String,
    /// Whether they are numbers, which end at the right.
    pub right: bool,
}

impl TextColumn {
    fn width(&self) -> usize {
        let texts = self.cells.iter().chain([&self.head, &self.total]);
        texts.map(|text| text.chars().count()).max().unwrap_or_default()
    }

    fn write(&self, out: &mut String, text: &str, width: usize) {
        let _ =
            if self.right { write!(out, "{text:>width$}") } else { write!(out, "{text:<width$}") };
    }
}

/// Ends a heading with whether what is below is final.
pub(super) fn write_status(out: &mut String, status: Option<&PeriodStatus>, zone: &Zone) {
    if let Some(status) = status {
        let _ = write!(out, ", {}", status.words(zone));
    }
    out.push_str("\n\n");
}

/// Rounded, without zeros at the end.
#[must_use]
pub fn rounded(cost: Decimal) -> Decimal {
    cost.round_dp_with_strategy(PLACES, RoundingStrategy::MidpointNearestEven).normalize()
}

/// The sum of amounts, `≈` in front where the shown parts add up to another number than is shown.
/// `parts` are lists of amounts that a reader may add up to it.
pub(super) fn sum_of(sum: Decimal, places: u32, parts: &[Vec<Decimal>]) -> String {
    let is_seen = |parts: &Vec<Decimal>| {
        let shown =
            parts.iter().try_fold(Decimal::ZERO, |sum, part| sum.checked_add(rounded(*part)));
        shown == Some(rounded(sum))
    };
    let mark = if parts.iter().all(is_seen) { "" } else { APPROXIMATE };
    format!("{mark}{}", money(sum, places))
}

/// Explains the rounding, if any of `amounts` is rounded. `out` has the columns.
pub(super) fn write_rounding(out: &mut String, amounts: impl IntoIterator<Item = Decimal>) {
    if amounts.into_iter().all(|amount| rounded(amount) == amount) {
        return;
    }
    let _ = write!(out, "Each amount is rounded to {PLACES} places; csv and json are exact.");
    if out.contains(APPROXIMATE) {
        let _ = write!(
            out,
            " {APPROXIMATE} marks an exact sum that differs in the last places from the sum of the \
             rounded amounts."
        );
    }
    out.push('\n');
}

/// An amount for people. An amount that is too small to show is not shown as zero.
#[must_use]
pub fn money(cost: Decimal, places: u32) -> String {
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

/// `1 request`, `1,234 requests`.
#[must_use]
pub fn requests_of(count: u64) -> String {
    format!("{} request{}", grouped(&count.to_string()), if count == 1 { "" } else { "s" })
}

/// `1234567` → `1,234,567`.
#[must_use]
pub fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Escapes a name from outside, so that it cannot move the cursor or reorder the line.
#[must_use]
pub fn printable(name: &str) -> String {
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

/// Shortens the widest names until the line fits.
pub fn shorten(columns: &mut [TextColumn], names: usize, width: usize) {
    let gaps = GAP.len() * columns.len().saturating_sub(1);
    let mut excess =
        (columns.iter().map(TextColumn::width).sum::<usize>() + gaps).saturating_sub(width);
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

/// Writes the columns: heads, cells and totals.
pub fn write_columns(out: &mut String, columns: &[TextColumn]) {
    let widths: Vec<_> = columns.iter().map(TextColumn::width).collect();
    let line = |out: &mut String, text: &dyn Fn(&TextColumn) -> String| {
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
