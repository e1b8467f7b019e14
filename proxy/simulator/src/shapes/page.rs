//! Writes the events of a stream with little work per chunk.

use std::fmt::{Arguments, Write};

use bytes::{Bytes, BytesMut};

/// JSON on one line: this source breaks it where a reader likes it broken.
pub(crate) fn compact(json: &str) -> String {
    json.lines().map(str::trim_start).collect()
}

/// Stands for a number in what becomes a [`Template`].
pub(super) const NUMBER: &str = "\u{1}";
/// Stands for the text in what becomes a [`Template`].
pub(super) const TEXT: &str = "\u{2}";
/// Stands for the ids of its tokens in what becomes a [`Template`].
pub(super) const IDS: &str = "\u{3}";
/// Stands for running totals in what becomes a [`Template`].
pub(super) const TOTALS: &str = "\u{4}";

/// An event of which only a number, a text and what goes with it change, rendered as far as it can
/// be.
#[derive(Debug)]
pub(crate) struct Template {
    /// What stands still, each followed by what changes.
    parts: Vec<(String, Slot)>,
    end: String,
    numbers: Numbers,
}

/// What changes from event to event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
    Number,
    Text,
    Ids,
    Totals,
}

/// What the number of a template counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    Choices,
    Events,
}

impl Template {
    /// The event `name` (if it has one) with the data `json`, taken apart at [`NUMBER`], [`TEXT`],
    /// [`IDS`] and [`TOTALS`].
    pub(super) fn new(numbers: Numbers, name: Option<&str>, json: &str) -> Self {
        let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        let event = format!("{name}data: {}\n\n", compact(json));
        let mut parts = Vec::new();
        let mut end = String::new();
        for character in event.chars() {
            let slot = match character {
                '\u{1}' => Slot::Number,
                '\u{2}' => Slot::Text,
                '\u{3}' => Slot::Ids,
                '\u{4}' => Slot::Totals,
                other => {
                    end.push(other);
                    continue;
                }
            };
            parts.push((std::mem::take(&mut end), slot));
        }
        Self { parts, end, numbers }
    }
}

/// What is to be sent next.
#[derive(Debug, Default)]
pub(crate) struct Page {
    bytes: BytesMut,
    events: u64,
}

impl Page {
    /// What has been written since the last time; the room is used again when it has been sent.
    pub(crate) fn take(&mut self) -> Bytes {
        self.bytes.split().freeze()
    }

    /// `data: json`.
    pub(crate) fn data(&mut self, json: Arguments<'_>) {
        self.write(format_args!("data: {}\n\n", compact(&json.to_string())));
    }

    /// `event: name`, `data: json`.
    pub(crate) fn event(&mut self, name: &str, json: Arguments<'_>) {
        self.write(format_args!("event: {name}\ndata: {}\n\n", compact(&json.to_string())));
    }

    /// The next `sequence_number`.
    pub(crate) fn number(&mut self) -> u64 {
        let number = self.events;
        self.events += 1;
        number
    }

    /// One chunk: `fill` writes its words and what goes with them.
    pub(crate) fn chunk(
        &mut self,
        template: &Template,
        choice: u64,
        mut fill: impl FnMut(Slot, &mut BytesMut) -> std::fmt::Result,
    ) {
        for (part, slot) in &template.parts {
            self.bytes.extend_from_slice(part.as_bytes());
            // Memory cannot refuse to be written to.
            _ = match (slot, template.numbers) {
                (Slot::Number, Numbers::Choices) => write!(self.bytes, "{choice}"),
                (Slot::Number, Numbers::Events) => {
                    let number = self.number();
                    write!(self.bytes, "{number}")
                }
                (slot, _) => fill(*slot, &mut self.bytes),
            };
        }
        self.bytes.extend_from_slice(template.end.as_bytes());
    }

    fn write(&mut self, text: Arguments<'_>) {
        // Memory cannot refuse to be written to.
        _ = self.bytes.write_fmt(text);
    }
}
