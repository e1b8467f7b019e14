//! Reads answers of `/generate` of SGLang, LMDeploy and TGI. The members tell which of them
//! answers.

use super::error;
use crate::facts::{Content, Facts, Format};
use crate::json::{Malformed, Reader, Text};
use crate::provider_error::{ProviderError, name};
use crate::usage::{Part, Report};
use taximeter_framing::Event;

#[derive(Debug)]
pub(crate) struct Generate {
    /// Whether all answers are to one prompt, which the answer does not tell.
    pub(crate) has_one_prompt: bool,
}

impl Format for Generate {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let mut part = GeneratePart::default();
        Reader::new(event.data).document(|key, value| part.read(key, value, &mut facts))?;
        if let Some(token) = part.token {
            // TGI; its last event repeats all text, and only that one has details.
            part.index = 0;
            facts.content.push(token);
            let mut whole = Content::default();
            whole.push(part.text);
            facts.content.restate(whole);
            facts.is_end = part.usage.is_some();
        } else {
            facts.content.push(part.text);
            facts.content.of_choice(0, part.index);
            facts.content.are_whole(0);
            if let Some(report) = &mut part.usage {
                report.part = Some(self.part(part.index));
                // Running totals, until one says why it ended.
                report.is_partial = part.finish_reason.is_none();
            }
        }
        part.finish(&mut facts);
        Ok(facts)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let mut index = 0;
        // One for each prompt, or each choice.
        Reader::new(body).one_or_each(|value| part(value, &mut index, self, &mut facts))?;
        Ok(facts)
    }
}

impl Generate {
    const fn part(&self, index: u64) -> Part {
        if self.has_one_prompt { Part::Choice(index) } else { Part::Prompt(index) }
    }
}

/// Reads what a whole answer says of one choice.
pub(super) fn part<'a>(
    value: &mut Reader<'a>,
    index: &mut u64,
    format: &Generate,
    facts: &mut Facts<'a>,
) -> Result<(), Malformed> {
    let mut part = GeneratePart::default();
    value.object(|key, value| part.read(key, value, facts))?;
    let from = facts.content.len();
    facts.content.push(part.text);
    facts.content.of_choice(from, *index);
    part.index = *index;
    if let Some(report) = part.usage.as_mut().filter(|_| *index > 0) {
        report.part = Some(format.part(*index));
    }
    part.finish(facts);
    *index += 1;
    Ok(())
}

/// What is said of one choice.
#[derive(Debug, Default)]
struct GeneratePart<'a> {
    index: u64,
    text: Option<Text<'a>>,
    /// TGI: one token; without text if it marks something.
    token: Option<Option<Text<'a>>>,
    finish_reason: Option<Text<'a>>,
    usage: Option<Box<Report>>,
}

impl<'a> GeneratePart<'a> {
    fn read(
        &mut self,
        key: &[u8],
        value: &mut Reader<'a>,
        facts: &mut Facts<'a>,
    ) -> Result<(), Malformed> {
        match key {
            b"index" => self.index = value.index()?.unwrap_or(0),
            b"text" | b"generated_text" => self.text = value.text()?,
            b"token" => self.token = Some(token(value)?),
            b"meta_info" | b"details" => {
                value.object(|key, value| self.read_meta(key, value, facts))?;
            }
            b"error" => facts.error = error::read(value)?.or(facts.error.take()),
            _ => value.skip()?,
        }
        Ok(())
    }

    fn read_meta(
        &mut self,
        key: &[u8],
        value: &mut Reader<'a>,
        facts: &mut Facts<'a>,
    ) -> Result<(), Malformed> {
        match key {
            b"id" => facts.id = facts.id.or(value.text()?),
            b"finish_reason" if value.peek() == Some(b'{') => self.read_end(value, facts)?,
            b"finish_reason" => self.finish_reason = value.text()?,
            _ => self.usage.get_or_insert_default().read_member(key, value)?,
        }
        Ok(())
    }

    /// Reads why SGLang ended a choice: `abort` is an error, with names beside it.
    fn read_end(&mut self, value: &mut Reader<'a>, facts: &mut Facts<'a>) -> Result<(), Malformed> {
        let mut error = ProviderError::default();
        value.object(|key, value| {
            match key {
                b"type" => self.finish_reason = value.text()?,
                b"status_code" => error.status = name(value.verbatim()?.raw()),
                b"err_type" => {
                    error.error_type =
                        value.text()?.and_then(|text| name(text.decode().as_bytes()));
                }
                _ => value.skip()?,
            }
            Ok(())
        })?;
        if self.finish_reason.is_some_and(|reason| reason.is("abort")) {
            error.status = error.status.filter(|status| status != "null");
            facts.error = Some(error);
        }
        Ok(())
    }

    /// Adds it to what is said of the whole answer.
    fn finish(self, facts: &mut Facts<'a>) {
        facts.finish_reasons.extend(self.finish_reason.map(|reason| (self.index, reason)));
        facts.add_usage(self.usage);
    }
}

fn token<'a>(value: &mut Reader<'a>) -> Result<Option<Text<'a>>, Malformed> {
    let mut text = None;
    let mut is_special = false;
    value.object(|key, value| {
        match key {
            b"text" => text = value.text()?,
            b"special" => is_special = value.is_true()?,
            _ => value.skip()?,
        }
        Ok(())
    })?;
    Ok(text.filter(|_| !is_special))
}
