//! Reads the content of answers of Gemini, Cohere and Bedrock, which have formats of their own.

use serde_json::Value;

use crate::content::draft::{Draft, GrowingKind};
use crate::content::part::{self, list, number, text_of, word};

/// An answer of Gemini's, an event of it, or a list of events.
pub(super) fn read_gemini(said: &Value, draft: &mut Draft) {
    let each = said.as_array().map_or(std::slice::from_ref(said), Vec::as_slice);
    for candidate in each.iter().flat_map(|said| list(said, "candidates")) {
        let choice = number(candidate, "index").unwrap_or(0);
        let parts = candidate.get("content").into_iter().flat_map(|content| list(content, "parts"));
        for part in parts {
            let is_thought = part.get("thought") == Some(&true.into());
            let kind = if is_thought { GrowingKind::Reasoning } else { GrowingKind::Text };
            match word(part, "text") {
                Some(text) => draft.say(choice, kind, (0, 0), text),
                None => whole(choice, part, draft),
            }
        }
        finish(candidate, "finishReason", choice, draft);
    }
}

/// A whole answer of Cohere's.
pub(super) fn read_cohere(said: &Value, draft: &mut Draft) {
    if let Some(message) = said.get("message") {
        draft.say(0, GrowingKind::Reasoning, (0, 1), text_of(message, "tool_plan"));
        for (place, part) in list(message, "content").enumerate() {
            cohere_content(place as u64, part, draft);
        }
        for (place, call) in list(message, "tool_calls").enumerate() {
            cohere_call(place as u64, call, draft);
        }
    }
    finish(said, "finish_reason", 0, draft);
}

/// An event of Cohere's.
pub(super) fn cohere_event(event: &Value, draft: &mut Draft) {
    let slot = number(event, "index").unwrap_or(0);
    let Some(delta) = event.get("delta") else { return };
    if let Some(message) = delta.get("message") {
        draft.say(0, GrowingKind::Reasoning, (0, 1), text_of(message, "tool_plan"));
        if let Some(part) = message.get("content") {
            cohere_content(slot, part, draft);
        }
        if let Some(call) = message.get("tool_calls").filter(|call| call.is_object()) {
            cohere_call(slot, call, draft);
        }
    }
    finish(delta, "finish_reason", 0, draft);
}

fn cohere_content(slot: u64, part: &Value, draft: &mut Draft) {
    draft.say(0, GrowingKind::Reasoning, (slot, 0), text_of(part, "thinking"));
    draft.say(0, GrowingKind::Text, (slot, 0), text_of(part, "text"));
}

fn cohere_call(slot: u64, call: &Value, draft: &mut Draft) {
    if let Some(function) = call.get("function") {
        let called = (word(call, "id"), word(function, "name"));
        draft.call(0, (GrowingKind::Call, (slot, 0)), called, text_of(function, "arguments"));
    }
}

/// A whole answer of Bedrock's.
pub(super) fn read_converse(said: &Value, draft: &mut Draft) {
    let message = said.get("output").and_then(|output| output.get("message"));
    for part in message.into_iter().flat_map(|message| list(message, "content")) {
        match word(part, "text") {
            Some(text) => draft.say(0, GrowingKind::Text, (0, 0), text),
            None => whole(0, part, draft),
        }
    }
    finish(said, "stopReason", 0, draft);
}

/// An event of Bedrock's.
pub(super) fn converse_event(event: &Value, draft: &mut Draft) {
    let slot = number(event, "contentBlockIndex").unwrap_or(0);
    if let Some(begun) = event.get("start").and_then(|start| start.get("toolUse")) {
        let called = (word(begun, "toolUseId"), word(begun, "name"));
        draft.call(0, (GrowingKind::Call, (slot, 0)), called, "");
    }
    if let Some(delta) = event.get("delta") {
        draft.say(0, GrowingKind::Text, (slot, 0), text_of(delta, "text"));
        if let Some(reasoning) = delta.get("reasoningContent") {
            draft.say(0, GrowingKind::Reasoning, (slot, 0), text_of(reasoning, "text"));
        }
        if let Some(written) = delta.get("toolUse").and_then(|call| word(call, "input")) {
            draft.arguments(0, (slot, 0), written);
        }
    }
    finish(event, "stopReason", 0, draft);
}

/// A part that comes whole.
fn whole(choice: u64, part: &Value, draft: &mut Draft) {
    if let Some(part) = part::one(part) {
        draft.part(choice, part);
    }
}

fn finish(said: &Value, key: &str, choice: u64, draft: &mut Draft) {
    if let Some(reason) = word(said, key).filter(|reason| !reason.is_empty()) {
        draft.finish(choice, reason);
    }
}
