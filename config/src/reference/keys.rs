//! The keys of the schema one after the other, and files that have one of them.

use serde_json::{Map, Value as Json, json};

use crate::json_schema::{DefaultValue, Key, Schema, path_of};

/// A key and where it is.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// From the root on, such as `upstreams[].name`.
    pub(super) path: String,
    pub(super) key: &'a Key,
}

impl<'a> Entry<'a> {
    pub(super) fn below(path: &str, key: &'a Key) -> Self {
        Self { path: path_of(path, key.name), key }
    }

    /// The path of the keys below it.
    pub(super) fn items(&self) -> String {
        let is_map = matches!(self.key.schema, Schema::Map { .. });
        if is_map { self.path.clone() } else { format!("{}[]", self.path) }
    }

    /// The link to the section of the keys below it, as GitHub and mdBook make it of the title.
    pub(super) fn anchor(&self) -> String {
        self.items().chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
    }

    /// An example as the file would write it.
    pub(super) fn example(&self) -> Option<String> {
        let facts = &self.key.facts;
        match (&facts.default, facts.example) {
            (_, Some(example)) => Some(example.to_owned()),
            // Limits are numbers, and their default is as good as any.
            (DefaultValue::Value(value), None) => Some(value.to_string()),
            _ => None,
        }
    }
}

/// All keys, each behind the one that it is below.
pub(super) fn entries(schema: &Schema) -> Vec<Entry<'_>> {
    fn walk<'a>(path: &str, schema: &'a Schema, found: &mut Vec<Entry<'a>>) {
        for key in map(schema).into_iter().flat_map(|(_, keys)| keys) {
            let entry = Entry::below(path, key);
            let items = entry.items();
            found.push(entry);
            walk(&items, &key.schema, found);
        }
    }
    let mut found = Vec::new();
    walk("", schema, &mut found);
    found
}

/// The map that a value is, or that its items are.
pub(super) fn map(schema: &Schema) -> Option<(&'static [&'static str], &[Key])> {
    match schema {
        Schema::Map { about, keys } => Some((about, keys)),
        Schema::List(items) => map(items),
        Schema::AnyOf(schemas) => schemas.iter().find_map(map),
        Schema::Scalar { .. } | Schema::Named { .. } | Schema::Table(_) => None,
    }
}

/// A file with what must be there, and with the map around the key with this path.
pub(super) fn around(schema: &Schema, path: &str) -> Json {
    let mut file = minimal(schema);
    edit(schema, &mut file, path, &mut |_, _| ());
    file
}

/// `file` with `value` as its key with this path.
pub(super) fn with(schema: &Schema, mut file: Json, path: &str, value: &Json) -> Json {
    edit(schema, &mut file, path, &mut |map, name| {
        map.insert(name.to_owned(), value.clone());
    });
    file
}

/// Makes the maps on the way to the key, and hands over the last of them.
fn edit(
    schema: &Schema,
    file: &mut Json,
    path: &str,
    change: &mut dyn FnMut(&mut Map<String, Json>, &str),
) {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let name = name.trim_end_matches("[]");
    let (_, keys) = map(schema).expect("a map");
    let key = keys.iter().find(|key| key.name == name).expect("a key of the schema");
    let Some(rest) = rest else { return change(file.as_object_mut().expect("a map"), name) };
    let inner = &mut file[name];
    if inner.is_null() {
        *inner = minimal(&key.schema);
    }
    let inner = if inner.is_array() { &mut inner[0] } else { inner };
    edit(&key.schema, inner, rest, change);
}

/// The smallest value that is valid.
fn minimal(schema: &Schema) -> Json {
    match (schema, map(schema)) {
        (Schema::List(items), Some(_)) => json!([minimal(items)]),
        (_, Some((_, keys))) => {
            let required =
                keys.iter().filter(|key| matches!(key.facts.default, DefaultValue::Required));
            let members = required.map(|key| (key.name.to_owned(), example(key)));
            Json::Object(members.collect())
        }
        _ => json!({}),
    }
}

fn example(key: &Key) -> Json {
    key.facts.example.map_or_else(|| minimal(&key.schema), value)
}

/// What is written there, as JSON, which is YAML too.
pub(super) fn value(written: &str) -> Json {
    serde_json::from_slice(written.as_bytes()).unwrap_or_else(|_| Json::from(written))
}
