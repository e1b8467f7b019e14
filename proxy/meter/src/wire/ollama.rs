//! Reads answers of Ollama's `/api/chat` and `/api/generate`: one JSON document, or one a line.
//! llama.cpp answers `/api/chat` as it answers `/v1/chat/completions`.

use super::arguments::read_arguments;
use super::chat_completions;
use super::choices;
use super::error;
use crate::facts::{Content, Facts, Format};
use crate::json::{Malformed, Reader};

#[derive(Debug)]
pub(super) struct OllamaNative;

impl Format for OllamaNative {
    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        Reader::new(body).document(|key, value| {
            match key {
                b"model" => facts.model = value.text()?,
                b"created_at" => facts.fillers = [value.text()?, None],
                b"message" => {
                    value.object(|key, value| generated(key, value, &mut facts.content))?
                }
                b"done" => facts.is_end = value.is_true()?,
                b"done_reason" => {
                    facts.finish_reasons.extend(value.text()?.map(|reason| (0, reason)));
                }
                // The first is left out when the whole prompt came from the cache.
                b"prompt_eval_count" | b"eval_count" => {
                    facts.usage.get_or_insert_default().read_member(key, value)?;
                }
                b"error" => facts.error = error::read(value)?,
                _ => generated(key, value, &mut facts.content)?,
            }
            Ok(())
        })?;
        if !facts.says_nothing() {
            return Ok(facts);
        }
        let other = choices::read(body, chat_completions::streamed)?;
        Ok(if other.says_nothing() { facts } else { other })
    }
}

/// Reads a member of a message; `/api/generate` has the same at the top.
fn generated<'a>(
    key: &[u8],
    value: &mut Reader<'a>,
    content: &mut Content<'a>,
) -> Result<(), Malformed> {
    match key {
        b"content" | b"response" => content.push(value.text()?),
        b"thinking" => content.push_reasoning(value.text()?),
        b"tool_calls" => value.array(|value| call(value, content))?,
        b"image" if value.text()?.is_some_and(|image| !image.is_empty()) => content.begin(),
        b"image" => {}
        b"images" => value.array(|image| {
            content.push_picture(image.verbatim()?);
            Ok(())
        })?,
        _ => value.skip()?,
    }
    Ok(())
}

fn call<'a>(value: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    let (mut id, mut name, mut arguments) = (None, None, None);
    value.object(|key, value| match key {
        b"id" => value.text().map(|told| id = told),
        b"function" => value.object(|key, value| {
            match key {
                b"name" => name = value.text()?,
                b"arguments" => arguments = read_arguments(value)?,
                _ => value.skip()?,
            }
            Ok(())
        }),
        _ => value.skip(),
    })?;
    content.push_call(name, arguments, id);
    Ok(())
}
