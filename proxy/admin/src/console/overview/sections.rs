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
use crate::console::view::{View, link};

/// Parts of a chart that have a colour of their own.
const PARTS_MAX: usize = 6;
/// Most lines of a table; the bill has the others.
const LINES_MAX: usize = 12;

/// What the page is made of.
pub(super) struct Seen<'a> {
    pub(super) view: &'a View,
    pub(super) span: &'a Span,
    pub(super) spend: &'a Spend,
    /// What the charts are split by.
    pub(super) by: &'static str,
    pub(super) tenant: Option<&'a str>,
    pub(super) now: Timestamp,
    /// Requests that are running.
    pub(super) open: u64,
    /// Entries that are on their way to the store.
    pub(super) pending_entries: u64,
}

pub(super) fn main(seen: &Seen<'_>, latency: &Markup) -> Markup {
    let spend = seen.spend;
    html! {
        h1 { "Overview" @if let Some(tenant) = seen.tenant { " of " (name(tenant)) } }
        (choice(seen))
        (meter(seen))
        (notes(&spend.by_tenant, seen.pending_entries))
        (over_time(seen))
        div.pair {
            (lines(seen, "Tenants", "tenant", &spend.by_tenant, |tenant| {
                seen.view.with("tenant", Some(tenant))
            }))
            (lines(seen, "Models", "model", &spend.by_model, |model| {
                seen.view.to(REQUESTS, &[("model", model)])
            }))
        }
        (sources(&spend.by_tenant.total))
        (latency)
        (elsewhere(seen))
    }
}

/// Period and tenant.
fn choice(seen: &Seen<'_>) -> Markup {
    let mut kept = vec![("by", seen.by)];
    kept.extend(seen.tenant.map(|tenant| ("tenant", tenant)));
    html! {
        div.choice {
            (period_choice(OVERVIEW, &kept, seen.span, seen.view))
            @if seen.tenant.is_some() {
                a href=(seen.view.with("tenant", None)) { "All tenants" }
            }
        }
    }
}

/// The billed cost, and the sums of requests and tokens.
fn meter(seen: &Seen<'_>) -> Markup {
    let Seen { view, span, spend, .. } = seen;
    let total = &spend.by_tenant.total;
    let currency = spend.by_tenant.currency.as_deref().unwrap_or_default();
    let so_far = seen.now < span.period.to();
    html! {
        section.meter aria-labelledby="fare" {
            div.fare {
                h2 #fare { "Billed" @if so_far { " so far" } }
                p.digits {
                    @match total.cost {
                        Some(cost) => {
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
                    dt { "of it cached" }
                    dd { (share(total.cache_read_input_tokens, total.input_tokens)) }
                }
                div {
                    dt { "Output tokens" }
                    dd data-total="output" { (tile(total.output_tokens)) }
                }
                (month(seen))
                div {
                    dt { "Running now" }
                    dd { a href=(view.to(LIVE, &[])) data-live="open" { (count(seen.open)) } }
                }
            }
        }
    }
}

/// The month that bills are made of: so far, where that is not the fare, and what it may come to.
fn month(seen: &Seen<'_>) -> Markup {
    let invoice = &seen.spend.month;
    let forecast = invoice.provisional.as_ref().map(|provisional| &provisional.forecast);
    html! {
        @for (currency, amount) in &invoice.totals {
            @if invoice.period != seen.span.period {
                div {
                    dt { (invoice.period.name(&invoice.zone)) " to date" }
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
fn over_time(seen: &Seen<'_>) -> Markup {
    let currency = seen.spend.by_tenant.currency.as_deref().unwrap_or("money");
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
                        li { a href=(seen.view.with("by", Some(word)))
                            aria-current=[(word == seen.by).then_some("true")] { "by " (word) } }
                    }
                } }
            }
            div.pair {
                (chart(seen, "Spend", currency, |sums| sums.cost))
                (chart(seen, "Tokens, in and out", "tokens", tokens))
            }
        }
    }
}

fn chart(
    seen: &Seen<'_>,
    title: &str,
    unit: &str,
    value: impl Fn(&Sums) -> Option<Decimal>,
) -> Markup {
    let chart = stacks(seen, title, unit, value);
    html! {
        figure {
            figcaption { (title) " by " (seen.by) ", " (unit) " per " (seen.span.step()) }
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

/// The largest parts, and the rest in one.
fn stacks(
    seen: &Seen<'_>,
    title: &str,
    unit: &str,
    value: impl Fn(&Sums) -> Option<Decimal>,
) -> Stacked {
    let spend = seen.spend;
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
            let place = shown.iter().position(|shown| *shown == key(line)).unwrap_or(shown.len());
            if let (Some(sum), Some(more)) = (values.get_mut(place), value(&line.sums)) {
                *sum = Some(sum.unwrap_or_default() + more);
            }
        }
        let [label, name] = seen.span.names(index, seen.view);
        Column { label, name, values }
    });
    let label = format!("{title} by {}, one column a {}", seen.by, seen.span.step());
    let columns = columns.collect();
    Stacked { label, unit: unit.to_owned(), parts, has_rest: others > 0, columns }
}

/// The chart's numbers, for whoever does not see it or wants to read them.
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
    seen: &Seen<'_>,
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
                    "By cost in " (bill.currency.as_deref().unwrap_or("money"))
                    ", before what is free"
                    @if bill.rows.len() > LINES_MAX {
                        "; the first " (LINES_MAX) " of " (bill.rows.len())
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
                            td.number { (money_or_unknown(line.sums.cost, places)) }
                            td.share { (share_of(line.sums.cost, whole)) }
                            td.number { (count(line.sums.requests)) }
                            td.number { (count_or_unknown(line.sums.input_tokens)) }
                            td.number { (count_or_unknown(line.sums.output_tokens)) }
                        }
                    }
                    @if bill.rows.is_empty() {
                        tr { td colspan="6" { "No request was admitted in this period." } }
                    }
                }
            } }
            @if bill.rows.len() > LINES_MAX {
                p { a href=(seen.view.same_span(USAGE, by)) { "All of them" } }
            }
        }
    }
}

/// Who says how many tokens there were.
fn sources(total: &Sums) -> Markup {
    let parts = [
        ("reported", "s0", total.reported_requests(), "the engine said so"),
        ("counted", "s1", total.counted_requests, "Taximeter counted what passed"),
        ("unknown", "rest", total.unknown_usage_requests, "nobody knows: in no sum of tokens"),
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
            h2 #sources { "Where token counts come from" }
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

/// The same for programs.
fn elsewhere(seen: &Seen<'_>) -> Markup {
    let period = seen.span.period;
    let (from, to) = (period.from().to_string(), period.to().to_string());
    let by = format!("{},{}", seen.span.step(), seen.by);
    let zone = seen.view.zone_name();
    let mut asked = vec![("from", from.as_str()), ("to", &to), ("by", &by), ("zone", zone)];
    asked.extend(seen.tenant.map(|tenant| ("tenant", tenant)));
    html! {
        p.elsewhere {
            "The same for programs: "
            a data-api="usage" href=(link("/api/v1/usage", asked)) { "JSON" }
        }
    }
}
