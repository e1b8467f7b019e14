//! Records as typed columns of a Parquet file.

use std::io::Write;

use taximeter_ledger::Record;

use super::columns::{Field, FieldKind, ParquetWriter, Row};
use super::error::ExportError;

/// Money.
const COST: FieldKind = FieldKind::Decimal { precision: 38, scale: 18 };

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

/// Named as in the record, with `_` in place of nesting.
const FIELDS: [Field; 54] = [
    distinct(field("id", FieldKind::Text)),
    distinct(field("request_id", FieldKind::Text)),
    field("attempt", FieldKind::Int32),
    distinct(field("seq", FieldKind::Int64)),
    field("gateway", FieldKind::Text),
    distinct(field("started_at", FieldKind::Time)),
    distinct(field("ended_at", FieldKind::Time)),
    field("tenant", FieldKind::Text),
    maybe("key_id", FieldKind::Text),
    field("identity", FieldKind::Text),
    maybe("labels", FieldKind::Json),
    field("operation", FieldKind::Text),
    field("route", FieldKind::Text),
    field("stream", FieldKind::Bool),
    field("upstream", FieldKind::Text),
    field("provider", FieldKind::Text),
    maybe("request_model", FieldKind::Text),
    maybe("response_model", FieldKind::Text),
    distinct(maybe("response_id", FieldKind::Text)),
    maybe("service_tier", FieldKind::Text),
    maybe("status", FieldKind::Int32),
    field("end", FieldKind::Text),
    maybe("error_type", FieldKind::Text),
    maybe("finish_reasons", FieldKind::Json),
    field("usage_source", FieldKind::Text),
    maybe("usage_sources", FieldKind::Json),
    maybe("input_tokens", FieldKind::Int64),
    maybe("cache_read_input_tokens", FieldKind::Int64),
    maybe("cache_write_input_tokens", FieldKind::Int64),
    maybe("cache_write_long_input_tokens", FieldKind::Int64),
    maybe("output_tokens", FieldKind::Int64),
    maybe("reasoning_output_tokens", FieldKind::Int64),
    maybe("modalities", FieldKind::Json),
    maybe("units", FieldKind::Json),
    maybe("passes", FieldKind::Json),
    maybe("counted_input_tokens", FieldKind::Int64),
    maybe("counted_output_tokens", FieldKind::Int64),
    maybe("flags", FieldKind::Json),
    distinct(maybe("time_to_first_chunk", FieldKind::Double)),
    distinct(maybe("time_to_first_token", FieldKind::Double)),
    distinct(maybe("time_per_output_token", FieldKind::Double)),
    field("output_chunks", FieldKind::Int64),
    distinct(maybe("longest_stall", FieldKind::Double)),
    distinct(maybe("gaps", FieldKind::Json)),
    distinct(maybe("duration", FieldKind::Double)),
    distinct(maybe("gateway_time", FieldKind::Double)),
    distinct(maybe("stages", FieldKind::Json)),
    maybe("currency", FieldKind::Text),
    distinct(maybe("cost", COST)),
    distinct(maybe("list_cost", COST)),
    maybe("price_id", FieldKind::Text),
    distinct(maybe("cost_lines", FieldKind::Json)),
    maybe("reported_cost", FieldKind::Text),
    maybe("resource", FieldKind::Json),
];

/// Writes records.
pub(super) struct RecordsParquet<W: Write + Send>(ParquetWriter<W>);

impl<W: Write + Send> RecordsParquet<W> {
    pub(super) fn new(out: W) -> Result<Self, ExportError> {
        ParquetWriter::new(out, "record", FIELDS.into_iter()).map(Self)
    }

    pub(super) fn add(&mut self, record: &Record) -> Result<(), ExportError> {
        let mut row = self.0.row();
        who(&mut row, record)?;
        answer(&mut row, record)?;
        usage(&mut row, record)?;
        timing(&mut row, record)?;
        cost(&mut row, record)?;
        self.0.end_row()
    }

    pub(super) const fn held(&self) -> usize {
        self.0.held()
    }

    pub(super) fn write_held(&mut self) -> Result<(), ExportError> {
        self.0.write_held()
    }

    pub(super) fn finish(self) -> Result<W, ExportError> {
        self.0.finish()
    }
}

fn who(row: &mut Row<'_>, record: &Record) -> Result<(), ExportError> {
    let mut id = [0; uuid::fmt::Hyphenated::LENGTH];
    row.text(record.id.0.hyphenated().encode_lower(&mut id));
    row.text(&record.request_id);
    row.maybe_int32(i32::try_from(record.attempt).ok());
    row.count(Some(record.seq))?;
    row.text(&record.gateway);
    row.time(record.started_at);
    row.time(record.ended_at);
    row.text(&record.tenant.0);
    row.maybe_text(record.key_id.as_deref());
    row.text(record.identity.as_str());
    row.json(Some(&record.labels).filter(|labels| !labels.is_empty()))
}

fn answer(row: &mut Row<'_>, record: &Record) -> Result<(), ExportError> {
    row.text(&record.operation);
    row.text(&record.route);
    row.bool(record.stream);
    row.text(&record.upstream);
    row.text(&record.provider);
    row.maybe_text(record.request_model.as_deref());
    row.maybe_text(record.response_model.as_deref());
    row.maybe_text(record.response_id.as_deref());
    row.maybe_text(record.service_tier.as_deref());
    row.maybe_int32(record.status.map(Into::into));
    row.text(record.end.as_str());
    row.maybe_text(record.error_type.as_deref());
    row.json(Some(&record.finish_reasons).filter(|reasons| !reasons.is_empty()))
}

fn usage(row: &mut Row<'_>, record: &Record) -> Result<(), ExportError> {
    let usage = &record.usage;
    row.text(usage.source.as_str());
    row.json(Some(&usage.sources).filter(|sources| !sources.is_empty()))?;
    row.count(usage.input_tokens)?;
    row.count(usage.cache_read_input_tokens)?;
    row.count(usage.cache_write_input_tokens)?;
    row.count(usage.cache_write_long_input_tokens)?;
    row.count(usage.output_tokens)?;
    row.count(usage.reasoning_output_tokens)?;
    row.json(usage.modalities.as_ref())?;
    row.json(Some(&usage.units).filter(|units| !units.is_empty()))?;
    row.json(usage.passes.as_ref())?;
    row.count(usage.counted.and_then(|counted| counted.input_tokens))?;
    row.count(usage.counted.and_then(|counted| counted.output_tokens))?;
    row.json(Some(&usage.flags).filter(|flags| !flags.is_empty()))
}

fn timing(row: &mut Row<'_>, record: &Record) -> Result<(), ExportError> {
    let timing = &record.timing;
    row.maybe_double(timing.time_to_first_chunk);
    row.maybe_double(timing.time_to_first_token);
    row.maybe_double(timing.time_per_output_token);
    row.count(Some(timing.output_chunks))?;
    row.maybe_double(timing.longest_stall);
    row.json(timing.gaps.as_ref())?;
    row.maybe_double(Some(timing.duration));
    row.maybe_double(Some(timing.gateway));
    row.json(timing.stages.as_ref())
}

fn cost(row: &mut Row<'_>, record: &Record) -> Result<(), ExportError> {
    let cost = record.cost.as_ref();
    row.maybe_text(cost.map(|cost| cost.currency.as_str()));
    match cost {
        Some(cost) => {
            row.decimal(cost.amount)?;
            row.decimal(cost.list_amount)?;
        }
        None => {
            row.null();
            row.null();
        }
    }
    row.maybe_text(cost.map(|cost| cost.price_id.as_str()));
    row.json(cost.map(|cost| &cost.lines))?;
    row.maybe_text(record.reported_cost.as_deref());
    row.json(Some(&record.resource).filter(|resource| !resource.is_empty()))
}
