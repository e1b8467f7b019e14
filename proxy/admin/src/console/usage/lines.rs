//! The parts of the page *Usage*.

use std::collections::BTreeSet;

use maud::{Markup, html};
use taximeter_billing::{Bill, BillLine, ClientDimension, Dimension, Grouping, Sums};

use crate::console::page::{REQUESTS, USAGE};
use crate::console::span::Span;
use crate::console::sums::{contracted, notes, period_choice, share_of};
use crate::console::text::{count, count_or_unknown, money_or_unknown, name, name_or_none, places};
use crate::console::view::View;

/// Lines on one page.
pub(super) const PAGE_LINES: u32 = 60;

/// What the store answers.
pub(super) struct UsageFound {
    pub(super) bill: Bill,
    /// Names of labels that requests of the period have: the first ones by name.
    pub(super) labels: BTreeSet<String>,
    /// Whether requests have more labels than `labels` holds.
    pub(super) has_more_labels: bool,
}

/// Longest text that a link carries, in bytes: a name of the configuration is no longer.
const LINK_BYTES_MAX: usize = 256;

/// The data of the page.
pub(super) struct UsageData<'a> {
    pub(super) view: &'a View,
    pub(super) span: &'a Span,
    pub(super) by: &'a Grouping,
    pub(super) tenant: Option<&'a str>,
    /// Which page of the lines, from 1.
    pub(super) number: usize,
    pub(super) found: &'a UsageFound,
    pub(super) pending_entries: u64,
}

pub(super) fn main(data: &UsageData<'_>) -> Markup {
    html! {
        h1 { "Usage" @if let Some(tenant) = data.tenant { " of " (name(tenant)) } }
        (choice(data))
        (splits(data))
        (notes(&data.found.bill, data.pending_entries))
        (table(data))
        (paging(data))
        (elsewhere(data))
    }
}

/// The period, and a form for the tenant and the split.
fn choice(data: &UsageData<'_>) -> Markup {
    let UsageData { view, span, tenant, .. } = data;
    let by = data.by.to_string();
    let mut kept = vec![("by", by.as_str())];
    kept.extend(tenant.map(|tenant| ("tenant", tenant)));
    let is_period = |name: &str| matches!(name, "span" | "from" | "to");
    html! {
        div.choice { (period_choice(USAGE, &kept, span, view)) }
        form.filters method="get" action=(data.view.root().to(USAGE)) {
            @for (name, value) in view.given.iter().filter(|(name, _)| is_period(name)) {
                input type="hidden" name=(name) value=(value);
            }
            div {
                label for="tenant" { "Tenant" }
                input #tenant name="tenant" value=[*tenant] autocomplete="off" spellcheck="false";
            }
            div {
                label for="by" { "Split by" }
                input #by name="by" value=(by) size="24" list="dimensions" autocomplete="off"
                    spellcheck="false";
                datalist #dimensions {
                    @for (by, _) in links(data) { option value=(by) {} }
                }
            }
            (view.keep_zone())
            button { "Show" }
            @if tenant.is_some() { a href=(of_tenant(data, None)) { "All tenants" } }
        }
    }
}

/// What the lines can be split by with one click: the text of the split, and its name.
fn links(data: &UsageData<'_>) -> Vec<(String, Markup)> {
    let mut links = vec![("key,tenant".to_owned(), html! { "key" })];
    for label in &data.found.labels {
        let by = Grouping::by(Dimension::Label(label.clone()));
        links.push((by.to_string(), html! { "label " (name(label)) }));
    }
    for dimension in [
        Dimension::Model,
        Dimension::Tenant,
        Dimension::Upstream,
        Dimension::FromClient(ClientDimension::Client),
        Dimension::FromClient(ClientDimension::Session),
    ] {
        let by = dimension.to_string();
        links.push((by.clone(), html! { (by) }));
    }
    links
}

fn splits(data: &UsageData<'_>) -> Markup {
    let by = data.by.to_string();
    html! {
        nav aria-label="Split by" { ul.tabs {
            @for (to, word) in links(data) {
                li { a href=(data.view.same_span(USAGE, &to))
                    aria-current=[(to == by).then_some("true")] { "by " (word) } }
            }
        } }
        @if data.found.labels.is_empty() {
            p.notes {
                "No request of this period has a label. Labels come from " code { "labels" }
                " of a key in the configuration."
            }
        }
        @if data.found.has_more_labels {
            p.notes {
                "Requests have more labels. To split by any of them, write "
                code { "label:NAME" } " into Split by."
            }
        }
    }
}

fn table(data: &UsageData<'_>) -> Markup {
    let bill = &data.found.bill;
    let largest = bill.rows.iter().filter_map(|line| line.sums.cost).max().unwrap_or_default();
    let (places, whole) = (places(largest), contracted(bill));
    let skipped = (data.number - 1).saturating_mul(PAGE_LINES as usize);
    let lines: Vec<_> = bill.rows.iter().skip(skipped).take(PAGE_LINES as usize).collect();
    let dimensions = data.by.dimensions();
    html! {
        div.scroll { table {
            caption {
                "Requests admitted in " (data.span.words(data.view)) ", "
                (data.view.zone_name()) ". The highest cost comes first. Cost is "
                @if let Some(currency) = &bill.currency { "in " (currency) ", " }
                "before allowances. A name leads to its requests."
            }
            thead { tr {
                @for dimension in dimensions { th scope="col" { (title(dimension)) } }
                th.number scope="col" { "Cost" }
                th scope="col" { "Share" }
                th.number scope="col" { "Requests" }
                th.number scope="col" { "Input tokens" }
                th.number scope="col" { "Cached input" }
                th.number scope="col" { "Output tokens" }
                th.number scope="col" { "Unknown cost" }
            } }
            tbody {
                @for line in &lines {
                    tr {
                        (names(data, line))
                        td.number {
                            @if line.sums.is_at_least() { "≥ " }
                            (money_or_unknown(line.sums.cost, places))
                        }
                        td.share { (share_of(line.sums.cost, whole)) }
                        (counts(&line.sums))
                    }
                }
                @if lines.is_empty() {
                    tr { td colspan=(dimensions.len() + 7) {
                        @if bill.rows.is_empty() { "No request of this period is billed." }
                        @else { "This page has no lines." }
                    } }
                }
            }
            tfoot { tr {
                th scope="row" colspan=(dimensions.len().max(1)) { "Total" }
                td.number data-total="contracted" { (money_or_unknown(whole, places)) }
                td {}
                (counts(&bill.total))
            } }
        } }
    }
}

/// The name of a column.
fn title(dimension: &Dimension) -> Markup {
    html! {
        @match dimension {
            Dimension::Key => "Key",
            Dimension::Model => "Model",
            Dimension::Tenant => "Tenant",
            Dimension::Upstream => "Upstream",
            Dimension::Label(label) => { "Label " (name(label)) }
            Dimension::FromClient(ClientDimension::Session) => "Session",
            Dimension::FromClient(ClientDimension::Agent) => "Agent",
            Dimension::FromClient(ClientDimension::Client) => "Client",
            Dimension::FromClient(ClientDimension::EndUser) => "End user",
            Dimension::FromClient(ClientDimension::Tag(tag)) => { "Tag " (name(tag)) }
            other => (other),
        }
    }
}

/// The cells with the names of a line. The first one links to its requests.
fn names(data: &UsageData<'_>, line: &BillLine) -> Markup {
    html! {
        @for (index, key) in line.keys.iter().enumerate() {
            @if index == 0 {
                th scope="row" {
                    @match requests(data, line) {
                        Some(link) => a href=(link) { (name_or_none(key.as_deref())) },
                        None => (name_or_none(key.as_deref())),
                    }
                }
            } @else {
                td {
                    @match (data.by.dimensions().get(index), key) {
                        (Some(Dimension::Tenant), Some(tenant)) => {
                            a href=(of_tenant(data, Some(tenant))) { (name(tenant)) }
                        }
                        (_, key) => (name_or_none(key.as_deref())),
                    }
                }
            }
        }
    }
}

/// This page, from its first line on, of one tenant or of all.
fn of_tenant(data: &UsageData<'_>, tenant: Option<&str>) -> String {
    let given = data.view.given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let kept = given.filter(|(name, _)| !matches!(*name, "tenant" | "page"));
    let parameters: Vec<_> = kept.chain(tenant.map(|tenant| ("tenant", tenant))).collect();
    data.view.to(USAGE, &parameters)
}

/// The cells with numbers, but for the cost.
fn counts(sums: &Sums) -> Markup {
    html! {
        td.number { (count(sums.requests)) }
        td.number { (count_or_unknown(sums.input_tokens)) }
        td.number { (count_or_unknown(sums.cache_read_input_tokens)) }
        td.number { (count_or_unknown(sums.output_tokens)) }
        td.number { (count(sums.unknown_costs())) }
    }
}

/// The page of the requests of a line. `None` for a name that is too long, or has characters that
/// cannot be data: such a name comes from an engine or a client, and from no configuration.
fn requests(data: &UsageData<'_>, line: &BillLine) -> Option<String> {
    let period = data.span.period;
    let (from, to) = (period.from().to_string(), period.to().to_string());
    let (mut label, mut tag, mut without) = (None, None, Vec::new());
    let mut asked = Vec::new();
    for (dimension, value) in data.by.dimensions().iter().zip(&line.keys) {
        let Some(value) = value else {
            without.push(dimension.to_string());
            continue;
        };
        if value.len() > LINK_BYTES_MAX || !is_shown_whole(value) {
            return None;
        }
        match dimension {
            Dimension::Label(name) => label = Some(format!("{name}={value}")),
            Dimension::Key => asked.push(("key", value.as_str())),
            Dimension::Model => asked.push(("model", value)),
            Dimension::Tenant => asked.push(("tenant", value)),
            Dimension::Upstream => asked.push(("upstream", value)),
            Dimension::FromClient(ClientDimension::Session) => asked.push(("session", value)),
            Dimension::FromClient(ClientDimension::Agent) => asked.push(("agent", value)),
            Dimension::FromClient(ClientDimension::Client) => asked.push(("client", value)),
            Dimension::FromClient(ClientDimension::EndUser) => asked.push(("end_user", value)),
            Dimension::FromClient(ClientDimension::Tag(name)) => {
                tag = Some(format!("{name}={value}"))
            }
            _ => return None,
        }
    }
    let without = (!without.is_empty()).then(|| Grouping::named(&without)).transpose().ok()?;
    let without = without.map(|without| without.to_string());
    asked.extend(label.as_deref().map(|label| ("label", label)));
    asked.extend(tag.as_deref().map(|tag| ("tag", tag)));
    asked.extend(without.as_deref().map(|without| ("without", without)));
    if asked.iter().all(|(name, _)| *name != "tenant") {
        asked.extend(data.tenant.map(|tenant| ("tenant", tenant)));
    }
    asked.extend([("from", from.as_str()), ("to", &to)]);
    Some(data.view.to(REQUESTS, &asked))
}

/// Whether every character of a name can be shown, however long the name is.
fn is_shown_whole(text: &str) -> bool {
    text.chars().all(taximeter_net::visible::is_visible)
}

/// Links to the other pages of the lines.
fn paging(data: &UsageData<'_>) -> Markup {
    let lines = data.found.bill.rows.len();
    let last = lines.div_ceil(PAGE_LINES as usize).max(1);
    let page = |number: usize| {
        let number = (number > 1).then(|| number.to_string());
        data.view.with("page", number.as_deref())
    };
    html! {
        @if last > 1 {
            nav.paging aria-label="More lines" {
                @if data.number > 1 {
                    a rel="prev" href=(page(data.number.min(last + 1) - 1)) { "← Previous page" }
                }
                span { "Page " (data.number) " of " (last) ", " (count(lines as u64)) " lines" }
                @if data.number < last {
                    a rel="next" href=(page(data.number + 1)) { "Next page →" }
                }
            }
        }
    }
}

/// Links to the same sums for programs.
fn elsewhere(data: &UsageData<'_>) -> Markup {
    let period = data.span.period;
    let (from, to) = (period.from().to_string(), period.to().to_string());
    let by = data.by.to_string();
    let mut asked =
        vec![("from", from.as_str()), ("to", &to), ("by", &by), ("zone", data.view.zone_name())];
    asked.extend(data.tenant.map(|tenant| ("tenant", tenant)));
    let csv = [("format", "csv")].into_iter().chain(asked.iter().copied());
    html! {
        p.elsewhere {
            "The same lines for programs: "
            a data-api="usage" href=(data.view.plain("/api/v1/usage", asked.iter().copied())) { "JSON" } ", "
            a download href=(data.view.plain("/api/v1/export", csv)) { "CSV" }
        }
    }
}
