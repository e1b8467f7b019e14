//! The parts of the overview.

use jiff::Timestamp;
use maud::{Markup, html};
use rust_decimal::Decimal;
use taximeter_billing::{Bill, BillLine, Sums};

use crate::console::charts::{Column, Piece, Stacked, bar, colour, stacked};
use crate::console::page::{LIVE, OVERVIEW, REQUESTS, USAGE};
use crate::console::span::Span;
use crate::console::spend::{SPLITS, Spend};
use crate::console::sums::{contracted, notes, period_choice, share_of};
use crate::console::text::{
    count, count_or_unknown, grouped, money, money_or_unknown, money_text, name, name_or_none,
    per_cent, places, plain, rough, short, unknown,
};
use crate::console::view::View;

/// Parts of a chart with their own colour.
const PARTS_MAX: usize = 6;
/// Most lines of a table. The page *Usage* has all lines.
const LINES_MAX: usize = 12;

/// The data of the page.
pub(super) struct OverviewData<'a> {
    pub(super) view: &'a View,
    pub(super) span: &'a Span,
    pub(super) spend: &'a Spend,
    /// What the charts are split by.
    pub(super) by: &'static str,
    pub(super) tenant: Option<&'a str>,
    pub(super) now: Timestamp,
    /// Requests that run now.
    pub(super) open: u64,
    /// Ledger entries that the store does not have yet.
    pub(super) pending_entries: u64,
}

pub(super) fn main(data: &OverviewData<'_>, latency: &Markup) -> Markup {
    let spend = data.spend;
    html! {
        h1 { "Overview" @if let Some(tenant) = data.tenant { " of " (name(tenant)) } }
        (choice(data))
        (meter(data))
        (notes(&spend.by_tenant, data.pending_entries))
        (over_time(data))
        div.pair {
            (lines(data, "Tenants", "tenant", &spend.by_tenant, |tenant| {
                data.view.with("tenant", Some(tenant))
            }))
            (lines(data, "Models", "model", &spend.by_model, |model| {
                data.view.to(REQUESTS, &[("model", model)])
            }))
        }
        (sources(&spend.by_tenant.total))
        (latency)
        (elsewhere(data))
    }
}

/// Period and tenant.
fn choice(data: &OverviewData<'_>) -> Markup {
    let mut kept = vec![("by", data.by)];
    kept.extend(data.tenant.map(|tenant| ("tenant", tenant)));
    html! {
        div.choice {
            (period_choice(OVERVIEW, &kept, data.span, data.view))
            @if data.tenant.is_some() {
                a href=(data.view.with("tenant", None)) { "All tenants" }
            }
        }
    }
}

/// The billed cost, and the sums of requests and tokens.
fn meter(data: &OverviewData<'_>) -> Markup {
    let OverviewData { view, span, spend, .. } = data;
    let total = &spend.by_tenant.total;
    let currency = spend.by_tenant.currency.as_deref().unwrap_or_default();
    let so_far = data.now < span.period.to();
    html! {
        section.meter aria-labelledby="cost" {
            div {
                h2 #cost { "Billed" @if so_far { " so far" } }
                p.digits {
                    @match total.cost {
                        Some(cost) => {
                            @if total.unknown_costs() > 0 { "≥ " }
                            span data-total="billed" { (money(cost, places(cost))) }
                            " " span.currency { (currency) }
                        }
                        None => (unknown()),
                    }
                }
                p.when { (span.words(view)) ", " (view.zone_name()) }
            }
            dl.readouts {
                div { dt { "Requests" } dd data-total="requests" { (count(total.requests)) } }
                div {
                    dt { "Input tokens" }
                    dd data-total="input" { (tile(total.input_tokens)) }
                }
                div {
                    dt { "Cached input" }
                    dd { (share(total.cache_read_input_tokens, total.input_tokens)) }
                }
                div {
                    dt { "Output tokens" }
                    dd data-total="output" { (tile(total.output_tokens)) }
                }
                (month(data))
                div {
                    dt { "Running now" }
                    dd { a href=(view.to(LIVE, &[])) data-live="open" { (count(data.open)) } }
                }
            }
        }
    }
}

/// The current calendar month: its sum so far and its forecast.
fn month(data: &OverviewData<'_>) -> Markup {
    let invoice = &data.spend.month;
    let forecast = invoice.provisional.as_ref().map(|provisional| &provisional.forecast);
    html! {
        @for (currency, amount) in &invoice.totals {
            @if invoice.period != data.span.period {
                div {
                    dt { (invoice.period.name(&invoice.zone)) " so far" }
                    dd { (money(*amount, places(*amount))) " " span.unit { (currency) } }
                }
            }
            div {
                dt { (invoice.period.name(&invoice.zone)) " forecast" }
                dd {
                    @match forecast.and_then(|forecast| forecast.get(currency)) {
                        Some(amount) => {
                            "≈ " (money(*amount, places(*amount))) " " span.unit { (currency) }
                        }
                        None => (unknown()),
                    }
                }
            }
        }
    }
}

fn tile(tokens: Option<u64>) -> Markup {
    html! {
        @match tokens {
            Some(tokens) => data value=(tokens) title=(grouped(&tokens.to_string())) {
                (short(tokens.into()))
            },
            None => (unknown()),
        }
    }
}

fn share(part: Option<u64>, whole: Option<u64>) -> Markup {
    let share = part.zip(whole).and_then(|(part, whole)| per_cent(part.into(), whole.into()));
    share.map_or_else(unknown, |share| html! { (share) })
}

/// Charts of money and tokens.
fn over_time(data: &OverviewData<'_>) -> Markup {
    let currency = data.spend.by_tenant.currency.as_deref().unwrap_or("money");
    let tokens = |sums: &Sums| {
        let both = [sums.input_tokens, sums.output_tokens].into_iter().flatten();
        both.map(Decimal::from).reduce(|sum, tokens| sum.saturating_add(tokens))
    };
    html! {
        section aria-labelledby="over-time" {
            div.head {
                h2 #over-time { "Over time" }
                nav aria-label="Split by" { ul.tabs {
                    @for (word, _) in SPLITS {
                        li { a href=(data.view.with("by", Some(word)))
                            aria-current=[(word == data.by).then_some("true")] { "by " (word) } }
                    }
                } }
            }
            div.pair {
                (chart(data, "Spend", currency, |sums| sums.cost))
                (chart(data, "Input and output tokens", "tokens", tokens))
            }
        }
    }
}

fn chart(
    data: &OverviewData<'_>,
    title: &str,
    unit: &str,
    value: impl Fn(&Sums) -> Option<Decimal>,
) -> Markup {
    let chart = stacks(data, title, unit, value);
    html! {
        figure {
            figcaption { (title) " by " (data.by) ", " (unit) " per " (data.span.step()) }
            (stacked(&chart))
            ul.legend {
                @for (part, name) in chart.parts.iter().enumerate() {
                    li { span class={ "swatch " (colour(&chart, part)) } {} (name) }
                }
            }
            (numbers(&chart))
        }
    }
}

/// The data of a chart: the largest parts, and all others in one part.
fn stacks(
    data: &OverviewData<'_>,
    title: &str,
    unit: &str,
    value: impl Fn(&Sums) -> Option<Decimal>,
) -> Stacked {
    let spend = data.spend;
    let key = |line: &BillLine| line.keys.first().cloned().flatten();
    let shown: Vec<_> = spend.split.rows.iter().take(PARTS_MAX).map(key).collect();
    let others = spend.split.rows.len() - shown.len();
    let mut parts: Vec<_> = shown.iter().map(|key| name_or_none(key.as_deref())).collect();
    if others > 0 {
        parts.push(html! { (others) " others" });
    }
    let columns = spend.columns.iter().enumerate().map(|(index, bill)| {
        let mut values = vec![None; parts.len()];
        for line in &bill.rows {
            let part = shown.iter().position(|shown| *shown == key(line)).unwrap_or(shown.len());
            if let (Some(sum), Some(more)) = (values.get_mut(part), value(&line.sums)) {
                *sum = Some(sum.unwrap_or_default() + more);
            }
        }
        let [label, name] = data.span.names(index, data.view);
        Column { label, name, values }
    });
    let label = format!("{title} by {}, one column per {}", data.by, data.span.step());
    let columns = columns.collect();
    Stacked { label, unit: unit.to_owned(), parts, has_rest: others > 0, columns }
}

/// The numbers of a chart as a table.
fn numbers(chart: &Stacked) -> Markup {
    let values = chart.columns.iter().flat_map(|column| &column.values).flatten();
    let places =
        if chart.unit == "tokens" { 0 } else { places(values.copied().max().unwrap_or_default()) };
    let rows = chart.columns.iter().filter(|column| column.values.iter().any(Option::is_some));
    html! {
        details {
            summary { "Numbers" }
            div.scroll { table {
                caption { (chart.label) }
                thead { tr {
                    th scope="col" { "From" }
                    @for part in &chart.parts { th.number scope="col" { (part) } }
                } }
                tbody {
                    @for column in rows {
                        tr {
                            th scope="row" { (column.name) }
                            @for value in &column.values {
                                td.number {
                                    @match value {
                                        Some(value) => (money_text(*value, places)),
                                        None => "–",
                                    }
                                }
                            }
                        }
                    }
                }
            } }
        }
    }
}

/// The lines of a bill with the highest cost.
fn lines(
    data: &OverviewData<'_>,
    title: &str,
    by: &str,
    bill: &Bill,
    link: impl Fn(&str) -> String,
) -> Markup {
    let largest = bill.rows.iter().filter_map(|line| line.sums.cost).max().unwrap_or_default();
    let (places, whole) = (places(largest), contracted(bill));
    let id = title.to_lowercase();
    html! {
        section aria-labelledby=(id) {
            h2 id=(id) { (title) }
            div.scroll { table {
                caption {
                    "The highest cost comes first. Cost is "
                    @if let Some(currency) = &bill.currency { "in " (currency) ", " }
                    "before allowances."
                    @if bill.rows.len() > LINES_MAX {
                        " These are the first " (LINES_MAX) " of " (bill.rows.len()) "."
                    }
                }
                thead { tr {
                    th scope="col" { "Name" }
                    th.number scope="col" { "Cost" }
                    th scope="col" { "Share" }
                    th.number scope="col" { "Requests" }
                    th.number scope="col" { "Input" }
                    th.number scope="col" { "Output" }
                } }
                tbody {
                    @for line in bill.rows.iter().take(LINES_MAX) {
                        @let key = line.keys.first().and_then(Option::as_deref);
                        tr {
                            th scope="row" {
                                @match key {
                                    Some(key) if plain(key) == key => a href=(link(key)) {
                                        (name(key))
                                    },
                                    key => (name_or_none(key)),
                                }
                            }
                            td.number {
                                @if line.sums.is_at_least() { "≥ " }
                                (money_or_unknown(line.sums.cost, places))
                            }
                            td.share { (share_of(line.sums.cost, whole)) }
                            td.number { (count(line.sums.requests)) }
                            td.number { (count_or_unknown(line.sums.input_tokens)) }
                            td.number { (count_or_unknown(line.sums.output_tokens)) }
                        }
                    }
                    @if bill.rows.is_empty() {
                        tr { td colspan="6" { "No request of this period is billed." } }
                    }
                }
            } }
            @if bill.rows.len() > LINES_MAX {
                p { a href=(data.view.same_span(USAGE, by)) { "Show all" } }
            }
        }
    }
}

/// The sources of the token counts.
fn sources(total: &Sums) -> Markup {
    let parts = [
        ("reported", "s0", total.reported_requests(), "the engine reported the tokens"),
        ("counted", "s1", total.counted_requests, "Taximeter counted the tokens"),
        ("unknown", "rest", total.unknown_usages(), "input or output is unknown"),
    ];
    let mut before = 0.0;
    let pieces: Vec<_> = parts
        .iter()
        .map(|(_, class, requests, _)| {
            let from = before;
            before += rough(Decimal::from(*requests));
            Piece { class, from, to: before }
        })
        .collect();
    html! {
        section aria-labelledby="sources" {
            h2 #sources { "Sources of token counts, by request" }
            (bar(before, &pieces))
            ul.legend {
                @for (word, class, requests, meaning) in parts {
                    li {
                        span class={ "swatch " (class) } {}
                        b { (word) } " " span data-source=(word) { (count(requests)) }
                        @if let Some(share) = per_cent(requests.into(), total.requests.into()) {
                            " (" (share) ")"
                        }
                        " – " (meaning)
                    }
                }
            }
        }
    }
}

/// A link to the same sums for programs.
fn elsewhere(data: &OverviewData<'_>) -> Markup {
    let period = data.span.period;
    let (from, to) = (period.from().to_string(), period.to().to_string());
    let by = format!("{},{}", data.span.step(), data.by);
    let zone = data.view.zone_name();
    let mut asked = vec![("from", from.as_str()), ("to", &to), ("by", &by), ("zone", zone)];
    asked.extend(data.tenant.map(|tenant| ("tenant", tenant)));
    html! {
        p.elsewhere {
            "The same sums for programs: "
            a data-api="usage" href=(data.view.plain("/api/v1/usage", asked)) { "JSON" }
        }
    }
}
