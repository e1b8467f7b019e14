//! Reads answers of `/v1/completions`. Without `/v1`, llama.cpp answers in a form of its own.

use super::choices;
use super::llama_completion::LlamaCompletion;
use crate::facts::{Content, Facts, Format};
use crate::json::{Malformed, Reader};
use taximeter_framing::Event;

#[derive(Debug)]
pub(super) struct Completions;

impl Format for Completions {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        let facts = choices::read(event.data, generated)?;
        if may_be_llama(&facts) { or(LlamaCompletion.event(event)?, facts) } else { Ok(facts) }
    }

    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        // llama.cpp answers several prompts with a list.
        if Reader::new(body).peek() == Some(b'[') {
            return LlamaCompletion.document(body);
        }
        let facts = choices::read(body, generated)?;
        if may_be_llama(&facts) { or(LlamaCompletion.document(body)?, facts) } else { Ok(facts) }
    }
}

/// Whether what was read has nothing that is of this form alone.
fn may_be_llama(facts: &Facts<'_>) -> bool {
    !facts.is_answer
        && facts.usage_text.is_none()
        && facts.usage_null.is_none()
        && facts.error.is_none()
}

/// What the one form says, or else the other.
fn or<'a>(one: Facts<'a>, other: Facts<'a>) -> Result<Facts<'a>, Malformed> {
    Ok(if one.says_nothing() { other } else { one })
}

fn generated<'a>(
    key: &[u8],
    value: &mut Reader<'a>,
    content: &mut Content<'a>,
) -> Result<(), Malformed> {
    match key {
        b"text" => content.push(value.text()?),
        _ => value.skip()?,
    }
    Ok(())
}
