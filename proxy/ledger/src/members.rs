//! The members of JSON objects, found without reading what is in them.
//!
//! A start reads millions of entries, and of each it wants an id, a time and perhaps an amount; an
//! export wants nearly all of them, most as they stand. That they are what was written is known by
//! their check. Only what is laid out as entries are is read, without blanks or escapes where it
//! matters; a parser is to read all else.

use memchr::{memchr, memchr2};

/// Goes through an object, member by member: a [`name`](Self::name), then its
/// [`value`](Self::value), or [`enter`](Self::enter) for the members of that. `None` of any of them
/// is where a parser is needed.
#[derive(Debug, Clone)]
pub struct Members<'a> {
    rest: &'a [u8],
    is_escaped: bool,
    /// Nothing of the object that is gone through has been read.
    is_first: bool,
}

impl<'a> Members<'a> {
    /// Those of the object that these bytes are.
    #[must_use]
    pub fn of(object: &'a [u8]) -> Self {
        Self { rest: object, is_escaped: memchr(b'\\', object).is_some(), is_first: true }
    }

    /// Whether anything in the object is escaped.
    #[must_use]
    pub const fn is_escaped(&self) -> bool {
        self.is_escaped
    }

    /// Into the object that comes next.
    pub fn enter(&mut self) -> Option<()> {
        self.rest = self.rest.strip_prefix(b"{")?;
        self.is_first = true;
        Some(())
    }

    /// The name of the next member; `Some(None)` where the object has ended, and what it is in goes
    /// on.
    pub fn name(&mut self) -> Option<Option<&'a [u8]>> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        match self.rest.split_first()? {
            (b'}', after) => {
                self.rest = after;
                return Some(None);
            }
            (b',', after) if !is_first => self.rest = after,
            _ if is_first => {}
            _ => return None,
        }
        let (name, after) = plain_text(self.rest)?;
        self.rest = after.strip_prefix(b":")?;
        Some(Some(name))
    }

    /// Whether the next member is called `name`, which is less work than to find out how it is called;
    /// then it is gone past.
    pub fn is_named(&mut self, name: &[u8]) -> bool {
        let rest = if self.is_first { Some(self.rest) } else { self.rest.strip_prefix(b",") };
        let rest = rest.and_then(|rest| rest.strip_prefix(b"\""));
        let rest = rest.and_then(|rest| rest.strip_prefix(name)?.strip_prefix(b"\":"));
        self.rest = rest.unwrap_or(self.rest);
        self.is_first &= rest.is_none();
        rest.is_some()
    }

    /// Its value, whatever it is.
    pub fn value(&mut self) -> Option<&'a [u8]> {
        let (value, after) = value(self.rest, self.is_escaped)?;
        self.rest = after;
        Some(value)
    }

    /// Goes past bytes that come next; `None` where others do.
    pub fn pass(&mut self, bytes: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(bytes)?;
        Some(())
    }

    /// Whether what comes next is all that stands in `bytes`, the last of which are a value; then it
    /// is gone past.
    pub fn is_next(&mut self, bytes: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(bytes);
        // A number may go on.
        let rest = rest.filter(|rest| matches!(rest, [b',' | b'}', ..]));
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Bytes of the object that are left.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.rest.len()
    }

    /// Whether what comes next is an object.
    #[must_use]
    pub const fn is_object(&self) -> bool {
        matches!(self.rest, [b'{', ..])
    }

    /// Whether nothing comes any more.
    #[must_use]
    pub const fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }
}

/// The members called `names` at the top of the object, as they are written; `None` for one that is
/// not there. What follows the last of them is not looked at.
///
/// `None` altogether where a parser is needed to tell.
pub(crate) fn members<'a, const N: usize>(
    object: &'a [u8],
    names: [&str; N],
) -> Option<[Option<&'a [u8]>; N]> {
    let mut found = [None; N];
    let mut missing = N;
    let mut members = Members::of(object);
    members.enter()?;
    while let Some(name) = members.name()? {
        let value = members.value()?;
        let slot = names.iter().zip(&mut found).find(|(wanted, _)| wanted.as_bytes() == name);
        if let Some((_, slot)) = slot {
            if slot.replace(value).is_some() {
                return None;
            }
            missing -= 1;
        }
        if missing == 0 {
            return Some(found);
        }
    }
    members.is_at_end().then_some(found)
}

/// The text that a value is; `None` where it is none, or has escapes.
pub(crate) fn text(value: &[u8]) -> Option<&str> {
    match plain_text(value)? {
        (text, []) => str::from_utf8(text).ok(),
        _ => None,
    }
}

/// A text without escapes, and what follows it.
fn plain_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = bytes.strip_prefix(b"\"")?;
    let (text, rest) = inside.split_at_checked(quote_or_escape(inside)?)?;
    Some((text, rest.strip_prefix(b"\"")?))
}

/// The value at the beginning, and what follows it.
fn value(bytes: &[u8], is_escaped: bool) -> Option<(&[u8], &[u8])> {
    let length = match bytes.first()? {
        b' ' | b'\n' => return None,
        b'"' => text_length(bytes, is_escaped)?,
        b'{' | b'[' if is_escaped => nested_length(bytes)?,
        b'{' | b'[' => plain_nested_length(bytes)?,
        // A number, or a word.
        _ => bytes.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n'))?,
    };
    bytes.split_at_checked(length)
}

/// Bytes of the text at the beginning, with its quotes.
fn text_length(bytes: &[u8], is_escaped: bool) -> Option<usize> {
    if !is_escaped {
        return quote(bytes.get(1..)?).map(|length| length + 2);
    }
    let mut at = 1;
    loop {
        at += quote_or_escape(bytes.get(at..)?)?;
        if bytes.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        // And what is escaped.
        at += 2;
    }
}

/// Where the first quote is.
fn quote(bytes: &[u8]) -> Option<usize> {
    first(bytes, |word| bytes_that_are(b'"', word), |far| memchr(b'"', far))
}

/// Where the first quote or backslash is.
fn quote_or_escape(bytes: &[u8]) -> Option<usize> {
    let within = |word| bytes_that_are(b'"', word) | bytes_that_are(b'\\', word);
    first(bytes, within, |far| memchr2(b'"', b'\\', far))
}

/// Where the first byte is that `within` finds in a word, and `far` anywhere.
fn first(
    bytes: &[u8],
    within: impl Fn(u64) -> u64,
    far: impl Fn(&[u8]) -> Option<usize>,
) -> Option<usize> {
    /// Most texts end here: to call what looks at many bytes at once would take longer.
    const NEAR_WORDS: usize = 6;
    let (words, _) = bytes.as_chunks();
    let near = words.get(..NEAR_WORDS).unwrap_or(words);
    for (index, word) in near.iter().enumerate() {
        let found = within(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(index * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    let behind = near.as_flattened().len();
    far(bytes.get(behind..)?).map(|at| behind + at)
}

/// The highest bit of each byte of `word` that is `byte`; the lowest one set is right, those above it
/// may not be.
const fn bytes_that_are(byte: u8, word: u64) -> u64 {
    const LOWEST_BITS: u64 = u64::from_le_bytes([1; 8]);
    let others = word ^ u64::from_le_bytes([byte; 8]);
    others.wrapping_sub(LOWEST_BITS) & !others & (LOWEST_BITS << 7)
}

/// The highest bit of each byte of `word` that is `byte`, and no other.
const fn all_bytes_that_are(byte: u8, word: u64) -> u64 {
    const ALL_BUT_HIGHEST: u64 = u64::from_le_bytes([0x7f; 8]);
    let others = word ^ u64::from_le_bytes([byte; 8]);
    !(((others & ALL_BUT_HIGHEST) + ALL_BUT_HIGHEST) | others | ALL_BUT_HIGHEST)
}

/// Bytes of the object or array at the beginning, with its brackets.
fn nested_length(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at += text_length(bytes.get(at..)?, true)?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// The same where nothing is escaped, so that every quote begins a text or ends one.
fn plain_nested_length(bytes: &[u8]) -> Option<usize> {
    // `[` and `{` differ in this bit alone, as `]` and `}` do; in these, all four of them, and `Y_y`.
    const KIND: u64 = u64::from_le_bytes([0x20; 8]);
    const BRACKETS: u64 = u64::from_le_bytes([b'{' ^ b']'; 8]);
    let (words, rest) = bytes.as_chunks();
    let mut last = [0; 8];
    last.get_mut(..rest.len())?.copy_from_slice(rest);
    let (mut depth, mut is_text) = (0_usize, false);
    for (index, word) in words.iter().chain([&last]).enumerate() {
        let word = u64::from_le_bytes(*word);
        let quotes = all_bytes_that_are(b'"', word);
        let (mut opened, mut signs) = (0, 0);
        if bytes_that_are(b'{' | b']', word | BRACKETS) != 0 {
            opened = all_bytes_that_are(b'{', word | KIND);
            signs = opened | all_bytes_that_are(b'}', word | KIND);
        }
        while signs != 0 {
            let sign = signs & signs.wrapping_neg();
            signs ^= sign;
            if is_text != ((quotes & (sign - 1)).count_ones() % 2 == 1) {
                continue;
            }
            if opened & sign != 0 {
                depth += 1;
                continue;
            }
            depth -= 1;
            if depth == 0 {
                return Some(index * 8 + sign.trailing_zeros() as usize / 8 + 1);
            }
        }
        is_text ^= quotes.count_ones() % 2 == 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn found<'a>(object: &'a str, names: [&str; 2]) -> Option<[Option<&'a str>; 2]> {
        let found = members(object.as_bytes(), names)?;
        Some(found.map(|value| value.map(|value| str::from_utf8(value).unwrap())))
    }

    #[test]
    fn members_are_found_whatever_is_between_them() {
        let object =
            r#"{"x":"}\",\\","a":"1","y":[{"a":"]"},["\"",-1.5e3]],"z":null,"b":{"c":[]}}"#;
        assert_eq!(found(object, ["a", "b"]), Some([Some("\"1\""), Some("{\"c\":[]}")]));
        assert_eq!(found(object, ["c", "z"]), Some([None, Some("null")]));
        assert_eq!(found(object, ["b", "a"]), Some([Some("{\"c\":[]}"), Some("\"1\"")]));
        assert_eq!(found(r#"{"n":12}"#, ["n", "m"]), Some([Some("12"), None]));
        assert_eq!(found("{}", ["n", "m"]), Some([None, None]));
    }

    #[test]
    fn what_is_laid_out_otherwise_is_left_to_a_parser() {
        for object in [
            "",
            "[1]",
            r#"{"a" :1}"#,
            r#"{"a": 1}"#,
            r#"{"a":1 }"#,
            r#"{"a":1,}"#,
            r#"{"a":1}x"#,
            r#"{"a":1,"a":2}"#,
            r#"{"\u0061":1}"#,
            r#"{"x":"1}"#,
            r#"{"x":"1\"#,
            r#"{"x":[1}"#,
            r#"{"x":1"#,
        ] {
            assert_eq!(found(object, ["a", "b"]), None, "{object}");
        }
        assert_eq!(
            [text(b"\"a\""), text(b"\"\\n\""), text(b"1"), text(b"\"a\"b")],
            [Some("a"), None, None, None]
        );
    }

    #[test]
    fn quotes_and_escapes_are_found_wherever_they_are() {
        // All but the ends differ from one of both by a bit, or by the highest.
        for others in [b'a', b'#', b']', b'"' | 0x80, b'\\' | 0x80, 0, 0xff] {
            for length in 0..100 {
                let mut bytes = vec![others; length];
                assert_eq!((quote(&bytes), quote_or_escape(&bytes)), (None, None));
                for (first, second) in [(b'"', b'\\'), (b'\\', b'"')] {
                    bytes.extend([first, second, first]);
                    assert_eq!(quote_or_escape(&bytes), Some(length), "{bytes:?}");
                    let quoted = length + usize::from(first != b'"');
                    assert_eq!(quote(&bytes), Some(quoted), "{bytes:?}");
                    bytes.truncate(length);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_nested_ends_where_its_brackets_do(
            parts in vec(select(&["\"", "{", "}", "[", "]", ",", ":", "a", "Y_", "\u{dd}12"]), 0..60)
        ) {
            let object = format!("{{{}", parts.concat());
            prop_assert_eq!(plain_nested_length(object.as_bytes()), nested_length(object.as_bytes()));
        }
    }

    #[test]
    fn objects_are_gone_through_member_by_member() {
        let object = br#"{"a":{"b":1,"c":{}},"d":[{"e":2}],"f":{}}"#;
        let mut members = Members::of(object);
        members.enter().unwrap();
        assert_eq!(members.name(), Some(Some(&b"a"[..])));
        assert!(members.is_object() && !members.is_named(b"b"));
        members.enter().unwrap();
        assert_eq!(members.name(), Some(Some(&b"b"[..])));
        assert_eq!(members.value(), Some(&b"1"[..]));
        assert!(!members.is_named(b"b") && !members.is_named(b"cc") && members.is_named(b"c"));
        assert_eq!(members.value(), Some(&b"{}"[..]));
        assert_eq!(members.name(), Some(None));
        assert_eq!(members.name(), Some(Some(&b"d"[..])));
        assert!(!members.is_object());
        assert_eq!(members.value(), Some(&br#"[{"e":2}]"#[..]));
        assert_eq!(members.name(), Some(Some(&b"f"[..])));
        members.enter().unwrap();
        assert_eq!((members.name(), members.name()), (Some(None), Some(None)));
        assert!(members.is_at_end());
        assert_eq!(members.name(), None);
    }

    #[test]
    fn what_comes_next_is_gone_past_where_it_is_known() {
        let mut members = Members::of(b"{\"a\":12,\"b\":12}");
        assert!(!members.is_next(b"{\"a\":1") && !members.is_next(b"{\"a\":123"));
        assert_eq!((members.left(), members.pass(b"{\"b")), (15, None));
        assert!(members.is_next(b"{\"a\":12"));
        assert_eq!((members.left(), members.pass(b",\"b\":")), (8, Some(())));
        assert_eq!(members.value(), Some(&b"12"[..]));
        assert!(!members.is_next(b"}") && !members.is_at_end());
        assert_eq!((members.pass(b"}"), members.is_at_end()), (Some(()), true));
    }

    #[test]
    fn commas_stand_between_members_and_nowhere_else() {
        for object in [&br#"{,"a":1}"#[..], br#"{"a":"1""b":2}"#, br#"{"a":1,}"#, br#"{"a":1,,}"#] {
            let mut members = Members::of(object);
            members.enter().unwrap();
            let end = loop {
                match members.name() {
                    Some(Some(_)) => assert!(members.value().is_some()),
                    end => break end,
                }
            };
            assert_eq!(end, None, "{}", str::from_utf8(object).unwrap());
        }
    }

    #[test]
    fn what_follows_the_last_one_is_not_looked_at() {
        assert_eq!(found(r#"{"a":1,"b":2,?"#, ["a", "b"]), Some([Some("1"), Some("2")]));
    }
}
