//! Turns a request into the chat that an engine makes of it, as a body for `/v1/chat/completions`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use serde_json::value::RawValue;

use taximeter_meter::Wire;

/// The chats that engines make of the request in `body`, one but for a batch, their messages as JSON:
/// what a chat template renders. `None` where that is not beyond doubt.
#[must_use]
pub fn prompt_chats(wire: Wire, body: &[u8]) -> Option<Vec<Cow<'_, [u8]>>> {
    match wire {
        Wire::ChatCompletions => Some(vec![Cow::Borrowed(body)]),
        Wire::ChatBatch => batch(body),
        Wire::Invocations => {
            serde_json::from_slice::<Chat>(body).is_ok().then(|| vec![Cow::Borrowed(body)])
        }
        Wire::Responses => {
            let request: PlainResponse<'_> = serde_json::from_slice(body).ok()?;
            spoken(request.instructions, [("user", request.input)])
        }
        Wire::Messages => {
            let request: PlainMessages = serde_json::from_slice(body).ok()?;
            let turns: Option<Vec<_>> =
                request.messages.into_iter().map(PlainTurn::spoken).collect();
            spoken(request.system.map(PlainContent::joined), turns?)
        }
        _ => None,
    }
}

/// The chat of a system prompt and of turns: who speaks, and what.
fn spoken<'a, T: AsRef<str>>(
    system: Option<T>,
    turns: impl IntoIterator<Item = (&'static str, T)>,
) -> Option<Vec<Cow<'a, [u8]>>> {
    let turns = system.map(|text| ("system", text)).into_iter().chain(turns);
    let message = |(role, text): (&str, T)| json!({"role": role, "content": text.as_ref()});
    let messages: Vec<_> = turns.map(message).collect();
    let chat = serde_json::to_vec(&json!({ "messages": messages })).ok()?;
    Some(vec![Cow::Owned(chat)])
}

/// Each chat of a batch, with the members that it shares with the others.
fn batch(body: &[u8]) -> Option<Vec<Cow<'_, [u8]>>> {
    let mut request: BTreeMap<String, &RawValue> = serde_json::from_slice(body).ok()?;
    let chats: Vec<&RawValue> = serde_json::from_str(request.get("messages")?.get()).ok()?;
    let each = chats.into_iter().map(|messages| {
        request.insert("messages".to_owned(), messages);
        serde_json::to_vec(&request).ok().map(Cow::Owned)
    });
    each.collect()
}

/// What makes a body a chat.
#[derive(Deserialize)]
struct Chat {
    #[serde(rename = "messages")]
    _messages: Vec<IgnoredAny>,
}

/// A response whose prompt is all in the request, as plain text; members that add to the prompt in
/// ways of an engine's own fit no type of these.
#[derive(Deserialize)]
struct PlainResponse<'a> {
    #[serde(borrow)]
    input: Cow<'a, str>,
    #[serde(borrow)]
    instructions: Option<Cow<'a, str>>,
    #[serde(default, rename = "tools")]
    _tools: [(); 0],
    #[serde(rename = "previous_response_id")]
    _previous_response_id: Option<Nothing>,
    #[serde(rename = "conversation")]
    _conversation: Option<Nothing>,
    #[serde(rename = "prompt")]
    _prompt: Option<Nothing>,
    #[serde(rename = "text")]
    _text: Option<Nothing>,
    #[serde(rename = "reasoning")]
    _reasoning: Option<Nothing>,
}

/// A request in Anthropic's form whose prompt is plain text, spoken in turns.
#[derive(Deserialize)]
struct PlainMessages {
    system: Option<PlainContent>,
    messages: Vec<PlainTurn>,
    #[serde(default, rename = "tools")]
    _tools: [(); 0],
    #[serde(default, rename = "mcp_servers")]
    _mcp_servers: [(); 0],
    #[serde(rename = "thinking")]
    _thinking: Option<Nothing>,
}

#[derive(Deserialize)]
struct PlainTurn {
    role: PlainRole,
    content: PlainContent,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum PlainRole {
    User,
    Assistant,
}

impl PlainTurn {
    fn spoken(self) -> Option<(&'static str, String)> {
        let role = match self.role {
            PlainRole::User => "user",
            PlainRole::Assistant => "assistant",
        };
        Some((role, self.content.only()?))
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum PlainContent {
    Text(String),
    Blocks(Vec<PlainBlock>),
}

/// Blocks of any other kind fit no type of these.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum PlainBlock {
    Text { text: String },
}

impl PlainContent {
    /// A system prompt: engines write its blocks one behind the other.
    fn joined(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Blocks(blocks) => {
                blocks.into_iter().map(|PlainBlock::Text { text }| text).collect()
            }
        }
    }

    /// What is said in a turn, in one piece: what stands between several is each engine's own.
    fn only(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Blocks(blocks) => match <[PlainBlock; 1]>::try_from(blocks) {
                Ok([PlainBlock::Text { text }]) => Some(text),
                Err(_) => None,
            },
        }
    }
}

/// What no value is.
#[derive(Deserialize)]
enum Nothing {}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn chats(wire: Wire, body: &str) -> Option<Vec<Value>> {
        let chats = prompt_chats(wire, body.as_bytes())?;
        Some(chats.iter().map(|chat| serde_json::from_slice(chat).unwrap()).collect())
    }

    fn chat(wire: Wire, body: &str) -> Option<Value> {
        let mut chats = chats(wire, body)?;
        assert_eq!(chats.len(), 1);
        chats.pop()
    }

    #[test]
    fn a_chat_is_one_as_it_stands() {
        let body = r#"{"messages":[{"role":"user","content":"hi"}],"tools":[]}"#;
        assert_eq!(chat(Wire::ChatCompletions, body), serde_json::from_str(body).ok());
        assert_eq!(chat(Wire::Invocations, body), serde_json::from_str(body).ok());
        assert_eq!(chat(Wire::Invocations, r#"{"prompt":"hi"}"#), None);
    }

    #[test]
    fn a_batch_is_several_chats_that_share_all_but_their_messages() {
        let body = r#"{"model":"m","messages":[[{"role":"user","content":"a"}],[]],"tools":[{}]}"#;
        let chat = |messages: Value| json!({"model": "m", "messages": messages, "tools": [{}]});
        let first = json!([{"role": "user", "content": "a"}]);
        assert_eq!(chats(Wire::ChatBatch, body), Some(vec![chat(first), chat(json!([]))]));
        assert_eq!(chats(Wire::ChatBatch, r#"{"messages":"hi"}"#), None);
    }

    #[test]
    fn a_plain_response_is_a_chat_of_two_messages_at_the_most() {
        let user = json!({"role": "user", "content": "hi"});
        let system = json!({"role": "system", "content": "be brief"});
        let of = |rest: &str| chat(Wire::Responses, &format!(r#"{{"input":"hi"{rest}}}"#));
        assert_eq!(of(""), Some(json!({"messages": [user]})));
        assert_eq!(
            of(r#","instructions":"be \u0062rief","tools":[],"conversation":null,"n":9"#),
            Some(json!({"messages": [system, user]}))
        );
    }

    #[test]
    fn a_response_that_is_more_than_its_text_is_none() {
        for more in [
            r#","tools":[{"type":"web_search"}]"#,
            r#","previous_response_id":"resp_1""#,
            r#","conversation":"conv_1""#,
            r#","prompt":{"id":"pmpt_1"}"#,
            r#","text":{"format":{"type":"json_object"}}"#,
            r#","reasoning":{"effort":"low"}"#,
        ] {
            let body = format!(r#"{{"input":"hi"{more}}}"#);
            assert_eq!(chat(Wire::Responses, &body), None, "{more}");
        }
        assert_eq!(chat(Wire::Responses, r#"{"input":[{"role":"user","content":"hi"}]}"#), None);
    }

    #[test]
    fn plain_messages_are_a_chat_led_by_their_system_prompt() {
        let body = r#"{"system":[{"type":"text","text":"be "},{"type":"text","text":"brief",
            "cache_control":{"type":"ephemeral"}}],"tools":[],"max_tokens":9,"messages":[
            {"role":"user","content":"hi"},
            {"role":"assistant","content":[{"type":"text","text":"h\u006f"}]}]}"#;
        let turn = |role, content| json!({"role": role, "content": content});
        let [system, user] = [turn("system", "be brief"), turn("user", "hi")];
        let assistant = turn("assistant", "ho");
        assert_eq!(
            chat(Wire::Messages, body),
            Some(json!({"messages": [system, user, assistant]}))
        );
        let alone = r#"{"messages":[{"role":"user","content":"hi"}]}"#;
        assert_eq!(chat(Wire::Messages, alone), Some(json!({"messages": [user]})));
    }

    #[test]
    fn messages_that_are_more_than_their_texts_are_none() {
        for content in [
            r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#,
            r#"[{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}]"#,
            r#"[{"type":"tool_result","tool_use_id":"t","content":"3"}]"#,
        ] {
            let body = format!(r#"{{"messages":[{{"role":"user","content":{content}}}]}}"#);
            assert_eq!(chat(Wire::Messages, &body), None, "{content}");
        }
        for more in [
            r#","tools":[{"name":"f","input_schema":{"type":"object"}}]"#,
            r#","thinking":{"type":"enabled","budget_tokens":1024}"#,
            r#","mcp_servers":[{"type":"url","url":"https://example.com","name":"m"}]"#,
        ] {
            let body = format!(r#"{{"messages":[{{"role":"user","content":"hi"}}]{more}}}"#);
            assert_eq!(chat(Wire::Messages, &body), None, "{more}");
        }
    }
}
