//! Reads the YAML tree into the `Raw*` structs of the schema.
//!
//! The reader does not stop at a mistake. It reports the mistake, leaves the value out and goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use taximeter_collections::Gather as _;
use taximeter_pricing::MeterName;
use taximeter_yaml::{Kind, MapKey, Node};

use crate::mistake::{Findings, Found, Invalid};
use crate::value::Value;

/// The bytes of a value in the text, and the path of its key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) at: Range<usize>,
    pub(crate) path: String,
}

/// A value and its location.
#[derive(Debug, Clone)]
pub(crate) struct Spanned<T> {
    pub(crate) value: T,
    pub(crate) location: Location,
    /// The value as written, with `${…}` in place of what it stands for.
    pub(crate) written: String,
}

/// The value of a key that the file may leave out.
#[derive(Debug, Clone)]
pub(crate) enum Optional<T> {
    /// The file does not have the key.
    Absent,
    /// The value cannot be read. That is reported already.
    Wrong,
    /// The value.
    Given(T),
}

impl<T> Optional<T> {
    pub(crate) fn given(self) -> Option<T> {
        match self {
            Self::Given(value) => Some(value),
            Self::Absent | Self::Wrong => None,
        }
    }

    pub(crate) fn as_ref(&self) -> Optional<&T> {
        match self {
            Self::Absent => Optional::Absent,
            Self::Wrong => Optional::Wrong,
            Self::Given(value) => Optional::Given(value),
        }
    }
}

impl<T> Optional<Spanned<T>> {
    /// The value, or the default. A wrong value gives the default too: nothing is built then.
    pub(crate) fn or<U: From<T>>(self, default: U) -> U {
        self.given().map_or(default, |at| at.value.into())
    }
}

/// The value of a key that the file must have; `None` when it is missing or unreadable, which is
/// reported already.
#[derive(Debug, Clone)]
pub(crate) struct Required<T>(pub(crate) Option<T>);

/// A type that a node of the tree can be read into.
pub(crate) trait Read: Sized {
    /// `None` when there is a mistake. The mistake is reported.
    fn read(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self>;
}

/// The state of reading: access to the outside, and the mistakes so far.
pub(crate) struct Reader<'a> {
    /// Environment variables.
    pub(crate) env: &'a dyn Fn(&str) -> Option<String>,
    /// Files.
    pub(crate) read_file: &'a dyn Fn(&Path) -> io::Result<String>,
    /// The folder of the configuration. Relative paths start here.
    pub(crate) folder: &'a Path,
    /// The mistakes so far.
    pub(crate) findings: Findings,
}

impl Reader<'_> {
    /// Reports a mistake.
    pub(crate) fn report(
        &mut self,
        location: &Location,
        problem: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.findings.push(Found {
            at: location.at.clone(),
            subject: location.path.clone(),
            problem: problem.into(),
            hint: hint.into(),
        });
    }

    /// Reports that the text `written` at `location` is not a valid `T`.
    pub(crate) fn invalid<T: Value>(&mut self, location: &Location, written: &str, why: &Invalid) {
        let value = match (T::SECRET, why.secret) {
            (true, _) => "the secret".to_owned(),
            (false, true) => "the value".to_owned(),
            (false, false) => quoted(written),
        };
        if why.secret {
            self.findings.mask(location.at.clone());
        }
        self.report(
            location,
            format!("{value} {}", why.problem),
            format!("expected {}", why.expected),
        );
    }

    /// `path` relative to the folder of the configuration.
    pub(crate) fn resolve(&self, path: &Path) -> PathBuf {
        self.folder.join(path)
    }

    /// Replaces each `${env:NAME}` and `${file:PATH}` in the text of a `T`.
    fn interpolate<T: Value>(&self, written: &str) -> Result<String, Invalid> {
        let mut text = String::with_capacity(written.len());
        let mut rest = written;
        while let Some((before, after)) = rest.split_once("${") {
            let (reference, behind) = after.split_once('}').ok_or_else(|| {
                Invalid::new("has a `${` without `}`", "`${env:NAME}` or `${file:PATH}`")
            })?;
            text.push_str(before);
            let stands_for = self.look_up(reference)?;
            text.push_str(&T::literal(&stands_for, &text, behind));
            rest = behind;
        }
        text.push_str(rest);
        Ok(text)
    }

    fn look_up(&self, reference: &str) -> Result<String, Invalid> {
        if let Some(name) = reference.strip_prefix("env:") {
            return (self.env)(name).ok_or_else(|| {
                Invalid::new(
                    format!("needs the environment variable {name:?}, which is not set"),
                    format!("{name:?} in the environment"),
                )
            });
        }
        if let Some(path) = reference.strip_prefix("file:") {
            let path = self.resolve(Path::new(path));
            return match (self.read_file)(&path) {
                // Editors and `echo` end a file with a newline that is not part of the secret.
                Ok(text) => Ok(text.trim_end_matches(['\r', '\n']).to_owned()),
                Err(error) => Err(Invalid::new(
                    format!("needs the file {}: {error}", quoted(&path.to_string_lossy())),
                    "a file that can be read",
                )),
            };
        }
        Err(Invalid::new("has an unknown reference", "`${env:NAME}` or `${file:PATH}`"))
    }
}

impl<T: Value> Read for Spanned<T> {
    fn read(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        if (T::SECRET || has_credentials(node)) && !is_reference(node) {
            mask(node, reader);
        }
        let Kind::Scalar(written) = &node.kind else {
            wrong_kind(node, path, &T::expected(), reader);
            return None;
        };
        let location = Location { at: node.at.clone(), path: path.to_owned() };
        let read = reader.interpolate::<T>(written).and_then(|text| T::parse(&text));
        match read {
            Ok(value) => Some(Self { value, location, written: written.clone() }),
            Err(why) => {
                reader.invalid::<T>(&location, written, &why);
                None
            }
        }
    }
}

/// A list with its readable items.
#[derive(Debug)]
pub(crate) struct List<T> {
    pub(crate) items: Vec<T>,
    /// Whether the list in the file has no items.
    pub(crate) empty: bool,
    pub(crate) location: Location,
}

impl<T: Read> Read for List<T> {
    fn read(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let Kind::List(nodes) = &node.kind else {
            wrong_kind(node, path, "a list", reader);
            return None;
        };
        let read = |(index, item)| T::read(item, &format!("{path}[{index}]"), reader);
        let items = nodes.iter().enumerate().filter_map(read).collect();
        Some(Self {
            items,
            empty: nodes.is_empty(),
            location: Location { at: node.at.clone(), path: path.to_owned() },
        })
    }
}

/// A list, or one item in place of it.
#[derive(Debug)]
pub(crate) struct OneOrMore<T>(pub(crate) Vec<T>);

impl<T: Read> Read for OneOrMore<T> {
    fn read(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        match &node.kind {
            Kind::List(_) => Some(Self(List::read(node, path, reader)?.items)),
            _ => Some(Self(vec![T::read(node, path, reader)?])),
        }
    }
}

/// A map with keys that the user chooses. Keys pass the same check as values.
#[derive(Debug)]
pub(crate) struct Table<T>(pub(crate) BTreeMap<String, Spanned<T>>);

impl<T: Value> Read for Table<T> {
    fn read(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let entries = Keys::of(node, path, reader)?.entries;
        let read = |(key, value): (&MapKey, &Node)| {
            let path = join(path, &key.name);
            if let Err(why) = T::parse(&key.name) {
                let location = Location { at: key.at.clone(), path: path.clone() };
                reader.report(
                    &location,
                    "is not allowed as a name",
                    format!("expected {}", why.expected),
                );
            }
            Some((key.name.clone(), Spanned::read(value, &path, reader)?))
        };
        Some(Self(entries.into_iter().filter_map(read).gather()))
    }
}

/// A map from token meters to values.
#[derive(Debug)]
pub(crate) struct ByMeter<T>(pub(crate) BTreeMap<MeterName, Spanned<T>>);

impl<T: Value> Read for ByMeter<T> {
    fn read(node: &Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let mut keys = Keys::of(node, path, reader)?;
        let meters = || MeterName::ALL.into_iter().filter(|meter| meter.counts_tokens());
        let mut take = |meter: MeterName| {
            let value: Optional<Spanned<T>> = keys.take(meter.as_str(), reader);
            Some((meter, value.given()?))
        };
        let read = Self(meters().filter_map(&mut take).gather());
        let known: Vec<_> = meters().map(MeterName::as_str).collect();
        keys.finish(&known, reader);
        Some(read)
    }
}

/// The entries of a map that are not read yet.
pub(crate) struct Keys<'node> {
    entries: Vec<(&'node MapKey, &'node Node)>,
    location: Location,
}

impl<'node> Keys<'node> {
    /// Reports when `node` is not a map, and each key that is given twice.
    pub(crate) fn of(node: &'node Node, path: &str, reader: &mut Reader<'_>) -> Option<Self> {
        let Kind::Map(all) = &node.kind else {
            wrong_kind(node, path, "a map of keys and values", reader);
            return None;
        };
        let mut seen = BTreeSet::new();
        let mut entries = Vec::with_capacity(all.len());
        for (key, value) in all {
            if seen.insert(&key.name) {
                entries.push((key, value));
            } else {
                let location = Location { at: key.at.clone(), path: join(path, &key.name) };
                mask(value, reader);
                reader.report(&location, "is given twice", "expected each key once");
            }
        }
        let at = all.first().map_or(node.at.clone(), |(key, _)| key.at.clone());
        Some(Self { entries, location: Location { at, path: path.to_owned() } })
    }

    /// Reads the value of `name`, if the map has it.
    fn take<T: Read>(&mut self, name: &str, reader: &mut Reader<'_>) -> Optional<T> {
        let Some(index) = self.entries.iter().position(|(key, _)| key.name == name) else {
            return Optional::Absent;
        };
        let (_, node) = self.entries.swap_remove(index);
        T::read(node, &join(&self.location.path, name), reader)
            .map_or(Optional::Wrong, Optional::Given)
    }

    /// Reports the entries that are left: their keys are not `known`.
    pub(crate) fn finish(self, known: &[&str], reader: &mut Reader<'_>) {
        for (key, value) in self.entries {
            let hint = match nearest(&key.name, known) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("expected one of {}", known.join(", ")),
            };
            // The value of a misspelt `credential` is still a secret.
            mask(value, reader);
            let location =
                Location { at: key.at.clone(), path: join(&self.location.path, &key.name) };
            reader.report(&location, "is not a known key", hint);
        }
    }
}

/// A key of the schema: optional or required.
pub(crate) trait Take: Sized {
    /// Reads the value of `name`.
    fn take(keys: &mut Keys<'_>, name: &str, reader: &mut Reader<'_>) -> Self;
}

impl<T: Read> Take for Optional<T> {
    fn take(keys: &mut Keys<'_>, name: &str, reader: &mut Reader<'_>) -> Self {
        keys.take(name, reader)
    }
}

impl<T: Read> Take for Required<T> {
    fn take(keys: &mut Keys<'_>, name: &str, reader: &mut Reader<'_>) -> Self {
        let value = keys.take(name, reader);
        if matches!(value, Optional::Absent) {
            let location =
                Location { at: keys.location.at.clone(), path: join(&keys.location.path, name) };
            reader.report(&location, "is missing", format!("add the key `{name}` to this map"));
        }
        Self(value.given())
    }
}

/// A map with the keys of the schema: the struct, how it is read, and its schema. A key says its
/// type, and with `= …` its default and an example.
macro_rules! keys {
    (
        $(#[doc = $about:literal])*
        $name:ident { $(
            $(#[doc = $key_about:literal])*
            $key:ident $(($key_name:literal))?: $kind:ty = $facts:expr,
        )+ }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug)]
        pub(crate) struct $name {
            $($(#[doc = $key_about])* pub(crate) $key: $kind,)+
        }

        impl $crate::json_schema::Described for $name {
            fn described() -> $crate::json_schema::Schema {
                let keys = vec![$($crate::json_schema::Key {
                    name: $crate::reader::key_name!($key $(($key_name))?),
                    about: &[$($key_about),*],
                    facts: $facts,
                    schema: <$kind as $crate::json_schema::Described>::described(),
                }),+];
                $crate::json_schema::Schema::Map { about: &[$($about),*], keys }
            }
        }

        impl $crate::reader::Read for $name {
            fn read(
                node: &taximeter_yaml::Node,
                path: &str,
                reader: &mut $crate::reader::Reader<'_>,
            ) -> Option<Self> {
                let mut keys = $crate::reader::Keys::of(node, path, reader)?;
                let read = Self {
                    $($key: $crate::reader::Take::take(
                        &mut keys,
                        $crate::reader::key_name!($key $(($key_name))?),
                        reader,
                    ),)+
                };
                keys.finish(&[$($crate::reader::key_name!($key $(($key_name))?)),+], reader);
                Some(read)
            }
        }
    };
}
pub(crate) use keys;

/// The name of a key in the file: that of its field, or the one in brackets.
macro_rules! key_name {
    ($key:ident) => {
        stringify!($key)
    };
    ($key:ident ($name:literal)) => {
        $name
    };
}
pub(crate) use key_name;

fn wrong_kind(node: &Node, path: &str, expected: &str, reader: &mut Reader<'_>) {
    let problem = match &node.kind {
        Kind::Null => "has no value".to_owned(),
        Kind::Scalar(text) => format!("is the plain value {}", quoted(text)),
        Kind::List(_) => "is a list".to_owned(),
        Kind::Map(_) => "is a map".to_owned(),
    };
    let path = if path.is_empty() { "the file" } else { path };
    let location = Location { at: node.at.clone(), path: path.to_owned() };
    reader.report(&location, problem, format!("expected {expected}"));
}

/// Whether the text is only a reference to the value.
fn is_reference(node: &Node) -> bool {
    let inner = match &node.kind {
        Kind::Scalar(text) => text.strip_prefix("${").and_then(|text| text.strip_suffix('}')),
        _ => None,
    };
    inner.is_some_and(|inner| !inner.contains(['$', '{', '}']))
}

/// Whether the text may be a URL with a user, and so with a password.
fn has_credentials(node: &Node) -> bool {
    matches!(&node.kind, Kind::Scalar(text) if text.contains("://") && text.contains('@'))
}

fn mask(node: &Node, reader: &mut Reader<'_>) {
    match &node.kind {
        Kind::Null => {}
        Kind::Scalar(_) => reader.findings.mask(node.at.clone()),
        Kind::List(items) => items.iter().for_each(|item| mask(item, reader)),
        Kind::Map(entries) => {
            for (key, value) in entries {
                reader.findings.mask(key.at.clone());
                mask(value, reader);
            }
        }
    }
}

fn join(path: &str, key: &str) -> String {
    let key = shortened(key);
    // A key may hold any character, and is printed to a terminal.
    let key = key.escape_debug();
    if path.is_empty() { key.to_string() } else { format!("{path}.{key}") }
}

/// `text` for a message: quoted, escaped and shortened.
pub(crate) fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text))
}

fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}

/// The known word that is nearest to `word`.
fn nearest<'known>(word: &str, known: &[&'known str]) -> Option<&'known str> {
    // No known word is longer. Comparing takes time in the product of the lengths.
    const BYTES_MAX: usize = 64;
    if word.len() > BYTES_MAX {
        return None;
    }
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(word, known), *known))
        .filter(|(distance, known)| *distance <= (known.len() / 3).max(1))
        .min()
        .map(|(_, known)| known)
}
