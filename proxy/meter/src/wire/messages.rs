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
        let mut begun = Block::default();
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
                b"content_block" => begun = block(value, &mut facts.content)?,
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
        begun.add_to(index, &mut facts);
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
                let whole = block(value, &mut facts.content)?;
                facts.content.of_slot(from, place);
                whole.add_to(place, facts);
                place += 1;
                Ok(())
            })?;
        }
        _ => value.skip()?,
    }
    Ok(())
}

/// What a content block says of itself.
#[derive(Default)]
struct Block<'a> {
    kind: Option<Text<'a>>,
    id: Option<Text<'a>>,
    /// The tool that is called.
    name: Option<Text<'a>>,
    /// The MCP server that has the tool.
    server: Option<Text<'a>>,
}

/// Reads a content block that is whole, or that begins.
fn block<'a>(value: &mut Reader<'a>, content: &mut Content<'a>) -> Result<Block<'a>, Malformed> {
    let mut told = Block::default();
    let mut input = None;
    value.object(|key, value| {
        match key {
            b"type" => told.kind = value.text()?,
            b"id" => told.id = value.text()?,
            b"name" => told.name = value.text()?.filter(|name| !name.is_empty()),
            b"server_name" => told.server = value.text()?.filter(|server| !server.is_empty()),
            b"input" => input = read_arguments(value)?,
            _ => generated(key, value, content)?,
        }
        Ok(())
    })?;
    match told.name {
        Some(name) if told.is("server_tool_use") || told.is("mcp_tool_use") => {
            content.push_hosted_name(name, told.id);
        }
        Some(name) => content.push_name(name, told.id),
        None => {}
    }
    content.push_formed(input);
    Ok(told)
}

impl Block<'_> {
    fn is(&self, kind: &str) -> bool {
        self.kind.is_some_and(|told| told.is(kind))
    }

    /// Adds the call that it is, at `place` in the answer, if the provider runs it.
    fn add_to(&self, place: u64, facts: &mut Facts<'_>) {
        facts.compacts |= self.is("compaction");
        let Some(name) = self.name else { return };
        let (name, id) = (name.decode(), CallId::of_item(self.id, place));
        let mut calls = Calls::default();
        if self.is("mcp_tool_use") {
            calls.ask_server(self.server.as_ref().map(Text::decode).as_deref(), &name, id);
        } else if self.is("server_tool_use") && name != "advisor" {
            // What another model advises is a pass of that model.
            calls.add_call(unit(&name), id);
        }
        facts.add_calls(calls);
    }
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
