//! `/api/v1/records`: single requests, page by page, and one of them with its corrections.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use taximeter_billing::{Dimension, Grouping};
use taximeter_config::Config;
use taximeter_gateway::gateway::Gateway;
use taximeter_ledger::{Correction, End, Record, RequestId};
use taximeter_store::{Cursor, Filter, Order, Pages};
use taximeter_system::clock;
use utoipa::{IntoParams, ToSchema};

use super::ask::ask;
use super::problem::Refused;
use super::query::{self, Asked, Ends, Nothing};

/// Records on a page where nobody says.
const PAGE_RECORDS: u32 = 100;
/// Most records on a page.
const PAGE_RECORDS_MAX: u32 = 1000;
/// Most records that are looked at for a page: of those that few fit, the page is short.
const LOOKED_AT_MAX: u32 = 20_000;

/// How a label is written.
const LABEL: &str = "a label's name, = and its value, such as team=search";
/// What a request may have no value for.
const WITHOUT: &str = "names with commas between them, each once: key, model, label:NAME";

/// What is asked for.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct RecordsParams {
    /// Calendar month of admission, `2026-11`
    pub(super) month: Option<String>,
    /// Admitted at or after: a date, or a time with offset
    pub(super) from: Option<String>,
    /// Admitted before
    pub(super) to: Option<String>,
    /// Time zone of months and dates, `Europe/Berlin`; `billing.zone` of the configuration by
    /// default
    pub(super) zone: Option<String>,
    /// Only this tenant's
    pub(super) tenant: Option<String>,
    /// Only where the request or the answer names this model
    pub(super) model: Option<String>,
    /// Only those that ended so: `complete`, `client_left` and so on
    pub(super) end: Option<String>,
    /// Only with this `x-request-id` of the client's
    pub(super) request_id: Option<String>,
    /// Only of this upstream
    pub(super) upstream: Option<String>,
    /// Only of this key, by its `id` in the configuration
    pub(super) key: Option<String>,
    /// Only with this label: its name, `=` and its value, such as `team=search`
    pub(super) label: Option<String>,
    /// Only requests that have none of these, with commas between them: `key`, `model`,
    /// `label:NAME`
    pub(super) without: Option<String>,
    /// `newest` (by default) or `oldest` first
    pub(super) order: Option<String>,
    /// Most records on the page, from 1 to 1000; 100 by default
    pub(super) limit: Option<String>,
    /// Where to go on: `next` of the page before; the other parameters stay the same
    pub(super) cursor: Option<String>,
}

/// Some requests.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Records {
    /// In the order of admission that was asked for. It may be empty although others follow: looking
    /// for what few requests have goes on in steps.
    pub(super) records: Vec<Record>,
    /// `cursor` of the page behind it; null where there is none.
    pub(super) next: Option<String>,
    /// Entries of this gateway's ledger that are on their way to the store, and on no page yet.
    pub(super) pending_entries: u64,
}

/// One request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RecordAnswer {
    /// As it was settled.
    pub(super) record: Record,
    /// What became of its cost later, in order; the last one holds.
    pub(super) corrections: Vec<Correction>,
}

/// What a record must have to be wanted.
struct Wanted {
    model: Option<String>,
    end: Option<End>,
    request_id: Option<String>,
    upstream: Option<String>,
    key: Option<String>,
    label: Option<String>,
    without: Vec<Dimension>,
}

/// Single requests, page by page
///
/// What is added to the store after the first page stays out of the others.
#[utoipa::path(get, path = "/api/v1/records", tag = "records", params(RecordsParams), responses(
    (status = 200, description = "A page", body = Records),
    Refused,
))]
pub(super) async fn records(
    State(gateway): State<Arc<Gateway>>,
    Asked(asked): Asked<RecordsParams>,
) -> Result<Json<Records>, Refused> {
    let filter = asked.filter(&gateway.config)?;
    let from = asked.place()?;
    let records_max = query::number("limit", asked.limit.as_deref(), PAGE_RECORDS_MAX)?;
    let pages =
        Pages { records_max: records_max.unwrap_or(PAGE_RECORDS), looked_at_max: LOOKED_AT_MAX };
    let wanted = asked.wanted()?;
    let pending_entries = gateway.pending_entries();
    let answer = ask(&gateway, move |store, deadline| {
        let wanted = |record: &Record| wanted.has(record);
        let page = store.page(&filter, from, pages, wanted, || deadline.has_passed())?;
        let next = page.next.map(|cursor| cursor.to_string());
        Ok(Records { records: page.records, next, pending_entries })
    });
    answer.await.map(Json)
}

/// One request, with what became of its cost later
#[utoipa::path(get, path = "/api/v1/records/{id}", tag = "records",
    params(("id" = String, Path, description = "`x-taximeter-request-id` of the answer")),
    responses((status = 200, description = "The request", body = RecordAnswer), Refused),
)]
pub(super) async fn record(
    State(gateway): State<Arc<Gateway>>,
    Path(id): Path<String>,
    Asked(Nothing {}): Asked<Nothing>,
) -> Result<Json<RecordAnswer>, Refused> {
    let missing = |id: &str| {
        Refused::NotFound(format!(
            "there is no record {id:?}; ids are in x-taximeter-request-id of answers, and a record \
             is there about a second after its request has ended"
        ))
    };
    let Ok(id) = id.parse::<RequestId>() else { return Err(missing(&id)) };
    let found = ask(&gateway, move |store, _| Ok(store.record(id)?)).await?;
    let (record, corrections) = found.ok_or_else(|| missing(&id.to_string()))?;
    Ok(Json(RecordAnswer { record, corrections }))
}

impl RecordsParams {
    fn filter(&self, config: &Config) -> Result<Filter, Refused> {
        let (month, from, to) = (self.month.as_deref(), self.from.as_deref(), self.to.as_deref());
        let zone = &query::zone(self.zone.as_deref(), config)?;
        let ends = Ends { zone, month, from, to };
        let tenant = self.tenant.clone();
        // Records have no need of both ends.
        if month.is_none() && from.is_none() {
            return Ok(Filter { tenant, from: None, to: query::time("to", to, zone)? });
        }
        if month.is_none() && to.is_none() {
            return Ok(Filter { tenant, from: query::time("from", from, zone)?, to: None });
        }
        let period = ends.or_this_month(clock::wall())?;
        Ok(Filter { tenant, from: Some(period.from()), to: Some(period.to()) })
    }

    fn place(&self) -> Result<(Order, Option<Cursor>), Refused> {
        let cursor: Option<Cursor> =
            query::read("cursor", self.cursor.as_deref(), "next of another page", str::parse)?;
        let order = query::read("order", self.order.as_deref(), "newest or oldest", |order| {
            let order = match order {
                "newest" => Order::NewestFirst,
                "oldest" => Order::OldestFirst,
                _ => return Err(()),
            };
            // A walk goes on as it began.
            if cursor.is_some_and(|cursor| cursor.order != order) { Err(()) } else { Ok(order) }
        })?;
        let begun = cursor.map(|cursor| cursor.order);
        Ok((begun.or(order).unwrap_or(Order::NewestFirst), cursor))
    }

    fn wanted(&self) -> Result<Wanted, Refused> {
        let words = format!("one of {}", End::ALL.map(End::as_str).join(", "));
        Ok(Wanted {
            model: self.model.clone(),
            end: query::read("end", self.end.as_deref(), words, |word| {
                End::ALL.into_iter().find(|end| end.as_str() == word).ok_or(())
            })?,
            request_id: self.request_id.clone(),
            upstream: self.upstream.clone(),
            key: self.key.clone(),
            label: query::read("label", self.label.as_deref(), LABEL, |label| {
                if label.contains('=') { Ok(label.to_owned()) } else { Err(()) }
            })?,
            without: query::read("without", self.without.as_deref(), WITHOUT, without)?
                .unwrap_or_default(),
        })
    }
}

impl Wanted {
    fn has(&self, record: &Record) -> bool {
        let models = [&record.response_model, &record.request_model];
        self.model.as_ref().is_none_or(|name| models.iter().any(|m| m.as_ref() == Some(name)))
            && self.end.is_none_or(|end| end == record.end)
            && self.request_id.as_ref().is_none_or(|id| *id == record.request_id)
            && self.upstream.as_ref().is_none_or(|name| *name == record.upstream)
            && self.key.as_ref().is_none_or(|id| Some(id) == record.key_id.as_ref())
            && self.label.as_ref().is_none_or(|label| has_label(record, label))
            && self.without.iter().all(|dimension| lacks(record, dimension))
    }
}

/// Reads the dimensions that a request may have no value for.
///
/// Errors: another dimension, or none.
fn without(text: &str) -> Result<Vec<Dimension>, ()> {
    let grouping: Grouping = text.parse().map_err(|_| ())?;
    let is_optional = |dimension: &Dimension| {
        matches!(dimension, Dimension::Key | Dimension::Model | Dimension::Label(_))
    };
    let dimensions = grouping.dimensions();
    if dimensions.iter().all(is_optional) { Ok(dimensions.to_vec()) } else { Err(()) }
}

/// Whether a record has a label. The name of a label may have an `=` as well, so the whole text is
/// compared.
fn has_label(record: &Record, label: &str) -> bool {
    record.labels.iter().any(|(name, value)| {
        label.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) == Some(value.as_str())
    })
}

fn lacks(record: &Record, dimension: &Dimension) -> bool {
    match dimension {
        Dimension::Key => record.key_id.is_none(),
        Dimension::Model => record.response_model.is_none() && record.request_model.is_none(),
        Dimension::Label(name) => !record.labels.contains_key(name),
        _ => false,
    }
}
