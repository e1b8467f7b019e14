//! Reads answers of SGLang's `/vertex_generate`, which Vertex AI calls.

use super::error;
use super::generate::{self, Generate};
use crate::facts::{Facts, Format};
use crate::json::{Malformed, Reader};
use taximeter_framing::Event;

/// Each instance is a prompt.
const GENERATE: Generate = Generate { has_one_prompt: false };

#[derive(Debug)]
pub(super) struct VertexGenerate;

impl Format for VertexGenerate {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        GENERATE.event(event)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let mut index = 0;
        Reader::new(body).document(|key, value| match key {
            b"predictions" => {
                value.array(|part| generate::part(part, &mut index, &GENERATE, &mut facts))
            }
            b"error" => error::read(value).map(|word| facts.error = word),
            _ => value.skip(),
        })?;
        Ok(facts)
    }
}
