//! The schema of the configuration as a tree, and the same tree as a JSON Schema for editors.
//!
//! The tree is made from the table that reads the file (`keys!`), so it accepts every file that the
//! reader accepts. Rules between two keys are not part of it; only reading a file finds those.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value as Json, json};
use taximeter_collections::Gather as _;

/// The version of JSON Schema that editors support best.
const DRAFT: &str = "http://json-schema.org/draft-07/schema#";
/// A reference that may stand in place of a number or a word.
const REFERENCE: &str = r"\$\{(env|file):[^}]+\}";
/// The first release: it has all keys that say nothing else.
const FIRST_RELEASE: &str = "0.1.0";

/// The values that one scalar may have.
#[derive(Debug, Clone)]
pub(crate) enum Allowed {
    /// Any text. YAML may read it as a number.
    Text,
    /// One of these words.
    Words(Vec<&'static str>),
    /// A whole number from `min` to `max`; `None` where only the type of the number ends it.
    Whole { min: u64, max: Option<u64> },
    /// A number from 0 to `max`.
    Number { zero: bool, max: f64 },
}

impl Allowed {
    fn json(&self) -> Json {
        let value = match self {
            Self::Text => return json!({ "type": ["string", "number", "boolean"] }),
            Self::Words(words) => {
                // YAML has its own true and false.
                let booleans = [("true", true), ("false", false)].into_iter();
                let booleans = booleans.filter(|(word, _)| words.contains(word));
                let booleans = booleans.map(|(_, boolean)| Json::from(boolean));
                let all: Vec<_> = words.iter().copied().map(Json::from).chain(booleans).collect();
                json!({ "enum": all })
            }
            Self::Whole { min, max: None } => json!({ "type": "integer", "minimum": min }),
            Self::Whole { min, max } => {
                json!({ "type": "integer", "minimum": min, "maximum": max })
            }
            Self::Number { zero: true, max } => {
                json!({ "type": "number", "minimum": 0, "maximum": max })
            }
            Self::Number { zero: false, max } => {
                json!({ "type": "number", "exclusiveMinimum": 0, "maximum": max })
            }
        };
        json!({ "anyOf": [value, { "type": "string", "pattern": REFERENCE }] })
    }
}

/// When a changed key takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// While the gateway runs, when it reads the file again.
    Reload,
    /// At the next start of the gateway.
    Restart,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reload => "reload",
            Self::Restart => "restart",
        })
    }
}

/// What the gateway uses where the file leaves a key out.
#[derive(Debug, Clone)]
pub(crate) enum DefaultValue {
    /// This value, as the file would write it.
    Value(Cow<'static, str>),
    /// No fixed value; these words say what happens.
    Words(&'static str),
    /// Nothing: the file must have the key.
    Required,
}

/// What the table says of a key beside its name, its type and its meaning.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) default: DefaultValue,
    /// A value as the file would write it. Maps have none: their keys have.
    pub(crate) example: Option<&'static str>,
    /// The first release that has the key.
    pub(crate) since: &'static str,
}

impl Facts {
    const fn new(default: DefaultValue) -> Self {
        Self { default, example: None, since: FIRST_RELEASE }
    }

    /// The same with an example.
    pub(crate) const fn example(mut self, example: &'static str) -> Self {
        self.example = Some(example);
        self
    }
}

/// A key with this default, written as the file would write it.
pub(crate) const fn default(value: &'static str) -> Facts {
    Facts::new(DefaultValue::Value(Cow::Borrowed(value)))
}

/// A key without a fixed default; `words` say what the gateway does without it.
pub(crate) const fn without(words: &'static str) -> Facts {
    Facts::new(DefaultValue::Words(words))
}

/// A key that the file must have.
pub(crate) const fn required() -> Facts {
    Facts::new(DefaultValue::Required)
}

/// A limit: its default is a number, or described in `words`.
pub(crate) fn limit(default: Option<&serde_json::Number>, words: Option<&'static str>) -> Facts {
    Facts::new(match (default, words) {
        (Some(number), _) => DefaultValue::Value(number.to_string().into()),
        (None, words) => DefaultValue::Words(words.unwrap_or("no limit")),
    })
}

/// A key as the table has it.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// Lines of its documentation.
    pub(crate) about: &'static [&'static str],
    pub(crate) facts: Facts,
    pub(crate) schema: Schema,
}

/// What the file may have in one place.
#[derive(Debug, Clone)]
pub(crate) enum Schema {
    /// One scalar.
    Scalar { expected: Cow<'static, str>, allowed: Allowed },
    /// A list of such items.
    List(Box<Self>),
    /// One of these.
    AnyOf(Vec<Self>),
    /// A map with the keys of the table.
    Map { about: &'static [&'static str], keys: Vec<Key> },
    /// A map with these keys, all with such values; every key may be left out.
    Named { names: Vec<&'static str>, values: Box<Self> },
    /// A map with keys that the user chooses.
    Table(Box<Self>),
}

/// A type that the table of keys can describe.
pub(crate) trait Described {
    /// Its schema.
    fn described() -> Schema;
}

/// When a change of the key with this path takes effect.
type Effects<'a> = &'a dyn Fn(&str) -> Effect;

impl Schema {
    /// One such item, or a list of them.
    pub(crate) fn one_or_more(self) -> Self {
        Self::AnyOf(vec![self.clone(), Self::List(Box::new(self))])
    }

    /// The JSON Schema of a whole file.
    pub(crate) fn file(&self, effects: Effects<'_>) -> Json {
        with(with(self.json("", effects), "$schema", DRAFT), "title", "Taximeter's configuration")
    }

    fn json(&self, path: &str, effects: Effects<'_>) -> Json {
        match self {
            Self::Scalar { expected, allowed } => {
                with(allowed.json(), "description", expected.as_ref())
            }
            Self::List(items) => json!({ "type": "array", "items": items.json(path, effects) }),
            Self::AnyOf(schemas) => {
                let schemas: Vec<_> = schemas.iter().map(|one| one.json(path, effects)).collect();
                json!({ "anyOf": schemas })
            }
            Self::Map { about, keys } => with(map(keys, path, effects), "description", text(about)),
            Self::Named { names, values } => {
                let schema = values.json(path, effects);
                let names = names.iter().map(|name| ((*name).to_owned(), schema.clone()));
                let properties: Map<String, Json> = names.gather();
                json!({
                    "type": "object", "properties": properties, "additionalProperties": false,
                })
            }
            Self::Table(values) => {
                let values = values.json(path, effects);
                json!({ "type": "object", "additionalProperties": values })
            }
        }
    }
}

fn map(keys: &[Key], path: &str, effects: Effects<'_>) -> Json {
    let is_required = |key: &&Key| matches!(key.facts.default, DefaultValue::Required);
    let required: Vec<_> = keys.iter().filter(is_required).map(|key| key.name).collect();
    let properties: Map<String, Json> = keys
        .iter()
        .map(|key| {
            let path = path_of(path, key.name);
            let schema = key.schema.json(&path, effects);
            (key.name.to_owned(), facts(schema, key, effects(&path)))
        })
        .gather();
    let map = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if required.is_empty() { map } else { with(map, "required", required) }
}

/// `schema` with what the table says of its key.
fn facts(schema: Json, key: &Key, effect: Effect) -> Json {
    let Key { about, facts: Facts { default, example, since }, .. } = key;
    let about = text(about);
    let mut schema = match default {
        DefaultValue::Value(value) => {
            let schema = with(schema, "default", scalar(value));
            with(schema, "description", format!("{about} Default: {value}."))
        }
        DefaultValue::Words(words) => {
            with(schema, "description", format!("{about} Default: {words}."))
        }
        DefaultValue::Required => with(schema, "description", about),
    };
    if let Some(example) = example {
        schema = with(schema, "examples", vec![scalar(example)]);
    }
    // Where the keys of a map differ, they say it.
    let differs = effect == Effect::Reload && matches!(key.schema, Schema::Map { .. });
    let effect = (!differs).then(|| format!(" A change takes effect on {effect}."));
    with(schema, "$comment", format!("Since {since}.{}", effect.unwrap_or_default()))
}

/// The value that stands there: JSON where it is JSON, else text.
fn scalar(written: &str) -> Json {
    serde_json::from_slice(written.as_bytes()).unwrap_or_else(|_| Json::from(written))
}

/// The path of the key `name` below `path`.
pub(crate) fn path_of(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Lines of documentation as one text.
pub(crate) fn text(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

fn with(mut schema: Json, name: &str, value: impl Into<Json>) -> Json {
    if let Json::Object(members) = &mut schema {
        members.insert(name.to_owned(), value.into());
    }
    schema
}
