//! `/api/v1/records`: the records of single requests, page by page, and one record with its
//! corrections.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use taximeter_billing::{Dimension, Grouping};
use taximeter_config::Config;
use taximeter_dimensions::{self as dimensions, Hasher};
use taximeter_gateway::gateway::Gateway;
use taximeter_ledger::{Correction, End, Record, RecordCost, RecordUsage, RequestId};
use taximeter_store::{Cursor, Filter, Order, Pages};
use taximeter_system::clock;
use utoipa::{IntoParams, ToSchema};

use super::ask::ask;
use super::problem::ApiError;
use super::query::{self, NoParams, Params, PeriodParams};

/// Default number of records on a page.
const PAGE_RECORDS: u32 = 100;
/// Most records on a page.
const PAGE_RECORDS_MAX: u32 = 1000;
/// Most records that the store reads for one page. If few of them match, the page is short.
const READ_MAX: u32 = 20_000;

/// The form of a label.
const LABEL: &str = "a label's name, = and its value, such as team=search";
/// The names that `without` can have.
const WITHOUT: &str = "names with commas between them, each once: key, model, label:NAME, session, \
                       agent, client, end_user, tag:NAME";

/// The query parameters.
#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct RecordsParams {
    /// Only requests admitted in this calendar month, such as `2026-11`
    pub(super) month: Option<String>,
    /// Only requests admitted at or after this date or time with an offset
    pub(super) from: Option<String>,
    /// Only requests admitted before this date or time
    pub(super) to: Option<String>,
    /// Time zone of months and dates, such as `Europe/Berlin`. Default: `billing.zone` of the
    /// configuration
    pub(super) zone: Option<String>,
    /// Only requests of this tenant
    pub(super) tenant: Option<String>,
    /// Only requests that ask for this model, or whose answer names it
    pub(super) model: Option<String>,
    /// Only requests with this end: `complete`, `client_left` and so on
    pub(super) end: Option<String>,
    /// Only requests with this `x-request-id`
    pub(super) request_id: Option<String>,
    /// Only requests to this upstream
    pub(super) upstream: Option<String>,
    /// Only requests with this API key, given by its `id` in the configuration
    pub(super) key: Option<String>,
    /// Only requests with this label: its name, `=` and its value, such as `team=search`
    pub(super) label: Option<String>,
    /// Only requests of this session. Here and below, a name that records have as a hash is given
    /// as it is
    pub(super) session: Option<String>,
    /// Only requests of this agent
    pub(super) agent: Option<String>,
    /// Only requests of this client program: a product such as `codex`, or with its version such as
    /// `codex/0.169`
    pub(super) client: Option<String>,
    /// Only requests for this end user
    pub(super) end_user: Option<String>,
    /// Only requests with this tag: its name, `=` and its value, such as `team=search`
    pub(super) tag: Option<String>,
    /// Only requests that have none of these: names with commas between them, out of `key`,
    /// `model`, `label:NAME`, `session`, `agent`, `client`, `end_user`, `tag:NAME`
    pub(super) without: Option<String>,
    /// `newest` first or `oldest` first. Default: `newest`
    pub(super) order: Option<String>,
    /// Most records on the page, from 1 to 1000. Default: 100
    pub(super) limit: Option<String>,
    /// `next` of the previous page. Keep the other parameters the same
    pub(super) cursor: Option<String>,
}

/// One page of records.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RecordsPage {
    /// The records in order of admission. The list can be empty although `next` is set: the store
    /// reads at most 20,000 records for one page.
    pub(super) records: Vec<Record>,
    /// The `cursor` of the next page. Null on the last page.
    pub(super) next: Option<String>,
    /// The first instant with records, if older ones are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) details_from: Option<Timestamp>,
    /// Entries of this gateway's ledger that the store does not have yet. No page has them.
    pub(super) pending_entries: u64,
}

/// One record.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RecordAnswer {
    /// The record as the gateway wrote it.
    pub(super) record: Record,
    /// Later corrections of its cost, in order. The last one is valid. If the answer went on in the
    /// background, one of them says what the request used.
    pub(super) corrections: Vec<Correction>,
    /// Tokens and other quantities after the corrections.
    pub(super) usage: RecordUsage,
    /// The cost after the corrections, or what is known of it. Null means unknown.
    pub(super) cost: Option<RecordCost>,
}

impl RecordAnswer {
    pub(super) fn new(record: Record, corrections: Vec<Correction>) -> Self {
        let apply = |record, correction: &Correction| correction.apply_to(record);
        let valid = corrections.iter().fold(record.clone(), apply);
        let cost = valid.owed().cloned();
        Self { record, corrections, usage: valid.usage, cost }
    }
}

/// What a record must have to be on a page.
struct RecordFilter {
    model: Option<String>,
    end: Option<End>,
    request_id: Option<String>,
    upstream: Option<String>,
    key: Option<String>,
    label: Option<String>,
    dimensions: dimensions::Filter,
    without: Vec<Dimension>,
}

/// Records of single requests, page by page
///
/// A record that reaches the store after the first page is on none of the following pages.
#[utoipa::path(get, path = "/api/v1/records", tag = "records", params(RecordsParams), responses(
    (status = 200, description = "One page", body = RecordsPage),
    ApiError,
))]
pub(super) async fn records(
    State(gateway): State<Arc<Gateway>>,
    Params(asked): Params<RecordsParams>,
) -> Result<Json<RecordsPage>, ApiError> {
    let period = asked.period(&gateway.config)?;
    let start = asked.start()?;
    let records_max = query::number("limit", asked.limit.as_deref(), PAGE_RECORDS_MAX)?;
    let pages = Pages { records_max: records_max.unwrap_or(PAGE_RECORDS), looked_at_max: READ_MAX };
    let filter = asked.filter(gateway.names.hasher())?;
    let pending_entries = gateway.pending_entries();
    let answer = ask(&gateway, move |store, deadline| {
        let matches = |record: &Record| filter.matches(record);
        let period = store.narrowed(&period, &filter.dimensions)?;
        let page = store.page(&period, start, pages, matches, || deadline.has_passed())?;
        let next = page.next.map(|cursor| cursor.to_string());
        let details_from = store.details_from()?;
        Ok(RecordsPage { records: page.records, next, details_from, pending_entries })
    });
    answer.await.map(Json)
}

/// The record of one request, with corrections of its cost
#[utoipa::path(get, path = "/api/v1/records/{id}", tag = "records",
    params(("id" = String, Path, description = "`x-taximeter-request-id` of the answer")),
    responses((status = 200, description = "The record", body = RecordAnswer), ApiError),
)]
pub(super) async fn record(
    State(gateway): State<Arc<Gateway>>,
    Path(id): Path<String>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<RecordAnswer>, ApiError> {
    let missing = |id: &str| {
        ApiError::NotFound(format!(
            "there is no record {id:?}; the id is in the header x-taximeter-request-id of an \
             answer, and the store has a record about a second after its request ends"
        ))
    };
    let Ok(id) = id.parse::<RequestId>() else { return Err(missing(&id)) };
    let found = ask(&gateway, move |store, _| Ok(store.record(id)?)).await?;
    let (record, corrections) = found.ok_or_else(|| missing(&id.to_string()))?;
    Ok(Json(RecordAnswer::new(record, corrections)))
}

impl RecordsParams {
    /// Tenant and time.
    fn period(&self, config: &Config) -> Result<Filter, ApiError> {
        let (month, from, to) = (self.month.as_deref(), self.from.as_deref(), self.to.as_deref());
        let zone = &query::zone(self.zone.as_deref(), config)?;
        let ends = PeriodParams { zone, month, from, to };
        let tenant = self.tenant.clone();
        // A period of records may have only one end.
        if month.is_none() && from.is_none() {
            return Ok(Filter { tenant, from: None, to: query::time("to", to, zone)? });
        }
        if month.is_none() && to.is_none() {
            return Ok(Filter { tenant, from: query::time("from", from, zone)?, to: None });
        }
        let period = ends.or_this_month(clock::wall())?;
        Ok(Filter { tenant, from: Some(period.from()), to: Some(period.to()) })
    }

    /// The order, and the record to start after.
    fn start(&self) -> Result<(Order, Option<Cursor>), ApiError> {
        let cursor: Option<Cursor> =
            query::read("cursor", self.cursor.as_deref(), "the next of another page", str::parse)?;
        let order = query::read("order", self.order.as_deref(), "newest or oldest", |order| {
            let order = match order {
                "newest" => Order::NewestFirst,
                "oldest" => Order::OldestFirst,
                _ => return Err(()),
            };
            // All pages have the order of the first one.
            if cursor.is_some_and(|cursor| cursor.order != order) { Err(()) } else { Ok(order) }
        })?;
        let begun = cursor.map(|cursor| cursor.order);
        Ok((begun.or(order).unwrap_or(Order::NewestFirst), cursor))
    }

    fn filter(&self, hasher: Option<&Hasher>) -> Result<RecordFilter, ApiError> {
        let words = format!("one of {}", End::ALL.map(End::as_str).join(", "));
        Ok(RecordFilter {
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
            dimensions: self.dimensions(hasher)?,
            without: query::read("without", self.without.as_deref(), WITHOUT, without)?
                .unwrap_or_default(),
        })
    }

    fn dimensions(&self, hasher: Option<&Hasher>) -> Result<dimensions::Filter, ApiError> {
        let tag = query::read("tag", self.tag.as_deref(), dimensions::Filter::TAG, |tag| {
            if dimensions::Filter::is_tag(tag) { Ok(tag.to_owned()) } else { Err(()) }
        })?;
        let asked = dimensions::Asked {
            session: self.session.clone(),
            agent: self.agent.clone(),
            client: self.client.clone(),
            end_user: self.end_user.clone(),
            tag,
        };
        Ok(dimensions::Filter::new(asked, hasher))
    }
}

impl RecordFilter {
    fn matches(&self, record: &Record) -> bool {
        let models = [&record.response_model, &record.request_model];
        self.model.as_ref().is_none_or(|name| models.iter().any(|m| m.as_ref() == Some(name)))
            && self.end.is_none_or(|end| end == record.end)
            && self.request_id.as_ref().is_none_or(|id| *id == record.request_id)
            && self.upstream.as_ref().is_none_or(|name| *name == record.upstream)
            && self.key.as_ref().is_none_or(|id| Some(id) == record.key_id.as_ref())
            && self.label.as_ref().is_none_or(|label| has_label(record, label))
            && self.dimensions.matches(record.dimensions.as_deref())
            && self.without.iter().all(|dimension| lacks(record, dimension))
    }
}

/// Reads the dimensions that a request may have no value for.
///
/// Errors: another dimension, or none.
fn without(text: &str) -> Result<Vec<Dimension>, ()> {
    let grouping: Grouping = text.parse().map_err(|_| ())?;
    let is_optional = |dimension: &Dimension| {
        use Dimension::{FromClient, Key, Label, Model};
        matches!(dimension, Key | Model | Label(_) | FromClient(_))
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
        Dimension::FromClient(of) => {
            record.dimensions.as_ref().is_none_or(|it| of.value(it).is_none())
        }
        _ => false,
    }
}
