//! Columns of a record: what was used, and how long it took.

use taximeter_ledger::Stage;

use super::column::{
    Column, count, counted, counts, distinct, late, list, map, maybe, one, put, seconds, set_stage,
    some, some_json, stage,
};
use crate::record::cell::Cell;
use crate::table::FieldKind;

pub(super) const COLUMNS: [Column; 32] = [
    one(
        "usage_source",
        FieldKind::Text,
        |it| Cell::Text(it.usage.source.as_str()),
        |to, it| put(&mut to.record.usage.source, it.word()),
    ),
    maybe(
        "usage_sources",
        FieldKind::Json,
        |it| map(&it.usage.sources),
        |to, it| put(&mut to.record.usage.sources, it.json()),
    ),
    distinct(maybe(
        "input_tokens",
        FieldKind::Int64,
        |it| count(it.usage.input_tokens),
        |to, it| some(&mut to.record.usage.input_tokens, it.count()),
    )),
    distinct(maybe(
        "cache_read_input_tokens",
        FieldKind::Int64,
        |it| count(it.usage.cache_read_input_tokens),
        |to, it| some(&mut to.record.usage.cache_read_input_tokens, it.count()),
    )),
    maybe(
        "cache_write_input_tokens",
        FieldKind::Int64,
        |it| count(it.usage.cache_write_input_tokens),
        |to, it| some(&mut to.record.usage.cache_write_input_tokens, it.count()),
    ),
    maybe(
        "cache_write_long_input_tokens",
        FieldKind::Int64,
        |it| count(it.usage.cache_write_long_input_tokens),
        |to, it| some(&mut to.record.usage.cache_write_long_input_tokens, it.count()),
    ),
    distinct(maybe(
        "output_tokens",
        FieldKind::Int64,
        |it| count(it.usage.output_tokens),
        |to, it| some(&mut to.record.usage.output_tokens, it.count()),
    )),
    maybe(
        "reasoning_output_tokens",
        FieldKind::Int64,
        |it| count(it.usage.reasoning_output_tokens),
        |to, it| some(&mut to.record.usage.reasoning_output_tokens, it.count()),
    ),
    maybe(
        "modalities",
        FieldKind::Json,
        |it| some_json(it.usage.modalities.as_ref()),
        |to, it| some(&mut to.record.usage.modalities, it.json()),
    ),
    maybe(
        "units",
        FieldKind::Json,
        |it| map(&it.usage.units),
        |to, it| put(&mut to.record.usage.units, it.json()),
    ),
    late(maybe(
        "tools",
        FieldKind::Json,
        |it| map(&it.tools),
        |to, it| put(&mut to.record.tools, it.json()),
    )),
    maybe(
        "passes",
        FieldKind::Json,
        |it| some_json(it.usage.passes.as_ref()),
        |to, it| some(&mut to.record.usage.passes, it.json()),
    ),
    distinct(maybe(
        "counted_input_tokens",
        FieldKind::Int64,
        |it| counted(it, |counted| counted.input_tokens),
        |to, it| some(&mut counts(to).input_tokens, it.count()),
    )),
    distinct(maybe(
        "counted_output_tokens",
        FieldKind::Int64,
        |it| counted(it, |counted| counted.output_tokens),
        |to, it| some(&mut counts(to).output_tokens, it.count()),
    )),
    maybe(
        "flags",
        FieldKind::Json,
        |it| list(&it.usage.flags),
        |to, it| put(&mut to.record.usage.flags, it.json()),
    ),
    distinct(maybe(
        "time_to_first_chunk",
        FieldKind::Seconds,
        |it| seconds(it.timing.time_to_first_chunk),
        |to, it| some(&mut to.record.timing.time_to_first_chunk, it.seconds()),
    )),
    distinct(maybe(
        "time_to_first_token",
        FieldKind::Seconds,
        |it| seconds(it.timing.time_to_first_token),
        |to, it| some(&mut to.record.timing.time_to_first_token, it.seconds()),
    )),
    distinct(maybe(
        "time_per_output_token",
        FieldKind::Seconds,
        |it| seconds(it.timing.time_per_output_token),
        |to, it| some(&mut to.record.timing.time_per_output_token, it.seconds()),
    )),
    distinct(one(
        "output_chunks",
        FieldKind::Int64,
        |it| Cell::Count(it.timing.output_chunks),
        |to, it| put(&mut to.record.timing.output_chunks, it.count()),
    )),
    distinct(maybe(
        "longest_stall",
        FieldKind::Seconds,
        |it| seconds(it.timing.longest_stall),
        |to, it| some(&mut to.record.timing.longest_stall, it.seconds()),
    )),
    distinct(maybe(
        "gaps",
        FieldKind::Json,
        |it| some_json(it.timing.gaps.as_ref()),
        |to, it| some(&mut to.record.timing.gaps, it.json()),
    )),
    distinct(maybe(
        "duration",
        FieldKind::Seconds,
        |it| Cell::Seconds(it.timing.duration),
        |to, it| put(&mut to.record.timing.duration, it.seconds()),
    )),
    maybe(
        "gateway_time",
        FieldKind::Seconds,
        |it| Cell::Seconds(it.timing.gateway),
        |to, it| put(&mut to.record.timing.gateway, it.seconds()),
    ),
    maybe(
        "stage_identify",
        FieldKind::Seconds,
        |it| stage(it, Stage::Identify),
        |to, it| set_stage(to, Stage::Identify, it),
    ),
    maybe(
        "stage_body",
        FieldKind::Seconds,
        |it| stage(it, Stage::Body),
        |to, it| set_stage(to, Stage::Body, it),
    ),
    maybe(
        "stage_route",
        FieldKind::Seconds,
        |it| stage(it, Stage::Route),
        |to, it| set_stage(to, Stage::Route, it),
    ),
    maybe(
        "stage_admit",
        FieldKind::Seconds,
        |it| stage(it, Stage::Admit),
        |to, it| set_stage(to, Stage::Admit, it),
    ),
    maybe(
        "stage_connect",
        FieldKind::Seconds,
        |it| stage(it, Stage::Connect),
        |to, it| set_stage(to, Stage::Connect, it),
    ),
    distinct(maybe(
        "stage_prefill",
        FieldKind::Seconds,
        |it| stage(it, Stage::Prefill),
        |to, it| set_stage(to, Stage::Prefill, it),
    )),
    distinct(maybe(
        "stage_stream",
        FieldKind::Seconds,
        |it| stage(it, Stage::Stream),
        |to, it| set_stage(to, Stage::Stream, it),
    )),
    distinct(maybe(
        "stage_answer",
        FieldKind::Seconds,
        |it| stage(it, Stage::Answer),
        |to, it| set_stage(to, Stage::Answer, it),
    )),
    maybe(
        "stage_settle",
        FieldKind::Seconds,
        |it| stage(it, Stage::Settle),
        |to, it| set_stage(to, Stage::Settle, it),
    ),
];
