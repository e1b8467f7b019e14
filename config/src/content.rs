//! Which texts of prompts and answers telemetry captures, and what it redacts first.

use std::collections::BTreeSet;

use regex::{Regex, RegexBuilder};

use crate::mistake::Invalid;

/// The largest compiled form of one pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Where captured prompts and answers go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Capture {
    /// Nowhere.
    #[default]
    Off,
    /// On the spans of engines.
    Spans,
    /// Into log records.
    Events,
    /// To both.
    Both,
}

impl Capture {
    /// Whether spans carry texts.
    #[must_use]
    pub const fn is_on_spans(self) -> bool {
        matches!(self, Self::Spans | Self::Both)
    }

    /// Whether log records carry texts.
    #[must_use]
    pub const fn is_on_events(self) -> bool {
        matches!(self, Self::Events | Self::Both)
    }

    /// The same without log records.
    pub(crate) const fn without_events(self) -> Self {
        if self.is_on_spans() { Self::Spans } else { Self::Off }
    }
}

/// What telemetry captures of prompts and answers; by default nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Where texts go, of requests whose spans are kept from the start.
    pub capture: Capture,
    /// The most bytes of one attribute.
    pub bytes_max: usize,
    /// Patterns of text to replace.
    pub redact: Vec<Pattern>,
    /// Whether to replace API keys, tokens and e-mail addresses too.
    pub redact_known: bool,
    /// The tenants whose texts are captured; `None` is all tenants.
    pub tenants: Option<BTreeSet<String>>,
}

impl Content {
    /// The most bytes of one attribute by default.
    pub(crate) const BYTES_MAX: usize = 32 << 10;

    /// Whether the texts of this tenant are captured.
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

/// A regular expression in the syntax of Rust's `regex`. Matching takes time linear in the text.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// What a message expects.
    pub(crate) const FORM: &str = "a regular expression such as [0-9]{8}";

    /// The pattern of this text.
    ///
    /// Errors: not a regular expression; too large; or it matches the empty text, and so the gap
    /// between any two characters.
    pub(crate) fn new(text: &str) -> Result<Self, Invalid> {
        let expected = Self::FORM;
        match RegexBuilder::new(text).size_limit(PATTERN_BYTES_MAX).build() {
            Ok(regex) if regex.is_match("") => Err(Invalid::new("matches an empty text", expected)),
            Ok(regex) => Ok(Self(regex)),
            Err(regex::Error::CompiledTooBig(_)) => Err(Invalid::new("is too large", expected)),
            Err(_) => Err(Invalid::new("is not a regular expression", expected)),
        }
    }

    /// The compiled expression.
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

/// The value of `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`.
///
/// Errors: a word that OpenTelemetry's instrumentations do not have.
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
