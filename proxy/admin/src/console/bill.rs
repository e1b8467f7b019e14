//! The page *Bill*: the invoice of one month, as `taximeter bill` prints it.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use jiff::{Timestamp, ToSpan as _};
use maud::{Markup, html};
use rust_decimal::Decimal;
use serde::Deserialize;
use taximeter_billing::{
    BillError, Covered, Credit, Invoice, InvoiceLine, Invoicer, Period, SplitBy, TenantInvoice,
    Unit,
};
use taximeter_gateway::gateway::Gateway;
use taximeter_store::terms::{Scope, Terms};
use taximeter_system::clock;
use utoipa::IntoParams;

use super::page::{BILL, Page};
use super::text::{
    count, money, money_text, name, name_or_none, places, price_of, quantity, rounded, unknown,
};
use super::view::{PageParams, View};
use crate::ask::ask;
use crate::problem::ApiError;
use crate::query::PeriodParams;

/// Most lines on the page. The downloads have all lines.
const LINES_MAX: usize = 120;
/// Most tenants on the page. The downloads have all tenants.
const TENANTS_MAX: usize = 25;

/// The parameters of the page.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct BillParams {
    /// Calendar month. Default: the current month
    month: Option<String>,
    /// Only this tenant
    tenant: Option<String>,
}

pub(super) async fn bill(
    State(gateway): State<Arc<Gateway>>,
    PageParams { asked, view }: PageParams<BillParams>,
) -> Result<Response, ApiError> {
    let now = clock::wall();
    let zone = view.zone().clone();
    let ends = PeriodParams { zone: &zone, month: asked.month.as_deref(), from: None, to: None };
    let period = ends.or_this_month(now)?;
    let terms = Terms::of(&gateway.config);
    let tenant = asked.tenant;
    let page = Page { title: "Bill", at: BILL, view: &view, reload_seconds: None };
    let frame = page.frame();
    let main = async move {
        let of = tenant.clone();
        let invoice = ask(&gateway, move |store, deadline| {
            let tenant = of.as_deref();
            let scope = Scope {
                period,
                zone: &zone,
                unit: Unit::Month,
                tenant,
                now,
                split_by: SplitBy::NONE,
            };
            let status = Some(store.status(period, now)?);
            let mut invoicer = Invoicer::new(period, zone.clone(), now);
            let too_large = |tenant: &str| BillError::Overflow { tenant: tenant.to_owned() };
            let credits =
                terms.sums(store, scope, Some(invoicer.recent_since()), |key, hour| {
                    deadline.check()?;
                    Ok::<_, ApiError>(invoicer.add(key, hour).map_err(|_| too_large(&key.tenant))?)
                })?;
            for credit in credits {
                invoicer.add_credit(credit);
            }
            let invoice = invoicer.finish().map_err(|_| too_large("a tenant"))?;
            Ok(Invoice { status, ..invoice })
        })
        .await?;
        Ok(html! {
            div.head {
                h1 {
                    "Bill for " (period.name(view.zone()))
                    @if let Some(tenant) = &tenant { " of " (name(tenant)) }
                }
                (months(period, now, &view))
            }
            (totals(&invoice))
            (parts(&invoice, tenant.as_deref(), &view))
            (downloads(period, tenant.as_deref(), &view))
        })
    };
    frame.around(main).await
}

/// Links to the months before and after, and a form for any month.
fn months(period: Period, now: Timestamp, view: &View) -> Markup {
    let before = period
        .from()
        .checked_sub(1.hour())
        .ok()
        .and_then(|at| Period::month_of(at, view.zone()).ok());
    let after = Period::month_of(period.to(), view.zone()).ok().filter(|after| after.from() <= now);
    let name = |month: Period| month.name(view.zone());
    html! {
        nav.months aria-label="Months" {
            @if let Some(before) = before {
                a rel="prev" href=(view.with("month", Some(&name(before)))) { "← " (name(before)) }
            }
            form method="get" action=(view.root().to(BILL)) {
                label for="month" { "Month" }
                input #month name="month" value=(name(period)) size="8" pattern="[0-9]{4}-[0-9]{2}"
                    autocomplete="off";
                @for (other, value) in view.given.iter().filter(|(other, _)| other != "month") {
                    input type="hidden" name=(other) value=(value);
                }
                (view.keep_zone())
                button { "Show" }
            }
            @if let Some(after) = after {
                a rel="next" href=(view.with("month", Some(&name(after)))) { (name(after)) " →" }
            }
        }
    }
}

fn totals(invoice: &Invoice) -> Markup {
    let requests: u64 = invoice.tenants.iter().map(|part| part.requests).sum();
    let unknown_costs: u64 = invoice.tenants.iter().map(|part| part.unknown_cost_requests).sum();
    html! {
        section.meter aria-labelledby="cost" {
            div {
                h2 #cost { "Total" @if invoice.provisional.is_some() { " so far" } }
                @for (currency, amount) in &invoice.totals {
                    p.digits {
                        @if unknown_costs > 0 { "≥ " }
                        span data-total="billed" { (money(*amount, places(*amount))) }
                        " " span.currency { (currency) }
                    }
                }
                @if invoice.totals.is_empty() {
                    p.digits { @if requests > 0 { (unknown()) } @else { "–" } }
                }
                p.when {
                    (invoice.period.name(&invoice.zone)) ", " (invoice.zone)
                    @if let Some(status) = &invoice.status {
                        ", " span data-status=(status.status.as_str()) {
                            (status.words(&invoice.zone))
                        }
                    }
                }
            }
            dl.readouts {
                div { dt { "Requests" } dd { (count(requests)) } }
                div { dt { "Unknown cost" } dd { (count(unknown_costs)) } }
                div { dt { "Tenants" } dd { (count(invoice.tenants.len() as u64)) } }
                @for (currency, amount) in
                    invoice.provisional.iter().flat_map(|provisional| &provisional.forecast) {
                    div {
                        dt { "Forecast" }
                        dd { "≈ " (money(*amount, places(*amount))) " " span.unit { (currency) } }
                    }
                }
            }
        }
    }
}

/// The parts of the tenants, up to the limits of the page.
fn parts(invoice: &Invoice, asked: Option<&str>, view: &View) -> Markup {
    let amounts = invoice.tenants.iter().flat_map(|part| &part.lines).map(|line| line.amount);
    let places = places(amounts.max().unwrap_or_default());
    let mut room = LINES_MAX;
    let mut shown = Vec::new();
    for part in invoice.tenants.iter().take(TENANTS_MAX) {
        let lines = part.lines.get(..room.min(part.lines.len())).unwrap_or_default();
        room -= lines.len();
        shown.push((part, lines));
    }
    html! {
        @for (part, lines) in &shown { (tenant(part, lines, places, view)) }
        @if invoice.tenants.is_empty() {
            p {
                "No request"
                @if let Some(tenant) = asked { " of " (name(tenant)) }
                " was admitted in this month."
            }
        }
        @if !invoice.tenants.is_empty() && is_rounded(invoice, places) {
            p.notes {
                "Each amount is rounded to " (places) " places, the downloads are exact. \u{2248} marks \
                 an exact sum that differs in the last places from the sum of the rounded amounts."
            }
        }
        @if invoice.tenants.len() > shown.len() {
            p.notes { "The downloads have " (invoice.tenants.len() - shown.len()) " more tenants." }
        }
    }
}

fn tenant(part: &TenantInvoice, lines: &[InvoiceLine], places: u32, view: &View) -> Markup {
    let left_out = part.lines.len() - lines.len();
    let has_many = part.totals.len() > 1;
    html! {
        section.tenant {
            h2 {
                a href=(view.with("tenant", Some(&part.tenant))) { (name(&part.tenant)) }
                " " span.unit { (count(part.requests)) " requests" }
            }
            div.scroll { table {
                caption { "Lines of " (name(&part.tenant)) }
                thead { tr {
                    th scope="col" { "Model" }
                    th scope="col" { "Meter" }
                    th.number scope="col" { "Quantity" }
                    th.number scope="col" { "Unit price" }
                    th.number scope="col" { "Amount" }
                    th.number scope="col" title="The part of the quantity that no engine reported" {
                        "Not reported"
                    }
                } }
                tbody {
                    @for line in lines { (line_row(line, places, has_many)) }
                    @if left_out > 0 {
                        tr { td colspan="6" { "The downloads have " (left_out) " more lines." } }
                    }
                    @for credit in &part.credits { (credit_row(credit, places)) }
                }
                tfoot {
                    @for (currency, amount) in &part.totals {
                        tr {
                            th scope="row" colspan="4" { "Total of " (name(&part.tenant)) }
                            td.number {
                                @if part.unknown_cost_requests > 0 { "≥ " }
                                @else if !adds_up(part, currency, *amount, places) { "≈ " }
                                (money(*amount, places)) " " span.unit { (currency) }
                            }
                            td {}
                        }
                    }
                    @if part.unknown_cost_requests > 0 {
                        tr { td colspan="6" {
                            "Requests of unknown cost: " (count(part.unknown_cost_requests))
                            ". The lines have what is known of it."
                        } }
                    }
                }
            } }
        }
    }
}

/// Whether a reader who adds up the amounts of a tenant finds the total that is shown.
fn adds_up(part: &TenantInvoice, currency: &str, total: Decimal, places: u32) -> bool {
    let lines = part.lines.iter().filter(|line| line.currency == currency);
    let credits = part.credits.iter().filter(|credit| credit.currency == currency);
    let mut amounts = lines.map(|line| line.amount).chain(credits.map(|credit| -credit.amount));
    let sum =
        amounts.try_fold(Decimal::ZERO, |sum, amount| sum.checked_add(rounded(amount, places)));
    sum == Some(rounded(total, places))
}

fn is_rounded(invoice: &Invoice, places: u32) -> bool {
    let lines = invoice.tenants.iter().flat_map(|part| &part.lines).map(|line| line.amount);
    let totals = invoice.tenants.iter().flat_map(|part| part.totals.values().copied());
    lines.chain(totals).any(|amount| rounded(amount, places) != amount)
}

/// One line. It names the currency if the bill has several.
fn line_row(line: &InvoiceLine, places: u32, has_many: bool) -> Markup {
    html! {
        tr {
            th scope="row" { (name_or_none(line.model.as_deref())) }
            td { (name(&line.meter.replace('_', " "))) @if line.correction { " (correction)" } }
            td.number { (quantity(line.quantity)) " " span.unit { (name(&line.unit)) } }
            td.number { (price_of(line.unit_price, &line.unit)) }
            td.number {
                (money(line.amount, places))
                @if has_many { " " span.unit { (line.currency) } }
            }
            td.number { (quantity(line.counted)) }
        }
    }
}

fn credit_row(credit: &Credit, places: u32) -> Markup {
    let what = match &credit.covered {
        Covered::Meter(meter) => meter.replace('_', " "),
        Covered::Money => "money".to_owned(),
    };
    html! {
        tr {
            th scope="row" colspan="2" { "Free: " (name(&what)) }
            td.number {
                @if let Some(tokens) = credit.tokens {
                    (quantity(tokens)) " " span.unit { "tokens" }
                }
            }
            td {}
            td.number { (money_text(-credit.amount, places)) " " span.unit { (credit.currency) } }
            td {}
        }
    }
}

/// Downloads of the month for programs.
fn downloads(period: Period, tenant: Option<&str>, view: &View) -> Markup {
    const EXPORTS: [(&str, &str); 4] = [
        ("focus", "CSV (FOCUS 1.2)"),
        ("focus-parquet", "Parquet (FOCUS 1.2)"),
        ("ndjson", "NDJSON of all requests"),
        ("parquet", "Parquet of all requests"),
    ];
    let (from, end) = (period.from().to_string(), period.to().to_string());
    let to = |path: &str, more: (&str, &str)| {
        let mut asked = vec![more, ("from", from.as_str()), ("to", end.as_str())];
        asked.extend(tenant.map(|tenant| ("tenant", tenant)));
        view.plain(path, asked)
    };
    html! {
        section.downloads aria-labelledby="downloads" {
            h2 #downloads { "Download" }
            ul {
                li { a data-api="usage" href=(to("/api/v1/usage", ("by", "tenant,model"))) {
                    "JSON by tenant and model" } }
                @for (format, word) in EXPORTS {
                    li { a download href=(to("/api/v1/export", ("format", format))) { (word) } }
                }
            }
            @if tenant.is_some() { p { a href=(view.with("tenant", None)) { "All tenants" } } }
        }
    }
}
