//! Reads answers of Bedrock's `/model/…/converse` and `/model/…/converse-stream`.

use crate::facts::{Content, Facts, Format};
use crate::json::{Malformed, Reader};
use crate::sse::Event;
use crate::usage::Report;

#[derive(Debug)]
pub(super) struct Converse;

impl Format for Converse {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        Reader::new(event.data).document(|key, value| match key {
            b"delta" => block(value, &mut facts.content),
            // Padding.
            b"p" => value.text().map(|padding| facts.fillers = [padding, None]),
            _ => member(key, value, &mut facts),
        })?;
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
                content.array(|value| block(value, &mut facts.content))
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
fn block<'a>(value: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    value.object(|key, value| match key {
        b"text" => value.text().map(|text| content.push(text)),
        b"reasoningContent" => reasoning(value, content),
        b"toolUse" => value.member(b"input", |value| {
            // Whole it is JSON; in pieces, text.
            let input =
                if value.peek() == Some(b'"') { value.text()? } else { Some(value.verbatim()?) };
            content.push_formed(input);
            Ok(())
        }),
        _ => value.skip(),
    })
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
