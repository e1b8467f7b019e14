//! How Python prints values and formats the time.

use jiff::Timestamp;
use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

/// `str(value)`
pub(super) fn text(value: &Value) -> String {
    match value.kind() {
        ValueKind::String => value.to_string(),
        ValueKind::Undefined => String::new(),
        _ => {
            let mut out = String::new();
            represent(value, &mut out);
            out
        }
    }
}

/// `repr(value)`
fn represent(value: &Value, out: &mut String) {
    match value.kind() {
        ValueKind::String => quote(value.as_str().unwrap_or_default(), out),
        ValueKind::Number if !value.is_integer() => {
            out.push_str(&f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float));
        }
        ValueKind::Seq => {
            out.push('[');
            for (index, each) in value.try_iter().into_iter().flatten().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                represent(&each, out);
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter().into_iter().flatten().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                represent(&key, out);
                out.push_str(": ");
                represent(&value.get_item(&key).unwrap_or_default(), out);
            }
            out.push('}');
        }
        _ => out.push_str(&value.to_string()),
    }
}

/// A text as Python quotes it: in single quotes unless only these are inside.
fn quote(text: &str, out: &mut String) {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(mark);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if character == mark => out.extend(['\\', mark]),
            '"' | '\'' => out.push(character),
            _ if is_printable(character) => out.push(character),
            _ => {
                let code = u32::from(character);
                out.push_str(&match code {
                    0..=0xff => format!("\\x{code:02x}"),
                    0x100..=0xffff => format!("\\u{code:04x}"),
                    _ => format!("\\U{code:08x}"),
                });
            }
        }
    }
    out.push(mark);
}

/// Whether minijinja, left alone, would print a value in another way.
pub(super) fn prints_otherwise(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Number => text(value) != value.to_string(),
        ValueKind::String => value
            .as_str()
            .is_some_and(|text| text.chars().any(|c| !is_printable(c) && !c.is_ascii_whitespace())),
        ValueKind::Seq => {
            value.try_iter().into_iter().flatten().any(|each| prints_otherwise(&each))
        }
        ValueKind::Map => value.try_iter().into_iter().flatten().any(|key| {
            prints_otherwise(&key) || value.get_item(&key).is_ok_and(|each| prints_otherwise(&each))
        }),
        _ => false,
    }
}

/// Whether Python prints a character as it is; Rust's rule is the same, except that it asks first
/// what the character stands on.
fn is_printable(character: char) -> bool {
    if character.is_whitespace() || character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    ['a', character].iter().collect::<String>().escape_debug().count() == 2
}

/// `repr` of a float: the shortest digits, with an exponent below 10⁻⁴ and from 10¹⁶ on.
pub(super) fn float(value: f64) -> String {
    // Of two shortest texts, serde_json writes the one that Python writes.
    let Ok(written) = serde_json::to_string(&value.abs()) else { return value.to_string() };
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let significant = digits.trim_start_matches('0');
    let leading = digits.len() - significant.len();
    // The value is 0.DIGITS × 10^point.
    let point = exponent.parse().unwrap_or(0_i64) + signed(whole.len()) - signed(leading);
    let significant = match significant.trim_end_matches('0') {
        "" => "0",
        significant => significant,
    };
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or_default());
    let at = usize::try_from(point).unwrap_or_default();
    let length = signed(significant.len());
    if value == 0.0 {
        format!("{sign}0.0")
    } else if !(-3..=16).contains(&point) {
        let (first, rest) = significant.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        let exponent = point - 1;
        let direction = if exponent < 0 { '-' } else { '+' };
        format!("{sign}{first}{dot}{rest}e{direction}{:02}", exponent.unsigned_abs())
    } else if point <= 0 {
        format!("{sign}0.{}{significant}", zeros(-point))
    } else if length <= point {
        format!("{sign}{significant}{}.0", zeros(point - length))
    } else {
        let (whole, fraction) = significant.split_at(at);
        format!("{sign}{whole}.{fraction}")
    }
}

fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// `strftime_now(format)`, at `now` in UTC.
pub(super) fn strftime(now: Timestamp) -> Value {
    Value::from_function(move |format: &str| -> Result<String, Error> {
        let now = now.to_zoned(jiff::tz::TimeZone::UTC);
        jiff::fmt::strtime::format(format, &now).map_err(|_| unformatted())
    })
}

fn unformatted() -> Error {
    Error::new(ErrorKind::InvalidOperation, "strftime_now cannot write this")
}
