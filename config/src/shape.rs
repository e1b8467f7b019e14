//! What the file may look like, as a JSON Schema: for editors, which complete keys and show what they
//! mean. It is made of the table that reads the file, and takes whatever that takes; what keys
//! demand of each other only reading tells.

use serde_json::{Map, Value as Json, json};

/// The version of JSON Schema that editors know best.
const DIALECT: &str = "http://json-schema.org/draft-07/schema#";
/// In place of a number or a word.
const REFERENCE: &str = r"\$\{(env|file):[^}]+\}";

/// What a value looks like.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// Any text; YAML may take it for a number.
    Text,
    /// One of a few words.
    Words(Vec<&'static str>),
    /// A whole number, at least this.
    Whole(u32),
    /// A number within these.
    Number(f64, f64),
}

impl Shape {
    /// Its schema.
    pub(crate) fn described(self) -> Json {
        let other = match self {
            Self::Text => return json!({ "type": ["string", "number", "boolean"] }),
            Self::Words(words) => {
                // YAML has words for true and false of its own.
                let truths = [("true", true), ("false", false)].into_iter();
                let truths = truths.filter(|(word, _)| words.contains(word));
                let truths = truths.map(|(_, truth)| Json::from(truth));
                let all: Vec<_> = words.iter().copied().map(Json::from).chain(truths).collect();
                json!({ "enum": all })
            }
            Self::Whole(least) => json!({ "type": "integer", "minimum": least }),
            Self::Number(least, most) => {
                json!({ "type": "number", "minimum": least, "maximum": most })
            }
        };
        json!({ "anyOf": [other, { "type": "string", "pattern": REFERENCE }] })
    }
}

/// What a schema tells of.
pub(crate) trait Described {
    /// Its schema.
    fn described() -> Json;
}

/// A key, as the table has it.
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// Lines of its documentation.
    pub(crate) about: &'static [&'static str],
    pub(crate) is_required: bool,
    pub(crate) schema: Json,
}

/// The schema of a map with these keys.
pub(crate) fn map(about: &[&str], keys: Vec<Key>) -> Json {
    let required: Vec<_> = keys.iter().filter(|key| key.is_required).map(|key| key.name).collect();
    let properties: Map<String, Json> = keys
        .into_iter()
        .map(|Key { name, about, schema, .. }| (name.to_owned(), told(about, schema)))
        .collect();
    let map = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    told(about, if required.is_empty() { map } else { with(map, "required", required) })
}

/// The schema of a whole file of this kind.
pub(crate) fn file<T: Described>() -> Json {
    with(with(T::described(), "$schema", DIALECT), "title", "Taximeter's configuration")
}

/// `schema`, with these lines of documentation.
pub(crate) fn told(about: &[&str], schema: Json) -> Json {
    let lines: Vec<_> = about.iter().map(|line| line.trim()).collect();
    with(schema, "description", lines.join(" "))
}

fn with(mut schema: Json, name: &str, value: impl Into<Json>) -> Json {
    if let Json::Object(members) = &mut schema {
        members.insert(name.to_owned(), value.into());
    }
    schema
}
