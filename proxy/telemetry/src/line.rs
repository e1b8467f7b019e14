//! One line of the log and its two formats: a JSON object, or text for people.

use std::io::Write as _;

use jiff::Timestamp;
use serde_json::Value;
use taximeter_net::visible::is_visible;

use super::names::log_event::LogEvent;
use super::trace::Found;

/// A field's name and value.
pub(crate) type Field = (&'static str, Value);

/// How a line looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// JSON, one object per line
    #[default]
    Json,
    /// Text for people
    Text,
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(super) at: Timestamp,
    pub(super) event: LogEvent,
    /// Where the request that it tells of can be found again.
    pub(super) trace: Option<Found>,
    pub(super) fields: Vec<Field>,
}

impl Line {
    /// A line that tells this now; texts of more than `bytes_max` are cut.
    pub(super) fn new(
        at: Timestamp,
        event: LogEvent,
        trace: Option<Found>,
        mut fields: Vec<Field>,
        bytes_max: usize,
    ) -> Self {
        fields.iter_mut().for_each(|(_, value)| cut(value, bytes_max));
        Self { at, event, trace, fields }
    }

    /// Appends it as it is written; `lost` lines before it could not be.
    pub(super) fn render(&self, format: LogFormat, lost: u64, to: &mut Vec<u8>) {
        let begun = to.len();
        let row = self.event.row();
        let (level, word) = (row.level.as_str(), row.word);
        let lost = (lost > 0).then(|| ("lost", lost.into()));
        let trace = self.trace.iter().flat_map(ids);
        let fields = trace.chain(self.fields.iter().cloned()).chain(lost);
        // Writing to memory cannot fail.
        let _ = match format {
            LogFormat::Json => {
                let time = self.at;
                write!(to, r#"{{"time":"{time}","level":"{level}","event":"{word}""#)
            }
            LogFormat::Text => write!(to, "{} {level:>8} {word}", self.at),
        };
        for (name, value) in fields {
            let _ = match format {
                LogFormat::Json => write!(to, r#","{name}":{value}"#),
                LogFormat::Text => write!(to, " {name}={value}"),
            };
        }
        escape_controls(to, begun);
        to.extend(if format == LogFormat::Json { &b"}\n"[..] } else { b"\n" });
    }
}

/// Writes what behind `begun` controls a terminal, or reorders or hides what it shows, as escapes of
/// JSON: JSON itself has them only for what is below U+0020.
fn escape_controls(to: &mut Vec<u8>, begun: usize) {
    let line = to.get(begun..).and_then(|line| std::str::from_utf8(line).ok());
    let obeyed = |c: char| !is_visible(c);
    let Some(line) = line.filter(|line| line.contains(obeyed)) else { return };
    let mut escaped = String::with_capacity(line.len() + 16);
    for c in line.chars() {
        if obeyed(c) {
            let units = c.encode_utf16(&mut [0; 2]).to_vec();
            escaped.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            escaped.push(c);
        }
    }
    to.truncate(begun);
    to.extend_from_slice(escaped.as_bytes());
}

/// The names are those that OpenTelemetry has for logs in other formats.
fn ids(found: &Found) -> impl Iterator<Item = Field> + use<> {
    let trace = ("trace_id", format!("{:032x}", u128::from_be_bytes(found.trace_id)).into());
    let span = |id| ("span_id", format!("{:016x}", u64::from_be_bytes(id)).into());
    std::iter::once(trace).chain(found.span_id.map(span))
}

fn cut(value: &mut Value, bytes_max: usize) {
    match value {
        Value::String(text) => text.truncate(text.floor_char_boundary(bytes_max)),
        Value::Array(values) => values.iter_mut().for_each(|value| cut(value, bytes_max)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(trace: Option<Found>, fields: Vec<Field>) -> Line {
        Line::new(Timestamp::UNIX_EPOCH, LogEvent::RequestRefused, trace, fields, 256)
    }

    fn rendered(line: &Line, format: LogFormat, lost: u64) -> String {
        let mut bytes = Vec::new();
        line.render(format, lost, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_line_is_one_json_object_whatever_is_in_it() {
        let nasty = "a\nb\u{1b}[31m\"\0".to_owned() + &"é".repeat(300);
        let line = line(None, vec![("message", nasty.into())]);
        let text = rendered(&line, LogFormat::Json, 0);
        assert_eq!(text.matches('\n').count(), 1);
        serde_json::from_str::<Value>(&text).unwrap();
    }

    #[test]
    fn a_text_as_long_as_a_field_stays_and_a_longer_one_is_cut() {
        let cut = |text: &str, bytes_max| {
            let mut value = Value::from(vec![text]);
            super::cut(&mut value, bytes_max);
            value[0].as_str().unwrap().to_owned()
        };
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("abcde", 4), "abcd");
        assert_eq!(cut("abcé", 4), "abc", "no half of a character");
    }

    #[test]
    fn text_keeps_control_characters_escaped() {
        let text = rendered(&line(None, vec![("message", "a\nb".into())]), LogFormat::Text, 3);
        let begin = "1970-01-01T00:00:00Z     warn request_refused";
        assert_eq!(text, format!("{begin} message=\"a\\nb\" lost=3\n"));
    }

    #[test]
    fn no_character_moves_a_terminal_or_reorders_a_line() {
        let nasty = "é\u{7f}\u{80}\u{9b}31m\u{9f}\u{a0}\u{202e}\u{e0041}";
        for format in [LogFormat::Json, LogFormat::Text] {
            let text = rendered(&line(None, vec![("message", nasty.into())]), format, 0);
            let shown = "é\\u007f\\u0080\\u009b31m\\u009f\u{a0}\\u202e\\udb40\\udc41";
            assert!(text.contains(shown), "{text}");
        }
        let text = rendered(&line(None, vec![("message", nasty.into())]), LogFormat::Json, 0);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["message"], nasty);
    }

    #[test]
    fn a_line_leads_to_its_span() {
        let found = Found { trace_id: [1; 16], span_id: Some([2; 8]) };
        let text = rendered(&line(Some(found), vec![("code", "gone".into())]), LogFormat::Json, 0);
        let begin = r#"{"time":"1970-01-01T00:00:00Z","level":"warn","event":"request_refused","#;
        let trace = "01010101010101010101010101010101";
        let ids = format!(r#""trace_id":"{trace}","span_id":"0202020202020202","#);
        assert_eq!(text, format!("{begin}{ids}\"code\":\"gone\"}}\n"));
    }
}
