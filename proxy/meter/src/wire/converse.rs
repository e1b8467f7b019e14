//! Reads answers of Bedrock's `/model/…/converse` and `/model/…/converse-stream`.

use super::arguments::read_arguments;
use crate::calls::{CallId, Calls};
use crate::facts::{Content, Facts, Format};
use crate::json::{Malformed, Reader, Text};
use crate::tool_names::unit;
use crate::usage::Report;
use taximeter_framing::Event;

#[derive(Debug)]
pub(super) struct Converse;

impl Format for Converse {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let mut index = 0;
        Reader::new(event.data).document(|key, value| match key {
            b"start" | b"delta" => block(value, &mut facts),
            b"contentBlockIndex" => value.index().map(|told| index = told.unwrap_or(0)),
            // Padding.
            b"p" => value.text().map(|padding| facts.fillers = [padding, None]),
            _ => member(key, value, &mut facts),
        })?;
        facts.content.of_slot(0, index);
        // It comes behind the reason why it stopped, and nothing comes behind it.
        facts.is_end = facts.usage.is_some();
        Ok(facts)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        Reader::new(body).document(|key, value| member(key, value, &mut facts))?;
        Ok(facts)
    }
}

fn member<'a>(key: &[u8], value: &mut Reader<'a>, facts: &mut Facts<'a>) -> Result<(), Malformed> {
    match key {
        b"output" => value.member(b"message", |message| {
            message.member(b"content", |content| {
                let mut place = 0;
                content.array(|value| {
                    let from = facts.content.len();
                    block(value, facts)?;
                    facts.content.of_slot(from, place);
                    place += 1;
                    Ok(())
                })
            })
        })?,
        b"stopReason" => facts.finish_reasons.extend(value.text()?.map(|reason| (0, reason))),
        b"usage" => facts.usage = Report::read(value)?,
        b"serviceTier" => value.member(b"type", |value| {
            facts.service_tier = value.text()?;
            Ok(())
        })?,
        _ => value.skip()?,
    }
    Ok(())
}

/// Reads a block of content, or what is new of one.
fn block<'a>(value: &mut Reader<'a>, facts: &mut Facts<'a>) -> Result<(), Malformed> {
    value.object(|key, value| match key {
        b"text" => value.text().map(|text| facts.content.push(text)),
        b"reasoningContent" => reasoning(value, &mut facts.content),
        b"toolUse" => call(value, facts),
        b"image" | b"video" => value.verbatim().map(|picture| facts.content.push_picture(picture)),
        b"audio" => value.skip().map(|()| facts.content.begin()),
        _ => value.skip(),
    })
}

fn call<'a>(value: &mut Reader<'a>, facts: &mut Facts<'a>) -> Result<(), Malformed> {
    let (mut kind, mut id, mut name, mut input) = (None, None, None, None);
    value.object(|key, value| {
        match key {
            b"type" => kind = value.text()?,
            b"toolUseId" => id = value.text()?,
            b"name" => name = value.text()?,
            // Whole it is JSON; in pieces, text.
            b"input" => input = read_arguments(value)?,
            _ => value.skip()?,
        }
        Ok(())
    })?;
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        // Amazon runs the tools of its own models.
        if kind.is_some_and(|kind: Text<'_>| kind.is("server_tool_use")) {
            facts.content.push_hosted_name(name, id);
            let mut calls = Calls::default();
            calls.add_call(unit(&name.decode()), CallId::of_item(id, facts.content.len() as u64));
            facts.add_calls(calls);
        } else {
            facts.content.push_name(name, id);
        }
    }
    facts.content.push_formed(input);
    Ok(())
}

/// Whole it lies one deeper than in pieces.
fn reasoning<'a>(value: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    value.object(|key, value| match key {
        b"text" => value.text().map(|text| content.push_reasoning(text)),
        b"reasoningText" => value.member(b"text", |value| {
            content.push_reasoning(value.text()?);
            Ok(())
        }),
        _ => value.skip(),
    })
}
