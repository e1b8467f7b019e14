//! Reads answers of `/v1/chat/completions`.

use super::arguments::read_arguments;
use super::choices;
use crate::calls::CallId;
use crate::facts::{Content, Facts, Format};
use crate::generated::ChannelKind;
use crate::json::{Malformed, Reader, Text};
use crate::tool_names::unit;
use taximeter_framing::Event;

/// How deep content may be nested in content (Mistral: a thinking part holds text parts).
const PARTS_DEPTH_MAX: u8 = 3;

/// Where the one call of the old form stands, beside all those that have an index.
const OLD_CALL_SLOT: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct ChatCompletions;

impl Format for ChatCompletions {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        choices::read(event.data, streamed)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = choices::read(body, generated)?;
        if facts.id.is_none() && facts.says_nothing() {
            facts.id = deferred(body);
            facts.is_pending = facts.id.is_some();
        }
        Ok(facts)
    }
}

/// The id of an answer that comes later (`deferred: true` of xAI), which is all that is said.
fn deferred(body: &[u8]) -> Option<Text<'_>> {
    let (mut id, mut members) = (None, 0);
    let read = Reader::new(body).document(|key, value| {
        members += 1;
        match key {
            b"request_id" => id = value.text()?,
            _ => value.skip()?,
        }
        Ok(())
    });
    id.filter(|_| read.is_ok() && members == 1)
}

/// In a stream `delta` is what is new, and a `message` is all of it.
pub(super) fn streamed<'a>(
    key: &[u8],
    value: &mut Reader<'a>,
    content: &mut Content<'a>,
) -> Result<(), Malformed> {
    if key != b"message" {
        return generated(key, value, content);
    }
    let mut whole = Content::default();
    generated(key, value, &mut whole)?;
    content.is_bare |= whole.is_bare;
    content.restate(whole);
    Ok(())
}

/// `delta` in a chunk and `message` in a whole answer hold the same members.
pub(super) fn generated<'a>(
    key: &[u8],
    value: &mut Reader<'a>,
    content: &mut Content<'a>,
) -> Result<(), Malformed> {
    if !matches!(key, b"delta" | b"message") {
        return value.skip();
    }
    let mut reasoning = ReasoningNames::default();
    content.is_bare = value.peek() == Some(b'{');
    value.object(|key, value| {
        content.is_bare = false;
        match key {
            b"content" => parts(value, content, PARTS_DEPTH_MAX)?,
            b"refusal" => content.push_to(ChannelKind::Refusal, value.text()?),
            b"function_call" => {
                let from = content.len();
                function(value, content, None)?;
                content.of_slot(from, OLD_CALL_SLOT);
            }
            b"tool_calls" => {
                let mut place = 0;
                value.array(|value| {
                    call(value, content, place)?;
                    place += 1;
                    Ok(())
                })?;
            }
            b"audio" => audio(value, content)?,
            b"executed_tools" => executed_tools(value, content)?,
            b"annotations" => annotations(value, content)?,
            b"images" => value.array(|image| {
                content.push_picture(image.verbatim()?);
                Ok(())
            })?,
            _ => reasoning.read_member(key, value)?,
        }
        Ok(())
    })?;
    reasoning.push_to(content);
    Ok(())
}

/// Reasoning, which some engines and gateways send under several names at once.
#[derive(Debug, Default)]
struct ReasoningNames<'a> {
    text: Option<Text<'a>>,
    /// The same in parts.
    parts: Vec<(ChannelKind, Text<'a>)>,
}

impl<'a> ReasoningNames<'a> {
    fn read_member(&mut self, key: &[u8], value: &mut Reader<'a>) -> Result<(), Malformed> {
        match key {
            b"reasoning" | b"reasoning_content" | b"reasoning_text" | b"thinking" => {
                let text = value.text()?;
                let is_longer = |text: &Text<'_>| {
                    self.text.is_none_or(|earlier| text.raw().len() > earlier.raw().len())
                };
                self.text = text.filter(is_longer).or(self.text);
                Ok(())
            }
            b"reasoning_details" | b"thinking_blocks" => {
                let is_first = self.parts.is_empty();
                value.array(|part| {
                    part.object(|key, value| {
                        let kind = match key {
                            b"text" | b"thinking" => ChannelKind::Reasoning,
                            b"summary" => ChannelKind::Summary,
                            _ => return value.skip(),
                        };
                        let text = value.text()?.filter(|_| is_first);
                        self.parts.extend(text.map(|text| (kind, text)));
                        Ok(())
                    })
                })
            }
            _ => value.skip(),
        }
    }

    fn push_to(self, content: &mut Content<'a>) {
        let text = self.text.filter(|text| !text.is_empty());
        content.push_reasoning(text);
        for (kind, part) in self.parts.into_iter().filter(|_| text.is_none()) {
            content.push_to(kind, Some(part));
        }
    }
}

fn parts<'a>(
    value: &mut Reader<'a>,
    content: &mut Content<'a>,
    depth: u8,
) -> Result<(), Malformed> {
    if value.peek() != Some(b'[') || depth == 0 {
        content.push(value.text()?);
        return Ok(());
    }
    value.array(|part| {
        part.object(|key, value| match key {
            b"text" => parts(value, content, depth - 1),
            b"thinking" => thinking(value, content, depth - 1),
            b"image_url" | b"image" => {
                content.push_picture(value.verbatim()?);
                Ok(())
            }
            _ => value.skip(),
        })
    })
}

fn thinking<'a>(
    value: &mut Reader<'a>,
    content: &mut Content<'a>,
    depth: u8,
) -> Result<(), Malformed> {
    if value.peek() != Some(b'[') || depth == 0 {
        content.push_reasoning(value.text()?);
        return Ok(());
    }
    value.array(|part| part.member(b"text", |value| thinking(value, content, depth - 1)))
}

/// Reads a call, the one at `place` in its list.
fn call<'a>(
    value: &mut Reader<'a>,
    content: &mut Content<'a>,
    place: u64,
) -> Result<(), Malformed> {
    let (mut id, mut index, mut called) = (None, None, None);
    value.object(|key, value| {
        match key {
            b"id" => id = value.text()?,
            b"index" => index = value.index()?,
            b"function" | b"custom" => {
                called = Some(value.clone());
                value.skip()?;
            }
            _ => value.skip()?,
        }
        Ok(())
    })?;
    let from = content.len();
    if let Some(mut called) = called {
        function(&mut called, content, id)?;
    }
    content.of_slot(from, index.unwrap_or(place));
    Ok(())
}

/// Reads whom a call names, and its arguments; `input` in calls of custom tools.
fn function<'a>(
    value: &mut Reader<'a>,
    content: &mut Content<'a>,
    id: Option<Text<'a>>,
) -> Result<(), Malformed> {
    let (mut name, mut arguments) = (None, None);
    value.object(|key, value| {
        match key {
            b"name" => name = value.text()?,
            b"arguments" | b"input" => arguments = read_arguments(value)?,
            _ => value.skip()?,
        }
        Ok(())
    })?;
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        content.push_name(name, id);
    }
    content.push_formed(arguments);
    Ok(())
}

/// Reads the list of tools that Groq ran.
fn executed_tools<'a>(value: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    let mut place = 0;
    value.array(|tool| {
        let (mut kind, mut index) = (None, None);
        tool.object(|key, value| {
            match key {
                b"type" => kind = value.text()?,
                b"index" => index = value.index()?,
                _ => value.skip()?,
            }
            Ok(())
        })?;
        let kind = kind.as_ref().map(Text::decode).unwrap_or_default();
        let id = CallId::of(index.unwrap_or(place));
        // The client runs its own functions.
        if kind != "function" {
            content.calls.get_or_insert_default().add_call(unit(&kind), id);
        }
        place += 1;
        Ok(())
    })
}

/// Reads what an answer cites. An answer that cites the web has searched it.
fn annotations<'a>(value: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    value.array(|annotation| {
        annotation.member(b"type", |kind| {
            if kind.text()?.is_some_and(|kind| kind.is("url_citation")) {
                content.calls.get_or_insert_default().note("web_search_requests");
            }
            Ok(())
        })
    })
}

fn audio<'a>(value: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    value.object(|key, value| {
        match key {
            b"transcript" => content.push_to(ChannelKind::Transcript, value.text()?),
            b"data" if value.text()?.is_some_and(|data| !data.is_empty()) => content.begin(),
            b"data" => {}
            _ => value.skip()?,
        }
        Ok(())
    })
}
