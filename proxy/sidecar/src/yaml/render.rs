//! JSON values as YAML.

use serde_json::{Map, Value};

/// Keys that people look for first.
const FIRST: [&str; 4] = ["name", "image", "imagePullPolicy", "restartPolicy"];

/// `key: value` as lines, each behind `indent` spaces, without the last line break.
pub(super) fn entry(key: &str, value: &Value, indent: usize) -> String {
    let (margin, key) = (" ".repeat(indent), scalar(key));
    match value {
        Value::Object(members) if !members.is_empty() => {
            format!("{margin}{key}:\n{}", map(members, indent + 2))
        }
        Value::Array(items) if !items.is_empty() => {
            let items: Vec<String> = items.iter().map(|value| item(value, indent + 2)).collect();
            format!("{margin}{key}:\n{}", items.join("\n"))
        }
        Value::String(text) if is_block(text) => {
            let margin_in = " ".repeat(indent + 2);
            let lines: Vec<String> = text
                .lines()
                .map(
                    |line| {
                        if line.is_empty() { String::new() } else { format!("{margin_in}{line}") }
                    },
                )
                .collect();
            format!("{margin}{key}: |\n{}", lines.join("\n"))
        }
        value => format!("{margin}{key}: {}", inline(value)),
    }
}

/// `- value` as lines, each behind `indent` spaces, without the last line break.
pub(super) fn item(value: &Value, indent: usize) -> String {
    let margin = " ".repeat(indent);
    match value {
        Value::Object(members) if !members.is_empty() => {
            let lines = map(members, indent + 2);
            format!("{margin}- {}", lines.trim_start())
        }
        value => format!("{margin}- {}", inline(value)),
    }
}

fn map(members: &Map<String, Value>, indent: usize) -> String {
    let rank = |key: &str| FIRST.iter().position(|first| *first == key).unwrap_or(FIRST.len());
    let mut members: Vec<_> = members.iter().collect();
    taximeter_collections::sort_by_key(&mut members, |(key, _)| rank(key));
    let lines: Vec<String> =
        members.into_iter().map(|(key, value)| entry(key, value, indent)).collect();
    lines.join("\n")
}

/// A value on one line.
pub(super) fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        // JSON is YAML.
        other => other.to_string(),
    }
}

/// A text on one line.
fn scalar(text: &str) -> String {
    if is_plain(text) {
        text.to_owned()
    } else if text.contains('"') && !text.contains(|c: char| c == '\'' || c.is_control()) {
        format!("'{text}'")
    } else {
        Value::from(text).to_string()
    }
}

/// Whether a text without quotes is that text to every reader, old ones too.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 10] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan"];
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_./@+:".contains(c);
    let is_key = text.ends_with(':');
    begins
        && !is_key
        && text.chars().all(fits)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}

/// Whether a text reads well as a block, and says the same as one.
fn is_block(text: &str) -> bool {
    let printable = |c: char| c == '\n' || !c.is_control();
    let lines = text.strip_suffix('\n').unwrap_or_default();
    let ends_well = !lines.is_empty() && !lines.ends_with(['\n', ' ']);
    ends_well && !text.starts_with([' ', '\n']) && text.chars().all(printable)
}
