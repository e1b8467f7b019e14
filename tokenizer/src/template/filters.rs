//! Filters that behave in Python's Jinja in another way than in minijinja.

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value};

use super::content::UNSUPPORTED;
use super::methods::{is_space, lines};
use super::python::text;
use super::{json, limit};

pub(super) fn add(environment: &mut Environment<'_>) {
    environment.add_filter("tojson", json::tojson);
    environment.add_filter("string", text);
    environment.add_filter("trim", trim);
    environment.add_filter("join", join);
    environment.add_filter("items", items);
    environment.add_filter("indent", indent);
    // A marked-up text prints as it is.
    environment.add_filter("safe", text);
    environment.add_filter(UNSUPPORTED, |_: Value| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, "it adds to marked-up text"))
    });
}

/// `trim(value, chars=None)`
fn trim(value: &Value, characters: Option<&str>) -> String {
    let is_cut = |c: char| characters.map_or(is_space(c), |cut| cut.contains(c));
    text(value).trim_matches(is_cut).to_owned()
}

/// `join(values, d='', attribute=None)`
fn join(values: &Value, between: Option<&str>, named: Kwargs) -> Result<String, Error> {
    let named_between = named.get::<Option<&str>>("d")?;
    let attribute = named.get::<Option<&str>>("attribute")?;
    named.assert_all_used()?;
    let mut texts = Vec::new();
    for value in values.try_iter()? {
        texts.push(match attribute {
            Some(name) => text(&value.get_attr(name)?),
            None => text(&value),
        });
    }
    Ok(texts.join(between.or(named_between).unwrap_or_default()))
}

/// `items(mapping)`: none of what is undefined.
fn items(mapping: &Value) -> Result<Value, Error> {
    match mapping.kind() {
        ValueKind::Undefined => Ok(Value::from_iter([] as [Value; 0])),
        ValueKind::Map => minijinja::filters::items(mapping),
        _ => Err(Error::new(ErrorKind::InvalidOperation, "items wants a mapping")),
    }
}

/// `indent(text, width=4, first=False, blank=False)`
fn indent(
    value: &Value,
    width: Option<Value>,
    first: Option<bool>,
    blank: Option<bool>,
    named: Kwargs,
) -> Result<String, Error> {
    let width = width.or(named.get::<Option<Value>>("width")?);
    let first = first.or(named.get("first")?).unwrap_or_default();
    let blank = blank.or(named.get("blank")?).unwrap_or_default();
    named.assert_all_used()?;
    let by = limit::indent(width.unwrap_or_else(|| Value::from(4)))?;
    // Jinja ends the text with a line end of its own, so that the last one counts.
    let text = text(value) + "\n";
    let mut out = String::with_capacity(text.len());
    for (index, line) in lines(&text).enumerate() {
        if index > 0 {
            out.push('\n');
        }
        if if index == 0 { first } else { blank || !line.is_empty() } {
            out.push_str(&by);
        }
        out.push_str(line);
    }
    Ok(out)
}
