//! Reads answers of `/v1/audio/transcriptions` and `/v1/audio/translations`.

use super::chat_completions::streamed;
use super::choices::choice;
use super::error;
use crate::facts::{Content, Facts, Format};
use crate::json::{Malformed, Reader};
use crate::usage::Report;
use taximeter_framing::Event;

#[derive(Debug)]
pub(super) struct Transcriptions;

impl Format for Transcriptions {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let mut position = 0;
        let (mut kind, mut text) = (None, None);
        Reader::new(event.data).document(|key, value| {
            match key {
                b"type" => kind = value.text()?,
                b"delta" => facts.content.push(value.text()?),
                // vLLM speaks as in chats.
                b"choices" => value.array(|value| {
                    choice(value, position, &mut facts, streamed)?;
                    position += 1;
                    Ok(())
                })?,
                b"text" => text = value.text()?,
                _ => member(key, value, &mut facts)?,
            }
            Ok(())
        })?;
        let is = |name| kind.as_ref().is_some_and(|kind| kind.is(name));
        facts.is_end = is("transcript.text.done") || is("transcription.done");
        // Mistral's pieces; any other text may have come in them.
        let mut whole = Content::default();
        if is("transcription.text.delta") {
            facts.content.push(text);
        } else {
            whole.push(text);
        }
        facts.content.restate(whole);
        Ok(facts)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let mut seconds = None;
        Reader::new(body).document(|key, value| {
            match key {
                b"text" => facts.content.push(value.text()?),
                b"duration" => seconds = Report::read_only("audio_seconds", value)?,
                _ => member(key, value, &mut facts)?,
            }
            Ok(())
        })?;
        // The verbose form says how long the sound is, with or without usage.
        facts.usage = facts.usage.or(seconds);
        Ok(facts)
    }
}

fn member<'a>(key: &[u8], value: &mut Reader<'a>, facts: &mut Facts<'a>) -> Result<(), Malformed> {
    match key {
        b"id" => facts.id = value.text()?,
        b"model" => facts.model = value.text()?,
        b"usage" => facts.usage = Report::read(value)?.map(Report::hears),
        b"error" => facts.error = error::read(value)?,
        _ => value.skip()?,
    }
    Ok(())
}
