//! Events of a stream, written with as little work per chunk as can be.

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

/// An event of which only a number and a text change, rendered as far as it can be.
#[derive(Debug)]
pub(crate) struct Template {
    before: String,
    between: String,
    after: String,
    numbers: Numbers,
}

/// What the number of a template counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Numbers {
    Choices,
    Events,
}

impl Template {
    /// The event `name` (if it has one) with the data `json`, taken apart at [`NUMBER`] (where it
    /// has one) and at the [`TEXT`] after it.
    pub(super) fn new(numbers: Numbers, name: Option<&str>, json: &str) -> Self {
        let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        let event = format!("{name}data: {}\n\n", compact(json));
        let (head, after) = event.split_once(TEXT).unwrap_or((&event, ""));
        let (before, between) = head.split_once(NUMBER).unwrap_or((head, ""));
        Self {
            before: before.to_owned(),
            between: between.to_owned(),
            after: after.to_owned(),
            numbers,
        }
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

    /// One chunk: `text` writes its words.
    pub(crate) fn chunk(
        &mut self,
        template: &Template,
        choice: u64,
        text: impl FnOnce(&mut BytesMut) -> std::fmt::Result,
    ) {
        let number = match template.numbers {
            Numbers::Choices => choice,
            Numbers::Events => self.number(),
        };
        let Template { before, between, after, .. } = template;
        self.bytes.extend_from_slice(before.as_bytes());
        if !between.is_empty() {
            self.write(format_args!("{number}{between}"));
        }
        // Memory cannot refuse to be written to.
        _ = text(&mut self.bytes);
        self.bytes.extend_from_slice(after.as_bytes());
    }

    fn write(&mut self, text: Arguments<'_>) {
        // Memory cannot refuse to be written to.
        _ = self.bytes.write_fmt(text);
    }
}
