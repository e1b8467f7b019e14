//! Reads answers of `/v1/messages`.

use super::arguments::read_arguments;
use super::error;
use crate::calls::{CallId, Calls};
use crate::facts::{Content, Facts, Format};
use crate::json::{Malformed, Reader, Text};
use crate::tool_names::unit;
use crate::usage::Report;
use taximeter_framing::Event;

#[derive(Debug)]
pub(super) struct Messages;

impl Format for Messages {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let mut index = 0;
        let mut called = None;
        Reader::new(event.data).document(|key, value| {
            match key {
                b"type" => {
                    let kind = value.text()?;
                    facts.is_end = kind.is_some_and(|kind| kind.is("message_stop"));
                    facts.is_answer = kind.is_some_and(is_of_an_answer);
                }
                b"message" => {
                    let deltas = std::mem::take(&mut facts.content);
                    value.object(|key, value| message(key, value, &mut facts))?;
                    let whole = std::mem::replace(&mut facts.content, deltas);
                    facts.content.restate(whole);
                    // A few tokens stand here before any was generated.
                    facts.usage = facts.usage.take().map(Report::without_output);
                }
                b"index" => index = value.index()?.unwrap_or(0),
                b"content_block" => called = block(value, &mut facts.content)?,
                b"delta" => value.object(|key, value| match key {
                    b"stop_reason" => message(key, value, &mut facts),
                    _ => generated(key, value, &mut facts.content),
                })?,
                b"usage" => message(key, value, &mut facts)?,
                b"error" => facts.error = error::read(value)?,
                _ => value.skip()?,
            }
            Ok(())
        })?;
        facts.content.of_slot(0, index);
        add_call(called, index, &mut facts);
        if let Some(report) = &mut facts.usage {
            report.is_partial = true;
        }
        Ok(facts)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        Reader::new(body).document(|key, value| message(key, value, &mut facts))?;
        Ok(facts)
    }
}

fn is_of_an_answer(kind: Text<'_>) -> bool {
    let starts_with = |word: &str| kind.raw().starts_with(word.as_bytes());
    kind.is("ping") || starts_with("message_") || starts_with("content_block_")
}

/// Reads a member of the message object.
fn message<'a>(key: &[u8], value: &mut Reader<'a>, facts: &mut Facts<'a>) -> Result<(), Malformed> {
    match key {
        b"id" => facts.id = value.text()?,
        b"model" => facts.model = value.text()?,
        b"stop_reason" => {
            facts.finish_reasons.extend(value.text()?.map(|reason| (0, reason)));
        }
        b"usage" => facts.usage = Report::read(value)?,
        b"error" => facts.error = error::read(value)?,
        b"content" => {
            let mut place = 0;
            value.array(|value| {
                let from = facts.content.len();
                let called = block(value, &mut facts.content)?;
                facts.content.of_slot(from, place);
                add_call(called, place, facts);
                place += 1;
                Ok(())
            })?;
        }
        _ => value.skip()?,
    }
    Ok(())
}

/// A call of a hosted tool: the name of the tool, and the id of the call.
type Called<'a> = (Text<'a>, Option<Text<'a>>);

/// Reads a content block that is whole, or that begins. Returns the call that it is, if a hosted tool
/// runs it.
fn block<'a>(
    value: &mut Reader<'a>,
    content: &mut Content<'a>,
) -> Result<Option<Called<'a>>, Malformed> {
    let (mut kind, mut id, mut name, mut input) = (None, None, None, None);
    value.object(|key, value| {
        match key {
            b"type" => kind = value.text()?,
            b"id" => id = value.text()?,
            b"name" => name = value.text()?,
            b"input" => input = read_arguments(value)?,
            _ => generated(key, value, content)?,
        }
        Ok(())
    })?;
    let name = name.filter(|name| !name.is_empty());
    if let Some(name) = name {
        content.push_name(name, id);
    }
    content.push_formed(input);
    let is_hosted = kind.is_some_and(|kind: Text<'_>| kind.is("server_tool_use"));
    Ok(name.filter(|_| is_hosted).map(|name| (name, id)))
}

fn add_call(called: Option<Called<'_>>, place: u64, facts: &mut Facts<'_>) {
    let Some((name, id)) = called else { return };
    // What another model advises is a pass of that model.
    if name.is("advisor") {
        return;
    }
    let mut calls = Calls::default();
    calls.add_call(unit(&name.decode()), CallId::of_item(id, place));
    facts.add_calls(calls);
}

/// Reads a member of a content block, or of its delta.
fn generated<'a>(
    key: &[u8],
    value: &mut Reader<'a>,
    content: &mut Content<'a>,
) -> Result<(), Malformed> {
    match key {
        b"text" => content.push(value.text()?),
        b"thinking" => content.push_reasoning(value.text()?),
        b"partial_json" => content.push_formed(value.text()?),
        _ => value.skip()?,
    }
    Ok(())
}
