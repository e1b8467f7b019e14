//! Log lines on stderr: one JSON object a line, or text for people. Never a prompt, never a secret;
//! each kind of event at most so many lines a second.

use std::io::Write as _;
use std::time::Duration;

use clap::ValueEnum;
use dashmap::DashMap;
use pingora_limits::rate::Rate;
use serde_json::{Map, Value};

use crate::edge::clock;

/// Lines of one kind a second; the number left out is told with the next one.
const LINES_PER_KIND_PER_SECOND_MAX: isize = 10;
/// Longest text in a field, in bytes.
const FIELD_BYTES_MAX: usize = 256;

/// How a line looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object a line.
    #[default]
    Json,
    /// For people.
    Text,
}

/// Where lines go.
pub(crate) struct Log {
    format: Format,
    quiet: bool,
    lines: Rate,
    /// Lines of a kind that were over its rate since the last one that was not.
    left_out: DashMap<&'static str, u64>,
}

impl Log {
    /// Lines to stderr.
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            quiet: false,
            lines: Rate::new(Duration::from_secs(1)),
            left_out: DashMap::new(),
        }
    }

    /// Only what is broken and needs somebody: for a gateway that shares its terminal.
    pub(crate) fn quiet(format: Format) -> Self {
        Self { quiet: true, ..Self::new(format) }
    }

    /// Something an operator may want to know.
    pub(crate) fn info(&self, event: &'static str, fields: &[(&str, Value)]) {
        self.line("info", event, fields);
    }

    /// Something went wrong that is not ours.
    pub(crate) fn warn(&self, event: &'static str, fields: &[(&str, Value)]) {
        self.line("warn", event, fields);
    }

    /// Something is broken and needs somebody.
    pub(crate) fn critical(&self, event: &'static str, fields: &[(&str, Value)]) {
        self.line("critical", event, fields);
    }

    fn line(&self, level: &'static str, event: &'static str, fields: &[(&str, Value)]) {
        if self.quiet && level != "critical" {
            return;
        }
        if self.lines.observe(&event, 1) > LINES_PER_KIND_PER_SECOND_MAX {
            *self.left_out.entry(event).or_default() += 1;
            return;
        }
        let mut fields = fields.to_vec();
        if let Some((_, left_out)) = self.left_out.remove(event) {
            fields.push(("left_out", left_out.into()));
        }
        let line = render(self.format, &clock::wall().to_string(), level, event, &fields);
        // A closed stderr must not stop the gateway.
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
    }
}

fn render(
    format: Format,
    time: &str,
    level: &str,
    event: &str,
    fields: &[(&str, Value)],
) -> String {
    let cut = |value: &Value| match value {
        Value::String(text) if text.len() > FIELD_BYTES_MAX => {
            let end = (0..=FIELD_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at));
            Value::from(text.get(..end.unwrap_or(0)).unwrap_or_default())
        }
        other => other.clone(),
    };
    match format {
        Format::Json => {
            let mut object = Map::new();
            object.insert("time".into(), time.into());
            object.insert("level".into(), level.into());
            object.insert("event".into(), event.into());
            object.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), cut(value))));
            format!("{}\n", Value::Object(object))
        }
        Format::Text => {
            let fields: String =
                fields.iter().map(|(name, value)| format!(" {name}={}", cut(value))).collect();
            format!("{time} {level:>8} {event}{fields}\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_json_object_whatever_is_in_it() {
        let nasty = "a\nb\u{1b}[31m\"\0".to_owned() + &"é".repeat(300);
        let line = render(Format::Json, "t", "warn", "e", &[("field", nasty.into())]);
        assert_eq!(line.matches('\n').count(), 1);
        let value: Value = serde_json::from_str(&line).unwrap();
        assert!(value["field"].as_str().unwrap().len() <= FIELD_BYTES_MAX);
    }

    #[test]
    fn text_keeps_control_characters_escaped() {
        let line = render(Format::Text, "t", "warn", "e", &[("field", "a\nb".into())]);
        assert_eq!(line, "t     warn e field=\"a\\nb\"\n");
    }
}
