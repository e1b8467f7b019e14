//! `tojson` as in `transformers`: Python's `json.dumps`.

use std::fmt::Write as _;

use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::limit;
use super::python::float;

/// Deepest value that is written; requests are not deeper.
const DEPTH_MAX: usize = 200;

/// `json.dumps(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False)`
pub(super) fn tojson(
    value: &Value,
    positional: Rest<Value>,
    named: Kwargs,
) -> Result<String, Error> {
    let option = |index: usize, name: &str| -> Result<Option<Value>, Error> {
        let given = named.get::<Option<Value>>(name)?;
        let given = given.or_else(|| positional.get(index).cloned());
        Ok(given.filter(|value| !value.is_none()))
    };
    let is_set = |value: Option<Value>| value.is_some_and(|value| value.is_true());
    let indent = match option(1, "indent")? {
        Some(width) => Some(limit::indent(width)?),
        None => None,
    };
    let (item, key) = match option(2, "separators")? {
        Some(pair) => {
            let part = |index: usize| -> Result<String, Error> {
                Ok(pair.get_item_by_index(index)?.to_string())
            };
            (part(0)?, part(1)?)
        }
        None => (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()),
    };
    let mut writer = Writer {
        out: String::new(),
        ascii: is_set(option(0, "ensure_ascii")?),
        sorted: is_set(option(3, "sort_keys")?),
        indent,
        item,
        key,
        depth: 0,
    };
    named.assert_all_used()?;
    writer.value(value)?;
    Ok(writer.out)
}

fn fault(told: &'static str) -> Error {
    Error::new(ErrorKind::BadSerialization, told)
}

struct Writer {
    out: String,
    ascii: bool,
    sorted: bool,
    indent: Option<String>,
    item: String,
    key: String,
    depth: usize,
}

impl Writer {
    fn value(&mut self, value: &Value) -> Result<(), Error> {
        match value.kind() {
            ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => self.out.push_str(&number(value)?),
            ValueKind::String => self.string(value.as_str().unwrap_or_default()),
            ValueKind::Seq | ValueKind::Iterable => self.list(value)?,
            ValueKind::Map => self.object(value)?,
            _ => return Err(fault("tojson has no JSON for this")),
        }
        Ok(())
    }

    fn list(&mut self, list: &Value) -> Result<(), Error> {
        self.open('[')?;
        let mut empty = true;
        for each in list.try_iter()? {
            self.next(&mut empty);
            self.value(&each)?;
        }
        self.close(']', empty);
        Ok(())
    }

    fn object(&mut self, object: &Value) -> Result<(), Error> {
        self.open('{')?;
        let mut empty = true;
        let mut keys: Vec<Value> = object.try_iter()?.collect();
        if self.sorted {
            taximeter_collections::sort(&mut keys);
        }
        for key in keys {
            self.next(&mut empty);
            match key.kind() {
                ValueKind::String => self.string(key.as_str().unwrap_or_default()),
                ValueKind::None => self.string("null"),
                ValueKind::Bool => self.string(if key.is_true() { "true" } else { "false" }),
                ValueKind::Number => self.string(&number(&key)?),
                _ => return Err(fault("tojson has no key for this")),
            }
            self.out.push_str(&self.key);
            self.value(&object.get_item(&key)?)?;
        }
        self.close('}', empty);
        Ok(())
    }

    fn open(&mut self, bracket: char) -> Result<(), Error> {
        self.depth += 1;
        self.out.push(bracket);
        if self.depth > DEPTH_MAX { Err(fault("tojson goes too deep")) } else { Ok(()) }
    }

    fn next(&mut self, empty: &mut bool) {
        if !std::mem::take(empty) {
            self.out.push_str(&self.item);
        }
        self.line();
    }

    fn close(&mut self, bracket: char, empty: bool) {
        self.depth -= 1;
        if !empty {
            self.line();
        }
        self.out.push(bracket);
    }

    /// A new line, where the text is indented.
    fn line(&mut self) {
        if let Some(indent) = &self.indent {
            self.out.push('\n');
            for _ in 0..self.depth {
                self.out.push_str(indent);
            }
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                '\0'..='\u{1f}' => self.escape(&mut [0; 2], character),
                _ if self.ascii && !matches!(character, ' '..='~') => {
                    self.escape(&mut [0; 2], character);
                }
                _ => self.out.push(character),
            }
        }
        self.out.push('"');
    }

    fn escape(&mut self, units: &mut [u16; 2], character: char) {
        for unit in character.encode_utf16(units) {
            // Writing to a text does not fail.
            let _ = write!(self.out, "\\u{unit:04x}");
        }
    }
}

fn number(value: &Value) -> Result<String, Error> {
    if value.is_integer() {
        Ok(value.to_string())
    } else {
        Ok(float(f64::try_from(value.clone())?))
    }
}
