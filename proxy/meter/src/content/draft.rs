//! Builds the messages of an answer from its deltas: a list of choices, and the parts of each.

use serde_json::{Value, json};

use super::part;
use crate::channel_text::{ChannelText, News};

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
    /// What is read says again what deltas may have said.
    is_restating: bool,
    /// Events that were read.
    events: u64,
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
    /// A part that came whole, and with which event.
    Whole(Value, u64),
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
    /// Knows what of further text is new.
    told: ChannelText,
    /// Room for the text that waits there, in bytes.
    reserved: usize,
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
        Self {
            room: bytes_max,
            bytes: 0,
            is_cut: false,
            lacks_text: false,
            is_restating: false,
            events: 0,
            choices: Vec::new(),
        }
    }

    /// Another event is read.
    pub(super) const fn next_event(&mut self) {
        self.events += 1;
    }

    /// Whether nothing was said yet.
    pub(super) const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Reads what deltas may have said.
    pub(super) fn restate(&mut self, read: impl FnOnce(&mut Self)) {
        self.is_restating = true;
        read(self);
        self.is_restating = false;
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
        taximeter_collections::sort_by_key(&mut self.choices, |choice| choice.index);
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
        self.tell(choice, GrowingKind::Text, (0, 0), |told| told.whole(text), text);
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

    /// A part that came whole, if no earlier event has brought it.
    pub(super) fn part(&mut self, choice: u64, part: Value) {
        let length = part.to_string().len();
        let event = self.events;
        let is_known = self.choice(choice).is_some_and(|choice| choice.has_told(&part, event));
        if is_known {
            return;
        }
        if length > self.room || self.lacks_text {
            self.is_cut = true;
            return;
        }
        self.room -= length;
        self.bytes += length;
        if self.has_place()
            && let Some(choice) = self.choice(choice)
        {
            choice.pieces.push(DraftPart::Whole(part, event));
        }
    }

    fn grow(
        &mut self,
        choice: u64,
        kind: GrowingKind,
        slot: Slot,
        text: &str,
    ) -> Option<&mut Growing> {
        if self.is_restating {
            self.tell(choice, kind, slot, |told| told.restated(text), text)
        } else if text.is_empty() {
            self.piece(choice, kind, slot)
        } else {
            self.tell(choice, kind, slot, |told| told.delta(text), text)
        }
    }

    /// Adds to a piece what `find` finds to be new of `text`.
    fn tell(
        &mut self,
        choice: u64,
        kind: GrowingKind,
        slot: Slot,
        find: impl FnOnce(&mut ChannelText) -> News,
        text: &str,
    ) -> Option<&mut Growing> {
        let (room, lacks_text) = (self.room, self.lacks_text);
        let is_restating = self.is_restating;
        let is_elsewhere =
            |choice: &&mut Choice| is_restating && choice.has_told_elsewhere(kind, slot);
        if self.choice(choice).as_ref().is_some_and(is_elsewhere) {
            return None;
        }
        let piece = self.piece(choice, kind, slot)?;
        let news = find(&mut piece.told);
        let is_cut = lacks_text && !matches!(news, News::Nothing);
        let (kept, is_all) = match news {
            News::Nothing => (0, true),
            // It takes its room before it is clear whether it is new.
            News::Waits => piece.reserve(text, room),
            News::From(at) => piece.say(text.get(at..).unwrap_or_default(), room),
            News::Behind(waited) => {
                piece.put(&waited, piece.reserved);
                piece.say(text, room)
            }
        };
        piece.is_cut |= is_cut;
        self.room -= kept;
        self.bytes += kept;
        self.is_cut |= is_cut || !is_all;
        self.piece(choice, kind, slot)
    }

    /// The piece that grows there.
    fn piece(&mut self, choice: u64, kind: GrowingKind, slot: Slot) -> Option<&mut Growing> {
        let has_place = self.has_place();
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
    /// Whether an event before this one has brought such a part.
    fn has_told(&self, part: &Value, event: u64) -> bool {
        let is_told = |piece: &DraftPart| matches!(piece, DraftPart::Whole(told, earlier) if told == part && *earlier < event);
        self.pieces.iter().any(is_told)
    }

    /// Whether deltas have told such a piece under another number only.
    fn has_told_elsewhere(&self, kind: GrowingKind, slot: Slot) -> bool {
        let is_known = self.pieces.iter().any(|piece| piece.is_at(kind, slot));
        let is_like = |piece: &DraftPart| matches!(piece, DraftPart::Growing(it) if it.kind == kind && it.told.is_told_by_deltas());
        !is_known && self.pieces.iter().any(is_like)
    }

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
            Self::Whole(part, _) => part,
        }
    }
}

impl GrowingKind {
    const fn is_call(self) -> bool {
        matches!(self, Self::Call | Self::ServerCall)
    }
}

impl Growing {
    fn new(kind: GrowingKind, slot: Slot) -> Self {
        let (name, text, told) = (String::new(), String::new(), ChannelText::default());
        Self { kind, slot, name, id: None, text, is_cut: false, told, reserved: 0 }
    }

    /// Adds text that is new, as much as there is room for. Returns how many bytes that is, and
    /// whether it is all.
    fn say(&mut self, text: &str, room: usize) -> (usize, bool) {
        self.put(text, room);
        let kept = text.floor_char_boundary(room);
        (kept, kept == text.len())
    }

    /// The same for text that waits: keeps room for it.
    fn reserve(&mut self, text: &str, room: usize) -> (usize, bool) {
        let kept = text.len().min(room);
        self.reserved += kept;
        (kept, kept == text.len())
    }

    fn put(&mut self, text: &str, room: usize) {
        self.told.note(text);
        let kept = text.floor_char_boundary(room);
        if !self.is_cut {
            self.text.push_str(text.get(..kept).unwrap_or_default());
            self.is_cut = kept < text.len();
        }
    }

    fn part(mut self) -> Value {
        if let Some(waited) = self.told.end() {
            self.put(&waited, self.reserved);
        }
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
