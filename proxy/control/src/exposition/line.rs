//! One line.

use std::borrow::Cow;

use taximeter_fleet::{Declared, Label};

use super::number;
use super::skipped::Why;

/// What a line is.
pub(super) enum Line<'a> {
    /// Nothing that is needed: a comment, a text for people, a unit.
    Nothing,
    /// The end of an OpenMetrics text.
    End,
    /// A family and its type.
    Type(Cow<'a, str>, Declared),
    /// A sample. Its labels stand in the list that [`parse`] got.
    Sample(Parsed<'a>),
}

/// A sample without its labels.
pub(super) struct Parsed<'a> {
    pub name: &'a str,
    /// The text of name and labels.
    pub series: &'a str,
    /// The text of all labels but the last.
    pub head: &'a str,
    pub value: f64,
    pub stamped: Option<i64>,
}

/// The text of labels, and what they are: those of the sample before, but for its last one. Many lines
/// begin with the same labels, which are not read again.
pub(super) type Head<'a, 's> = (&'a str, &'s [Label<'a>]);

/// Reads a line that begins with no space and has no end of line. Its labels go into `labels`.
pub(super) fn parse<'a>(
    line: &'a str,
    labels: &mut Vec<Label<'a>>,
    labels_max: usize,
    before: Head<'a, '_>,
) -> Result<Line<'a>, Why> {
    match line.strip_prefix('#') {
        Some(comment) => comment_of(comment),
        None => sample(line, labels, labels_max, before).map(Line::Sample),
    }
}

fn comment_of(comment: &str) -> Result<Line<'_>, Why> {
    let mut words = comment.trim_ascii_start();
    // Without a space behind it, `#` begins a comment for people.
    if words.len() == comment.len() {
        return Ok(Line::Nothing);
    }
    match word(&mut words) {
        "EOF" if words.is_empty() => Ok(Line::End),
        "TYPE" => family(words),
        _ => Ok(Line::Nothing),
    }
}

fn family(words: &str) -> Result<Line<'_>, Why> {
    let (name, mut rest) = match words.strip_prefix('"') {
        Some(quoted) => {
            let (name, rest) = quoted_text(quoted)?;
            (name, rest.trim_ascii_start())
        }
        None => {
            let mut rest = words;
            (Cow::Borrowed(word(&mut rest)), rest)
        }
    };
    if name.is_empty() {
        return Err(Why::Name);
    }
    let declared = match word(&mut rest) {
        "counter" => Declared::Counter,
        "gauge" => Declared::Gauge,
        "histogram" | "gaugehistogram" => Declared::Histogram,
        "summary" | "untyped" | "unknown" | "info" | "stateset" => Declared::Nothing,
        _ => return Err(Why::Type),
    };
    Ok(Line::Type(name, declared))
}

/// Takes the next word.
fn word<'a>(rest: &mut &'a str) -> &'a str {
    let end = rest.bytes().position(|byte| byte == b' ' || byte == b'\t').unwrap_or(rest.len());
    let (word, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
    *rest = behind.trim_ascii_start();
    word
}

fn sample<'a>(
    line: &'a str,
    labels: &mut Vec<Label<'a>>,
    labels_max: usize,
    before: Head<'a, '_>,
) -> Result<Parsed<'a>, Why> {
    let (mut name, rest) = bare_name(line);
    let mut rest = rest.trim_ascii_start();
    let mut head = "";
    if let Some(inner) = rest.strip_prefix('{') {
        let mut known = 0;
        if let Some(behind) = inner.strip_prefix(before.0).filter(|_| !before.0.is_empty()) {
            labels.extend_from_slice(before.1);
            known = inner.len() - behind.len();
        }
        let read = braces(inner, known, labels, labels_max)?;
        rest = read.behind;
        if read.quoted_name.is_none() {
            head = inner.get(..read.last).unwrap_or_default();
        }
        match read.quoted_name {
            Some(quoted) if name.is_empty() => name = quoted,
            Some(_) => return Err(Why::Label),
            None => {}
        }
    }
    if name.is_empty() {
        return Err(Why::Name);
    }
    let series = line.get(..line.len().saturating_sub(rest.len())).unwrap_or(line).trim_ascii_end();
    if series.len() == line.trim_ascii_end().len() {
        return Err(Why::NoValue);
    }
    if series.len() == name.len() && !rest.is_empty() && line.len() == name.len() + rest.len() {
        // A name of which a character is none.
        return Err(Why::Name);
    }
    let mut rest = rest.trim_ascii_start();
    let value = number::value(word(&mut rest)).ok_or(Why::Value)?;
    let mut stamped = None;
    if !rest.is_empty() && !rest.starts_with('#') {
        stamped = Some(number::stamp(word(&mut rest)).ok_or(Why::Stamp)?);
    }
    // Behind `#` stands an exemplar, which nobody here needs.
    if !rest.is_empty() && !rest.starts_with('#') {
        return Err(Why::Behind);
    }
    Ok(Parsed { name, series, head, value, stamped })
}

/// The name of a metric or a label at the beginning of `text`, and what is behind it.
fn bare_name(text: &str) -> (&str, &str) {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':');
    let end = text.as_bytes().iter().position(|byte| !is_name(byte)).unwrap_or(text.len());
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return ("", text);
    }
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// What stands between braces, beside the labels.
struct Braces<'a> {
    /// The name of the metric, if it stands there in quotes.
    quoted_name: Option<&'a str>,
    /// Where the last label begins.
    last: usize,
    /// What is behind the closing brace.
    behind: &'a str,
}

/// Reads labels up to the closing brace. Those of the first `known` bytes are there already.
fn braces<'a>(
    inner: &'a str,
    known: usize,
    labels: &mut Vec<Label<'a>>,
    labels_max: usize,
) -> Result<Braces<'a>, Why> {
    let mut rest = inner.get(known..).unwrap_or_default();
    let (mut quoted_name, mut last) = (None, 0);
    loop {
        rest = rest.trim_ascii_start();
        if let Some(behind) = rest.strip_prefix('}') {
            return Ok(Braces { quoted_name, last, behind });
        }
        let begin = inner.len() - rest.len();
        let name;
        if let Some(quoted) = rest.strip_prefix('"') {
            let Cow::Borrowed(text) = take_quoted(quoted, &mut rest)? else {
                return Err(Why::EscapedName);
            };
            name = text;
        } else {
            (name, rest) = bare_name(rest);
        }
        rest = rest.trim_ascii_start();
        match rest.strip_prefix('=') {
            Some(behind) if !name.is_empty() => {
                let behind = behind.trim_ascii_start();
                let quoted = behind.strip_prefix('"').ok_or(Why::Label)?;
                let value = take_quoted(quoted, &mut rest)?;
                if labels.len() >= labels_max {
                    return Err(Why::ManyLabels);
                }
                if labels.iter().any(|label| label.name == name) {
                    return Err(Why::LabelTwice);
                }
                labels.push(Label { name, value });
                last = begin;
            }
            None if rest.is_empty() => return Err(Why::OpenLabels),
            // Only the first thing in quotes is the metric's name.
            None if quoted_name.is_none() && labels.is_empty() && !name.is_empty() => {
                quoted_name = Some(name);
            }
            _ => return Err(Why::Label),
        }
        rest = rest.trim_ascii_start();
        match rest.strip_prefix(',') {
            Some(behind) => rest = behind,
            None if rest.starts_with('}') => {}
            None if rest.is_empty() => return Err(Why::OpenLabels),
            None => return Err(Why::Label),
        }
    }
}

/// What stands before the closing quote; `rest` becomes what is behind it.
fn take_quoted<'a>(quoted: &'a str, rest: &mut &'a str) -> Result<Cow<'a, str>, Why> {
    let (text, behind) = quoted_text(quoted)?;
    *rest = behind;
    Ok(text)
}

fn quoted_text(quoted: &str) -> Result<(Cow<'_, str>, &str), Why> {
    let mut escaped = false;
    let mut from = 0;
    loop {
        let within = quoted.as_bytes().get(from..).unwrap_or_default();
        let at = from + memchr::memchr2(b'"', b'\\', within).ok_or(Why::OpenLabel)?;
        if quoted.as_bytes().get(at) == Some(&b'"') {
            let text = quoted.get(..at).unwrap_or_default();
            let behind = quoted.get(at + 1..).unwrap_or_default();
            let text = if escaped { Cow::Owned(unescaped(text)) } else { Cow::Borrowed(text) };
            return Ok((text, behind));
        }
        escaped = true;
        from = at + 2;
    }
}

/// `\\`, `\"` and `\n` are escapes. A backslash before anything else is itself, as in a Windows path.
fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            plain.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => plain.push('\n'),
            Some(same @ ('\\' | '"')) => plain.push(same),
            Some(other) => plain.extend(['\\', other]),
            None => plain.push('\\'),
        }
    }
    plain
}
