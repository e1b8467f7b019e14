//! Reads answers of `/v1/responses`.

use super::error;
use crate::calls::Calls;
use crate::facts::{Content, Facts, Format};
use crate::json::{Malformed, Reader, Text};
use crate::sse::Event;
use crate::usage::Report;

#[derive(Debug)]
pub(super) struct Responses;

impl Format for Responses {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let mut kind = None;
        let mut delta = None;
        let (mut obfuscation, mut sequence) = (None, None);
        let (mut calls, mut all_calls) = (None, None);
        Reader::new(event.data).document(|key, value| {
            match key {
                b"type" => kind = value.text()?,
                b"delta" => delta = value.text()?,
                // The text in here has come in deltas.
                b"response" => value.object(|key, value| match key {
                    b"output" => {
                        let all_calls = all_calls.get_or_insert_default();
                        value.array(|item| output_item(item, &mut Content::default(), all_calls))
                    }
                    _ => response(key, value, &mut facts),
                })?,
                b"item" => {
                    let calls = calls.get_or_insert_default();
                    output_item(value, &mut Content::default(), calls)?;
                }
                b"error" => facts.error = error::read(value)?,
                b"obfuscation" => obfuscation = value.text()?,
                b"sequence_number" => sequence = Some(value.verbatim()?),
                _ => value.skip()?,
            }
            Ok(())
        })?;
        facts.fillers = [obfuscation, sequence];
        facts.all_calls = all_calls.map(Box::new);
        match kind.as_ref().map(Text::decode).as_deref().unwrap_or_default() {
            "response.completed" | "response.incomplete" => facts.is_end = true,
            "response.failed" => {
                facts.is_end = true;
                facts.error.get_or_insert_default();
            }
            // Where it began nobody knows yet what it will be.
            "response.output_item.done" => facts.calls = calls.map(Box::new),
            "error" | "response.error" => {
                facts.error.get_or_insert_default();
            }
            kind => {
                facts.is_answer = kind.starts_with("response.");
                generated(kind, delta, &mut facts.content);
            }
        }
        Ok(facts)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let mut is_running = false;
        let mut calls = Calls::default();
        Reader::new(body).document(|key, value| match key {
            b"status" => status(value, &mut facts, &mut is_running),
            b"output" => value.array(|item| output_item(item, &mut facts.content, &mut calls)),
            _ => response(key, value, &mut facts),
        })?;
        facts.all_calls = Some(Box::new(calls));
        facts.is_pending = is_running;
        Ok(facts)
    }
}

/// Deltas are generated, whatever they are part of; sound and pictures have no text to count.
fn generated<'a>(kind: &str, delta: Option<Text<'a>>, content: &mut Content<'a>) {
    match kind {
        "response.shell_call_output_content.delta" => {}
        "response.audio.delta" | "response.image_generation_call.partial_image" => content.begin(),
        "response.output_text.delta" | "response.refusal.delta" => content.push(delta),
        "response.reasoning_text.delta" => content.push_reasoning(delta),
        _ if kind.ends_with(".delta") => content.push_formed(delta),
        _ => {}
    }
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

/// Reads an item of the output, and adds the call that it is, if it is one that is charged for.
fn output_item<'a>(
    item: &mut Reader<'a>,
    content: &mut Content<'a>,
    calls: &mut Calls,
) -> Result<(), Malformed> {
    let (mut kind, mut does_else, mut container) = (None, false, None);
    item.object(|key, value| {
        match key {
            b"type" => kind = value.text()?,
            b"container_id" => container = value.text()?,
            b"action" => value.object(|key, value| {
                match key {
                    b"type" => does_else = value.text()?.is_some_and(|kind| !kind.is("search")),
                    _ => value.skip()?,
                }
                Ok(())
            })?,
            b"arguments" | b"input" | b"code" => content.push_formed(value.text()?),
            b"content" => value.array(|part| output_part(part, content))?,
            b"summary" => value.array(|part| {
                part.member(b"text", |value| {
                    content.push_formed(value.text()?);
                    Ok(())
                })
            })?,
            _ => value.skip()?,
        }
        Ok(())
    })?;
    match kind.as_ref().map(Text::decode).as_deref().unwrap_or_default() {
        // Opening a page that was found is no search.
        "web_search_call" if !does_else => calls.search_web(),
        "file_search_call" => calls.search_files(),
        "code_interpreter_call" => container.iter().for_each(|container| calls.run_code(container)),
        _ => {}
    }
    Ok(())
}

fn output_part<'a>(part: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    let (mut text, mut is_reasoning) = (None, false);
    part.object(|key, value| {
        match key {
            b"type" => {
                is_reasoning = value.text()?.is_some_and(|kind| kind.is("reasoning_text"));
            }
            b"text" | b"refusal" => text = value.text()?.or(text),
            _ => value.skip()?,
        }
        Ok(())
    })?;
    if is_reasoning {
        content.push_reasoning(text)
    } else {
        content.push(text)
    }
    Ok(())
}
