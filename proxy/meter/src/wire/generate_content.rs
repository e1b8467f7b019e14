//! Reads answers of Gemini's `/v1beta/models/…:generateContent` and `:streamGenerateContent`.

use std::borrow::Cow;

use super::arguments::read_arguments;
use super::error;
use crate::calls::{CallId, Calls};
use crate::facts::{Content, Facts, Format};
use crate::json::{Malformed, Reader};
use crate::usage::Report;

/// Queries of one list that are compared with each other.
const QUERIES_MAX: usize = 128;

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
    let from = facts.content.len();
    value.object(|key, value| match key {
        b"index" => value.index().map(|told| index = told.unwrap_or(0)),
        b"finishReason" => value.text().map(|told| finish_reason = told),
        b"content" => {
            value.member(b"parts", |parts| parts.array(|value| part(value, &mut facts.content)))
        }
        b"groundingMetadata" => {
            let mut calls = Calls::default();
            grounding(value, index, &mut calls)?;
            facts.add_calls(calls);
            Ok(())
        }
        _ => value.skip(),
    })?;
    facts.content.of_choice(from, index);
    let finish_reason = finish_reason.filter(|reason| !reason.is_empty());
    facts.finish_reasons.extend(finish_reason.map(|reason| (index, reason)));
    Ok(())
}

/// Reads what an answer is grounded in. It is said again with what follows.
fn grounding(value: &mut Reader<'_>, choice: u64, calls: &mut Calls) -> Result<(), Malformed> {
    value.object(|key, value| match key {
        // All queries of an answer are one search: some models are charged by this, some by that.
        b"webSearchQueries" | b"imageSearchQueries" => {
            queries(value, "search_queries", choice, calls)?;
            if calls.has("search_queries") {
                calls.note("web_search_requests");
            }
            Ok(())
        }
        b"retrievalQueries" => queries(value, "retrieval_queries", choice, calls),
        b"googleMapsWidgetContextToken" => {
            if value.text()?.is_some_and(|token| !token.is_empty()) {
                calls.note("maps_grounding_requests");
            }
            Ok(())
        }
        b"groundingChunks" => value.array(|chunk| {
            chunk.object(|key, value| {
                if key == b"maps" && value.peek() == Some(b'{') {
                    calls.note("maps_grounding_requests");
                }
                value.skip()
            })
        }),
        _ => value.skip(),
    })
}

/// Reads a list of queries. A query that stands there twice was made twice.
fn queries(
    value: &mut Reader<'_>,
    unit: &'static str,
    choice: u64,
    calls: &mut Calls,
) -> Result<(), Malformed> {
    let mut earlier = Vec::new();
    value.array(|query| {
        let query = query.verbatim()?;
        let nth = earlier.iter().filter(|earlier| **earlier == query).count();
        if earlier.len() < QUERIES_MAX {
            earlier.push(query);
        }
        calls.add_call(Cow::Borrowed(unit), CallId::of((choice, query.decode(), nth)));
        Ok(())
    })
}

fn part<'a>(value: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    let (mut text, mut is_thought) = (None, false);
    value.object(|key, value| {
        match key {
            b"text" => text = value.text()?,
            b"thought" => is_thought = value.is_true()?,
            b"functionCall" => call(value, content)?,
            b"executableCode" => value.member(b"code", |value| {
                content.push_formed(value.text()?);
                Ok(())
            })?,
            b"inlineData" => media(value, content)?,
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

fn call<'a>(value: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    let (mut id, mut name, mut arguments) = (None, None, None);
    value.object(|key, value| {
        match key {
            b"id" => id = value.text()?,
            b"name" => name = value.text()?,
            b"args" => arguments = read_arguments(value)?,
            // Arguments in pieces: the leaves of what they will be.
            b"partialArgs" => value.array(|part| {
                part.object(|key, value| match key {
                    b"stringValue" => value.text().map(|text| content.push_formed(text)),
                    b"numberValue" | b"boolValue" => {
                        value.verbatim().map(|leaf| content.push_formed(Some(leaf)))
                    }
                    _ => value.skip(),
                })
            })?,
            _ => value.skip()?,
        }
        Ok(())
    })?;
    if name.is_some() || arguments.is_some() {
        content.push_call(name, arguments, id);
    }
    Ok(())
}

/// Pictures may be shown again. Equal pieces of sound may be silence.
fn media<'a>(value: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    let (mut is_picture, mut data) = (false, None);
    value.object(|key, value| {
        match key {
            b"mimeType" => {
                is_picture = value.text()?.is_some_and(|mime| mime.raw().starts_with(b"image/"));
            }
            b"data" => data = value.text()?.filter(|data| !data.is_empty()),
            _ => value.skip()?,
        }
        Ok(())
    })?;
    match data {
        Some(picture) if is_picture => content.push_picture(picture),
        Some(_) => content.begin(),
        None => {}
    }
    Ok(())
}
