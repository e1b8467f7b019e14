//! Reads answers of llama.cpp's `/completion`.

use super::error;
use crate::facts::{Facts, Format};
use crate::json::{Malformed, Reader, Text};
use crate::usage::{Part, Report};
use taximeter_framing::Event;

#[derive(Debug)]
pub(super) struct LlamaCompletion;

impl Format for LlamaCompletion {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let mut part = CompletionPart::default();
        Reader::new(event.data).document(|key, value| part.read(key, value, &mut facts))?;
        facts.content.of_choice(0, part.index);
        if let Some(report) = &mut part.usage {
            report.part = Some(Part::Prompt(part.index));
            report.is_partial = !part.has_stopped;
        }
        part.finish(&mut facts);
        Ok(facts)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        // One for each prompt.
        Reader::new(body).one_or_each(|value| {
            let mut part = CompletionPart::default();
            let from = facts.content.len();
            value.object(|key, value| part.read(key, value, &mut facts))?;
            facts.content.of_choice(from, part.index);
            part.finish(&mut facts);
            Ok(())
        })?;
        Ok(facts)
    }
}

/// What is said of one prompt.
#[derive(Debug, Default)]
struct CompletionPart<'a> {
    index: u64,
    has_stopped: bool,
    stop_type: Option<Text<'a>>,
    usage: Option<Box<Report>>,
    /// In the last event: says how much of the prompt came from the cache.
    timings: Option<Box<Report>>,
}

impl<'a> CompletionPart<'a> {
    fn read(
        &mut self,
        key: &[u8],
        value: &mut Reader<'a>,
        facts: &mut Facts<'a>,
    ) -> Result<(), Malformed> {
        match key {
            b"content" => facts.content.push(value.text()?),
            b"model" => facts.model = value.text()?,
            b"index" => self.index = value.index()?.unwrap_or(0),
            b"stop" => self.has_stopped = value.is_true()?,
            b"stop_type" => self.stop_type = value.text()?.filter(|kind| !kind.is("none")),
            b"tokens_evaluated" | b"tokens_predicted" => {
                self.usage.get_or_insert_default().read_member(key, value)?;
            }
            b"timings" => self.timings = Report::read_timings(value)?,
            b"error" => facts.error = error::read(value)?,
            _ => value.skip()?,
        }
        Ok(())
    }

    /// Adds it to what is said of the whole answer.
    fn finish(self, facts: &mut Facts<'a>) {
        facts.finish_reasons.extend(self.stop_type.map(|kind| (self.index, kind)));
        facts.add_usage(match (self.usage, self.timings) {
            (Some(usage), Some(timings)) => Some(Box::new(usage.over(*timings))),
            (usage, timings) => usage.or(timings),
        });
    }
}
