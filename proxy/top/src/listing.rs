//! Tables as text: which columns fit, and what is in their cells. The terminal and plain text show
//! the same tables.

use std::cmp::Ordering;
use std::ops::Range;

use jiff::Timestamp;

use super::figures::{
    UNKNOWN, count, name, quantile, rate, share, span, spend, time, time_or_unknown,
};
use super::sample::{Running, Upstream};
use super::screen::{Order, RunningOrder, Screen};
use super::snapshot::{NamedRates, Rates, Snapshot};

/// Least width of a name, in columns of text.
const NAME_COLUMNS_MIN: usize = 6;

/// The visible part of a table.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Vec<String>>,
    /// The text for a table without rows.
    pub(super) nothing: &'static str,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) head: String,
    pub(super) columns: usize,
    /// Whether the cells are numbers, which are aligned to the right.
    pub(super) is_figure: bool,
}

/// How a column is made. It is shown if the table is wide enough.
struct ColumnSpec<T> {
    head: &'static str,
    columns: usize,
    /// Least width of the table that shows it.
    table_columns_min: usize,
    text: fn(&Snapshot, &T, usize) -> String,
    is_figure: bool,
}

const fn figure<T>(
    head: &'static str,
    columns: usize,
    table_columns_min: usize,
    text: fn(&Snapshot, &T, usize) -> String,
) -> ColumnSpec<T> {
    ColumnSpec { head, columns, table_columns_min, text, is_figure: true }
}

const fn word<T>(
    head: &'static str,
    columns: usize,
    table_columns_min: usize,
    text: fn(&Snapshot, &T, usize) -> String,
) -> ColumnSpec<T> {
    ColumnSpec { head, columns, table_columns_min, text, is_figure: false }
}

const RATES: [ColumnSpec<NamedRates>; 8] = [
    figure("live", 4, 48, |_, row, _| count(row.running as u64)),
    figure("req/s", 6, 0, |_, row, _| of_rates(row, |rates| rate(rates.requests))),
    figure("in/s", 6, 56, |_, row, _| of_rates(row, |rates| rate(rates.input_tokens))),
    figure("out/s", 6, 0, |_, row, _| of_rates(row, |rates| rate(rates.output_tokens))),
    figure("TTFT p50", 8, 0, |_, row, _| of_rates(row, |rates| quantile(rates.first_token_p50))),
    figure("p95", 7, 64, |_, row, _| of_rates(row, |rates| quantile(rates.first_token_p95))),
    figure("spend/h", 9, 38, |_, row, _| of_rates(row, spend)),
    figure("share", 6, 70, |_, row, _| of_rates(row, |rates| share(rates.share))),
];

const RUNNING: [ColumnSpec<Running>; 9] = [
    word("model", 0, 0, |_, running, columns| {
        name(running.request_model.as_deref().unwrap_or(UNKNOWN), columns)
    }),
    word("upstream", 14, 110, |_, running, columns| name(&running.upstream, columns)),
    word("id", 36, 150, |_, running, columns| name(&running.id, columns)),
    word("stage", 10, 64, |_, running, columns| name(&running.stage, columns)),
    figure("age", 7, 0, |_, running, _| time(running.duration)),
    figure("TTFT", 7, 50, |_, running, _| time_or_unknown(running.time_to_first_token)),
    figure("in", 7, 90, |_, running, _| tokens(running.input_tokens)),
    figure("out", 7, 0, |_, running, _| tokens(running.output_tokens)),
    figure("stall", 7, 58, |_, running, _| time_or_unknown(running.longest_stall)),
];

const UPSTREAMS: [ColumnSpec<Upstream>; 5] = [
    word("health", 9, 0, |_, upstream, columns| name(&upstream.health, columns)),
    figure("live", 5, 0, |_, upstream, _| count(upstream.open_requests as u64)),
    figure("failures", 8, 0, |_, upstream, _| count(upstream.failures)),
    figure("answered", 11, 56, |snapshot, upstream, _| {
        upstream.answered_at.map_or_else(|| UNKNOWN.to_owned(), |at| ago(snapshot.at, at))
    }),
    word("  last failure", 30, 80, |snapshot, upstream, columns| {
        upstream.last_failure.as_ref().map_or_else(String::new, |failure| {
            let cause = failure.cause.replace('_', " ");
            name(&format!("  {cause}, {}", ago(snapshot.at, failure.at)), columns)
        })
    }),
];

/// The table of tenants or models. `columns` is its width, `rows` are the visible rows.
pub(super) fn of_names(
    snapshot: &Snapshot,
    what: &'static str,
    all: &[NamedRates],
    screen: &Screen,
    columns: usize,
    rows: Range<usize>,
) -> Listing {
    let mut sorted: Vec<_> = all.iter().collect();
    taximeter_collections::sort_by(&mut sorted, |one, other| compared(screen.order, one, other));
    let table =
        TableSpec { what, figures: &RATES, nothing: "no requests yet", name: |row| &row.name };
    table.listing(snapshot, &sorted, columns, rows)
}

/// The table of running requests.
pub(super) fn of_running(
    snapshot: &Snapshot,
    screen: &Screen,
    columns: usize,
    rows: Range<usize>,
) -> Listing {
    let mut sorted: Vec<_> = snapshot.requests.iter().collect();
    let age = |one: &Running, other: &Running| other.duration.total_cmp(&one.duration);
    taximeter_collections::sort_by(&mut sorted, |one, other| match screen.running_order {
        RunningOrder::Age => age(one, other),
        RunningOrder::Tokens => {
            other.output_tokens.cmp(&one.output_tokens).then_with(|| age(one, other))
        }
        RunningOrder::Stall => {
            descending(one.longest_stall, other.longest_stall).then_with(|| age(one, other))
        }
    });
    let table = TableSpec {
        what: "running",
        figures: &RUNNING,
        nothing: "no request is running",
        name: |one| &one.tenant,
    };
    table.listing(snapshot, &sorted, columns, rows)
}

/// The table of upstreams, in order of preference.
pub(super) fn of_upstreams(snapshot: &Snapshot, columns: usize, rows: Range<usize>) -> Listing {
    let all: Vec<_> = snapshot.upstreams.iter().collect();
    let table = TableSpec {
        what: "upstreams",
        figures: &UPSTREAMS,
        nothing: "no upstream",
        name: |one| &one.name,
    };
    table.listing(snapshot, &all, columns, rows)
}

/// How a table is made.
struct TableSpec<'t, T> {
    what: &'static str,
    figures: &'t [ColumnSpec<T>],
    nothing: &'static str,
    name: fn(&T) -> &str,
}

impl<T> TableSpec<'_, T> {
    fn listing(
        &self,
        snapshot: &Snapshot,
        all: &[&T],
        columns: usize,
        rows: Range<usize>,
    ) -> Listing {
        let fitting: Vec<_> =
            self.figures.iter().filter(|figure| figure.table_columns_min <= columns).collect();
        let taken: usize = fitting.iter().map(|figure| figure.columns + 1).sum();
        let free = columns.saturating_sub(taken).max(NAME_COLUMNS_MIN);
        // A second column of names gets half of the space.
        let second = fitting.iter().any(|figure| figure.columns == 0);
        let (first, second) = if second { (free / 2, free - free / 2) } else { (free, 0) };
        let of = |figure: &ColumnSpec<T>| if figure.columns == 0 { second } else { figure.columns };
        let rows = rows.start.min(all.len())..rows.end.min(all.len());
        let shown = all.get(rows).unwrap_or_default();
        let head = name(&format!("{} {}", self.what, count(all.len() as u64)), first);
        let mut heads = vec![Column { head, columns: first, is_figure: false }];
        heads.extend(fitting.iter().map(|figure| Column {
            head: figure.head.to_owned(),
            columns: of(figure),
            is_figure: figure.is_figure,
        }));
        let row = |item: &&T| {
            let mut cells = vec![name((self.name)(item), first)];
            cells.extend(fitting.iter().map(|figure| (figure.text)(snapshot, item, of(figure))));
            cells
        };
        Listing { columns: heads, rows: shown.iter().map(row).collect(), nothing: self.nothing }
    }
}

fn compared(order: Order, one: &NamedRates, other: &NamedRates) -> Ordering {
    let by = |number: fn(&Rates) -> f64| {
        let of = |row: &NamedRates| row.rates.as_ref().map(number);
        descending(of(one), of(other))
    };
    let tokens = || by(|rates| rates.input_tokens + rates.output_tokens);
    let first = match order {
        Order::Spend => by(|rates| rates.spend),
        Order::Tokens => tokens(),
        Order::Requests => by(|rates| rates.requests),
        Order::FirstToken => by(|rates| rates.first_token_p50.map_or(-1.0, |p50| p50.seconds)),
        Order::Name => Ordering::Equal,
    };
    let then = || if order == Order::Name { Ordering::Equal } else { tokens() };
    first.then_with(then).then_with(|| one.name.cmp(&other.name))
}

/// The largest number first, unknown ones last.
fn descending(one: Option<f64>, other: Option<f64>) -> Ordering {
    let number = |number: Option<f64>| number.unwrap_or(f64::NEG_INFINITY);
    number(other).total_cmp(&number(one))
}

fn of_rates(row: &NamedRates, text: impl Fn(&Rates) -> String) -> String {
    row.rates.as_ref().map_or_else(|| UNKNOWN.to_owned(), text)
}

fn tokens(number: Option<u64>) -> String {
    number.map_or_else(|| UNKNOWN.to_owned(), count)
}

/// The age of a time, by the gateway's clock.
fn ago(now: Timestamp, at: Timestamp) -> String {
    span(now.duration_since(at).as_secs_f64()) + " ago"
}
