//! Reads answers of `/v1/audio/speech`: audio bytes, or events.

use super::error;
use crate::facts::{Facts, Format};
use crate::json::{Malformed, Reader};
use crate::usage::Report;

#[derive(Debug)]
pub(super) struct Speech;

impl Format for Speech {
    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        Reader::new(body).document(|key, value| {
            match key {
                b"type" => {
                    facts.is_end = value.text()?.is_some_and(|kind| kind.is("speech.audio.done"));
                }
                b"audio" if value.text()?.is_some_and(|sound| !sound.is_empty()) => {
                    facts.content.begin();
                }
                b"audio" => {}
                b"usage" => facts.usage = Report::read(value)?.map(Report::speaks),
                b"error" => facts.error = error::read(value)?,
                _ => value.skip()?,
            }
            Ok(())
        })?;
        Ok(facts)
    }
}
