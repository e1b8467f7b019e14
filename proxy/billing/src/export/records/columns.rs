//! The columns of a request.

use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Serialize;
use taximeter_ledger::{Counted, Record, RecordCost, Stage};

use crate::export::columns::{Field, FieldKind};

/// Money.
const COST: FieldKind = FieldKind::Decimal { precision: 38, scale: 18 };

/// A column, and its value of a request.
#[derive(Clone, Copy)]
pub(super) struct Column {
    pub(super) field: Field,
    pub(super) cell: for<'a> fn(&'a Record) -> Cell<'a>,
}

/// The value of a column.
pub(super) enum Cell<'a> {
    Null,
    Text(&'a str),
    /// A text that the record has in another form.
    Written(String),
    Json(serde_json::Result<Vec<u8>>),
    Time(Timestamp),
    Count(u64),
    Bool(bool),
    Double(f64),
    Money(Decimal),
}

const fn one(
    name: &'static str,
    kind: FieldKind,
    cell: for<'a> fn(&'a Record) -> Cell<'a>,
) -> Column {
    Column { field: Field { name, kind, nullable: false, distinct: false }, cell }
}

const fn maybe(
    name: &'static str,
    kind: FieldKind,
    cell: for<'a> fn(&'a Record) -> Cell<'a>,
) -> Column {
    let column = one(name, kind, cell);
    Column { field: Field { nullable: true, ..column.field }, ..column }
}

/// A column whose values hardly ever repeat.
const fn distinct(column: Column) -> Column {
    Column { field: Field { distinct: true, ..column.field }, ..column }
}

fn text(text: Option<&str>) -> Cell<'_> {
    text.map_or(Cell::Null, Cell::Text)
}

fn count(count: Option<u64>) -> Cell<'static> {
    count.map_or(Cell::Null, Cell::Count)
}

fn double(double: Option<f64>) -> Cell<'static> {
    double.map_or(Cell::Null, Cell::Double)
}

/// JSON, or null if there `is_nothing`.
fn json(value: &impl Serialize, is_nothing: bool) -> Cell<'static> {
    if is_nothing { Cell::Null } else { Cell::Json(serde_json::to_vec(value)) }
}

fn map<K: Serialize + Ord, V: Serialize>(map: &BTreeMap<K, V>) -> Cell<'static> {
    json(map, map.is_empty())
}

fn list(list: &[impl Serialize]) -> Cell<'static> {
    json(&list, list.is_empty())
}

fn counted(record: &Record, of: fn(&Counted) -> Option<u64>) -> Cell<'static> {
    count(record.usage.counted.as_ref().and_then(of))
}

fn stage(record: &Record, stage: Stage) -> Cell<'static> {
    let micros = record.timing.stages.and_then(|stages| stages.get(stage));
    // The float that is nearest to the decimal with six places.
    double(micros.map(|micros| micros as f64 / 1e6))
}

fn cost(cost: Option<&RecordCost>, of: for<'a> fn(&'a RecordCost) -> Cell<'a>) -> Cell<'_> {
    cost.map_or(Cell::Null, of)
}

/// The columns have the names of the members. If a name alone is not clear, it has the name of the
/// outer object and `_` before it.
pub(super) const COLUMNS: [Column; 69] = [
    distinct(one("id", FieldKind::Text, |it| Cell::Written(it.id.to_string()))),
    distinct(one("request_id", FieldKind::Text, |it| Cell::Text(&it.request_id))),
    one("attempt", FieldKind::Int32, |it| Cell::Count(it.attempt.into())),
    distinct(one("seq", FieldKind::Int64, |it| Cell::Count(it.seq))),
    one("gateway", FieldKind::Text, |it| Cell::Text(&it.gateway)),
    distinct(one("started_at", FieldKind::Time, |it| Cell::Time(it.started_at))),
    distinct(one("ended_at", FieldKind::Time, |it| Cell::Time(it.ended_at))),
    one("tenant", FieldKind::Text, |it| Cell::Text(it.tenant.as_str())),
    maybe("key_id", FieldKind::Text, |it| text(it.key_id.as_deref())),
    one("identity", FieldKind::Text, |it| Cell::Text(it.identity.as_str())),
    maybe("labels", FieldKind::Json, |it| map(&it.labels)),
    one("operation", FieldKind::Text, |it| Cell::Text(&it.operation)),
    one("route", FieldKind::Text, |it| Cell::Text(&it.route)),
    one("stream", FieldKind::Bool, |it| Cell::Bool(it.stream)),
    one("upstream", FieldKind::Text, |it| Cell::Text(&it.upstream)),
    one("provider", FieldKind::Text, |it| Cell::Text(&it.provider)),
    maybe("request_model", FieldKind::Text, |it| text(it.request_model.as_deref())),
    maybe("response_model", FieldKind::Text, |it| text(it.response_model.as_deref())),
    distinct(maybe("response_id", FieldKind::Text, |it| text(it.response_id.as_deref()))),
    maybe("service_tier", FieldKind::Text, |it| text(it.service_tier.as_deref())),
    maybe("status", FieldKind::Int32, |it| count(it.status.map(u64::from))),
    one("end", FieldKind::Text, |it| Cell::Text(it.end.as_str())),
    maybe("error_type", FieldKind::Text, |it| text(it.error_type.as_deref())),
    maybe("error", FieldKind::Json, |it| match &it.error {
        Some(error) => json(error, *error == taximeter_ledger::RecordError::default()),
        None => Cell::Null,
    }),
    maybe("finish_reasons", FieldKind::Json, |it| list(&it.finish_reasons)),
    one("usage_source", FieldKind::Text, |it| Cell::Text(it.usage.source.as_str())),
    maybe("usage_sources", FieldKind::Json, |it| map(&it.usage.sources)),
    distinct(maybe("input_tokens", FieldKind::Int64, |it| count(it.usage.input_tokens))),
    distinct(maybe("cache_read_input_tokens", FieldKind::Int64, |it| {
        count(it.usage.cache_read_input_tokens)
    })),
    maybe("cache_write_input_tokens", FieldKind::Int64, |it| {
        count(it.usage.cache_write_input_tokens)
    }),
    maybe("cache_write_long_input_tokens", FieldKind::Int64, |it| {
        count(it.usage.cache_write_long_input_tokens)
    }),
    distinct(maybe("output_tokens", FieldKind::Int64, |it| count(it.usage.output_tokens))),
    maybe("reasoning_output_tokens", FieldKind::Int64, |it| {
        count(it.usage.reasoning_output_tokens)
    }),
    maybe("modalities", FieldKind::Json, |it| match &it.usage.modalities {
        Some(modalities) => map(modalities),
        None => Cell::Null,
    }),
    maybe("units", FieldKind::Json, |it| map(&it.usage.units)),
    maybe("passes", FieldKind::Json, |it| list(it.usage.passes.as_deref().unwrap_or_default())),
    distinct(maybe("counted_input_tokens", FieldKind::Int64, |it| {
        counted(it, |counted| counted.input_tokens)
    })),
    distinct(maybe("counted_output_tokens", FieldKind::Int64, |it| {
        counted(it, |counted| counted.output_tokens)
    })),
    maybe("flags", FieldKind::Json, |it| list(&it.usage.flags)),
    distinct(maybe("time_to_first_chunk", FieldKind::Double, |it| {
        double(it.timing.time_to_first_chunk)
    })),
    distinct(maybe("time_to_first_token", FieldKind::Double, |it| {
        double(it.timing.time_to_first_token)
    })),
    distinct(maybe("time_per_output_token", FieldKind::Double, |it| {
        double(it.timing.time_per_output_token)
    })),
    distinct(one("output_chunks", FieldKind::Int64, |it| Cell::Count(it.timing.output_chunks))),
    distinct(maybe("longest_stall", FieldKind::Double, |it| double(it.timing.longest_stall))),
    distinct(maybe("gaps", FieldKind::Json, |it| match &it.timing.gaps {
        Some(gaps) => json(gaps, gaps.0.iter().all(|count| *count == 0)),
        None => Cell::Null,
    })),
    distinct(maybe("duration", FieldKind::Double, |it| Cell::Double(it.timing.duration))),
    maybe("gateway_time", FieldKind::Double, |it| Cell::Double(it.timing.gateway)),
    maybe("stage_identify", FieldKind::Double, |it| stage(it, Stage::Identify)),
    maybe("stage_body", FieldKind::Double, |it| stage(it, Stage::Body)),
    maybe("stage_route", FieldKind::Double, |it| stage(it, Stage::Route)),
    maybe("stage_admit", FieldKind::Double, |it| stage(it, Stage::Admit)),
    maybe("stage_connect", FieldKind::Double, |it| stage(it, Stage::Connect)),
    distinct(maybe("stage_prefill", FieldKind::Double, |it| stage(it, Stage::Prefill))),
    distinct(maybe("stage_stream", FieldKind::Double, |it| stage(it, Stage::Stream))),
    distinct(maybe("stage_answer", FieldKind::Double, |it| stage(it, Stage::Answer))),
    maybe("stage_settle", FieldKind::Double, |it| stage(it, Stage::Settle)),
    maybe("currency", FieldKind::Text, |it| {
        cost(it.cost.as_ref(), |cost| Cell::Text(&cost.currency))
    }),
    distinct(maybe("cost", COST, |it| cost(it.cost.as_ref(), |cost| Cell::Money(cost.amount)))),
    distinct(maybe("list_cost", COST, |it| {
        cost(it.cost.as_ref(), |cost| Cell::Money(cost.list_amount))
    })),
    maybe("price_id", FieldKind::Text, |it| {
        cost(it.cost.as_ref(), |cost| Cell::Text(&cost.price_id))
    }),
    maybe("price_match", FieldKind::Text, |it| {
        cost(it.cost.as_ref(), |cost| text(cost.price_match.as_deref()))
    }),
    distinct(maybe("cost_lines", FieldKind::Json, |it| {
        cost(it.cost.as_ref(), |cost| list(&cost.lines))
    })),
    maybe("cost_known_currency", FieldKind::Text, |it| {
        cost(it.cost_known.as_ref(), |cost| Cell::Text(&cost.currency))
    }),
    maybe("cost_known", COST, |it| cost(it.cost_known.as_ref(), |cost| Cell::Money(cost.amount))),
    maybe("list_cost_known", COST, |it| {
        cost(it.cost_known.as_ref(), |cost| Cell::Money(cost.list_amount))
    }),
    maybe("cost_known_lines", FieldKind::Json, |it| {
        cost(it.cost_known.as_ref(), |cost| list(&cost.lines))
    }),
    maybe("cost_unknown", FieldKind::Json, |it| list(&it.cost_unknown)),
    maybe("reported_cost", FieldKind::Text, |it| text(it.reported_cost.as_deref())),
    maybe("resource", FieldKind::Json, |it| map(&it.resource)),
];
