//! Writes records as compact JSON for databases. It leaves out members without a value. `serde`
//! reads them back.

use std::collections::BTreeMap;
use std::io::Write as _;

use jiff::Timestamp;
use serde::Serialize;

use crate::record::{Record, RecordCost, RecordLine, RecordTiming, RecordUsage};

/// Writes one JSON object.
struct Object<'a> {
    out: &'a mut Vec<u8>,
    empty: bool,
}

impl<'a> Object<'a> {
    fn new(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, empty: true }
    }

    fn end(self) {
        self.out.push(b'}');
    }

    /// Writes the name of a member. Names need no escapes.
    fn name(&mut self, name: &'static str) {
        // One push per byte takes less time than a call that copies two bytes.
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.push(b'"');
        self.out.push(b':');
    }

    fn text(&mut self, name: &'static str, text: &str) {
        self.name(name);
        write_text(self.out, text);
    }

    fn maybe_text(&mut self, name: &'static str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// Writes a value that needs no escapes: an id, a time or a decimal.
    fn plain(&mut self, name: &'static str, value: &impl std::fmt::Display) {
        self.name(name);
        // Writing to a vector cannot fail.
        let _ = write!(self.out, "\"{value}\"");
    }

    fn at(&mut self, name: &'static str, at: Timestamp) {
        self.plain(name, &at);
    }

    fn value(&mut self, name: &'static str, value: &impl Serialize) -> JsonResult {
        self.name(name);
        serde_json::to_writer(&mut *self.out, value)
    }

    fn number(&mut self, name: &'static str, number: Option<u64>) -> JsonResult {
        number.map_or(Ok(()), |number| self.value(name, &number))
    }

    fn seconds(&mut self, name: &'static str, seconds: Option<f64>) -> JsonResult {
        seconds.map_or(Ok(()), |seconds| self.value(name, &seconds))
    }

    fn map(&mut self, name: &'static str, map: &BTreeMap<String, String>) -> JsonResult {
        if map.is_empty() { Ok(()) } else { self.value(name, map) }
    }

    fn object(
        &mut self,
        name: &'static str,
        members: impl FnOnce(&mut Object<'_>) -> JsonResult,
    ) -> JsonResult {
        self.name(name);
        write_object(self.out, members)
    }
}

type JsonResult = Result<(), serde_json::Error>;

fn write_object(
    out: &mut Vec<u8>,
    members: impl FnOnce(&mut Object<'_>) -> JsonResult,
) -> JsonResult {
    let mut object = Object::new(out);
    members(&mut object)?;
    object.end();
    Ok(())
}

/// Writes a string. Most strings need no escapes, and one pass over the bytes tells.
fn write_text(out: &mut Vec<u8>, text: &str) {
    // The loop has no early exit, so that the compiler can check many bytes at once.
    let is_special = |byte| byte < b' ' || byte == b'"' || byte == b'\\';
    if text.bytes().fold(false, |special, byte| special | is_special(byte)) {
        // Every string can be written as JSON.
        let _ = serde_json::to_writer(out, text);
        return;
    }
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

impl Record {
    /// The record as databases keep it: JSON without blanks and without absent members. It has no
    /// `seq`, because its row has it.
    ///
    /// # Errors
    /// None in practice: the members are strings and numbers.
    pub fn to_json(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut json = Vec::new();
        post(self, &mut json)?;
        Ok(json)
    }
}

/// Writes a post: the record without `seq`.
fn post(record: &Record, out: &mut Vec<u8>) -> JsonResult {
    write_object(out, |object| {
        object.plain("id", &record.id);
        object.text("request_id", &record.request_id);
        object.value("attempt", &record.attempt)?;
        object.text("gateway", &record.gateway);
        object.at("started_at", record.started_at);
        object.at("ended_at", record.ended_at);
        object.text("tenant", record.tenant.as_str());
        object.maybe_text("key_id", record.key_id.as_deref());
        object.text("identity", record.identity.as_str());
        object.map("labels", &record.labels)?;
        object.text("operation", &record.operation);
        object.text("route", &record.route);
        object.value("stream", &record.stream)?;
        object.text("upstream", &record.upstream);
        object.text("provider", &record.provider);
        object.maybe_text("request_model", record.request_model.as_deref());
        object.maybe_text("response_model", record.response_model.as_deref());
        object.maybe_text("response_id", record.response_id.as_deref());
        object.maybe_text("service_tier", record.service_tier.as_deref());
        object.number("status", record.status.map(u64::from))?;
        object.text("end", record.end.as_str());
        object.maybe_text("error_type", record.error_type.as_deref());
        if let Some(error) = &record.error {
            object.object("error", |object| {
                object.maybe_text("status", error.status.as_deref());
                object.maybe_text("type", error.error_type.as_deref());
                object.maybe_text("code", error.code.as_deref());
                Ok(())
            })?;
        }
        if !record.finish_reasons.is_empty() {
            object.value("finish_reasons", &record.finish_reasons)?;
        }
        object.object("usage", |object| usage(&record.usage, object))?;
        object.object("timing", |object| timing(&record.timing, object))?;
        if let Some(money) = &record.cost {
            object.object("cost", |object| cost(money, object))?;
        }
        if let Some(money) = &record.cost_known {
            object.object("cost_known", |object| cost(money, object))?;
        }
        if !record.cost_unknown.is_empty() {
            object.value("cost_unknown", &record.cost_unknown)?;
        }
        object.maybe_text("reported_cost", record.reported_cost.as_deref());
        object.map("resource", &record.resource)
    })
}

fn usage(usage: &RecordUsage, object: &mut Object<'_>) -> JsonResult {
    object.text("source", usage.source.as_str());
    if !usage.sources.is_empty() {
        object.value("sources", &usage.sources)?;
    }
    object.number("input_tokens", usage.input_tokens)?;
    object.number("cache_read_input_tokens", usage.cache_read_input_tokens)?;
    object.number("cache_write_input_tokens", usage.cache_write_input_tokens)?;
    object.number("cache_write_long_input_tokens", usage.cache_write_long_input_tokens)?;
    object.number("output_tokens", usage.output_tokens)?;
    object.number("reasoning_output_tokens", usage.reasoning_output_tokens)?;
    if let Some(modalities) = &usage.modalities {
        object.value("modalities", modalities)?;
    }
    if !usage.units.is_empty() {
        object.value("units", &usage.units)?;
    }
    if !usage.conditions.is_empty() {
        object.value("conditions", &usage.conditions)?;
    }
    if let Some(passes) = &usage.passes {
        object.value("passes", passes)?;
    }
    if let Some(counted) = &usage.counted {
        object.value("counted", counted)?;
    }
    if !usage.flagged.is_empty() {
        object.value("flagged", &usage.flagged)?;
    }
    if usage.flags.is_empty() { Ok(()) } else { object.value("flags", &usage.flags) }
}

fn timing(timing: &RecordTiming, object: &mut Object<'_>) -> JsonResult {
    object.seconds("time_to_first_chunk", timing.time_to_first_chunk)?;
    object.seconds("time_to_first_token", timing.time_to_first_token)?;
    object.seconds("time_per_output_token", timing.time_per_output_token)?;
    object.value("output_chunks", &timing.output_chunks)?;
    object.seconds("longest_stall", timing.longest_stall)?;
    if let Some(gaps) = &timing.gaps {
        object.value("gaps", gaps)?;
    }
    object.value("duration", &timing.duration)?;
    object.value("gateway", &timing.gateway)?;
    match &timing.stages {
        Some(stages) => object.value("stages", stages.micros()),
        None => Ok(()),
    }
}

fn cost(cost: &RecordCost, object: &mut Object<'_>) -> JsonResult {
    if cost.at_least {
        object.value("at_least", &true)?;
    }
    object.text("currency", &cost.currency);
    object.plain("amount", &cost.amount);
    object.plain("list_amount", &cost.list_amount);
    object.text("price_id", &cost.price_id);
    object.maybe_text("price_match", cost.price_match.as_deref());
    object.name("lines");
    object.out.push(b'[');
    for (index, one) in cost.lines.iter().enumerate() {
        if index > 0 {
            object.out.push(b',');
        }
        write_object(object.out, |object| line(one, object))?;
    }
    object.out.push(b']');
    Ok(())
}

fn line(line: &RecordLine, object: &mut Object<'_>) -> JsonResult {
    object.text("meter", &line.meter);
    object.maybe_text("model", line.model.as_deref());
    object.maybe_text("price_match", line.price_match.as_deref());
    object.number("tokens", line.tokens)?;
    if let Some(quantity) = &line.quantity {
        object.plain("quantity", quantity);
    }
    object.maybe_text("unit", line.unit.as_deref());
    object.plain("unit_price", &line.unit_price);
    if let Some(price) = &line.list_unit_price {
        object.plain("list_unit_price", price);
    }
    object.plain("amount", &line.amount);
    Ok(())
}
