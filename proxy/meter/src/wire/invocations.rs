//! Reads answers of `/invocations`, which SageMaker calls. The body tells which route it stands
//! for.

use super::chat_completions;
use super::choices;
use super::embeddings::Embeddings;
use crate::facts::{Content, Facts, Format};
use crate::json::{Malformed, Reader};
use taximeter_framing::Event;

#[derive(Debug)]
pub(super) struct Invocations;

impl Format for Invocations {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        choices::read(event.data, streamed)
    }

    /// An answer without choices has generated nothing.
    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut has_choices = false;
        Reader::new(body).one_or_each(|value| {
            value.object(|key, value| {
                has_choices |= key == b"choices";
                value.skip()
            })
        })?;
        if has_choices { choices::read(body, streamed) } else { Embeddings.document(body) }
    }
}

fn streamed<'a>(
    key: &[u8],
    value: &mut Reader<'a>,
    content: &mut Content<'a>,
) -> Result<(), Malformed> {
    match key {
        b"text" => value.text().map(|text| content.push(text)),
        _ => chat_completions::streamed(key, value, content),
    }
}
