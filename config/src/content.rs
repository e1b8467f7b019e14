//! What of prompts and answers is put on spans or events, and what is taken out of it first.

use std::collections::BTreeSet;

use regex::{Regex, RegexBuilder};

use crate::mistake::Invalid;

/// Most bytes that the compiled form of one pattern takes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Where prompts and answers are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Capture {
    /// Nowhere.
    #[default]
    Off,
    /// On the spans of engines.
    Spans,
    /// As events of their own, among log records.
    Events,
    /// On both.
    Both,
}

impl Capture {
    /// Whether spans have it.
    #[must_use]
    pub const fn is_on_spans(self) -> bool {
        matches!(self, Self::Spans | Self::Both)
    }

    /// Whether there are events of it.
    #[must_use]
    pub const fn is_on_events(self) -> bool {
        matches!(self, Self::Events | Self::Both)
    }

    /// The same, where there shall be no events.
    pub(crate) const fn without_events(self) -> Self {
        if self.is_on_spans() { Self::Spans } else { Self::Off }
    }
}

/// What of prompts and answers is told. Nothing, unless it says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Where it is told of requests whose spans are kept from the start.
    pub capture: Capture,
    /// Most bytes of one attribute.
    pub bytes_max: usize,
    /// What is taken out, beside what everyone knows for a secret.
    pub redact: Vec<Pattern>,
    /// Whether that is taken out too: keys, tokens, e-mail addresses.
    pub redact_known: bool,
    /// Whose requests; `None` is everybody's.
    pub tenants: Option<BTreeSet<String>>,
}

impl Content {
    /// Most bytes of one attribute, unless the file says another number.
    pub(crate) const BYTES_MAX: usize = 32 << 10;

    /// Whether what this tenant says is told.
    #[must_use]
    pub fn is_captured(&self, tenant: &str) -> bool {
        self.capture != Capture::Off
            && self.tenants.as_ref().is_none_or(|tenants| tenants.contains(tenant))
    }
}

impl Default for Content {
    fn default() -> Self {
        Self {
            capture: Capture::Off,
            bytes_max: Self::BYTES_MAX,
            redact: Vec::new(),
            redact_known: true,
            tenants: None,
        }
    }
}

/// A regular expression, in the syntax of Rust's `regex`: matched in time that is linear in the text.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// What is expected of one.
    pub(crate) const FORM: &str = "a regular expression such as [0-9]{8}";

    /// The pattern of this text.
    ///
    /// Errors: no pattern, one that is too large, or one that matches nothing at all: it would stand
    /// between any two letters.
    pub(crate) fn new(text: &str) -> Result<Self, Invalid> {
        let expected = Self::FORM;
        match RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build() {
            Ok(regex) if regex.is_match("") => Err(Invalid::new("matches an empty text", expected)),
            Ok(regex) => Ok(Self(regex)),
            Err(regex::Error::CompiledTooBig(_)) => Err(Invalid::new("is too large", expected)),
            Err(_) => Err(Invalid::new("is not a regular expression", expected)),
        }
    }

    /// How it is matched.
    #[must_use]
    pub const fn regex(&self) -> &Regex {
        &self.0
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

/// What `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` means.
///
/// Errors: another word than the standard's instrumentations know.
pub(crate) fn captures(word: &str) -> Result<Capture, Invalid> {
    match word.to_ascii_lowercase().as_str() {
        "true" | "span_only" => Ok(Capture::Spans),
        "event_only" => Ok(Capture::Events),
        "span_and_event" => Ok(Capture::Both),
        "false" | "no_content" => Ok(Capture::Off),
        _ => {
            let expected = "span_only, event_only, span_and_event or true; no_content or false";
            Err(Invalid::new("is not allowed here", expected))
        }
    }
}
