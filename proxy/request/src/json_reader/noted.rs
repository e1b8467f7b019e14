//! Members of a body that are noted as they pass, by their paths.

use taximeter_json::{Container, Scalar, StreamReader};

/// Paths of members to note: `a` at the top of a body, or `a.b` right below.
#[derive(Debug, Default)]
pub struct Members {
    /// Bit n: the key of one of them has n bytes, or from 63 on that or more.
    lengths: u64,
    top: Vec<Top>,
}

/// A member at the top that is noted, or that has members which are.
#[derive(Debug)]
struct Top {
    key: Box<str>,
    number: Option<u16>,
    inside: Vec<(Box<str>, u16)>,
}

/// A member that was noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// The number of its path.
    pub path: u16,
    /// What stands there.
    pub note: Note,
}

/// The text of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// It has at most 256 bytes.
    Text(String),
    /// It is longer.
    TooLong,
    /// It is given twice, and not the same.
    Twice,
}

impl Members {
    /// Those with these paths, each with a number.
    #[must_use]
    pub fn new<'a>(paths: impl IntoIterator<Item = (u16, &'a str)>) -> Self {
        let mut members = Self::default();
        for (number, path) in paths {
            let (key, inside) = match path.split_once('.') {
                Some((key, inside)) => (key, Some(inside)),
                None => (path, None),
            };
            let at = members.top.iter().position(|top| *top.key == *key).unwrap_or_else(|| {
                members.lengths |= bit(key);
                members.top.push(Top { key: key.into(), number: None, inside: Vec::new() });
                members.top.len() - 1
            });
            let Some(top) = members.top.get_mut(at) else { continue };
            match inside {
                Some(inside) => top.inside.push((inside.into(), number)),
                None => top.number = Some(number),
            }
        }
        members
    }

    /// The member at the top with this key.
    #[inline]
    fn top(&self, key: &str) -> Option<usize> {
        if self.lengths & bit(key) == 0 {
            return None;
        }
        self.top.iter().position(|top| *top.key == *key)
    }

    fn inside(&self, top: usize, key: &str) -> Option<u16> {
        let inside = &self.top.get(top)?.inside;
        inside.iter().find(|(other, _)| **other == *key).map(|(_, number)| *number)
    }
}

/// The bit of a key's length.
#[inline]
const fn bit(key: &str) -> u64 {
    let length = if key.len() < 63 { key.len() } else { 63 };
    1 << length
}

/// Where in the members the next value stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spot {
    /// The path whose value comes next.
    path: Option<u16>,
    /// The member at the top whose value comes next, or is open.
    top: Option<usize>,
}

impl Spot {
    /// Reads a key at this level, 1 at the top.
    #[inline]
    pub(super) fn on_key(&mut self, members: &Members, depth: usize, key: Option<&str>) {
        if depth == 1 {
            *self = Self::default();
            if let Some(top) = key.and_then(|key| members.top(key)) {
                let path = members.top.get(top).and_then(|top| top.number);
                *self = Self { path, top: Some(top) };
            }
        } else {
            let top = self.top.filter(|_| depth == 2);
            self.path = top.zip(key).and_then(|(top, key)| members.inside(top, key));
        }
    }

    /// Takes the note of a scalar, if it is to be noted.
    #[inline]
    pub(super) fn on_scalar(&mut self, kind: Scalar, json: &StreamReader) -> Option<Noted> {
        let path = self.path.take()?;
        if kind != Scalar::String {
            return None;
        }
        let note = json.text().map_or(Note::TooLong, |text| Note::Text(text.to_owned()));
        Some(Noted { path, note })
    }

    /// Whether a container that opens at this level, 2 right below the top, has members to note.
    #[inline]
    pub(super) fn on_open(
        &mut self,
        members: &Members,
        container: Container,
        depth: usize,
    ) -> bool {
        self.path = None;
        let Some(top) = self.top.filter(|_| depth == 2) else { return false };
        let has_some = members.top.get(top).is_some_and(|top| !top.inside.is_empty());
        container == Container::Object && has_some
    }
}

/// Room for what most clients say.
const NOTES_USUALLY: usize = 4;

/// Adds a note. Of two that differ neither counts.
pub(super) fn add(notes: &mut Vec<Noted>, new: Noted) {
    match notes.iter_mut().find(|noted| noted.path == new.path) {
        Some(noted) if *noted == new => {}
        Some(noted) => noted.note = Note::Twice,
        None => {
            if notes.is_empty() {
                *notes = Vec::with_capacity(NOTES_USUALLY);
            }
            notes.push(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::RequestReader;
    use taximeter_meter::Wire;

    fn notes(paths: &[&str], body: &str) -> Vec<(u16, Note)> {
        let members = Arc::new(Members::new((0..).zip(paths.iter().copied())));
        let read = |pieces: &[&[u8]], states: bool| {
            let mut reader = RequestReader::json(Wire::Responses);
            reader.note(members.clone());
            if states {
                reader = reader.with_parameters();
            }
            pieces.iter().for_each(|piece| reader.push(piece).unwrap());
            reader.finish().unwrap()
        };
        let whole = read(&[body.as_bytes()], false);
        for at in 0..=body.len() {
            let (head, tail) = body.as_bytes().split_at(at);
            assert_eq!(read(&[head, tail], false), whole, "{body} cut at {at}");
        }
        let plain = {
            let mut reader = RequestReader::json(Wire::Responses);
            reader.push(body.as_bytes()).unwrap();
            reader.finish().unwrap()
        };
        let without = crate::RequestFacts { notes: Vec::new(), ..whole.clone() };
        assert_eq!(without, plain, "{body}: what else is read stays the same");
        assert_eq!(read(&[body.as_bytes()], true).notes, whole.notes, "{body}");
        whole.notes.into_iter().map(|noted| (noted.path, noted.note)).collect()
    }

    fn text(path: u16, text: &str) -> (u16, Note) {
        (path, Note::Text(text.to_owned()))
    }

    #[test]
    fn members_are_noted_at_the_top_and_right_below() {
        let paths = ["metadata.session_id", "key", "metadata.user_id", "metadata"];
        for (body, expected) in [
            (r#"{"model":"m"}"#, vec![]),
            (r#"{"key":"k","model":"m"}"#, vec![text(1, "k")]),
            (r#"{"metadata":{"session_id":"s","x":{"session_id":"no"}}}"#, vec![text(0, "s")]),
            (
                r#"{"metadata":{"x":[{"user_id":"no"}],"user_id":"u"},"key":"k"}"#,
                vec![text(2, "u"), text(1, "k")],
            ),
            (r#"{"session_id":"no","user_id":"no","x":{"key":"no","metadata":"no"}}"#, vec![]),
            (
                r#"{"metadata":[{"session_id":"no"}],"input":[{"metadata":{"session_id":"no"}}]}"#,
                vec![],
            ),
            (r#"{"metadata":"m","key":7}"#, vec![text(3, "m")]),
            (r#"{"metadata":{"session_id":null,"user_id":{"session_id":"no"}}}"#, vec![]),
            (
                r#"{"metadata":{"include_usage":true,"model":"x","stream":true,"session_id":"s"}}"#,
                vec![text(0, "s")],
            ),
            (r#"{"metadata":{"session_id":"\u0073\n"}}"#, vec![text(0, "s\n")]),
            (r#"{"key":"a","key":"a"}"#, vec![text(1, "a")]),
            (r#"{"key":"a","key":"b"}"#, vec![(1, Note::Twice)]),
            (
                r#"{"metadata":{"session_id":"a"},"metadata":{"session_id":"b"}}"#,
                vec![(0, Note::Twice)],
            ),
            (
                r#"{"metadata":{"session_id":"a"},"stream_options":{"session_id":"b"}}"#,
                vec![text(0, "a")],
            ),
        ] {
            assert_eq!(notes(&paths, body), expected, "{body}");
        }
        let long = format!(r#"{{"key":"{}"}}"#, "x".repeat(257));
        assert_eq!(notes(&paths, &long), [(1, Note::TooLong)]);
        let longest = format!(r#"{{"key":"{}"}}"#, "x".repeat(256));
        assert!(matches!(&notes(&paths, &longest)[..], [(1, Note::Text(_))]));
    }

    #[test]
    fn members_that_are_read_for_other_purposes_are_noted_too() {
        let paths = ["conversation.id", "conversation", "model", "reasoning.effort", "prompt.id"];
        for (body, expected) in [
            (r#"{"conversation":{"id":"c"},"model":"m"}"#, vec![text(0, "c"), text(2, "m")]),
            (
                r#"{"conversation":"c","reasoning":{"effort":"high"}}"#,
                vec![text(1, "c"), text(3, "high")],
            ),
            (r#"{"prompt":{"id":"p","variables":{"id":"no"}}}"#, vec![text(4, "p")]),
        ] {
            assert_eq!(notes(&paths, body), expected, "{body}");
        }
    }
}
