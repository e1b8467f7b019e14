//! Reads the content of a request: instructions, messages and tool definitions.

use serde_json::{Map, Value, json};

use super::part::{self, word};
use crate::Wire;

/// What a request says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    /// `gen_ai.system_instructions`: parts of what stands apart from the chat.
    pub system: Vec<Value>,
    /// `gen_ai.input.messages`, in the order in which they were sent.
    pub input: Vec<Value>,
    /// `gen_ai.tool.definitions`: kinds and names alone.
    pub tools: Vec<Value>,
}

impl Asked {
    /// Of the body of a request on `wire`; nothing where that is no JSON, or has no messages.
    #[must_use]
    pub fn read(wire: Wire, body: &[u8]) -> Self {
        let Ok(body) = serde_json::from_slice::<Value>(body) else { return Self::default() };
        let listed = |key: &str| body.get(key).and_then(Value::as_array).into_iter().flatten();
        let prompt = |keys: &[&str]| {
            let prompt = keys.iter().find_map(|key| body.get(*key));
            prompt.map(prompts).unwrap_or_default()
        };
        let mut asked = Self::default();
        match wire {
            Wire::ChatCompletions | Wire::OllamaChat | Wire::CohereChat | Wire::Invocations => {
                asked.input = listed("messages").map(chat).collect();
                asked.tools = listed("tools").chain(listed("functions")).filter_map(tool).collect();
            }
            Wire::ChatBatch => {
                let chats = listed("messages").filter_map(Value::as_array);
                asked.input = chats.flatten().map(chat).collect();
            }
            Wire::GenerateContent => {
                let system =
                    body.get("systemInstruction").or_else(|| body.get("system_instruction"));
                asked.system =
                    system.and_then(|it| it.get("parts")).map(part::all).unwrap_or_default();
                asked.input = listed("contents").map(turn).collect();
                let declared = listed("tools").filter_map(|tool| tool.get("functionDeclarations"));
                asked.tools =
                    declared.filter_map(Value::as_array).flatten().filter_map(tool).collect();
            }
            Wire::Converse => {
                asked.system = body.get("system").map(part::all).unwrap_or_default();
                asked.input = listed("messages").map(chat).collect();
                let tools = body.get("toolConfig").and_then(|tools| tools.get("tools"));
                let tools = tools.and_then(Value::as_array).into_iter().flatten();
                asked.tools = tools.filter_map(|it| it.get("toolSpec")).filter_map(tool).collect();
            }
            Wire::Messages => {
                asked.system = body.get("system").map(part::all).unwrap_or_default();
                asked.input = listed("messages").map(chat).collect();
                asked.tools = listed("tools").filter_map(tool).collect();
            }
            Wire::Responses => {
                asked.system = body.get("instructions").map(part::all).unwrap_or_default();
                asked.input = match body.get("input") {
                    Some(Value::Array(items)) => items.iter().filter_map(item).collect(),
                    Some(Value::String(text)) => vec![user(part::text(text))],
                    _ => Vec::new(),
                };
                asked.tools = listed("tools").filter_map(tool).collect();
            }
            Wire::OllamaGenerate => {
                asked.system = body.get("system").map(part::all).unwrap_or_default();
                asked.input = prompt(&["prompt"]);
            }
            Wire::Completions | Wire::LlamaCompletion => asked.input = prompt(&["prompt"]),
            Wire::Generate => asked.input = prompt(&["text", "inputs", "prompt"]),
            Wire::VertexGenerate => {
                let texts = listed("instances").filter_map(|it| word(it, "text"));
                asked.input = texts.map(|text| user(part::text(text))).collect();
            }
            Wire::Embeddings
            | Wire::TokenIds
            | Wire::Transcriptions
            | Wire::Speech
            | Wire::Images
            | Wire::Videos
            | Wire::Ocr
            | Wire::Batches
            | Wire::Opaque => {}
        }
        asked
    }
}

fn user(part: Value) -> Value {
    part::message("user", vec![part]).into()
}

/// Texts to go on from; token ids are none.
fn prompts(prompt: &Value) -> Vec<Value> {
    let texts = match prompt {
        Value::Array(prompts) => prompts.iter().collect(),
        one => vec![one],
    };
    texts.into_iter().filter_map(Value::as_str).map(|text| user(part::text(text))).collect()
}

/// A message of a chat, in OpenAI's, Anthropic's or Ollama's form.
fn chat(message: &Value) -> Value {
    let role = word(message, "role").unwrap_or("user");
    let content = message.get("content").filter(|content| !content.is_null());
    let mut parts = Vec::new();
    for key in ["reasoning_content", "reasoning", "thinking"] {
        let said = word(message, key).filter(|text| !text.is_empty() && parts.is_empty());
        parts.extend(said.map(part::reasoning));
    }
    if matches!(role, "tool" | "function") {
        parts.push(part::result(word(message, "tool_call_id"), part::answered(content)));
    } else {
        parts.extend(content.into_iter().flat_map(part::all));
    }
    parts.extend(word(message, "refusal").map(part::text));
    let images = message.get("images").and_then(Value::as_array).into_iter().flatten();
    parts.extend(
        images.map(|image| part::left_out("image", None, image.as_str().map_or(0, str::len))),
    );
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    parts.extend(calls.filter_map(call));
    parts.extend(message.get("function_call").and_then(|told| function(None, told)));
    named(part::message(role, parts), message)
}

/// A message of Gemini's, whose models are called so.
fn turn(content: &Value) -> Value {
    let role = match word(content, "role") {
        Some("model") => "assistant",
        role => role.unwrap_or("user"),
    };
    part::message(role, content.get("parts").map(part::all).unwrap_or_default()).into()
}

/// A call in OpenAI's or Ollama's form.
pub(super) fn call(call: &Value) -> Option<Value> {
    function(word(call, "id"), call.get("function").or_else(|| call.get("custom"))?)
}

fn function(id: Option<&str>, function: &Value) -> Option<Value> {
    let arguments = match function.get("arguments").or_else(|| function.get("input")) {
        Some(Value::String(written)) => part::arguments(written),
        Some(other) => other.clone(),
        None => Value::Null,
    };
    Some(part::call(id, word(function, "name")?, arguments))
}

/// An item of a response's input: a message, or what is a message's part elsewhere.
fn item(item: &Value) -> Option<Value> {
    let kind = word(item, "type").unwrap_or("message");
    if kind == "message" {
        return Some(chat(item));
    }
    let role = if kind.ends_with("_output") { "tool" } else { "assistant" };
    Some(part::message(role, vec![part::one(item)?]).into())
}

fn named(mut message: Map<String, Value>, said: &Value) -> Value {
    if let Some(name) = word(said, "name") {
        message.insert("name".to_owned(), name.into());
    }
    message.into()
}

/// A tool's kind and name; the conventions advise against more.
fn tool(tool: &Value) -> Option<Value> {
    let function = tool.get("function").unwrap_or(tool);
    let kind = word(tool, "type").filter(|kind| *kind != "custom").unwrap_or("function");
    let name = word(function, "name").or_else(|| word(tool, "type"))?;
    Some(json!({"type": kind, "name": name}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(wire: Wire, body: &Value) -> Asked {
        Asked::read(wire, body.to_string().as_bytes())
    }

    #[test]
    fn a_chat_is_told_in_its_order_with_calls_results_and_images_by_name() {
        let image = format!("data:image/png;base64,{}", "A".repeat(400));
        let asked = asked(
            Wire::ChatCompletions,
            &json!({
                "messages": [
                    {"role": "system", "content": "Be short."},
                    {"role": "user", "name": "ada", "content": [
                        {"type": "text", "text": "Where?"},
                        {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}},
                        {"type": "image_url", "image_url": {"url": image}},
                        {"type": "file", "file": {"file_id": "f-1"}},
                        {"type": "novelty", "secret": "unseen"},
                    ]},
                    {"role": "assistant", "content": null, "reasoning_content": "Hm.", "tool_calls": [
                        {"id": "c1", "type": "function",
                         "function": {"name": "map", "arguments": "{\"of\": \"Rome\"}"}},
                        {"id": "c2", "type": "function",
                         "function": {"name": "map", "arguments": "not JSON"}}]},
                    {"role": "tool", "tool_call_id": "c1", "content": "Here."},
                ],
                "tools": [{"type": "function",
                    "function": {"name": "map", "description": "d", "parameters": {}}}],
            }),
        );
        assert_eq!(asked.system, Vec::<Value>::new());
        assert_eq!(
            Value::from(asked.input),
            json!([
                {"role": "system", "parts": [{"type": "text", "content": "Be short."}]},
                {"role": "user", "name": "ada", "parts": [
                    {"type": "text", "content": "Where?"},
                    {"type": "uri", "modality": "image", "uri": "https://a.example/b.png"},
                    {"type": "image", "mime_type": "image/png", "bytes": 400},
                    {"type": "file", "modality": "document", "file_id": "f-1"},
                    {"type": "novelty"}]},
                {"role": "assistant", "parts": [
                    {"type": "reasoning", "content": "Hm."},
                    {"type": "tool_call", "id": "c1", "name": "map", "arguments": {"of": "Rome"}},
                    {"type": "tool_call", "id": "c2", "name": "map", "arguments": "not JSON"}]},
                {"role": "tool", "parts": [
                    {"type": "tool_call_response", "id": "c1", "response": "Here."}]},
            ])
        );
        assert_eq!(asked.tools, [json!({"type": "function", "name": "map"})]);
    }

    #[test]
    fn instructions_stand_apart_where_the_route_has_them_apart() {
        let messages = asked(
            Wire::Messages,
            &json!({
                "system": [{"type": "text", "text": "Be short."}],
                "messages": [{"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "t1",
                     "content": [{"type": "text", "text": "Rain."}]},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "AAAA"}},
                ]}],
                "tools": [{"name": "weather", "input_schema": {}},
                          {"type": "web_search_20250305", "name": "web_search"}],
            }),
        );
        let text = |text: &str| json!({"type": "text", "content": text});
        assert_eq!(messages.system, [text("Be short.")]);
        assert_eq!(
            Value::from(messages.input),
            json!([{"role": "user", "parts": [
                {"type": "tool_call_response", "id": "t1", "response": [text("Rain.")]},
                {"type": "image", "mime_type": "image/gif", "bytes": 4}]}])
        );
        assert_eq!(
            Value::from(messages.tools),
            json!([{"type": "function", "name": "weather"},
                   {"type": "web_search_20250305", "name": "web_search"}])
        );
        let responses = asked(
            Wire::Responses,
            &json!({
                "instructions": "Be short.",
                "input": [
                    {"role": "user", "content": [{"type": "input_text", "text": "Where?"}]},
                    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
                    {"type": "function_call", "call_id": "c1", "name": "map", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "c1", "output": "Here."},
                ],
                "tools": [{"type": "web_search"}],
            }),
        );
        assert_eq!(responses.system, [text("Be short.")]);
        assert_eq!(
            Value::from(responses.input),
            json!([
                {"role": "user", "parts": [text("Where?")]},
                {"role": "assistant", "parts": [{"type": "reasoning", "content": "Hm."}]},
                {"role": "assistant", "parts": [
                    {"type": "tool_call", "id": "c1", "name": "map", "arguments": {}}]},
                {"role": "tool", "parts": [
                    {"type": "tool_call_response", "id": "c1", "response": "Here."}]},
            ])
        );
        assert_eq!(
            Value::from(responses.tools),
            json!([{"type": "web_search", "name": "web_search"}])
        );
    }

    #[test]
    fn providers_of_their_own_kind_are_told_as_all_others() {
        let text = |text: &str| json!({"type": "text", "content": text});
        let call = json!({"type": "tool_call", "id": "c1", "name": "map", "arguments": {"of": 1}});
        let answer = json!({"type": "tool_call_response", "id": "c1", "response": {"y": 2}});
        let image = json!({"type": "image", "mime_type": "image/png", "bytes": 4});
        let gemini = asked(
            Wire::GenerateContent,
            &json!({
                "systemInstruction": {"parts": [{"text": "Be short."}]},
                "contents": [
                    {"role": "user", "parts": [{"text": "Where?"},
                        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]},
                    {"role": "model", "parts": [{"text": "Hm.", "thought": true},
                        {"functionCall": {"id": "c1", "name": "map", "args": {"of": 1}}}]},
                    {"role": "user", "parts": [
                        {"functionResponse": {"id": "c1", "name": "map", "response": {"y": 2}}}]},
                ],
                "tools": [{"functionDeclarations": [{"name": "map"}]}, {"googleSearch": {}}],
            }),
        );
        assert_eq!(gemini.system, [text("Be short.")]);
        assert_eq!(
            Value::from(gemini.input),
            json!([
                {"role": "user", "parts": [text("Where?"), image]},
                {"role": "assistant", "parts": [{"type": "reasoning", "content": "Hm."}, call]},
                {"role": "user", "parts": [answer]},
            ])
        );
        assert_eq!(gemini.tools, [json!({"type": "function", "name": "map"})]);
        let bedrock = asked(
            Wire::Converse,
            &json!({
                "system": [{"text": "Be short."}],
                "messages": [
                    {"role": "user", "content": [{"text": "Where?"},
                        {"image": {"format": "png", "source": {"bytes": "AAAA"}}}]},
                    {"role": "assistant", "content": [
                        {"toolUse": {"toolUseId": "c1", "name": "map", "input": {"of": 1}}}]},
                    {"role": "user", "content": [
                        {"toolResult": {"toolUseId": "c1", "content": [{"text": "Here."}]}}]},
                ],
                "toolConfig": {"tools": [{"toolSpec": {"name": "map"}}]},
            }),
        );
        assert_eq!(bedrock.system, [text("Be short.")]);
        let image = json!({"type": "image", "mime_type": null, "bytes": 4});
        let answer = json!({"type": "tool_call_response", "id": "c1", "response": [text("Here.")]});
        assert_eq!(
            Value::from(bedrock.input),
            json!([
                {"role": "user", "parts": [text("Where?"), image]},
                {"role": "assistant", "parts": [call]},
                {"role": "user", "parts": [answer]},
            ])
        );
        assert_eq!(bedrock.tools, [json!({"type": "function", "name": "map"})]);
        let chats = json!({"messages": [[{"role": "user", "content": "Where?"}],
            [{"role": "user", "content": "When?"}]]});
        let told = ["Where?", "When?"].map(|said| json!({"role": "user", "parts": [text(said)]}));
        assert_eq!(Value::from(asked(Wire::ChatBatch, &chats).input), Value::from(told.to_vec()));
    }

    #[test]
    fn a_text_to_go_on_from_is_a_user_s_and_token_ids_are_none() {
        for (wire, body) in [
            (Wire::Completions, json!({"prompt": "Where"})),
            (Wire::Completions, json!({"prompt": ["Where"]})),
            (Wire::Responses, json!({"input": "Where"})),
            (Wire::Generate, json!({"inputs": "Where"})),
            (Wire::VertexGenerate, json!({"instances": [{"text": "Where"}]})),
            (Wire::OllamaGenerate, json!({"prompt": "Where"})),
        ] {
            let told = asked(wire, &body).input;
            let said = json!([{"role": "user", "parts": [{"type": "text", "content": "Where"}]}]);
            assert_eq!(Value::from(told), said, "{wire:?}");
        }
        assert_eq!(asked(Wire::Completions, &json!({"prompt": [1, 2]})), Asked::default());
        assert_eq!(Asked::read(Wire::ChatCompletions, b"{\"messages\": "), Asked::default());
    }
}
