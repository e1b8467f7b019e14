//! CloudEvents 1.0 in JSON, as OpenMeter takes them: one event for each request, and one for each
//! other item of a bill.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Serialize;
use taximeter_ledger::{Record, RecordUsage, RequestId};

use super::item::{BillItem, ItemDetails};
use super::partition::push_encoded;
use crate::client_dimension::ClientDimension;

/// Media type of a batch, which is a JSON array of events.
pub const CLOUDEVENTS_BATCH_TYPE: &str = "application/cloudevents-batch+json";

/// Event type of a request.
const REQUEST_TYPE: &str = "taximeter.request";
/// Source of the events of items. Items do not come from one gateway.
const ITEM_SOURCE: &str = "taximeter/bill";

/// One event. `source` and `id` together are unique, and stay the same each time the event is sent.
#[derive(Debug, Serialize)]
pub struct CloudEvent<'a> {
    specversion: &'static str,
    id: EventId<'a>,
    source: Cow<'static, str>,
    r#type: &'static str,
    subject: &'a str,
    time: Timestamp,
    datacontenttype: &'static str,
    data: EventData<'a>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum EventId<'a> {
    Request(RequestId),
    Item(&'a str),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum EventData<'a> {
    Request(Box<RequestData<'a>>),
    Item(ItemData<'a>),
}

/// The data of an item. Its `cost` is added to the cost of the requests.
#[derive(Debug, Serialize)]
pub(super) struct ItemData<'a> {
    tenant: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    list_cost: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantity: Option<Decimal>,
    #[serde(flatten)]
    details: &'a ItemDetails<'a>,
}

/// The usage of a request. Unknown members are left out, never zero. As in records, some numbers
/// are parts of `input_tokens` and `output_tokens`.
#[derive(Debug, Serialize)]
pub(super) struct RequestData<'a> {
    tenant: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<&'a str>,
    operation: &'a str,
    route: &'a str,
    upstream: &'a str,
    provider: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    /// What the client says, as `--by` names it: `session`, `agent`, `client`, `end_user`, `tag:NAME`.
    #[serde(flatten)]
    dimensions: BTreeMap<ClientDimension, &'a str>,
    end: &'static str,
    usage_source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_read_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_write_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    currency: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<Decimal>,
    #[serde(skip_serializing_if = "Option::is_none")]
    list_cost: Option<Decimal>,
    /// The known part of a cost that is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_known: Option<Decimal>,
    /// The same at list price.
    #[serde(skip_serializing_if = "Option::is_none")]
    list_cost_known: Option<Decimal>,
    /// Quantities besides tokens. None of their names equals a name above.
    #[serde(flatten)]
    units: &'a BTreeMap<String, Decimal>,
}

impl<'a> CloudEvent<'a> {
    /// The event of a request: from its gateway, about its tenant, at its admission.
    #[must_use]
    pub fn of(record: &'a Record) -> Self {
        Self {
            specversion: "1.0",
            id: EventId::Request(record.id),
            source: source(&record.gateway).into(),
            r#type: REQUEST_TYPE,
            subject: &record.tenant.0,
            time: record.started_at,
            datacontenttype: "application/json",
            data: EventData::Request(Box::new(RequestData::of(record))),
        }
    }

    /// The event of an item, about its tenant.
    #[must_use]
    pub fn of_item(item: &'a BillItem<'_>) -> Self {
        Self {
            specversion: "1.0",
            id: EventId::Item(&item.id),
            source: ITEM_SOURCE.into(),
            r#type: item.kind.event_type(),
            subject: item.tenant,
            time: item.at,
            datacontenttype: "application/json",
            data: EventData::Item(ItemData::of(item)),
        }
    }
}

impl<'a> ItemData<'a> {
    pub(super) fn of(item: &'a BillItem<'_>) -> Self {
        let currency = Some(item.currency).filter(|currency| !currency.is_empty());
        Self {
            tenant: item.tenant,
            currency,
            cost: currency.map(|_| item.cost.normalize()),
            list_cost: currency.map(|_| item.list_cost.normalize()),
            quantity: item.quantity.map(|quantity| quantity.normalize()),
            details: &item.details,
        }
    }
}

impl<'a> RequestData<'a> {
    pub(super) fn of(record: &'a Record) -> Self {
        // What a pending request has used is in the event that completes it.
        let pending = RecordUsage::default();
        let (usage, cost) = (&record.usage, record.cost.as_ref());
        let numbers = if record.is_pending() { &pending } else { usage };
        let known = record.cost_known.as_ref();
        Self {
            tenant: &record.tenant.0,
            key_id: record.key_id.as_deref(),
            operation: &record.operation,
            route: &record.route,
            upstream: &record.upstream,
            provider: &record.provider,
            model: record.response_model.as_deref().or(record.request_model.as_deref()),
            dimensions: record.dimensions.as_deref().map(ClientDimension::all).unwrap_or_default(),
            end: record.end.as_str(),
            usage_source: usage.source.as_str(),
            input_tokens: numbers.input_tokens,
            cache_read_input_tokens: numbers.cache_read_input_tokens,
            cache_write_input_tokens: numbers.cache_write_input_tokens,
            output_tokens: numbers.output_tokens,
            reasoning_output_tokens: numbers.reasoning_output_tokens,
            currency: record.owed().map(|cost| cost.currency.as_str()),
            cost: cost.map(|cost| cost.amount.normalize()),
            list_cost: cost.map(|cost| cost.list_amount.normalize()),
            cost_known: known.map(|cost| cost.amount.normalize()),
            list_cost_known: known.map(|cost| cost.list_amount.normalize()),
            units: &usage.units,
        }
    }
}

/// The name of the gateway as a URI reference.
fn source(gateway: &str) -> String {
    let mut source = String::from("taximeter");
    for part in gateway.split('/') {
        source.push('/');
        push_encoded(&mut source, part);
    }
    source
}
