//! Methods of Python's values that minijinja-contrib lacks, or that trim or split in another way
//! there.

use minijinja::value::{ValueKind, from_args};
use minijinja::{Error, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

/// What `value.method(arguments…)` gives.
pub(super) fn call(
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    let Some(text) = value.as_str().filter(|_| value.kind() == ValueKind::String) else {
        return unknown_method_callback(state, value, method, arguments);
    };
    match method {
        "strip" | "lstrip" | "rstrip" => {
            let (characters,): (Option<&str>,) = from_args(arguments)?;
            let is_cut = |c: char| characters.map_or(is_space(c), |cut| cut.contains(c));
            let text = if method == "rstrip" { text } else { text.trim_start_matches(is_cut) };
            Ok(if method == "lstrip" { text } else { text.trim_end_matches(is_cut) }.into())
        }
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(arguments)?;
            Ok(text.strip_prefix(prefix).unwrap_or(text).into())
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(arguments)?;
            Ok(text.strip_suffix(suffix).unwrap_or(text).into())
        }
        "partition" => {
            let (mark,): (&str,) = from_args(arguments)?;
            let (before, after) = text.split_once(mark).unwrap_or((text, ""));
            let mark = if before.len() == text.len() { "" } else { mark };
            Ok(Value::from_iter([before, mark, after]))
        }
        "rpartition" => {
            let (mark,): (&str,) = from_args(arguments)?;
            let (before, after) = text.rsplit_once(mark).unwrap_or(("", text));
            let mark = if after.len() == text.len() { "" } else { mark };
            Ok(Value::from_iter([before, mark, after]))
        }
        "splitlines" if arguments.is_empty() => Ok(lines(text).collect()),
        _ => unknown_method_callback(state, value, method, arguments),
    }
}

/// What Python strips: Unicode's blanks, and four separators that Unicode does not count.
pub(super) fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}

/// `str.splitlines()`
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (line, end) = rest.split_at(rest.find(LINE_ENDS).unwrap_or(rest.len()));
        let mut after = end.chars();
        if after.next() == Some('\r') && after.as_str().starts_with('\n') {
            after.next();
        }
        rest = after.as_str();
        Some(line)
    })
}

/// Where Python ends a line.
const LINE_ENDS: [char; 10] =
    ['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];
