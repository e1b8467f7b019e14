//! Reads answers of `/v1/chat/completions`.

use super::choices;
use crate::facts::{Content, Facts, Format};
use crate::json::{Malformed, Reader};
use crate::sse::Event;

/// How deep content may be nested in content (Mistral: a thinking part holds text parts).
const PARTS_DEPTH_MAX: u8 = 3;

#[derive(Debug)]
pub(super) struct ChatCompletions;

impl Format for ChatCompletions {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        choices::read(event.data, generated)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        choices::read(body, generated)
    }
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
    let mut reasoning = None;
    content.is_bare = value.peek() == Some(b'{');
    value.object(|key, value| {
        content.is_bare = false;
        match key {
            b"content" => parts(value, content, PARTS_DEPTH_MAX)?,
            b"refusal" => content.push(value.text()?),
            // Some engines send the same text under both names.
            b"reasoning" | b"reasoning_content" => reasoning = value.text()?.or(reasoning),
            b"function_call" => function(value, content)?,
            b"tool_calls" => value.array(|call| {
                call.object(|key, value| match key {
                    b"function" | b"custom" => function(value, content),
                    _ => value.skip(),
                })
            })?,
            b"audio" => audio(value, content)?,
            _ => value.skip()?,
        }
        Ok(())
    })?;
    content.push_reasoning(reasoning);
    Ok(())
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
            b"thinking" => {
                content.kinds.reasoning = true;
                parts(value, content, depth - 1)
            }
            _ => value.skip(),
        })
    })
}

/// A call's arguments; `input` in calls of custom tools.
fn function<'a>(value: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    value.object(|key, value| {
        match key {
            b"arguments" | b"input" => content.push_formed(value.text()?),
            _ => value.skip()?,
        }
        Ok(())
    })
}

fn audio<'a>(value: &mut Reader<'a>, content: &mut Content<'a>) -> Result<(), Malformed> {
    value.object(|key, value| {
        match key {
            b"transcript" => content.push_formed(value.text()?),
            b"data" if value.text()?.is_some_and(|data| !data.is_empty()) => content.begin(),
            b"data" => {}
            _ => value.skip()?,
        }
        Ok(())
    })
}
