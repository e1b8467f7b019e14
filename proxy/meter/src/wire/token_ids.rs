//! Reads answers of vLLM's `/inference/v1/generate`, which takes and returns token ids.

use super::choices;
use crate::facts::{Facts, Format};
use crate::json::Malformed;
use taximeter_framing::Event;

#[derive(Debug)]
pub(super) struct TokenIds;

impl Format for TokenIds {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        read(event.data)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        read(body)
    }
}

fn read(data: &[u8]) -> Result<Facts<'_>, Malformed> {
    let mut facts = choices::read(data, |_, value, _| value.skip())?;
    if !facts.token_ids.is_empty() {
        facts.content.begin();
    }
    Ok(facts)
}
