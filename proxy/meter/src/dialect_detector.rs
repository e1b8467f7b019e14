//! Finds the marks of an engine in an answer.
//!
//! Each mark belongs to one engine only. Where two marks contradict each other, the detector
//! decides nothing. What it finds says how later requests may ask for usage. It never says how an
//! answer is read: an aggregator passes the answers of many engines on.

use std::sync::LazyLock;

use crate::dialect::{Dialect, Mark};
use crate::json::{Malformed, Reader};

/// Events of one answer that are looked at. Marks are in the first ones, or in the last, and those
/// between hardly ever need to be read in full.
const LOOKS_MAX: u8 = 32;

/// Longest event or document that is looked at, in bytes.
const LOOK_BYTES_MAX: usize = 64 << 10;

/// All marks in the JSON of answers.
static MEMBERS: LazyLock<Vec<MarkPath>> = LazyLock::new(|| {
    let marks_of = |dialect: Dialect| {
        dialect.marks().iter().filter_map(move |mark| match *mark {
            Mark::Member(path) => Some(MarkPath { dialect, path, knows: |_| true }),
            Mark::Fingerprint(knows) => {
                Some(MarkPath { dialect, path: &["system_fingerprint"], knows })
            }
            Mark::Engine(_) | Mark::Owner(_) | Mark::Header(_) | Mark::HeaderIs(..) => None,
        })
    };
    Dialect::ALL.iter().copied().flat_map(marks_of).collect()
});

/// A mark in JSON, and the way that is left to it.
#[derive(Debug, Clone, Copy)]
struct MarkPath {
    dialect: Dialect,
    path: &'static [&'static str],
    /// Whether its text is the mark's.
    knows: fn(&str) -> bool,
}

/// Looks for marks in one answer.
#[derive(Debug, Clone)]
pub(crate) struct DialectDetector {
    dialect: Dialect,
    looks_left: u8,
}

impl DialectDetector {
    /// There is something to find out only where nothing is known.
    pub(crate) const fn new(known: Dialect) -> Self {
        let looks_left = if matches!(known, Dialect::Auto) { LOOKS_MAX } else { 0 };
        Self { dialect: known, looks_left }
    }

    /// Who answers: as it was known, or as has been shown.
    pub(crate) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether more is to be looked at.
    pub(crate) const fn is_looking(&self) -> bool {
        self.looks_left > 0
    }

    /// Looks at a header of an answer, its name in lower case.
    pub(crate) fn look_at_header(&mut self, name: &str, value: &str) {
        if !self.is_looking() {
            return;
        }
        let is_header = |mark: &Mark| match *mark {
            Mark::Header(header) => header == name,
            Mark::HeaderIs(header, expected) => header == name && expected == value,
            Mark::Engine(_) | Mark::Owner(_) | Mark::Member(_) | Mark::Fingerprint(_) => false,
        };
        let shows = |dialect: &&Dialect| dialect.marks().iter().any(is_header);
        if let Some(dialect) = Dialect::ALL.iter().find(shows) {
            self.found(*dialect);
        }
    }

    /// Looks at one event, or at a whole answer.
    pub(crate) fn look_at(&mut self, document: &[u8]) {
        if !self.is_looking() || document.len() > LOOK_BYTES_MAX {
            return;
        }
        self.looks_left -= 1;
        let mut found = Vec::new();
        if members(&mut Reader::new(document), &MEMBERS, &mut found).is_ok() {
            for dialect in found {
                self.found(dialect);
            }
        }
    }

    fn found(&mut self, dialect: Dialect) {
        if self.dialect == Dialect::Auto && self.is_looking() {
            self.dialect = dialect;
        } else if self.dialect != dialect {
            *self = Self { dialect: Dialect::Auto, looks_left: 0 };
        }
    }
}

/// Finds the marks in an object. It goes no deeper than the longest way to one.
fn members(
    object: &mut Reader<'_>,
    marks: &[MarkPath],
    found: &mut Vec<Dialect>,
) -> Result<(), Malformed> {
    object.object(|key, value| {
        let mut deeper = Vec::new();
        for mark in marks {
            match mark.path {
                [name] if name.as_bytes() == key => {
                    let text = value.clone().text()?.map(|text| text.decode());
                    if (mark.knows)(text.as_deref().unwrap_or_default()) {
                        found.push(mark.dialect);
                    }
                }
                [name, path @ ..] if name.as_bytes() == key => {
                    deeper.push(MarkPath { path, ..*mark });
                }
                _ => {}
            }
        }
        match value.peek() {
            _ if deeper.is_empty() => value.skip(),
            Some(b'[') => value.array(|element| members(element, &deeper, found)),
            _ => members(value, &deeper, found),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(documents: &[&str]) -> Dialect {
        let mut detector = DialectDetector::new(Dialect::Auto);
        for document in documents {
            detector.look_at(document.as_bytes());
        }
        detector.dialect()
    }

    fn by_headers(headers: &[(&str, &str)]) -> Dialect {
        let mut detector = DialectDetector::new(Dialect::Auto);
        headers.iter().for_each(|(name, value)| detector.look_at_header(name, value));
        detector.dialect()
    }

    #[test]
    fn members_give_an_engine_away() {
        for (document, dialect) in [
            (r#"{"x_groq":{"id":"r"}}"#, Dialect::Groq),
            (r#"{"choices":[{"delta":{}},{"matched_stop":null}]}"#, Dialect::Sglang),
            (r#"{"timings":{"predicted_per_token_ms":1.5}}"#, Dialect::LlamaCpp),
            (r#"{"system_fingerprint":"fp_ollama"}"#, Dialect::Ollama),
            (r#"{"system_fingerprint":"b6123-9a96389f"}"#, Dialect::LlamaCpp),
            (r#"{"system_fingerprint":"3.3.5-sha-1234567"}"#, Dialect::Tgi),
            (r#"{"usage":{"num_sources_used":0}}"#, Dialect::Xai),
            (r#"{"usageMetadata":{"promptTokenCount":1}}"#, Dialect::Gemini),
            (r#"[{"usageMetadata":{"promptTokenCount":1}}]"#, Dialect::Auto),
            (r#"{"meta":{"billed_units":{"search_units":1}}}"#, Dialect::Cohere),
            (r#"{"usage":{"inputTokens":1}}"#, Dialect::Bedrock),
            (
                r#"{"choices":[{"delta":{"tool_calls":[{"extra_content":{"google":{}}}]}}]}"#,
                Dialect::Gemini,
            ),
        ] {
            assert_eq!(detected(&[document]), dialect, "{document}");
        }
    }

    #[test]
    fn headers_give_an_engine_away() {
        assert_eq!(by_headers(&[("server", "llama.cpp")]), Dialect::LlamaCpp);
        assert_eq!(by_headers(&[("openai-version", "2020-10-01")]), Dialect::OpenAi);
        assert_eq!(by_headers(&[("server", "nginx"), ("x-request-id", "1")]), Dialect::Auto);
    }

    #[test]
    fn what_others_do_too_decides_nothing() {
        for document in [
            r#"{"id":"chatcmpl-1","system_fingerprint":"fp_44709d6fcb","service_tier":"default"}"#,
            r#"{"system_fingerprint":"beta-version"}"#,
            r#"{"choices":[{"finish_reason":"stop","stop_reason":null}],"citations":[]}"#,
            r#"{"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":4}}}"#,
            r#"{"timings":[],"choices":{"delta":"matched_stop"},"usage":"num_sources_used"}"#,
        ] {
            assert_eq!(detected(&[document]), Dialect::Auto, "{document}");
        }
    }

    #[test]
    fn what_contradicts_itself_decides_nothing() {
        let both = r#"{"x_groq":{},"choices":[{"matched_stop":null}]}"#;
        let groq = r#"{"x_groq":{}}"#;
        assert_eq!(detected(&[both]), Dialect::Auto);
        assert_eq!(detected(&[groq, r#"{"sglext":{}}"#, groq]), Dialect::Auto);
        assert_eq!(detected(&[groq, groq]), Dialect::Groq);
    }

    #[test]
    fn only_so_much_is_looked_at() {
        let mut detector = DialectDetector::new(Dialect::Auto);
        for _ in 0..LOOKS_MAX {
            assert!(detector.is_looking());
            detector.look_at(b"{}");
        }
        detector.look_at(br#"{"x_groq":{}}"#);
        assert_eq!(detector.dialect(), Dialect::Auto);
        let long = format!(r#"{{"x_groq":{{}},"pad":"{}"}}"#, "x".repeat(LOOK_BYTES_MAX));
        assert_eq!(detected(&[&long]), Dialect::Auto);
    }

    #[test]
    fn a_dialect_that_is_known_is_not_looked_for() {
        let mut detector = DialectDetector::new(Dialect::Vllm);
        detector.look_at(br#"{"x_groq":{}}"#);
        detector.look_at_header("server", "llama.cpp");
        assert_eq!(detector.dialect(), Dialect::Vllm);
    }

    #[test]
    fn nesting_is_not_followed() {
        let deep = format!(r#"{{"choices":{}1{}}}"#, "[".repeat(50_000), "]".repeat(50_000));
        let mut detector = DialectDetector::new(Dialect::Auto);
        let mut found = Vec::new();
        assert!(members(&mut Reader::new(deep.as_bytes()), &MEMBERS, &mut found).is_ok());
        detector.look_at(deep.as_bytes());
        assert_eq!(detector.dialect(), Dialect::Auto);
    }

    #[test]
    fn each_owner_and_header_is_one_dialects() {
        let mut names = Vec::new();
        for mark in Dialect::ALL.iter().flat_map(|dialect| dialect.marks()) {
            match mark {
                Mark::Engine(name) | Mark::Owner(name) | Mark::Header(name) => {
                    names.push(*name);
                }
                Mark::HeaderIs(..) | Mark::Member(_) | Mark::Fingerprint(_) => {}
            }
        }
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
