//! A column, and what the columns have in common.

use std::collections::BTreeMap;

use serde::Serialize;
use taximeter_ledger::{Counted, RecordCost, RecordLine, Stage};

use crate::record::cell::{Cell, Kept};
pub(super) use crate::record::draft::Places;
use crate::record::draft::{CostDraft, Draft};
use crate::record::lines::json as json_of_lines;
use crate::table::{Field, FieldKind};
use crate::value::{Misfit, Value};

/// Money.
pub(super) const COST: FieldKind = FieldKind::Decimal { precision: 38, scale: COST_SCALE };
pub(super) const COST_SCALE: u32 = 18;

/// A column: its value of a record, and how a record gets the value back.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    pub(crate) field: Field,
    pub(crate) cell: CellOf,
    /// Called for values, not for nulls.
    pub(crate) set: Set,
    /// Whether only files that are kept have it: other programs have no use for it.
    pub(crate) is_own: bool,
    /// Whether files lack it that were written by earlier versions.
    pub(crate) is_late: bool,
}

pub(crate) type CellOf = for<'a> fn(&'a Kept<'a>) -> Cell<'a>;
pub(crate) type Set = fn(&mut Draft, Value<'_>) -> Result<(), Misfit>;

pub(super) const fn one(name: &'static str, kind: FieldKind, cell: CellOf, set: Set) -> Column {
    let field = Field { name, kind, nullable: false, distinct: false };
    Column { field, cell, set, is_own: false, is_late: false }
}

pub(super) const fn maybe(name: &'static str, kind: FieldKind, cell: CellOf, set: Set) -> Column {
    let column = one(name, kind, cell, set);
    Column { field: Field { nullable: true, ..column.field }, ..column }
}

/// A column whose values hardly ever repeat.
pub(super) const fn distinct(column: Column) -> Column {
    Column { field: Field { distinct: true, ..column.field }, ..column }
}

/// A column that files of earlier versions lack: there it is null.
pub(super) const fn late(column: Column) -> Column {
    Column { is_late: true, ..column }
}

/// Puts a value where it belongs.
pub(super) fn put<T>(place: &mut T, value: Result<T, Misfit>) -> Result<(), Misfit> {
    *place = value?;
    Ok(())
}

/// The same for a value that may be missing.
pub(super) fn some<T>(place: &mut Option<T>, value: Result<T, Misfit>) -> Result<(), Misfit> {
    *place = Some(value?);
    Ok(())
}

pub(super) fn text(text: Option<&str>) -> Cell<'_> {
    text.map_or(Cell::Null, Cell::Text)
}

pub(super) fn count(count: Option<u64>) -> Cell<'static> {
    count.map_or(Cell::Null, Cell::Count)
}

pub(super) fn seconds(seconds: Option<f64>) -> Cell<'static> {
    seconds.map_or(Cell::Null, Cell::Seconds)
}

/// JSON, or null if there `is_nothing`.
pub(super) fn json(value: &impl Serialize, is_nothing: bool) -> Cell<'static> {
    if is_nothing { Cell::Null } else { Cell::Json(serde_json::to_vec(value)) }
}

/// JSON, or null for what is not there. What is there and empty has JSON.
pub(super) fn some_json(value: Option<&impl Serialize>) -> Cell<'static> {
    match value.map(serde_json::to_vec) {
        None => Cell::Null,
        Some(Ok(json)) if json == b"{}" => Cell::EmptyJson("{}"),
        Some(Ok(json)) if json == b"[]" => Cell::EmptyJson("[]"),
        Some(json) => Cell::Json(json),
    }
}

pub(super) fn map<K: Serialize + Ord, V: Serialize>(map: &BTreeMap<K, V>) -> Cell<'static> {
    json(map, map.is_empty())
}

pub(super) fn list(list: &[impl Serialize]) -> Cell<'static> {
    json(&list, list.is_empty())
}

/// The lines of a cost, or null if there are none.
pub(super) fn lines(lines: &[RecordLine]) -> Cell<'static> {
    if lines.is_empty() { Cell::Null } else { Cell::Json(json_of_lines(lines)) }
}

pub(super) fn counted(record: &Kept<'_>, of: fn(&Counted) -> Option<u64>) -> Cell<'static> {
    count(record.usage.counted.as_ref().and_then(of))
}

pub(super) fn stage(record: &Kept<'_>, stage: Stage) -> Cell<'static> {
    let micros = record.timing.stages.and_then(|stages| stages.get(stage));
    // The float that is nearest to the decimal with six places.
    seconds(micros.map(|micros| micros as f64 / 1e6))
}

pub(super) fn cost(
    cost: Option<&RecordCost>,
    of: for<'a> fn(&'a RecordCost) -> Cell<'a>,
) -> Cell<'_> {
    cost.map_or(Cell::Null, of)
}

/// Digits after the point of what a record owes, if they are not those that are likely.
pub(super) fn places(record: &Kept<'_>, of: fn(&RecordCost) -> Option<u32>) -> Cell<'static> {
    count(record.owed().and_then(of).map(u64::from))
}

pub(super) fn set_stage(to: &mut Draft, stage: Stage, value: Value<'_>) -> Result<(), Misfit> {
    let micros = value.micros()?;
    let place = Stage::ALL.iter().position(|it| *it == stage);
    let stages = to.stages.get_or_insert_default();
    some(place.and_then(|place| stages.get_mut(place)).ok_or(Misfit)?, Ok(micros))
}

pub(super) fn counts(to: &mut Draft) -> &mut Counted {
    to.record.usage.counted.get_or_insert_default()
}

pub(super) fn known(to: &mut Draft) -> &mut CostDraft {
    to.cost_known.get_or_insert_default()
}

pub(super) fn whole(to: &mut Draft) -> &mut CostDraft {
    to.cost.get_or_insert_default()
}
