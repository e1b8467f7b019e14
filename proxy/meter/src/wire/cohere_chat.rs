//! Reads answers of Cohere's `/v2/chat`.

use super::error;
use crate::facts::{Content, Facts, Format};
use crate::json::{Malformed, Reader};
use crate::usage::Report;

#[derive(Debug)]
pub(super) struct CohereChat;

impl Format for CohereChat {
    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let mut index = None;
        Reader::new(body).document(|key, value| {
            match key {
                b"index" => index = value.index()?,
                b"type" => {
                    facts.is_end = value.text()?.is_some_and(|kind| kind.is("message-end"));
                }
                // Of an event, what a whole answer has at its top.
                b"delta" => value.object(|key, value| member(key, value, &mut facts))?,
                _ => member(key, value, &mut facts)?,
            }
            Ok(())
        })?;
        facts.content.of_slot(0, index.unwrap_or(0));
        Ok(facts)
    }
}

fn member<'a>(key: &[u8], value: &mut Reader<'a>, facts: &mut Facts<'a>) -> Result<(), Malformed> {
    match key {
        b"id" => facts.id = value.text()?,
        b"message" => value.object(|key, value| message(key, value, &mut facts.content))?,
        b"finish_reason" => {
            facts.finish_reasons.extend(value.text()?.map(|reason| (0, reason)));
        }
        b"usage" => facts.usage = Report::read(value)?,
        b"error" => facts.error = error::read(value)?,
        _ => value.skip()?,
    }
    Ok(())
}

/// Reads a member of a message; an event has one part or call where a whole answer has a list.
fn message<'a>(
    key: &[u8],
    value: &mut Reader<'a>,
    content: &mut Content<'a>,
) -> Result<(), Malformed> {
    match key {
        b"content" => each(value, |part, place| {
            let from = content.len();
            part.object(|key, value| {
                match key {
                    b"text" => content.push(value.text()?),
                    b"thinking" => content.push_reasoning(value.text()?),
                    _ => value.skip()?,
                }
                Ok(())
            })?;
            content.of_slot(from, place);
            Ok(())
        }),
        b"tool_plan" => value.text().map(|plan| content.push_reasoning(plan)),
        b"tool_calls" => each(value, |value, place| {
            let from = content.len();
            call(value, content)?;
            content.of_slot(from, place);
            Ok(())
        }),
        _ => value.skip(),
    }
}

fn call<'a>(value: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    let (mut id, mut name, mut arguments) = (None, None, None);
    value.object(|key, value| match key {
        b"id" => value.text().map(|told| id = told),
        b"function" => value.object(|key, value| {
            match key {
                b"name" => name = value.text()?,
                b"arguments" => arguments = value.text()?,
                _ => value.skip()?,
            }
            Ok(())
        }),
        _ => value.skip(),
    })?;
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        content.push_name(name, id);
    }
    content.push_formed(arguments);
    Ok(())
}

/// Reads each element of a list, with its place, or the one element that stands for it.
fn each<'a>(
    value: &mut Reader<'a>,
    mut read: impl FnMut(&mut Reader<'a>, u64) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    if value.peek() != Some(b'[') {
        return read(value, 0);
    }
    let mut place = 0;
    value.array(|value| {
        read(value, place)?;
        place += 1;
        Ok(())
    })
}
