//! A chart of columns over time. Each column is a stack of parts.

use std::fmt::Write as _;

use maud::{Markup, html};
use rust_decimal::Decimal;

use super::scale::ticks;
use crate::console::text::{rough, short};

/// Width of a column and of the gap in it, in units of the SVG.
const COLUMN: usize = 10;
const GAP: usize = 2;
/// Height of the chart, in units of the SVG.
const HEIGHT: f64 = 100.0;
/// Most labels on the axis of time. This many fit on a phone.
const LABELS_MAX: usize = 6;

/// The data of a chart.
pub(crate) struct Stacked {
    /// What the chart shows, for screen readers.
    pub label: String,
    /// The unit of its numbers: `USD`, `tokens`.
    pub unit: String,
    /// The names of the parts, from the bottom up. The last one may be the sum of all others.
    pub parts: Vec<Markup>,
    /// Whether the last part is the sum of all others.
    pub(crate) has_rest: bool,
    /// In order of time.
    pub columns: Vec<Column>,
}

/// One column.
pub(crate) struct Column {
    /// Its label on the axis.
    pub label: String,
    /// Its full name.
    pub name: String,
    /// One value for each part. An unknown value is `None` and has no height.
    pub values: Vec<Option<Decimal>>,
}

impl Column {
    fn sum(&self) -> Decimal {
        let parts = self.values.iter().flatten().filter(|value| value.is_sign_positive());
        parts.fold(Decimal::ZERO, |sum, value| sum.saturating_add(*value))
    }
}

/// The CSS class for the colour of a part.
pub(crate) fn colour(stacked: &Stacked, part: usize) -> String {
    let is_rest = stacked.has_rest && part + 1 == stacked.parts.len();
    if is_rest { "rest".to_owned() } else { format!("s{part}") }
}

/// The chart. The page must also show a legend and a table.
pub(crate) fn stacked(stacked: &Stacked) -> Markup {
    let columns = &stacked.columns;
    let axis = ticks(columns.iter().map(Column::sum).max().unwrap_or_default());
    let top = axis.last().copied().unwrap_or(Decimal::ONE);
    let width = columns.len().max(1) * COLUMN;
    html! {
        div.chart {
            ol.y aria-hidden="true" {
                @for tick in axis.iter().rev() { li { (short(*tick)) } }
            }
            svg.plot viewBox={ "0 0 " (width) " 100" } preserveAspectRatio="none" role="img"
                aria-label=(stacked.label) {
                @for line in lines(axis.len()) {
                    path.grid d={ "M0 " (line) "H" (width) } {}
                }
                @for part in 0..stacked.parts.len() {
                    @let path = path(columns, part, top);
                    @if !path.is_empty() { path class=(colour(stacked, part)) d=(path) {} }
                }
                @for (index, column) in columns.iter().enumerate() {
                    rect.column x=(index * COLUMN) y="0" width=(COLUMN) height="100" {
                        title { (column.name) ": " (short(column.sum())) " " (stacked.unit) }
                    }
                }
            }
            ol.x aria-hidden="true" {
                @for label in labels(columns) { li { (label) } }
            }
        }
    }
}

/// Vertical positions of the grid lines.
fn lines(ticks: usize) -> impl Iterator<Item = String> {
    let steps = u32::try_from(ticks.saturating_sub(1).max(1)).unwrap_or(1);
    (0..=steps).map(move |step| coordinate(HEIGHT * f64::from(step) / f64::from(steps)))
}

/// All rectangles of one part, as one SVG path.
fn path(columns: &[Column], part: usize, top: Decimal) -> String {
    let mut path = String::new();
    let scale = |value: Decimal| rough(value) / rough(top) * HEIGHT;
    for (index, column) in columns.iter().enumerate() {
        let positive = |value: &Option<Decimal>| value.map(scale).filter(|height| *height > 0.0);
        let below: f64 = column.values.iter().take(part).filter_map(positive).sum();
        if let Some(height) = column.values.get(part).and_then(positive) {
            let (x, width) = (index * COLUMN + GAP / 2, COLUMN - GAP);
            let (bottom, height) = (coordinate(HEIGHT - below), coordinate(height));
            // Writing to a string cannot fail.
            let _ = write!(path, "M{x} {bottom}v-{height}h{width}v{height}z");
        }
    }
    path
}

/// At most `LABELS_MAX` labels at equal distances, and empty texts between them.
fn labels(columns: &[Column]) -> impl Iterator<Item = &str> {
    let step = columns.len().div_ceil(LABELS_MAX).max(1);
    columns.iter().enumerate().map(move |(index, column)| {
        if index.is_multiple_of(step) { column.label.as_str() } else { "" }
    })
}

/// A coordinate of an SVG path.
fn coordinate(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(label: &str, values: &[Option<i64>]) -> Column {
        let values = values.iter().map(|value| value.map(Decimal::from)).collect();
        Column { label: label.to_owned(), name: format!("day {label}"), values }
    }

    #[test]
    fn parts_stand_on_each_other_and_the_unknown_has_no_height() {
        let chart = Stacked {
            label: "Spend".to_owned(),
            unit: "USD".to_owned(),
            parts: vec![html! { "acme" }, html! { "rest" }],
            has_rest: true,
            columns: vec![column("1", &[Some(30), Some(10)]), column("2", &[None, Some(20)])],
        };
        let markup = stacked(&chart).into_string();
        assert!(markup.contains(r#"<path class="s0" d="M1 100v-75h8v75z">"#), "{markup}");
        let rest = r#"<path class="rest" d="M1 25v-25h8v25zM11 100v-50h8v50z">"#;
        assert!(markup.contains(rest), "{markup}");
        assert!(markup.contains("<title>day 1: 40 USD</title>"), "{markup}");
        assert!(!markup.contains("style="), "the content security policy forbids it");
    }

    #[test]
    fn no_columns_are_an_empty_chart() {
        let chart = Stacked {
            label: String::new(),
            unit: String::new(),
            parts: Vec::new(),
            has_rest: false,
            columns: Vec::new(),
        };
        assert!(stacked(&chart).into_string().contains("viewBox=\"0 0 10 100\""));
    }

    #[test]
    fn the_axis_names_few_columns_from_the_first_on() {
        for count in [1, 2, 7, 24, 28, 29, 30, 31, 49, 72] {
            let columns: Vec<_> = (0..count).map(|day| column(&day.to_string(), &[])).collect();
            let labels: Vec<_> = labels(&columns).collect();
            assert_eq!((labels.len(), labels[0]), (count, "0"));
            assert!(labels.iter().filter(|label| !label.is_empty()).count() <= LABELS_MAX);
        }
    }
}
