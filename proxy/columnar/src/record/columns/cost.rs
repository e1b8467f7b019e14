//! Columns of a record: what it costs, where it ran, and what is kept besides.

use super::column::{
    COST, COST_SCALE, Column, Places, cost, distinct, known, lines, list, map, maybe, places, put,
    some, text, whole,
};
use crate::record::cell::Cell;
use crate::table::FieldKind;

pub(super) const COLUMNS: [Column; 21] = [
    maybe(
        "currency",
        FieldKind::Text,
        |it| cost(it.cost.as_ref(), |cost| Cell::Text(&cost.currency)),
        |to, it| some(&mut whole(to).currency, it.owned()),
    ),
    distinct(maybe(
        "cost",
        COST,
        |it| cost(it.cost.as_ref(), |cost| Cell::Money(cost.amount)),
        |to, it| some(&mut whole(to).amount, it.decimal(COST_SCALE)),
    )),
    distinct(maybe(
        "list_cost",
        COST,
        |it| cost(it.cost.as_ref(), |cost| Cell::Money(cost.list_amount)),
        |to, it| some(&mut whole(to).list_amount, it.decimal(COST_SCALE)),
    )),
    maybe(
        "price_id",
        FieldKind::Text,
        |it| cost(it.cost.as_ref(), |cost| Cell::Text(&cost.price_id)),
        |to, it| some(&mut whole(to).price_id, it.owned()),
    ),
    maybe(
        "price_match",
        FieldKind::Text,
        |it| cost(it.cost.as_ref(), |cost| text(cost.price_match.as_deref())),
        |to, it| some(&mut whole(to).price_match, it.owned()),
    ),
    distinct(maybe(
        "cost_lines",
        FieldKind::Json,
        |it| cost(it.cost.as_ref(), |cost| lines(&cost.lines)),
        |to, it| put(&mut whole(to).lines, it.json()),
    )),
    maybe(
        "cost_known_currency",
        FieldKind::Text,
        |it| cost(it.cost_known.as_ref(), |cost| Cell::Text(&cost.currency)),
        |to, it| some(&mut known(to).currency, it.owned()),
    ),
    maybe(
        "cost_known",
        COST,
        |it| cost(it.cost_known.as_ref(), |cost| Cell::Money(cost.amount)),
        |to, it| some(&mut known(to).amount, it.decimal(COST_SCALE)),
    ),
    maybe(
        "list_cost_known",
        COST,
        |it| cost(it.cost_known.as_ref(), |cost| Cell::Money(cost.list_amount)),
        |to, it| some(&mut known(to).list_amount, it.decimal(COST_SCALE)),
    ),
    maybe(
        "cost_known_lines",
        FieldKind::Json,
        |it| cost(it.cost_known.as_ref(), |cost| lines(&cost.lines)),
        |to, it| put(&mut known(to).lines, it.json()),
    ),
    maybe(
        "cost_unknown",
        FieldKind::Json,
        |it| list(&it.cost_unknown),
        |to, it| put(&mut to.record.cost_unknown, it.json()),
    ),
    maybe(
        "reported_cost",
        FieldKind::Text,
        |it| text(it.reported_cost.as_deref()),
        |to, it| some(&mut to.record.reported_cost, it.owned()),
    ),
    maybe(
        "resource",
        FieldKind::Json,
        |it| map(&it.resource),
        |to, it| put(&mut to.record.resource, it.json()),
    ),
    maybe(
        "conditions",
        FieldKind::Json,
        |it| map(&it.usage.conditions),
        |to, it| put(&mut to.record.usage.conditions, it.json()),
    ),
    maybe(
        "flagged",
        FieldKind::Json,
        |it| map(&it.usage.flagged),
        |to, it| put(&mut to.record.usage.flagged, it.json()),
    ),
    maybe(
        "cost_known_price_id",
        FieldKind::Text,
        |it| cost(it.cost_known.as_ref(), |cost| Cell::Text(&cost.price_id)),
        |to, it| some(&mut known(to).price_id, it.owned()),
    ),
    maybe(
        "cost_known_price_match",
        FieldKind::Text,
        |it| cost(it.cost_known.as_ref(), |cost| text(cost.price_match.as_deref())),
        |to, it| some(&mut known(to).price_match, it.owned()),
    ),
    maybe("ledger", FieldKind::Uuid, |it| it.ledger(), |to, it| put(&mut to.ledger.0, it.uuid())),
    Column {
        is_own: true,
        ..maybe(
            "cost_places",
            FieldKind::Int32,
            |it| places(it, Places::of_amount),
            |to, it| some(&mut to.places.amount, it.small()),
        )
    },
    Column {
        is_own: true,
        ..maybe(
            "list_cost_places",
            FieldKind::Int32,
            |it| places(it, Places::of_list_amount),
            |to, it| some(&mut to.places.list_amount, it.small()),
        )
    },
    // The last one: what the others cannot say is known then.
    Column {
        is_own: true,
        ..maybe(
            "payload",
            FieldKind::Bytes,
            |_| Cell::Null,
            |to, it| some(&mut to.payload, it.bytes().map(<[u8]>::to_vec)),
        )
    },
];
