//! The members of a record and their columns.

use crate::export::columns::{Field, FieldKind};

/// Money.
const COST: FieldKind = FieldKind::Decimal { precision: 38, scale: 18 };

/// A member of a record, and its column.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) parent: ParentObject,
    pub(super) name: &'static str,
    pub(super) source: ValueSource,
    pub(super) field: Field,
}

/// The object of a record that contains a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParentObject {
    Record,
    Usage,
    Counted,
    Timing,
    Cost,
    CostKnown,
}

/// Where the value of a column comes from.
#[derive(Clone, Copy)]
pub(super) enum ValueSource {
    /// The value of the member.
    Value,
    /// The sequence number of the entry.
    Entry,
    /// One value of the member: microseconds, in the order of the stages.
    Stage,
}

const fn field(name: &'static str, kind: FieldKind) -> Field {
    Field { name, kind, nullable: false, distinct: false }
}

const fn maybe(name: &'static str, kind: FieldKind) -> Field {
    Field { name, kind, nullable: true, distinct: false }
}

/// A field whose values hardly ever repeat.
const fn distinct(field: Field) -> Field {
    Field { distinct: true, ..field }
}

const fn record(field: Field) -> Member {
    Member { parent: ParentObject::Record, name: field.name, source: ValueSource::Value, field }
}

const fn usage(field: Field) -> Member {
    Member { parent: ParentObject::Usage, ..record(field) }
}

const fn counted(field: Field) -> Member {
    Member { parent: ParentObject::Counted, ..record(field) }
}

const fn timing(field: Field) -> Member {
    Member { parent: ParentObject::Timing, ..record(field) }
}

/// The time of a stage in seconds.
const fn stage(field: Field) -> Member {
    Member { name: "stages", source: ValueSource::Stage, ..timing(field) }
}

const fn cost(field: Field) -> Member {
    Member { parent: ParentObject::Cost, ..record(field) }
}

const fn known(field: Field) -> Member {
    Member { parent: ParentObject::CostKnown, ..record(field) }
}

/// The columns have the names of the members. If a name alone is not clear, it has the name of the
/// outer object and `_` before it. The columns of one member are next to each other.
pub(super) const MEMBERS: [Member; 69] = [
    record(distinct(field("id", FieldKind::Text))),
    record(distinct(field("request_id", FieldKind::Text))),
    record(field("attempt", FieldKind::Int32)),
    Member { source: ValueSource::Entry, ..record(distinct(field("seq", FieldKind::Int64))) },
    record(field("gateway", FieldKind::Text)),
    record(distinct(field("started_at", FieldKind::Time))),
    record(distinct(field("ended_at", FieldKind::Time))),
    record(field("tenant", FieldKind::Text)),
    record(maybe("key_id", FieldKind::Text)),
    record(field("identity", FieldKind::Text)),
    record(maybe("labels", FieldKind::Json)),
    record(field("operation", FieldKind::Text)),
    record(field("route", FieldKind::Text)),
    record(field("stream", FieldKind::Bool)),
    record(field("upstream", FieldKind::Text)),
    record(field("provider", FieldKind::Text)),
    record(maybe("request_model", FieldKind::Text)),
    record(maybe("response_model", FieldKind::Text)),
    record(distinct(maybe("response_id", FieldKind::Text))),
    record(maybe("service_tier", FieldKind::Text)),
    record(maybe("status", FieldKind::Int32)),
    record(field("end", FieldKind::Text)),
    record(maybe("error_type", FieldKind::Text)),
    record(maybe("error", FieldKind::Json)),
    record(maybe("finish_reasons", FieldKind::Json)),
    Member { name: "source", ..usage(field("usage_source", FieldKind::Text)) },
    Member { name: "sources", ..usage(maybe("usage_sources", FieldKind::Json)) },
    usage(distinct(maybe("input_tokens", FieldKind::Int64))),
    usage(distinct(maybe("cache_read_input_tokens", FieldKind::Int64))),
    usage(maybe("cache_write_input_tokens", FieldKind::Int64)),
    usage(maybe("cache_write_long_input_tokens", FieldKind::Int64)),
    usage(distinct(maybe("output_tokens", FieldKind::Int64))),
    usage(maybe("reasoning_output_tokens", FieldKind::Int64)),
    usage(maybe("modalities", FieldKind::Json)),
    usage(maybe("units", FieldKind::Json)),
    usage(maybe("passes", FieldKind::Json)),
    Member {
        name: "input_tokens",
        ..counted(distinct(maybe("counted_input_tokens", FieldKind::Int64)))
    },
    Member {
        name: "output_tokens",
        ..counted(distinct(maybe("counted_output_tokens", FieldKind::Int64)))
    },
    usage(maybe("flags", FieldKind::Json)),
    timing(distinct(maybe("time_to_first_chunk", FieldKind::Double))),
    timing(distinct(maybe("time_to_first_token", FieldKind::Double))),
    timing(distinct(maybe("time_per_output_token", FieldKind::Double))),
    timing(distinct(field("output_chunks", FieldKind::Int64))),
    timing(distinct(maybe("longest_stall", FieldKind::Double))),
    timing(distinct(maybe("gaps", FieldKind::Json))),
    timing(distinct(maybe("duration", FieldKind::Double))),
    Member { name: "gateway", ..timing(maybe("gateway_time", FieldKind::Double)) },
    stage(maybe("stage_identify", FieldKind::Double)),
    stage(maybe("stage_body", FieldKind::Double)),
    stage(maybe("stage_route", FieldKind::Double)),
    stage(maybe("stage_admit", FieldKind::Double)),
    stage(maybe("stage_connect", FieldKind::Double)),
    stage(distinct(maybe("stage_prefill", FieldKind::Double))),
    stage(distinct(maybe("stage_stream", FieldKind::Double))),
    stage(distinct(maybe("stage_answer", FieldKind::Double))),
    stage(maybe("stage_settle", FieldKind::Double)),
    cost(maybe("currency", FieldKind::Text)),
    Member { name: "amount", ..cost(distinct(maybe("cost", COST))) },
    Member { name: "list_amount", ..cost(distinct(maybe("list_cost", COST))) },
    cost(maybe("price_id", FieldKind::Text)),
    cost(maybe("price_match", FieldKind::Text)),
    Member { name: "lines", ..cost(distinct(maybe("cost_lines", FieldKind::Json))) },
    Member { name: "currency", ..known(maybe("cost_known_currency", FieldKind::Text)) },
    Member { name: "amount", ..known(maybe("cost_known", COST)) },
    Member { name: "list_amount", ..known(maybe("list_cost_known", COST)) },
    Member { name: "lines", ..known(maybe("cost_known_lines", FieldKind::Json)) },
    record(maybe("cost_unknown", FieldKind::Json)),
    record(maybe("reported_cost", FieldKind::Text)),
    record(maybe("resource", FieldKind::Json)),
];

impl ParentObject {
    /// The object in the member `name`, if its own members have columns.
    pub(super) fn inner(self, name: &[u8]) -> Option<Self> {
        match (self, name) {
            (Self::Record, b"usage") => Some(Self::Usage),
            (Self::Record, b"timing") => Some(Self::Timing),
            (Self::Record, b"cost") => Some(Self::Cost),
            (Self::Record, b"cost_known") => Some(Self::CostKnown),
            (Self::Usage, b"counted") => Some(Self::Counted),
            _ => None,
        }
    }
}

/// The column of a member. The search begins at `next`, and continues before it.
pub(super) fn find_column(parent: ParentObject, name: &[u8], next: usize) -> Option<usize> {
    let is_it = |member: &Member| member.parent == parent && member.name.as_bytes() == name;
    let (before, behind) = MEMBERS.split_at_checked(next)?;
    let found = behind.iter().position(is_it).map(|at| next + at);
    found.or_else(|| before.iter().position(is_it))
}

/// The column called `name`. If there is none, the number of columns.
pub(super) const fn column(members: &[Member], name: &[u8]) -> usize {
    match members {
        [member, others @ ..] if !is_same(member.field.name.as_bytes(), name) => {
            1 + column(others, name)
        }
        _ => 0,
    }
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    match (one, other) {
        ([], []) => true,
        ([a, one @ ..], [b, other @ ..]) => *a == *b && is_same(one, other),
        _ => false,
    }
}
