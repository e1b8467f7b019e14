//! Reads answers of Gemini's `/v1beta/models/…:generateContent` and `:streamGenerateContent`.

use super::error;
use crate::calls::Calls;
use crate::facts::{Content, Facts, Format};
use crate::json::{Malformed, Reader};
use crate::usage::Report;

#[derive(Debug)]
pub(super) struct GenerateContent;

impl Format for GenerateContent {
    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        // A stream that is not asked for as events is a list of what they would say.
        Reader::new(body)
            .one_or_each(|part| part.object(|key, value| member(key, value, &mut facts)))?;
        if let Some(report) = &mut facts.usage {
            // Running totals, until one says why it ended.
            report.is_partial = facts.finish_reasons.is_empty();
        }
        Ok(facts)
    }
}

fn member<'a>(key: &[u8], value: &mut Reader<'a>, facts: &mut Facts<'a>) -> Result<(), Malformed> {
    match key {
        b"candidates" => value.array(|value| candidate(value, facts))?,
        // A prompt that is refused has no candidates.
        b"promptFeedback" => value.member(b"blockReason", |value| {
            facts.finish_reasons.extend(value.text()?.map(|reason| (0, reason)));
            Ok(())
        })?,
        b"usageMetadata" => facts.renew_usage(Report::read_google(value)?),
        b"modelVersion" => facts.model = value.text()?,
        b"responseId" => facts.id = value.text()?,
        b"error" => facts.error = error::read(value)?,
        _ => value.skip()?,
    }
    Ok(())
}

fn candidate<'a>(value: &mut Reader<'a>, facts: &mut Facts<'a>) -> Result<(), Malformed> {
    let mut index = 0;
    let mut finish_reason = None;
    value.object(|key, value| match key {
        b"index" => value.index().map(|told| index = told.unwrap_or(0)),
        b"finishReason" => value.text().map(|told| finish_reason = told),
        b"content" => {
            value.member(b"parts", |parts| parts.array(|value| part(value, &mut facts.content)))
        }
        b"groundingMetadata" => {
            let mut calls = Calls::default();
            value.member(b"webSearchQueries", |queries| {
                queries.array(|query| {
                    calls.query_web();
                    query.skip()
                })
            })?;
            // It is said again with what follows.
            facts.all_calls.get_or_insert_default().cover(calls);
            Ok(())
        }
        _ => value.skip(),
    })?;
    let finish_reason = finish_reason.filter(|reason| !reason.is_empty());
    facts.finish_reasons.extend(finish_reason.map(|reason| (index, reason)));
    Ok(())
}

fn part<'a>(value: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    let (mut text, mut is_thought) = (None, false);
    value.object(|key, value| {
        match key {
            b"text" => text = value.text()?,
            b"thought" => is_thought = value.is_true()?,
            b"functionCall" => value.member(b"args", |value| {
                content.push_formed(Some(value.verbatim()?));
                Ok(())
            })?,
            b"executableCode" => value.member(b"code", |value| {
                content.push_formed(value.text()?);
                Ok(())
            })?,
            b"inlineData" => value.member(b"data", |value| {
                if value.text()?.is_some_and(|data| !data.is_empty()) {
                    content.begin();
                }
                Ok(())
            })?,
            _ => value.skip()?,
        }
        Ok(())
    })?;
    if is_thought {
        content.push_reasoning(text);
    } else {
        content.push(text);
    }
    Ok(())
}
