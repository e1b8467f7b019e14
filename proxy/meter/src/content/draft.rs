//! Builds the messages of an answer from its deltas: a list of choices, and the parts of each.

use serde_json::{Value, json};

use super::part;

/// Choices and pieces of one answer that are kept; more are left out.
const PIECES_MAX: usize = 256;
/// Longest name, id or role, in bytes.
const NAME_BYTES_MAX: usize = 256;
/// Of a piece that is cut, the unfinished word at its end is left out up to this length, in bytes:
/// half a secret would be known as none.
const WORD_BYTES_MAX: usize = 512;
/// What stands where something was left out.
const MARK: &str = "…";
/// Why a choice ended that no reason was given for.
const ENDED_BADLY: &str = "error";

/// What one answer says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Draft {
    /// Bytes that may still be kept.
    room: usize,
    /// Bytes that are kept.
    bytes: usize,
    /// Something did not find room.
    is_cut: bool,
    /// What is said now lacks the ends of its texts.
    lacks_text: bool,
    choices: Vec<Choice>,
}

/// One of the answers that were asked for.
#[derive(Debug, Clone, Default, PartialEq)]
struct Choice {
    index: u64,
    role: Option<String>,
    pieces: Vec<DraftPart>,
    finish_reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum DraftPart {
    Growing(Growing),
    /// A part that came whole.
    Whole(Value),
}

/// A part that grows by text.
#[derive(Debug, Clone, PartialEq)]
struct Growing {
    kind: GrowingKind,
    /// Which of its kind, by the engine's own numbers.
    slot: Slot,
    /// Of a call: who is called, and which call it is.
    name: String,
    id: Option<String>,
    /// What is said, or a call's arguments.
    text: String,
    is_cut: bool,
}

/// What grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrowingKind {
    Text,
    Reasoning,
    /// Of a tool of the client's.
    Call,
    /// Of a tool that the provider has itself.
    ServerCall,
}

/// Tells pieces of one choice apart: an item, and a place in it.
pub(super) type Slot = (u64, u64);

impl Draft {
    /// Of at most so many bytes.
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self { room: bytes_max, bytes: 0, is_cut: false, lacks_text: false, choices: Vec::new() }
    }

    /// Bytes that are kept.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether something did not find room.
    pub(super) const fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Tells whether what is said next lacks the ends of its texts.
    pub(super) const fn lack(&mut self, lacks_text: bool) {
        self.lacks_text = lacks_text;
    }

    /// One message for each choice, in their order.
    pub(super) fn messages(mut self) -> Vec<Value> {
        self.choices.sort_by_key(|choice| choice.index);
        self.choices.into_iter().map(Choice::message).collect()
    }

    /// Who speaks.
    pub(super) fn role(&mut self, choice: u64, role: &str) {
        if let Some(choice) = self.choice(choice) {
            choice.role = Some(name(role));
        }
    }

    /// Why a choice ended.
    pub(super) fn finish(&mut self, choice: u64, reason: &str) {
        if let Some(choice) = self.choice(choice) {
            choice.finish_reason = Some(name(finish_reason(reason)));
        }
    }

    /// More text, or reasoning.
    pub(super) fn say(&mut self, choice: u64, kind: GrowingKind, slot: Slot, text: &str) {
        if !text.is_empty() {
            self.grow(choice, kind, slot, text);
        }
    }

    /// All text of a choice so far, where an engine repeats it in every event.
    pub(super) fn say_whole(&mut self, choice: u64, text: &str) {
        let said = match self.choice(choice).and_then(|choice| choice.pieces.first()) {
            Some(DraftPart::Growing(piece)) => &piece.text,
            _ => "",
        };
        let news = text.strip_prefix(said).unwrap_or(text).to_owned();
        self.say(choice, GrowingKind::Text, (0, 0), &news);
    }

    /// A call that begins; what of its name is not new is not said again.
    pub(super) fn call(
        &mut self,
        choice: u64,
        (kind, slot): (GrowingKind, Slot),
        (id, called): (Option<&str>, Option<&str>),
        arguments: &str,
    ) {
        let Some(piece) = self.grow(choice, kind, slot, arguments) else { return };
        if piece.id.is_none() {
            piece.id = id.filter(|id| !id.is_empty()).map(name);
        }
        if piece.name.is_empty() {
            piece.name = called.map(name).unwrap_or_default();
        }
    }

    /// More of the arguments of whatever is called there.
    pub(super) fn arguments(&mut self, choice: u64, slot: Slot, written: &str) {
        self.grow(choice, GrowingKind::Call, slot, written);
    }

    /// A part that came whole.
    pub(super) fn part(&mut self, choice: u64, part: Value) {
        let length = part.to_string().len();
        if length > self.room || self.lacks_text {
            self.is_cut = true;
            return;
        }
        self.room -= length;
        self.bytes += length;
        if self.has_place()
            && let Some(choice) = self.choice(choice)
        {
            choice.pieces.push(DraftPart::Whole(part));
        }
    }

    fn grow(
        &mut self,
        choice: u64,
        kind: GrowingKind,
        slot: Slot,
        text: &str,
    ) -> Option<&mut Growing> {
        let (room, has_place) = (self.room, self.has_place());
        let kept = text.get(..text.floor_char_boundary(room)).unwrap_or_default();
        self.room -= kept.len();
        self.bytes += kept.len();
        let is_cut = self.lacks_text || kept.len() < text.len();
        self.is_cut |= is_cut;
        let pieces = &mut self.choice(choice)?.pieces;
        let found = pieces.iter().rposition(|piece| piece.is_at(kind, slot));
        if found.is_none() {
            if !has_place {
                return None;
            }
            pieces.push(DraftPart::Growing(Growing::new(kind, slot)));
        }
        let piece = match found {
            Some(at) => pieces.get_mut(at),
            None => pieces.last_mut(),
        };
        let Some(DraftPart::Growing(piece)) = piece else { return None };
        if !piece.is_cut {
            piece.text.push_str(kept);
            piece.is_cut = is_cut;
        }
        Some(piece)
    }

    fn has_place(&self) -> bool {
        self.choices.iter().map(|choice| choice.pieces.len() + 1).sum::<usize>() < PIECES_MAX
    }

    fn choice(&mut self, index: u64) -> Option<&mut Choice> {
        let found = self.choices.iter().position(|choice| choice.index == index);
        if found.is_none() {
            if !self.has_place() {
                return None;
            }
            self.choices.push(Choice { index, ..Choice::default() });
        }
        match found {
            Some(at) => self.choices.get_mut(at),
            None => self.choices.last_mut(),
        }
    }
}

impl Choice {
    fn message(self) -> Value {
        let parts = self.pieces.into_iter().map(DraftPart::part).collect();
        let mut message = part::message(self.role.as_deref().unwrap_or("assistant"), parts);
        let reason = self.finish_reason.unwrap_or_else(|| ENDED_BADLY.to_owned());
        message.insert("finish_reason".to_owned(), reason.into());
        message.into()
    }
}

impl DraftPart {
    /// Whether more of that kind is more of it. Arguments do not say who is called.
    fn is_at(&self, kind: GrowingKind, slot: Slot) -> bool {
        let Self::Growing(piece) = self else { return false };
        piece.slot == slot && (piece.kind == kind || (piece.kind.is_call() && kind.is_call()))
    }

    fn part(self) -> Value {
        match self {
            Self::Growing(piece) => piece.part(),
            Self::Whole(part) => part,
        }
    }
}

impl GrowingKind {
    const fn is_call(self) -> bool {
        matches!(self, Self::Call | Self::ServerCall)
    }
}

impl Growing {
    const fn new(kind: GrowingKind, slot: Slot) -> Self {
        Self { kind, slot, name: String::new(), id: None, text: String::new(), is_cut: false }
    }

    fn part(mut self) -> Value {
        if self.is_cut {
            let end = self.text.trim_end_matches(|c: char| !c.is_whitespace()).len();
            let end = end.max(self.text.len().saturating_sub(WORD_BYTES_MAX));
            self.text.truncate(self.text.floor_char_boundary(end));
            self.text.push_str(MARK);
        }
        let arguments = || match self.text.as_str() {
            "" => json!({}),
            written => part::arguments(written),
        };
        match self.kind {
            GrowingKind::Text => part::text(&self.text),
            GrowingKind::Reasoning => part::reasoning(&self.text),
            GrowingKind::Call => part::call(self.id.as_deref(), &self.name, arguments()),
            GrowingKind::ServerCall => {
                part::server_call(self.id.as_deref(), &self.name, &arguments())
            }
        }
    }
}

fn name(text: &str) -> String {
    text.get(..text.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or_default().to_owned()
}

/// A reason by the conventions' word for it, where they have one.
fn finish_reason(reason: &str) -> &str {
    match reason {
        "end_turn" | "stop_sequence" | "completed" | "eos" | "eos_token" | "word" | "STOP"
        | "COMPLETE" | "STOP_SEQUENCE" => "stop",
        "max_tokens" | "max_output_tokens" | "limit" | "MAX_TOKENS" => "length",
        "tool_calls" | "tool_use" | "function_call" | "TOOL_CALL" => "tool_call",
        "refusal"
        | "content_filtered"
        | "guardrail_intervened"
        | "SAFETY"
        | "RECITATION"
        | "PROHIBITED_CONTENT"
        | "BLOCKLIST" => "content_filter",
        "failed" | "cancelled" | "ERROR" => ENDED_BADLY,
        other => other,
    }
}
