//! Reads a tree into a type of `serde`, or tells the first mistake with its place.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::Range;
use std::slice;
use std::str::FromStr;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor,
};

use crate::tree::{Kind, MapKey, Node};

/// Why a tree is not what a type expects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct ReadError {
    /// The bytes of the value, or of the key.
    pub at: Range<usize>,
    /// What is wrong, and what is expected.
    pub problem: String,
}

/// The value that `root` stands for. A map with the same key twice is a mistake, and an empty value is
/// one wherever it is not optional. Enums are words.
///
/// Errors: the first mistake.
pub fn read<T: DeserializeOwned>(root: &Node) -> Result<T, ReadError> {
    T::deserialize(Value(root)).map_err(|mistake| ReadError {
        at: mistake.at.unwrap_or_default(),
        problem: mistake.problem,
    })
}

/// A mistake, which gets the place of the innermost value that knows its own.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
struct Mistake {
    at: Option<Range<usize>>,
    problem: String,
}

impl Mistake {
    fn within(mut self, at: &Range<usize>) -> Self {
        self.at.get_or_insert_with(|| at.clone());
        self
    }
}

impl Error for Mistake {
    fn custom<T: Display>(problem: T) -> Self {
        Self { at: None, problem: problem.to_string() }
    }
}

/// A value of the tree.
#[derive(Clone, Copy)]
struct Value<'de>(&'de Node);

impl<'de> Value<'de> {
    /// The text of a scalar, which is there as `expected`.
    fn text(self, expected: &str) -> Result<&'de str, Mistake> {
        match &self.0.kind {
            Kind::Scalar(text) => Ok(text),
            _ => Err(self.mistake(expected)),
        }
    }

    /// A scalar that stands for a number or a truth value.
    fn parsed<T: FromStr>(self, expected: &str) -> Result<T, Mistake> {
        self.text(expected)?.parse().map_err(|_| self.mistake(expected))
    }

    fn mistake(self, expected: &str) -> Mistake {
        let problem = match &self.0.kind {
            Kind::Null => format!("null is not allowed here, expected {expected}"),
            _ => format!("expected {expected}"),
        };
        Mistake { at: Some(self.0.at.clone()), problem }
    }
}

/// Methods for types of numbers that are read alike.
macro_rules! numbers {
    ($($method:ident $visit:ident $type:ty, $expected:literal;)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
            let number = self.parsed::<$type>($expected)?;
            visitor.$visit(number).map_err(|mistake: Mistake| mistake.within(&self.0.at))
        }
    )+};
}

impl<'de> Deserializer<'de> for Value<'de> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        match &self.0.kind {
            Kind::Scalar(_) => self.deserialize_str(visitor),
            Kind::Null => self.deserialize_unit(visitor),
            Kind::List(_) => self.deserialize_seq(visitor),
            Kind::Map(_) => self.deserialize_map(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let text = self.text("text")?;
        visitor.visit_borrowed_str(text).map_err(|mistake: Mistake| mistake.within(&self.0.at))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.deserialize_str(visitor)
    }

    numbers! {
        deserialize_bool visit_bool bool, "true or false";
        deserialize_u8 visit_u8 u8, "a whole number";
        deserialize_u16 visit_u16 u16, "a whole number";
        deserialize_u32 visit_u32 u32, "a whole number";
        deserialize_u64 visit_u64 u64, "a whole number";
        deserialize_i8 visit_i8 i8, "a whole number";
        deserialize_i16 visit_i16 i16, "a whole number";
        deserialize_i32 visit_i32 i32, "a whole number";
        deserialize_i64 visit_i64 i64, "a whole number";
        deserialize_f32 visit_f32 f32, "a number";
        deserialize_f64 visit_f64 f64, "a number";
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        match self.0.kind {
            Kind::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        match self.0.kind {
            Kind::Null => {
                visitor.visit_unit().map_err(|mistake: Mistake| mistake.within(&self.0.at))
            }
            _ => Err(self.mistake("no value")),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let Kind::List(items) = &self.0.kind else {
            return Err(self.mistake("a list, like [a, b]"));
        };
        visitor.visit_seq(Items(items.iter())).map_err(|mistake| mistake.within(&self.0.at))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let Kind::Map(entries) = &self.0.kind else {
            return Err(self.mistake("keys with values, like {key: value}"));
        };
        let entries = Entries { left: entries.iter(), value: None, seen: BTreeSet::new() };
        visitor.visit_map(entries).map_err(|mistake| mistake.within(&self.0.at))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        let word = BorrowedStrDeserializer::new(self.text("a word")?);
        visitor.visit_enum(word).map_err(|mistake: Mistake| mistake.within(&self.0.at))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { bytes byte_buf unit_struct tuple tuple_struct }
}

/// A part of a list or a map. What its type refuses without a place is told with that of the part.
fn of<'de, T: DeserializeSeed<'de>>(part: &'de Node, seed: T) -> Result<T::Value, Mistake> {
    seed.deserialize(Value(part)).map_err(|mistake| mistake.within(&part.at))
}

/// The items of a list that are not read yet.
struct Items<'de>(slice::Iter<'de, Node>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = Mistake;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Mistake> {
        self.0.next().map(|item| of(item, seed)).transpose()
    }
}

/// The entries of a map that are not read yet.
struct Entries<'de> {
    left: slice::Iter<'de, (MapKey, Node)>,
    /// Of the key that was read last.
    value: Option<&'de Node>,
    seen: BTreeSet<&'de str>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Mistake;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Mistake> {
        let Some((key, value)) = self.left.next() else { return Ok(None) };
        if !self.seen.insert(&key.name) {
            return Err(Mistake::custom("duplicate mapping key").within(&key.at));
        }
        self.value = Some(value);
        let name = BorrowedStrDeserializer::new(&key.name);
        seed.deserialize(name).map(Some).map_err(|mistake: Mistake| mistake.within(&key.at))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mistake> {
        let value = self.value.take().ok_or_else(|| Mistake::custom("a value without a key"))?;
        of(value, seed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;
    use crate::tree::parse;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Word {
        #[default]
        First,
        Second,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Kinds {
        text: String,
        small: Option<u8>,
        #[serde(default)]
        less: i64,
        part: Option<f64>,
        is: Option<bool>,
        #[serde(default)]
        word: Word,
        #[serde(default)]
        list: Vec<Kinds>,
        #[serde(default)]
        by: BTreeMap<String, Option<u64>>,
    }

    fn kinds(text: &str) -> Result<Kinds, String> {
        let root = parse(text).unwrap().unwrap();
        read(&root).map_err(|error| format!("{:?}: {error}", text.get(error.at.clone()).unwrap()))
    }

    #[test]
    fn a_tree_becomes_a_value_of_the_type() {
        let text = "text: 1e3\nsmall: 255\nless: -7\npart: 0.5\nis: true\nword: second\n\
            list: [{text: 'true', small: ~}, {text: \"\"}]\nby: {a: 1, b: , 'c d': 3}\n";
        let plain = |text: &str| Kinds {
            text: text.to_owned(),
            small: None,
            less: 0,
            part: None,
            is: None,
            word: Word::First,
            list: Vec::new(),
            by: BTreeMap::new(),
        };
        let expected = Kinds {
            small: Some(255),
            less: -7,
            part: Some(0.5),
            is: Some(true),
            word: Word::Second,
            list: vec![plain("true"), plain("")],
            by: [("a", Some(1)), ("b", None), ("c d", Some(3))]
                .map(|(key, value)| (key.to_owned(), value))
                .into(),
            ..plain("1e3")
        };
        assert_eq!(kinds(text), Ok(expected));
    }

    #[test]
    fn a_mistake_is_told_with_the_value_or_the_key_that_has_it() {
        for (text, expected) in [
            ("text: [a]", "\"[\": expected text"),
            ("text: ~", "\"~\": null is not allowed here, expected text"),
            ("text: a\nsmall: 256", "\"256\": expected a whole number"),
            ("text: a\nless: 1.5", "\"1.5\": expected a whole number"),
            ("text: a\npart: half", "\"half\": expected a number"),
            ("text: a\nis: yes", "\"yes\": expected true or false"),
            ("text: a\nlist: b", "\"b\": expected a list, like [a, b]"),
            ("text: a\nby: b", "\"b\": expected keys with values, like {key: value}"),
            ("text: a\nother: b", "\"other\": unknown field `other`, expected one of"),
            ("text: a\ntext: b", "\"text\": duplicate mapping key"),
            ("text: a\nby: {b: 1, b: 2}", "\"b\": duplicate mapping key"),
            ("text: a\nword: third", "\"third\": unknown variant `third`, expected `first` or"),
            ("text: a\nword: {first: 1}", "\"{\": expected a word"),
            ("text: a\nlist:\n- {small: 1}", "\"{\": missing field `text`"),
        ] {
            let told = kinds(text).unwrap_err();
            assert!(told.starts_with(expected), "{text:?}: {told}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_with_a_place_in_it(text in "[-a-z0-9:,{}\\[\\]'\"~ \n#&*!|>]{0,80}") {
            if let Ok(Some(root)) = parse(&text)
                && let Err(error) = read::<Kinds>(&root)
            {
                prop_assert!(text.get(error.at.clone()).is_some(), "{text:?}: {error:?}");
            }
        }
    }
}
