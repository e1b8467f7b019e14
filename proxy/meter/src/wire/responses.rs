//! Reads answers of `/v1/responses`.

mod hosted;

use super::arguments::read_arguments;
use super::error;
use crate::calls::Calls;
use crate::facts::{Content, Facts, Format};
use crate::generated::ChannelKind;
use crate::json::{Malformed, Reader, Text};
use crate::usage::Report;
use hosted::{Item, equipment, tool_usage};
use taximeter_framing::Event;

#[derive(Debug)]
pub(super) struct Responses;

impl Format for Responses {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let mut said = EventTexts::default();
        let (mut obfuscation, mut sequence) = (None, None);
        let mut calls = Calls::default();
        let (mut item, mut tools) = (None, None);
        let mut compacts = false;
        Reader::new(event.data).document(|key, value| {
            match key {
                b"response" => value.object(|key, value| match key {
                    b"output" => {
                        compacts |= output(value, &mut said.whole, &mut calls)?;
                        Ok(())
                    }
                    b"tool_usage" => tool_usage(value, &mut calls),
                    b"tools" => {
                        tools = Some(value.clone());
                        value.skip()
                    }
                    _ => response(key, value, &mut facts),
                })?,
                b"item" => item = Some(output_item(value, &mut said.item)?),
                b"error" => facts.error = error::read(value)?,
                b"obfuscation" => obfuscation = value.text()?,
                b"sequence_number" => sequence = Some(value.verbatim()?),
                _ => said.read_member(key, value)?,
            }
            Ok(())
        })?;
        facts.compacts = compacts || item.as_ref().is_some_and(Item::is_compaction);
        facts.fillers = [obfuscation, sequence];
        equipment(tools, &mut calls)?;
        facts.add_calls(calls);
        match said.kind.as_ref().map(Text::decode).as_deref().unwrap_or_default() {
            "response.completed" | "response.incomplete" | "response.cancelled" => {
                facts.is_end = true;
            }
            "response.failed" => {
                facts.is_end = true;
                facts.error.get_or_insert_default();
            }
            "response.output_item.added" => {
                let item = item.map(|item| item.calls(said.item_index).begun());
                facts.add_calls(item.unwrap_or_default());
            }
            "response.output_item.done" => {
                facts.add_calls(item.map(|item| item.calls(said.item_index)).unwrap_or_default());
            }
            "error" | "response.error" => {
                facts.error.get_or_insert_default();
            }
            kind => facts.is_answer = kind.starts_with("response."),
        }
        facts.content = said.content();
        Ok(facts)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let mut is_running = false;
        let mut calls = Calls::default();
        let mut tools = None;
        Reader::new(body).document(|key, value| match key {
            b"status" => status(value, &mut facts, &mut is_running),
            b"output" => {
                facts.compacts = output(value, &mut facts.content, &mut calls)?;
                Ok(())
            }
            b"tool_usage" => tool_usage(value, &mut calls),
            b"tools" => {
                tools = Some(value.clone());
                value.skip()
            }
            _ => response(key, value, &mut facts),
        })?;
        equipment(tools, &mut calls)?;
        facts.add_calls(calls);
        facts.is_pending = is_running;
        Ok(facts)
    }
}

/// Parts of an item whose texts are told apart.
const ITEM_PARTS: u64 = 1 << 16;

/// The texts that one event says.
#[derive(Debug, Default)]
struct EventTexts<'a> {
    kind: Option<Text<'a>>,
    /// What is new.
    delta: Option<Text<'a>>,
    /// A whole text, part, item or answer, which deltas may have said.
    text: Option<Text<'a>>,
    part: Content<'a>,
    item: Content<'a>,
    whole: Content<'a>,
    item_index: u64,
    part_index: u64,
}

impl<'a> EventTexts<'a> {
    fn read_member(&mut self, key: &[u8], value: &mut Reader<'a>) -> Result<(), Malformed> {
        match key {
            b"type" => self.kind = value.text()?,
            b"delta" => self.delta = value.text()?,
            b"text" | b"refusal" | b"arguments" | b"input" | b"transcript" => {
                self.text = value.text()?;
            }
            b"part" => output_part(value, &mut self.part)?,
            b"output_index" => self.item_index = value.index()?.unwrap_or(0),
            b"content_index" | b"summary_index" => self.part_index = value.index()?.unwrap_or(0),
            _ => value.skip()?,
        }
        Ok(())
    }

    fn content(self) -> Content<'a> {
        let mut content = Content::default();
        let kind = self.kind.as_ref().map(Text::decode).unwrap_or_default();
        let slot = self.item_index.wrapping_mul(ITEM_PARTS);
        let mut whole = self.part;
        if kind == "response.image_generation_call.partial_image" {
            content.begin();
        } else if let Some(of) = kind.strip_suffix(".delta") {
            match channel(of) {
                Some(kind) => content.push_to(kind, self.delta),
                None if of == "response.audio" => content.begin(),
                None => {}
            }
        } else if let Some(kind) = kind.strip_suffix(".done").and_then(channel) {
            whole.push_to(kind, self.text);
        }
        content.of_slot(0, slot.wrapping_add(self.part_index));
        whole.of_slot(0, slot.wrapping_add(self.part_index));
        content.restate(whole);
        let mut item = self.item;
        item.move_slots(slot);
        content.restate(item);
        content.restate(self.whole);
        content
    }
}

/// What the deltas of a kind of event say, whatever they are part of; `None` for what has no text,
/// and for what the model did not generate.
fn channel(kind: &str) -> Option<ChannelKind> {
    Some(match kind {
        "response.output_text" => ChannelKind::Text,
        "response.refusal" => ChannelKind::Refusal,
        "response.reasoning_text" => ChannelKind::Reasoning,
        "response.reasoning_summary_text" => ChannelKind::Summary,
        "response.audio.transcript" => ChannelKind::Transcript,
        "response.audio" | "response.shell_call_output_content" => return None,
        _ => ChannelKind::Arguments,
    })
}

/// Reads a member of the response object.
fn response<'a>(
    key: &[u8],
    value: &mut Reader<'a>,
    facts: &mut Facts<'a>,
) -> Result<(), Malformed> {
    match key {
        b"id" => facts.id = value.text()?,
        b"model" => facts.model = value.text()?,
        b"service_tier" => facts.service_tier = value.text()?,
        b"status" => status(value, facts, &mut false)?,
        // It goes on when this stream is cut; one that has ended says so.
        b"background" => facts.is_pending = value.is_true()?,
        b"incomplete_details" => value.member(b"reason", |value| {
            // More exact than the status.
            if let Some(reason) = value.text()? {
                facts.finish_reasons = vec![(0, reason)];
            }
            Ok(())
        })?,
        b"usage" => facts.usage = Report::read(value)?,
        b"error" => facts.error = error::read(value)?,
        _ => value.skip()?,
    }
    Ok(())
}

fn status<'a>(
    value: &mut Reader<'a>,
    facts: &mut Facts<'a>,
    is_running: &mut bool,
) -> Result<(), Malformed> {
    let Some(status) = value.text()? else { return Ok(()) };
    let is = |word: &&str| status.is(word);
    *is_running = ["queued", "in_progress"].iter().any(is);
    let has_ended = ["completed", "incomplete", "failed", "cancelled"].iter().any(is);
    if has_ended && facts.finish_reasons.is_empty() {
        facts.finish_reasons.push((0, status));
    }
    Ok(())
}

/// Reads the list of all items. Returns whether one of them is a compaction.
fn output<'a>(
    value: &mut Reader<'a>,
    content: &mut Content<'a>,
    calls: &mut Calls,
) -> Result<bool, Malformed> {
    let mut place = 0_u64;
    let mut compacts = false;
    value.array(|value| {
        let mut item = Content::default();
        let told = output_item(value, &mut item)?;
        compacts |= told.is_compaction();
        told.add_to(place, calls);
        item.move_slots(place.wrapping_mul(ITEM_PARTS));
        content.extend(item);
        place += 1;
        Ok(())
    })?;
    Ok(compacts)
}

/// Reads an item of the output.
fn output_item<'a>(
    item: &mut Reader<'a>,
    content: &mut Content<'a>,
) -> Result<Item<'a>, Malformed> {
    let mut told = Item::default();
    let (mut call_id, mut arguments) = (None, None);
    item.object(|key, value| {
        match key {
            b"call_id" => call_id = value.text()?,
            b"arguments" | b"input" | b"code" => arguments = read_arguments(value)?,
            b"content" => output_parts(value, content, output_part)?,
            b"summary" => output_parts(value, content, |part, content| {
                part.member(b"text", |value| {
                    content.push_to(ChannelKind::Summary, value.text()?);
                    Ok(())
                })
            })?,
            b"result" => picture(value, content)?,
            _ => told.read_member(key, value)?,
        }
        Ok(())
    })?;
    let (name, id) = (told.name.unwrap_or_default(), call_id.or(told.id));
    if told.is_for_client() {
        content.push_name(name, id);
    } else if told.is_call() {
        // Most have no name but their kind.
        content.push_hosted_name(name, id);
    }
    content.push_formed(arguments);
    Ok(told)
}

/// Reads the parts of an item, each to a place of its own.
fn output_parts<'a>(
    value: &mut Reader<'a>,
    content: &mut Content<'a>,
    read: impl Fn(&mut Reader<'a>, &mut Content<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut place = 0;
    value.array(|part| {
        let from = content.len();
        read(part, content)?;
        content.of_slot(from, place);
        place += 1;
        Ok(())
    })
}

fn picture<'a>(value: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    let picture = value.text()?.filter(|picture| !picture.is_empty());
    picture.into_iter().for_each(|picture| content.push_picture(picture));
    Ok(())
}

fn output_part<'a>(part: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    let (mut kind, mut text) = (None, None);
    part.object(|key, value| {
        match key {
            b"type" => kind = value.text()?,
            b"text" | b"refusal" | b"transcript" => text = value.text()?.or(text),
            _ => value.skip()?,
        }
        Ok(())
    })?;
    let kind = match kind.as_ref().map(Text::decode).as_deref().unwrap_or_default() {
        "reasoning_text" => ChannelKind::Reasoning,
        "summary_text" => ChannelKind::Summary,
        "refusal" => ChannelKind::Refusal,
        "output_audio" => ChannelKind::Transcript,
        _ => ChannelKind::Text,
    };
    content.push_to(kind, text);
    Ok(())
}
