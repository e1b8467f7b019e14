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
        Reader::new(body).document(|key, value| {
            match key {
                b"type" => {
                    facts.is_end = value.text()?.is_some_and(|kind| kind.is("message-end"));
                }
                // Of an event, what a whole answer has at its top.
                b"delta" => value.object(|key, value| member(key, value, &mut facts))?,
                _ => member(key, value, &mut facts)?,
            }
            Ok(())
        })?;
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
        b"content" => each(value, |part| {
            part.object(|key, value| {
                match key {
                    b"text" => content.push(value.text()?),
                    b"thinking" => content.push_reasoning(value.text()?),
                    _ => value.skip()?,
                }
                Ok(())
            })
        }),
        b"tool_plan" => value.text().map(|plan| content.push_reasoning(plan)),
        b"tool_calls" => each(value, |call| {
            call.member(b"function", |function| {
                function.member(b"arguments", |value| {
                    content.push_formed(value.text()?);
                    Ok(())
                })
            })
        }),
        _ => value.skip(),
    }
}

fn each<'a>(
    value: &mut Reader<'a>,
    mut read: impl FnMut(&mut Reader<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    if value.peek() == Some(b'[') { value.array(read) } else { read(value) }
}
