//! Reads the envelope that chat completions and completions share.

use super::error;
use crate::facts::{Content, Facts};
use crate::json::{Malformed, Reader};
use crate::usage::Report;

/// Reads a member of a choice that may hold generated content; steps over any other.
pub(super) type Generated =
    for<'a> fn(&[u8], &mut Reader<'a>, &mut Content<'a>) -> Result<(), Malformed>;

/// Reads a chunk, or a whole answer.
pub(super) fn read<'a>(data: &'a [u8], generated: Generated) -> Result<Facts<'a>, Malformed> {
    let mut facts = Facts::default();
    let mut nested_usage = None;
    let mut position = 0;
    let mut has_usage_object = false;
    let mut last_choice = None;
    let mut reader = Reader::new(data);
    reader.document(|key, value| {
        match key {
            b"id" => facts.id = value.text()?,
            b"model" => facts.model = value.text()?,
            b"service_tier" => facts.service_tier = value.text()?,
            b"system_fingerprint" => facts.system_fingerprint = value.text()?,
            b"choices" => value.array(|value| {
                facts.is_answer = true;
                last_choice = Some(choice(value, position, &mut facts, generated)?);
                position += 1;
                Ok(())
            })?,
            b"usage" => {
                has_usage_object = value.peek() == Some(b'{');
                let is_null = value.peek() == Some(b'n');
                let (text, usage) = value.quoting(Report::read)?;
                if has_usage_object {
                    facts.usage_text = Some(text);
                } else if is_null {
                    facts.usage_null = Some(text);
                }
                facts.usage = usage;
            }
            b"token_ids" | b"response_token_ids" | b"prompt_token_ids" => {
                token_ids(key, value, &mut facts)?;
            }
            // Groq
            b"x_groq" => value.object(|key, value| {
                match key {
                    b"usage" => nested_usage = Report::read(value)?,
                    b"error" => facts.error = error::read(value)?,
                    _ => value.skip()?,
                }
                Ok(())
            })?,
            // llama.cpp
            b"timings" => facts.timings = Report::read_timings(value)?,
            b"error" => facts.error = error::read(value)?.or(facts.error.take()),
            // OpenAI
            b"obfuscation" => facts.fillers = [value.text()?, None],
            _ => value.skip()?,
        }
        Ok(())
    })?;
    if let Some(calls) = facts.content.calls.take() {
        facts.add_calls(*calls);
    }
    facts.is_only_usage = last_choice.is_none() && has_usage_object && facts.error.is_none();
    facts.running_choice = last_choice.filter(|_| has_usage_object);
    if facts.usage.as_ref().is_none_or(|usage| usage.is_zero() && usage.is_valid()) {
        facts.usage = nested_usage.or(facts.usage.take());
    }
    Ok(facts)
}

/// Reads one choice; gives its number, which is its position where the choice does not tell it.
pub(super) fn choice<'a>(
    value: &mut Reader<'a>,
    position: u64,
    facts: &mut Facts<'a>,
    generated: Generated,
) -> Result<u64, Malformed> {
    let mut index = position;
    let mut finish_reason = None;
    let from = facts.content.len();
    let mut usage = None;
    value.object(|key, value| {
        match key {
            b"index" => index = value.index()?.unwrap_or(position),
            b"finish_reason" => finish_reason = value.text()?.filter(|reason| !reason.is_empty()),
            // OpenRouter
            b"error" => facts.error = error::read(value)?.or(facts.error.take()),
            // Moonshot
            b"usage" => usage = Report::read(value)?,
            b"token_ids" | b"response_token_ids" | b"prompt_token_ids" => {
                token_ids(key, value, facts)?;
            }
            _ => generated(key, value, &mut facts.content)?,
        }
        Ok(())
    })?;
    facts.content.of_choice(from, index);
    facts.finish_reasons.extend(finish_reason.map(|reason| (index, reason)));
    facts.add_choice_usage(index, usage);
    Ok(index)
}

/// Ids of tokens, of vLLM and SGLang; null where nobody asked for them.
fn token_ids<'a>(
    key: &[u8],
    value: &mut Reader<'a>,
    facts: &mut Facts<'a>,
) -> Result<(), Malformed> {
    if value.peek() != Some(b'[') {
        return value.skip();
    }
    let list = value.verbatim()?;
    if key.starts_with(b"prompt") {
        facts.prompt_token_ids = Some(list);
    } else {
        facts.token_ids.push(list);
    }
    Ok(())
}
