//! Columns of a record: what was asked, of whom, and how it ended.

use super::column::{Column, count, distinct, list, map, maybe, one, put, some, some_json, text};
use crate::record::cell::Cell;
use crate::table::FieldKind;

pub(super) const COLUMNS: [Column; 25] = [
    distinct(one(
        "id",
        FieldKind::Uuid,
        |it| Cell::Uuid(it.id.0),
        |to, it| put(&mut to.record.id.0, it.uuid()),
    )),
    distinct(maybe(
        "request_id",
        FieldKind::Text,
        |it| Cell::RequestId(&it.request_id, it.id),
        |to, it| put(&mut to.record.request_id, it.owned()),
    )),
    one(
        "attempt",
        FieldKind::Int32,
        |it| Cell::Count(it.attempt.into()),
        |to, it| put(&mut to.record.attempt, it.small()),
    ),
    distinct(one(
        "seq",
        FieldKind::Int64,
        |it| Cell::Count(it.seq),
        |to, it| put(&mut to.record.seq, it.count()),
    )),
    one(
        "gateway",
        FieldKind::Text,
        |it| Cell::Text(&it.gateway),
        |to, it| put(&mut to.record.gateway, it.owned()),
    ),
    distinct(one(
        "started_at",
        FieldKind::Time,
        |it| Cell::Time(it.started_at),
        |to, it| put(&mut to.record.started_at, it.time()),
    )),
    distinct(one(
        "ended_at",
        FieldKind::Time,
        |it| Cell::Time(it.ended_at),
        |to, it| put(&mut to.record.ended_at, it.time()),
    )),
    one(
        "tenant",
        FieldKind::Text,
        |it| Cell::Text(it.tenant.as_str()),
        |to, it| put(&mut to.record.tenant.0, it.text().map(Into::into)),
    ),
    maybe(
        "key_id",
        FieldKind::Text,
        |it| text(it.key_id.as_deref()),
        |to, it| some(&mut to.record.key_id, it.owned()),
    ),
    one(
        "identity",
        FieldKind::Text,
        |it| Cell::Text(it.identity.as_str()),
        |to, it| put(&mut to.record.identity, it.word()),
    ),
    maybe(
        "labels",
        FieldKind::Json,
        |it| map(&it.labels),
        |to, it| put(&mut to.record.labels, it.json()),
    ),
    one(
        "operation",
        FieldKind::Text,
        |it| Cell::Text(&it.operation),
        |to, it| put(&mut to.record.operation, it.owned()),
    ),
    one(
        "route",
        FieldKind::Text,
        |it| Cell::Text(&it.route),
        |to, it| put(&mut to.record.route, it.owned()),
    ),
    one(
        "stream",
        FieldKind::Bool,
        |it| Cell::Bool(it.stream),
        |to, it| put(&mut to.record.stream, it.bool()),
    ),
    one(
        "upstream",
        FieldKind::Text,
        |it| Cell::Text(&it.upstream),
        |to, it| put(&mut to.record.upstream, it.owned()),
    ),
    one(
        "provider",
        FieldKind::Text,
        |it| Cell::Text(&it.provider),
        |to, it| put(&mut to.record.provider, it.owned()),
    ),
    maybe(
        "request_model",
        FieldKind::Text,
        |it| text(it.request_model.as_deref()),
        |to, it| some(&mut to.record.request_model, it.owned()),
    ),
    maybe(
        "response_model",
        FieldKind::Text,
        |it| text(it.response_model.as_deref()),
        |to, it| some(&mut to.record.response_model, it.owned()),
    ),
    distinct(maybe(
        "response_id",
        FieldKind::Text,
        |it| text(it.response_id.as_deref()),
        |to, it| some(&mut to.record.response_id, it.owned()),
    )),
    maybe(
        "service_tier",
        FieldKind::Text,
        |it| text(it.service_tier.as_deref()),
        |to, it| some(&mut to.record.service_tier, it.owned()),
    ),
    maybe(
        "status",
        FieldKind::Int32,
        |it| count(it.status.map(u64::from)),
        |to, it| some(&mut to.record.status, it.small()),
    ),
    one(
        "end",
        FieldKind::Text,
        |it| Cell::Text(it.end.as_str()),
        |to, it| put(&mut to.record.end, it.word()),
    ),
    maybe(
        "error_type",
        FieldKind::Text,
        |it| text(it.error_type.as_deref()),
        |to, it| some(&mut to.record.error_type, it.owned()),
    ),
    maybe(
        "error",
        FieldKind::Json,
        |it| some_json(it.error.as_ref()),
        |to, it| some(&mut to.record.error, it.json()),
    ),
    maybe(
        "finish_reasons",
        FieldKind::Json,
        |it| list(&it.finish_reasons),
        |to, it| put(&mut to.record.finish_reasons, it.json()),
    ),
];
