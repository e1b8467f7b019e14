//! Values of a document that was checked before. They can be read in any order.

use std::borrow::Cow;

use crate::reader::Reader;

/// The text of a value.
#[derive(Debug, Clone, Copy)]
pub struct Value<'a>(&'a str);

impl<'a> Value<'a> {
    /// A value that another reader has checked completely. `json` has no blanks around it.
    #[must_use]
    pub const fn checked(json: &'a str) -> Self {
        Self(json)
    }

    /// The text in the document.
    #[must_use]
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// Its first byte, which tells its type.
    #[must_use]
    pub fn first(self) -> Option<u8> {
        self.0.bytes().next()
    }

    /// The characters of a string. A lone surrogate becomes U+FFFD. `None` for any other type.
    #[must_use]
    pub fn text(self) -> Option<Cow<'a, str>> {
        self.reader().text().ok()?.map(|text| text.decode())
    }

    /// The elements of an array. `None` for any other type.
    #[must_use]
    pub fn elements(self) -> Option<Vec<Self>> {
        let mut reader = self.reader();
        reader.enter(b'[').ok()?;
        let mut elements = Vec::new();
        while reader.next_element().ok()? {
            elements.push(Self::next(&mut reader)?);
        }
        Some(elements)
    }

    /// The members of an object, in order. `None` for any other type.
    #[must_use]
    pub fn members(self) -> Option<Vec<(Cow<'a, str>, Self)>> {
        let mut reader = self.reader();
        reader.enter(b'{').ok()?;
        let mut members = Vec::new();
        while let Some(key) = reader.next_key().ok()? {
            members.push((key.decode(), Self::next(&mut reader)?));
        }
        Some(members)
    }

    const fn reader(self) -> Reader<'a> {
        Reader::new(self.0.as_bytes())
    }

    fn next(reader: &mut Reader<'a>) -> Option<Self> {
        str::from_utf8(reader.verbatim().ok()?.raw()).ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_level_by_level() {
        let value = Value::checked(r#"{"a" : [1.50, "\u00e9\ud800"], "b": {"c": {}}}"#);
        let members = value.members().unwrap();
        let [(a, list), (_, object)] = &*members else { panic!("{members:?}") };
        let elements = list.elements().unwrap();
        assert_eq!((&**a, elements[0].as_str(), elements[0].first()), ("a", "1.50", Some(b'1')));
        assert_eq!(elements[1].text().unwrap(), "é\u{fffd}");
        assert_eq!(object.members().unwrap()[0].1.as_str(), "{}");
        for other in [list, &elements[0]] {
            assert!(other.members().is_none() && other.text().is_none(), "{other:?}");
        }
        assert!(object.elements().is_none());
    }
}
