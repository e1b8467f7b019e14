//! Removes members from the JSON of an event, so that the client does not see what only the gateway
//! asked for.

/// A stretch of an event's data that gives way to `instead`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) instead: &'static [u8],
}

impl Cut {
    /// Puts null in place of the value at `from..to`.
    pub(crate) const fn null((from, to): (usize, usize)) -> Self {
        Self { from, to, instead: b"null" }
    }

    /// Takes out the member whose value is at `from..to`, with its key and one comma.
    ///
    /// `None` where that is no member of an object.
    pub(crate) fn member(data: &[u8], (from, to): (usize, usize)) -> Option<Self> {
        let before = data.get(..from)?.trim_ascii_end().strip_suffix(b":")?;
        let before = before.trim_ascii_end().strip_suffix(b"\"")?;
        let key = before.iter().rposition(|byte| *byte == b'"')?;
        let before = before.get(..key)?;
        if let Some(before) = before.trim_ascii_end().strip_suffix(b",") {
            return Some(Self { from: before.len(), to, instead: b"" });
        }
        let behind = data.get(to..)?;
        let rest = behind.trim_ascii_start();
        let rest = rest.strip_prefix(b",").map_or(rest, <[u8]>::trim_ascii_start);
        Some(Self { from: before.len(), to: data.len() - rest.len(), instead: b"" })
    }
}

/// What to take out of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trim<'a> {
    /// The data of its event.
    pub(crate) data: &'a [u8],
    /// Stretches of the data, in order.
    pub(crate) cuts: &'a [Cut],
}

impl Trim<'_> {
    /// Adds what is left of `block` to `out`; all of it where its data is not one line.
    pub(crate) fn copy(self, block: &[u8], out: &mut Vec<u8>) {
        let start = place_of(self.data, block);
        let cuts = if start.is_some() { self.cuts } else { &[] };
        let start = start.unwrap_or(0);
        let left = cuts.iter().fold(block.len(), |left, cut| left + cut.from - cut.to);
        // To the byte: what becomes `Bytes` must not have room to spare.
        out.reserve_exact(cuts.iter().fold(left, |left, cut| left + cut.instead.len()));
        let mut at = 0;
        for cut in cuts {
            out.extend_from_slice(block.get(at..start + cut.from).unwrap_or_default());
            out.extend_from_slice(cut.instead);
            at = start + cut.to;
        }
        out.extend_from_slice(block.get(at..).unwrap_or_default());
    }
}

/// Where the data of an event stands in its block, if it is in one piece.
fn place_of(data: &[u8], block: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = block.get(at..)?;
        if let Some(value) = line.strip_prefix(b"data:") {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            let behind = value.strip_prefix(data)?;
            let is_whole = matches!(behind.first(), None | Some(b'\n' | b'\r'));
            return is_whole.then(|| block.len() - value.len());
        }
        at += memchr::memchr2(b'\n', b'\r', line)? + 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;
    use crate::json::Reader;

    fn without(data: &str, value: &str) -> String {
        let from = data.find(value).unwrap();
        let cut = Cut::member(data.as_bytes(), (from, from + value.len())).unwrap();
        let block = format!(": c\r\ndata: {data}\n\n");
        let trim = Trim { data: data.as_bytes(), cuts: &[cut] };
        let mut left = Vec::new();
        trim.copy(block.as_bytes(), &mut left);
        let left = String::from_utf8(left).unwrap();
        left.strip_prefix(": c\r\ndata: ").unwrap().strip_suffix("\n\n").unwrap().to_owned()
    }

    #[test]
    fn a_member_goes_with_its_comma() {
        assert_eq!(without(r#"{"a":1,"b":{"c":2}}"#, r#"{"c":2}"#), r#"{"a":1}"#);
        assert_eq!(without(r#"{"b":[7],"a":1}"#, "[7]"), r#"{"a":1}"#);
        assert_eq!(without(r#"{"a": 1, "b": [7], "c": 2}"#, "[7]"), r#"{"a": 1, "c": 2}"#);
        assert_eq!(without(r#"{ "b" : [7] , "a": 1}"#, "[7]"), r#"{ "a": 1}"#);
        assert_eq!(without(r#"{"b":[7]}"#, "[7]"), "{}");
    }

    proptest! {
        #[test]
        fn what_is_left_is_the_object_without_the_member(
            members in prop::collection::btree_map("[a-z]{1,4}", "[a-z\"\\\\:,{} ]{0,4}", 1..5),
            which in any::<prop::sample::Index>(),
            pretty: bool,
        ) {
            let mut object: Map<String, Value> =
                members.into_iter().map(|(key, text)| (key, text.into())).collect();
            let key = object.keys().nth(which.index(object.len())).unwrap().clone();
            let written = if pretty { serde_json::to_string_pretty } else { serde_json::to_string };
            let data = written(&object).unwrap();
            let mut cut = None;
            let found = Reader::new(data.as_bytes()).document(|name, value| {
                let place = value.verbatim()?.place_in(data.as_bytes());
                if name == key.as_bytes() {
                    cut = place.and_then(|place| Cut::member(data.as_bytes(), place));
                }
                Ok(())
            });
            prop_assert_eq!(found, Ok(()));
            let Cut { from, to, .. } = cut.unwrap();
            let left = format!("{}{}", &data[..from], &data[to..]);
            object.remove(&key);
            prop_assert_eq!(serde_json::from_str::<Map<String, Value>>(&left).unwrap(), object);
        }
    }

    #[test]
    fn data_that_is_not_one_line_stays() {
        let cuts = [Cut { from: 0, to: 1, instead: b"" }];
        let trim = Trim { data: b"{\n}", cuts: &cuts };
        let block = b"data: {\ndata: }\n\n".as_slice();
        let mut left = Vec::new();
        trim.copy(block, &mut left);
        assert_eq!(left, block);
    }
}
