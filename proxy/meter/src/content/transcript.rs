//! Reads the content of an answer: from its events while they pass, or from its document at the
//! end.

mod native;

use serde_json::Value;

use super::draft::{Draft, GrowingKind};
use super::part::{self, list, number, text_of as text, word};
use crate::Wire;

/// What one answer says, in messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    wire: Wire,
    draft: Draft,
    /// The client has left: the rest is said to nobody.
    is_closed: bool,
}

impl Transcript {
    /// Of an answer on `wire`, of at most so many bytes.
    #[must_use]
    pub const fn new(wire: Wire, bytes_max: usize) -> Self {
        Self { wire, draft: Draft::new(bytes_max), is_closed: false }
    }

    /// Bytes that are kept.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.draft.bytes()
    }

    /// Whether it is not all of the answer.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        self.draft.is_cut()
    }

    /// `gen_ai.output.messages`: one for each choice, in their order.
    #[must_use]
    pub fn messages(self) -> Vec<Value> {
        self.draft.messages()
    }

    /// Tells whether what is read next lacks the ends of its texts.
    pub(crate) const fn lacking(&mut self, lacks_text: bool) -> &mut Self {
        self.draft.lack(lacks_text);
        self
    }

    /// The data of one event; what is no JSON says nothing.
    pub(crate) fn event(&mut self, data: &[u8]) {
        if let Some(event) = self.readable(data) {
            self.draft.next_event();
            match self.wire {
                Wire::ChatCompletions | Wire::ChatBatch | Wire::Completions | Wire::Invocations => {
                    for choice in list(&event, "choices") {
                        stream_choice(choice, &mut self.draft);
                    }
                }
                Wire::Transcriptions => transcribed(&event, &mut self.draft),
                Wire::Messages => block_event(&event, &mut self.draft),
                Wire::Responses => item_event(&event, &mut self.draft),
                Wire::CohereChat => native::cohere_event(&event, &mut self.draft),
                Wire::Converse => native::converse_event(&event, &mut self.draft),
                _ => self.read(&event),
            }
        }
    }

    /// A whole answer.
    pub(crate) fn document(&mut self, body: &[u8]) {
        if let Some(document) = self.readable(body) {
            self.read(&document);
        }
    }

    /// Nothing more is said to anybody.
    pub(crate) const fn close(&mut self) {
        self.is_closed = true;
    }

    fn readable(&self, data: &[u8]) -> Option<Value> {
        let is_read = !self.is_closed
            && !matches!(self.wire, Wire::Embeddings | Wire::TokenIds | Wire::Opaque);
        if is_read { serde_json::from_slice(data).ok() } else { None }
    }

    /// A whole answer, or an event that has the same form.
    fn read(&mut self, said: &Value) {
        let draft = &mut self.draft;
        match self.wire {
            Wire::ChatCompletions | Wire::ChatBatch | Wire::Completions | Wire::Invocations => {
                for choice in list(said, "choices") {
                    read_choice(choice, draft);
                }
            }
            Wire::Messages => read_message(said, draft),
            Wire::Responses => read_response(said, draft),
            Wire::OllamaChat | Wire::OllamaGenerate => read_ollama(said, draft),
            Wire::Generate | Wire::LlamaCompletion => read_engine(said, draft),
            Wire::VertexGenerate => read_engine(said.get("predictions").unwrap_or(said), draft),
            Wire::CohereChat => native::read_cohere(said, draft),
            Wire::GenerateContent => native::read_gemini(said, draft),
            Wire::Converse => native::read_converse(said, draft),
            Wire::Transcriptions => draft.say(0, GrowingKind::Text, (0, 0), text(said, "text")),
            Wire::Embeddings
            | Wire::TokenIds
            | Wire::Speech
            | Wire::Images
            | Wire::Videos
            | Wire::Ocr
            | Wire::Batches
            | Wire::Opaque => {}
        }
    }
}

/// A choice of an event: `delta` is what is new, and a `message` is all of it.
fn stream_choice(said: &Value, draft: &mut Draft) {
    let choice = number(said, "index").unwrap_or(0);
    draft.say(choice, GrowingKind::Text, (0, 0), text(said, "text"));
    if let Some(delta) = said.get("delta") {
        read_turn(choice, delta, draft);
    }
    if let Some(message) = said.get("message") {
        draft.restate(|draft| read_turn(choice, message, draft));
    }
    finish_choice(choice, said, draft);
}

/// A choice of a whole chat or completion.
fn read_choice(said: &Value, draft: &mut Draft) {
    let choice = number(said, "index").unwrap_or(0);
    draft.say(choice, GrowingKind::Text, (0, 0), text(said, "text"));
    if let Some(message) = said.get("message").or_else(|| said.get("delta")) {
        read_turn(choice, message, draft);
    }
    finish_choice(choice, said, draft);
}

fn finish_choice(choice: u64, said: &Value, draft: &mut Draft) {
    if let Some(reason) = word(said, "finish_reason").filter(|reason| !reason.is_empty()) {
        draft.finish(choice, reason);
    }
}

/// What is said in a choice.
fn read_turn(choice: u64, message: &Value, draft: &mut Draft) {
    if let Some(role) = word(message, "role").filter(|role| !role.is_empty()) {
        draft.role(choice, role);
    }
    draft.say(choice, GrowingKind::Reasoning, (0, 0), &reasoning(message));
    content(message.get("content"), choice, draft);
    draft.say(choice, GrowingKind::Text, (0, 1), text(message, "refusal"));
    for (place, call) in list(message, "tool_calls").enumerate() {
        let slot = number(call, "index").unwrap_or(place as u64);
        if let Some(function) = call.get("function").or_else(|| call.get("custom")) {
            read_call(choice, slot, word(call, "id"), function, draft);
        }
    }
    if let Some(function) = message.get("function_call").filter(|call| call.is_object()) {
        read_call(choice, u64::MAX, None, function, draft);
    }
    if let Some(sound) = message.get("audio") {
        draft.say(choice, GrowingKind::Text, (0, 2), text(sound, "transcript"));
    }
}

/// Reasoning, which some engines and gateways send under several names at once.
fn reasoning(message: &Value) -> String {
    let names = ["reasoning", "reasoning_content", "reasoning_text", "thinking"];
    let longest = names.map(|key| text(message, key)).into_iter().max_by_key(|told| told.len());
    let lists = ["reasoning_details", "thinking_blocks"];
    let parts = || {
        let parts = lists.map(|key| {
            let texts = list(message, key)
                .map(|part| ["text", "thinking", "summary"].map(|key| text(part, key)).concat());
            texts.collect::<String>()
        });
        parts.into_iter().find(|told| !told.is_empty()).unwrap_or_default()
    };
    longest.filter(|told| !told.is_empty()).map_or_else(parts, str::to_owned)
}

/// A piece of what was heard, or all of it.
fn transcribed(event: &Value, draft: &mut Draft) {
    draft.say(0, GrowingKind::Text, (0, 0), text(event, "delta"));
    let said = text(event, "text");
    if text(event, "type") == "transcription.text.delta" {
        draft.say(0, GrowingKind::Text, (0, 0), said);
    } else {
        draft.restate(|draft| draft.say(0, GrowingKind::Text, (0, 0), said));
    }
}

/// Text, or parts that may be reasoning (Mistral).
fn content(content: Option<&Value>, choice: u64, draft: &mut Draft) {
    match content {
        Some(Value::String(said)) => draft.say(choice, GrowingKind::Text, (0, 0), said),
        Some(Value::Array(parts)) => {
            for part in parts {
                let (kind, key) = match word(part, "type") {
                    Some("thinking") => (GrowingKind::Reasoning, "thinking"),
                    _ => (GrowingKind::Text, "text"),
                };
                let said = part.get(key).map(part::plain).unwrap_or_default();
                draft.say(choice, kind, (0, 0), &said);
            }
        }
        _ => {}
    }
}

fn read_call(choice: u64, slot: u64, id: Option<&str>, function: &Value, draft: &mut Draft) {
    let written = function.get("arguments").or_else(|| function.get("input"));
    let arguments = match written {
        Some(Value::String(written)) => written.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    let called = (id, word(function, "name"));
    draft.call(choice, (GrowingKind::Call, (slot, 0)), called, &arguments);
}

/// A whole message of Anthropic's.
fn read_message(said: &Value, draft: &mut Draft) {
    if let Some(role) = word(said, "role") {
        draft.role(0, role);
    }
    for (place, block) in list(said, "content").enumerate() {
        begin_block(place as u64, block, draft);
    }
    if let Some(reason) = word(said, "stop_reason") {
        draft.finish(0, reason);
    }
}

fn block_event(event: &Value, draft: &mut Draft) {
    let slot = number(event, "index").unwrap_or(0);
    match text(event, "type") {
        "message_start" => {
            if let Some(message) = event.get("message") {
                read_message(message, draft);
            }
        }
        "content_block_start" => {
            if let Some(block) = event.get("content_block") {
                begin_block(slot, block, draft);
            }
        }
        "content_block_delta" => {
            let Some(delta) = event.get("delta") else { return };
            draft.say(0, GrowingKind::Text, (slot, 0), text(delta, "text"));
            draft.say(0, GrowingKind::Reasoning, (slot, 0), text(delta, "thinking"));
            if let Some(written) = word(delta, "partial_json") {
                draft.arguments(0, (slot, 0), written);
            }
        }
        "message_delta" => {
            if let Some(reason) = event.get("delta").and_then(|delta| word(delta, "stop_reason")) {
                draft.finish(0, reason);
            }
        }
        _ => {}
    }
}

/// A block that begins, or stands there whole.
fn begin_block(slot: u64, block: &Value, draft: &mut Draft) {
    match text(block, "type") {
        "text" => draft.say(0, GrowingKind::Text, (slot, 0), text(block, "text")),
        "thinking" => draft.say(0, GrowingKind::Reasoning, (slot, 0), text(block, "thinking")),
        kind @ ("tool_use" | "server_tool_use" | "mcp_tool_use") => {
            // It is empty where it will come in pieces.
            let input =
                block.get("input").filter(|it| it.as_object().is_some_and(|it| !it.is_empty()));
            let written = input.map(Value::to_string).unwrap_or_default();
            let kind = if kind == "tool_use" { GrowingKind::Call } else { GrowingKind::ServerCall };
            draft.call(0, (kind, (slot, 0)), (word(block, "id"), word(block, "name")), &written);
        }
        _ => {
            if let Some(part) = part::one(block) {
                draft.part(0, part);
            }
        }
    }
}

/// A whole response.
fn read_response(said: &Value, draft: &mut Draft) {
    for (place, item) in list(said, "output").enumerate() {
        read_item(place as u64, item, draft);
    }
    end_response(said, draft);
}

fn end_response(said: &Value, draft: &mut Draft) {
    let calls = list(said, "output").any(|item| text(item, "type").ends_with("_call"));
    let reason = said.get("incomplete_details").and_then(|details| word(details, "reason"));
    match (reason, text(said, "status")) {
        (Some(reason), _) => draft.finish(0, reason),
        (None, "completed") if calls => draft.finish(0, "tool_call"),
        (None, status @ ("completed" | "failed" | "cancelled")) => draft.finish(0, status),
        _ => {}
    }
}

/// A whole item of a response's output.
fn read_item(slot: u64, item: &Value, draft: &mut Draft) {
    match text(item, "type") {
        "message" => {
            if let Some(role) = word(item, "role") {
                draft.role(0, role);
            }
            for (place, part) in list(item, "content").enumerate() {
                let said = [text(part, "text"), text(part, "refusal")].concat();
                draft.say(0, GrowingKind::Text, (slot, place as u64), &said);
            }
        }
        "reasoning" => {
            for (place, part) in list(item, "content").chain(list(item, "summary")).enumerate() {
                draft.say(0, GrowingKind::Reasoning, (slot, place as u64), text(part, "text"));
            }
        }
        "function_call" | "custom_tool_call" => {
            read_call(0, slot, word(item, "call_id"), item, draft);
        }
        _ => {
            if let Some(part) = part::one(item) {
                draft.part(0, part);
            }
        }
    }
}

fn item_event(event: &Value, draft: &mut Draft) {
    let slot = number(event, "output_index").unwrap_or(0);
    let place = number(event, "content_index").or_else(|| number(event, "summary_index"));
    let slot = (slot, place.unwrap_or(0));
    let delta = text(event, "delta");
    match text(event, "type") {
        "response.output_text.delta" | "response.refusal.delta" => {
            draft.say(0, GrowingKind::Text, slot, delta);
        }
        "response.reasoning_text.delta" | "response.reasoning_summary_text.delta" => {
            draft.say(0, GrowingKind::Reasoning, slot, delta);
        }
        "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
            draft.arguments(0, (slot.0, 0), delta);
        }
        "response.output_item.added" => {
            let item = event.get("item");
            let called = item
                .filter(|item| matches!(text(item, "type"), "function_call" | "custom_tool_call"));
            if let Some(item) = called {
                let called = (word(item, "call_id"), word(item, "name"));
                draft.call(0, (GrowingKind::Call, (slot.0, 0)), called, "");
            }
        }
        "response.output_item.done" => {
            if let Some(item) = event.get("item") {
                draft.restate(|draft| read_item(slot.0, item, draft));
            }
        }
        "response.completed" | "response.incomplete" | "response.failed" => {
            if let Some(response) = event.get("response") {
                if draft.is_empty() {
                    read_response(response, draft);
                }
                end_response(response, draft);
            }
        }
        _ => {}
    }
}

fn read_ollama(said: &Value, draft: &mut Draft) {
    let message = said.get("message").unwrap_or(said);
    draft.say(0, GrowingKind::Reasoning, (0, 0), text(message, "thinking"));
    draft.say(0, GrowingKind::Text, (0, 0), text(message, "content"));
    draft.say(0, GrowingKind::Text, (0, 0), text(message, "response"));
    for call in list(message, "tool_calls") {
        if let Some(function) = call.get("function") {
            let arguments = function.get("arguments").cloned().unwrap_or_default();
            let called = part::call(word(call, "id"), text(function, "name"), arguments);
            draft.part(0, called);
        }
    }
    if let Some(reason) = word(said, "done_reason") {
        draft.finish(0, reason);
    }
}

/// Engines' own routes: llama.cpp, SGLang and LMDeploy, TGI.
fn read_engine(said: &Value, draft: &mut Draft) {
    let each = said.as_array().map_or(std::slice::from_ref(said), Vec::as_slice);
    for (place, said) in each.iter().enumerate() {
        let token = said.get("token").filter(|it| it.is_object());
        // TGI numbers its tokens, not its choices, and says all of the text again with the last.
        let index = number(said, "index").filter(|_| token.is_none());
        let choice = index.unwrap_or(place as u64);
        draft.say(choice, GrowingKind::Text, (0, 0), text(said, "content"));
        let whole = word(said, "text").or_else(|| word(said, "generated_text"));
        match (token, whole) {
            (Some(token), _) if token.get("special") == Some(&true.into()) => {}
            (Some(token), _) => draft.say(choice, GrowingKind::Text, (0, 0), text(token, "text")),
            (None, Some(whole)) => draft.say_whole(choice, whole),
            (None, None) => {}
        }
        let details = said.get("meta_info").or_else(|| said.get("details")).unwrap_or(said);
        let reason = details.get("finish_reason").map(|it| it.get("type").unwrap_or(it));
        let reason = reason.and_then(Value::as_str).or_else(|| word(said, "stop_type"));
        if let Some(reason) = reason.filter(|reason| *reason != "none" && !reason.is_empty()) {
            draft.finish(choice, reason);
        }
    }
}

#[cfg(test)]
mod tests;
