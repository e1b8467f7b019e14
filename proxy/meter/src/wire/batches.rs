//! Reads the object of a batch: OpenAI's `/v1/batches` and its like, Mistral's `/v1/batch/jobs`,
//! Anthropic's `/v1/messages/batches` and Gemini's `:batchGenerateContent`.

use super::error;
use crate::facts::{Facts, Format};
use crate::json::{Malformed, Reader, Text};
use crate::usage::Report;

/// The words for a batch that has ended, without what Gemini writes before them.
const ENDED: [&str; 10] = [
    "completed",
    "failed",
    "expired",
    "cancelled",
    "canceled",
    "ended",
    "success",
    "succeeded",
    "partially_succeeded",
    "timeout_exceeded",
];

/// What Gemini writes before its words.
const PREFIXES: [&str; 2] = ["batch_state_", "job_state_"];

/// How Gemini's names of batches begin. With others a name is what the client calls it.
const NAME: &[u8] = b"batches/";

/// Members that the object of a batch has, one at least, and an error has not.
const MARKS: [&[u8]; 5] = [b"status", b"processing_status", b"state", b"metadata", b"job"];

#[derive(Debug)]
pub(super) struct Batches;

impl Format for Batches {
    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let (mut state, mut is_batch) = (None, false);
        Reader::new(body).document(|key, value| {
            is_batch |= MARKS.contains(&key);
            match key {
                // Together, when it is made.
                b"job" => value.object(|key, value| member(key, value, &mut facts, &mut state)),
                _ => member(key, value, &mut facts, &mut state),
            }
        })?;
        // Its requests may have errors, and the batch has none.
        facts.is_answer = is_batch && facts.id.is_some();
        facts.is_pending = facts.is_answer && facts.error.is_none();
        if let Some(state) = state.filter(has_ended) {
            facts.is_pending = false;
            if word(&state) == "failed" {
                facts.error.get_or_insert_default();
            }
            facts.finish_reasons.push((0, state));
        }
        Ok(facts)
    }
}

fn member<'a>(
    key: &[u8],
    value: &mut Reader<'a>,
    facts: &mut Facts<'a>,
    state: &mut Option<Text<'a>>,
) -> Result<(), Malformed> {
    match key {
        b"id" | b"batch_id" => facts.id = value.text()?,
        b"name" => {
            let name = value.text()?.filter(|name| name.raw().starts_with(NAME));
            facts.id = facts.id.take().or(name);
        }
        b"model" | b"model_id" => facts.model = value.text()?,
        b"status" | b"processing_status" => *state = value.text()?,
        // With others this is what the client says of the batch.
        b"metadata" => value.member(b"state", |value| {
            let told = value.text()?.filter(|told| word(told).len() < told.raw().len());
            *state = state.take().or(told);
            Ok(())
        })?,
        // What all its requests used; some tell it with each result.
        b"usage" => facts.usage = Report::read(value)?,
        b"error" => facts.error = error::read(value)?,
        _ => value.skip()?,
    }
    Ok(())
}

fn has_ended(state: &Text<'_>) -> bool {
    ENDED.contains(&word(state).as_str())
}

/// A state in lower case, without a prefix.
fn word(state: &Text<'_>) -> String {
    let state = state.decode().to_ascii_lowercase();
    let bare = PREFIXES.iter().find_map(|prefix| state.strip_prefix(prefix));
    bare.unwrap_or(&state).to_owned()
}
