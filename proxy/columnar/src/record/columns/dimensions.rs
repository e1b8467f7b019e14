//! Columns of a record: what the request is part of. Files of earlier versions lack them.

use taximeter_ledger::{Dimensions, RequestKind, SessionSource};

use super::column::{Column, late, map, maybe, put, some, text};
use crate::record::cell::{Cell, Kept};
use crate::record::draft::Draft;
use crate::table::FieldKind;

pub(super) const COLUMNS: [Column; 9] = [
    late(maybe(
        "session",
        FieldKind::Text,
        |it| told(it, |told| told.session.as_deref()),
        |to, it| some(&mut dimensions(to).session, it.owned()),
    )),
    late(maybe(
        "session_source",
        FieldKind::Text,
        |it| told(it, |told| told.session_source.map(SessionSource::as_str)),
        |to, it| some(&mut dimensions(to).session_source, it.word()),
    )),
    late(maybe(
        "agent",
        FieldKind::Text,
        |it| told(it, |told| told.agent.as_deref()),
        |to, it| some(&mut dimensions(to).agent, it.owned()),
    )),
    late(maybe(
        "parent_agent",
        FieldKind::Text,
        |it| told(it, |told| told.parent_agent.as_deref()),
        |to, it| some(&mut dimensions(to).parent_agent, it.owned()),
    )),
    late(maybe(
        "client",
        FieldKind::Text,
        |it| told(it, |told| told.client.as_deref()),
        |to, it| some(&mut dimensions(to).client, it.owned()),
    )),
    late(maybe(
        "turn",
        FieldKind::Text,
        |it| told(it, |told| told.turn.as_deref()),
        |to, it| some(&mut dimensions(to).turn, it.owned()),
    )),
    late(maybe(
        "end_user",
        FieldKind::Text,
        |it| told(it, |told| told.end_user.as_deref()),
        |to, it| some(&mut dimensions(to).end_user, it.owned()),
    )),
    late(maybe(
        "tags",
        FieldKind::Json,
        |it| it.dimensions.as_deref().map_or(Cell::Null, |told| map(&told.tags)),
        |to, it| put(&mut dimensions(to).tags, it.json()),
    )),
    late(maybe(
        "kind",
        FieldKind::Text,
        |it| told(it, |told| told.kind.map(RequestKind::as_str)),
        |to, it| some(&mut dimensions(to).kind, it.word()),
    )),
];

/// A text that the client has told.
fn told<'a>(record: &'a Kept<'_>, of: fn(&Dimensions) -> Option<&str>) -> Cell<'a> {
    text(record.record.dimensions.as_deref().and_then(of))
}

fn dimensions(to: &mut Draft) -> &mut Dimensions {
    to.record.dimensions.get_or_insert_default()
}
