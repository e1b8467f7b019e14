//! Reads parts of messages: text, reasoning, tool calls, tool results and references to media. The
//! names differ between wire formats and never collide, so one reader knows them all.

use serde_json::{Map, Value, json};

/// What parts of Gemini's and Bedrock's are known by.
const UNNAMED: [&str; 11] = [
    "text",
    "functionCall",
    "functionResponse",
    "inlineData",
    "fileData",
    "toolUse",
    "toolResult",
    "reasoningContent",
    "image",
    "document",
    "video",
];

/// A part that is text.
pub(super) fn text(content: &str) -> Value {
    json!({"type": "text", "content": content})
}

/// A part that is reasoning.
pub(super) fn reasoning(content: &str) -> Value {
    json!({"type": "reasoning", "content": content})
}

/// A call of a tool.
pub(super) fn call(id: Option<&str>, name: &str, arguments: Value) -> Value {
    let mut part = json!({"type": "tool_call", "name": name, "arguments": arguments});
    identify(&mut part, id);
    part
}

/// A call of a tool that the provider has itself.
pub(super) fn server_call(id: Option<&str>, name: &str, input: &Value) -> Value {
    let asked = json!({"type": name, "input": input});
    let mut part = json!({"type": "server_tool_call", "name": name, "server_tool_call": asked});
    identify(&mut part, id);
    part
}

/// What a tool has answered.
pub(super) fn result(id: Option<&str>, response: Value) -> Value {
    let mut part = json!({"type": "tool_call_response", "response": response});
    identify(&mut part, id);
    part
}

fn identify(part: &mut Value, id: Option<&str>) {
    if let (Some(part), Some(id)) = (part.as_object_mut(), id) {
        part.insert("id".to_owned(), id.into());
    }
}

/// Arguments that came as text: what they are as JSON, where they are.
pub(super) fn arguments(written: &str) -> Value {
    serde_json::from_str(written).unwrap_or_else(|_| written.into())
}

/// A message.
pub(super) fn message(role: &str, parts: Vec<Value>) -> Map<String, Value> {
    let mut message = Map::new();
    message.insert("role".to_owned(), role.into());
    message.insert("parts".to_owned(), parts.into());
    message
}

/// All parts of a content: a text, a part, or a list of them.
pub(super) fn all(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts.iter().filter_map(one).collect(),
        other => one(other).into_iter().collect(),
    }
}

/// The texts of a content, one after another.
pub(super) fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(plain).collect::<Vec<_>>().concat(),
        Value::Object(part) => part.get("text").map(plain).unwrap_or_default(),
        _ => String::new(),
    }
}

/// A member that is text.
pub(super) fn word<'a>(of: &'a Value, key: &str) -> Option<&'a str> {
    of.get(key)?.as_str()
}

/// A member that is text, or none.
pub(super) fn text_of<'a>(of: &'a Value, key: &str) -> &'a str {
    word(of, key).unwrap_or_default()
}

/// What is in a member that is a list.
pub(super) fn list<'a>(of: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    of.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// A member that is a whole number.
pub(super) fn number(of: &Value, key: &str) -> Option<u64> {
    of.get(key)?.as_u64()
}

/// One part of a content, whosever form it has.
pub(super) fn one(part: &Value) -> Option<Value> {
    if let Value::String(content) = part {
        return Some(text(content));
    }
    let Some(kind) = word(part, "type") else { return unnamed(part) };
    Some(match kind {
        "text" | "input_text" | "output_text" => text(&plain(part.get("text")?)),
        "refusal" => text(word(part, "refusal")?),
        "thinking" => reasoning(&plain(part.get("thinking")?)),
        "reasoning" => {
            let told = |key: &str| part.get(key).map(plain).filter(|text| !text.is_empty());
            reasoning(&told("content").or_else(|| told("summary"))?)
        }
        "image_url" | "input_image" => {
            let url = part.get("image_url");
            let url = url.and_then(|url| url.as_str().or_else(|| word(url, "url")));
            referred("image", None, url, word(part, "file_id"))?
        }
        "image" | "document" => sourced(kind, part.get("source")?)?,
        "input_audio" => {
            let sound = part.get("input_audio")?;
            let format = word(sound, "format").map(|format| format!("audio/{format}"));
            left_out("audio", format.as_deref(), word(sound, "data").map_or(0, str::len))
        }
        "file" | "input_file" => {
            let file = part.get("file").unwrap_or(part);
            let url = word(file, "file_url").or_else(|| word(file, "file_data"));
            referred("document", None, url, word(file, "file_id"))?
        }
        "tool_use" => call(word(part, "id"), word(part, "name")?, part.get("input")?.clone()),
        "server_tool_use" | "mcp_tool_use" => {
            server_call(word(part, "id"), word(part, "name")?, part.get("input")?)
        }
        "tool_result" => result(word(part, "tool_use_id"), answered(part.get("content"))),
        "function_call" => {
            call(word(part, "call_id"), word(part, "name")?, arguments(word(part, "arguments")?))
        }
        "custom_tool_call" => {
            call(word(part, "call_id"), word(part, "name")?, word(part, "input")?.into())
        }
        "function_call_output" | "custom_tool_call_output" => {
            result(word(part, "call_id"), answered(part.get("output")))
        }
        // Nothing but that it was there: what it holds may be of any size, and no text.
        other => json!({"type": other}),
    })
}

/// A part that says by the name of a member what it is: Gemini's and Bedrock's.
fn unnamed(part: &Value) -> Option<Value> {
    let (name, held) = part.as_object()?.iter().find(|(name, _)| UNNAMED.contains(&&***name))?;
    Some(match name.as_str() {
        "functionCall" => call(
            word(held, "id"),
            word(held, "name")?,
            held.get("args").cloned().unwrap_or_default(),
        ),
        "functionResponse" => result(word(held, "id"), answered(held.get("response"))),
        "toolUse" => {
            let input = held.get("input").cloned().unwrap_or_default();
            call(word(held, "toolUseId"), word(held, "name")?, input)
        }
        "toolResult" => result(word(held, "toolUseId"), answered(held.get("content"))),
        "reasoningContent" => reasoning(&plain(held.get("reasoningText")?)),
        "inlineData" => {
            let mime = word(held, "mimeType");
            let modality = mime.and_then(|mime| mime.split('/').next()).unwrap_or("file");
            left_out(modality, mime, word(held, "data").map_or(0, str::len))
        }
        "fileData" => referred("file", word(held, "mimeType"), word(held, "fileUri"), None)?,
        "image" | "document" | "video" => {
            let bytes = held.get("source").and_then(|source| word(source, "bytes"));
            left_out(name, None, bytes.map_or(0, str::len))
        }
        _ if part.get("thought") == Some(&true.into()) => reasoning(&plain(held)),
        _ => text(&plain(held)),
    })
}

/// What a tool has answered: text as it is, parts as they are read here.
pub(super) fn answered(content: Option<&Value>) -> Value {
    match content {
        Some(Value::Array(parts)) => parts.iter().filter_map(one).collect(),
        Some(other) => other.clone(),
        None => Value::Null,
    }
}

/// Media in Anthropic's form.
fn sourced(modality: &str, source: &Value) -> Option<Value> {
    let mime = word(source, "media_type");
    match word(source, "type")? {
        "text" => Some(text(word(source, "data")?)),
        "base64" => Some(left_out(modality, mime, word(source, "data").map_or(0, str::len))),
        _ => referred(modality, mime, word(source, "url"), word(source, "file_id")),
    }
}

/// Media by their address, or by the name of a file that the provider has.
fn referred(
    modality: &str,
    mime: Option<&str>,
    uri: Option<&str>,
    file: Option<&str>,
) -> Option<Value> {
    if let Some(inline) = uri.and_then(|uri| uri.strip_prefix("data:")) {
        let (head, data) = inline.split_once(',').unwrap_or_default();
        return Some(left_out(modality, head.split(';').next(), data.len()));
    }
    // An address has a scheme; what has none is the thing itself in Base64.
    if let Some(inline) = uri.filter(|uri| !uri.contains(':')) {
        return Some(left_out(modality, mime, inline.len()));
    }
    let mut part = match (uri, file) {
        (Some(uri), _) => json!({"type": "uri", "modality": modality, "uri": uri}),
        (None, Some(file)) => json!({"type": "file", "modality": modality, "file_id": file}),
        (None, None) => return None,
    };
    if let (Some(part), Some(mime)) = (part.as_object_mut(), mime) {
        part.insert("mime_type".to_owned(), mime.into());
    }
    Some(part)
}

/// Media that stood in the body, in so many bytes: a part of our own kind, since the conventions' one
/// must have them.
pub(super) fn left_out(modality: &str, mime: Option<&str>, bytes: usize) -> Value {
    json!({"type": modality, "mime_type": mime, "bytes": bytes})
}
