//! Parses YAML text into a tree that keeps the position of each value.
//!
//! Scalars stay text. Whoever reads the tree decides their types, so `off`, `1e3` or the digits of a
//! hash are not changed by YAML's own types.

use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput};

/// The deepest nesting of lists and maps. Neither a configuration nor a price file has half of it.
const DEPTH_MAX: usize = 32;

/// One value and its bytes in the text.
#[derive(Debug)]
pub struct Node {
    /// Its bytes in the text. Of a list and a map where it begins.
    pub at: Range<usize>,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Debug)]
pub enum Kind {
    /// Text, a number, a truth value or a date: as it is written.
    Scalar(String),
    /// An empty value, `~` or `null`.
    Null,
    /// The items, in order.
    List(Vec<Node>),
    /// The entries, in order. A key may stand twice.
    Map(Vec<(MapKey, Node)>),
}

/// A key of a map.
#[derive(Debug)]
pub struct MapKey {
    /// The key itself.
    pub name: String,
    /// Its bytes in the text.
    pub at: Range<usize>,
}

/// Why the text is not supported YAML, and where.
#[derive(Debug)]
pub struct SyntaxError {
    /// Where, in bytes.
    pub at: Range<usize>,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub expected: &'static str,
}

impl Node {
    /// The value of a key, if it is a map that has it.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&Self> {
        let Kind::Map(entries) = &self.kind else { return None };
        entries.iter().find_map(|(key, value)| (key.name == name).then_some(value))
    }
}

/// The tree of the document in `text`; `None` when the text is empty.
///
/// Errors: no YAML; tags, aliases, a second document, or deeper than 32 levels.
pub fn parse(text: &str) -> Result<Option<Node>, SyntaxError> {
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: DEPTH_MAX,
        block_nesting_limit: DEPTH_MAX,
    };
    let mut events =
        Events { parser: Parser::new_from_str_with_options(text, options), end: text.len() };
    let mut root = None;
    loop {
        let (event, at) = events.next()?;
        match event {
            Event::StreamStart | Event::DocumentEnd => {}
            Event::DocumentStart(..) if root.is_some() => {
                return Err(events.refuse(at, "a second document", "one document in the file"));
            }
            Event::DocumentStart(..) => {
                let (event, at) = events.next()?;
                root = Some(events.node(event, at)?);
            }
            _ => return Ok(root),
        }
    }
}

struct Events<'text> {
    parser: Parser<'text, StrInput<'text>>,
    end: usize,
}

impl<'text> Events<'text> {
    fn next(&mut self) -> Result<(Event<'text>, Range<usize>), SyntaxError> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, self.range(&span))),
            Some(Err(error)) => {
                let at = error.marker().byte_offset().unwrap_or(self.end).min(self.end);
                Err(SyntaxError { at: at..at, problem: error.info(), expected: "valid YAML" })
            }
            None => Ok((Event::StreamEnd, self.end..self.end)),
        }
    }

    fn node(&mut self, event: Event<'text>, at: Range<usize>) -> Result<Node, SyntaxError> {
        let kind = match event {
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, _, Some(_))
            | Event::MappingStart(_, _, Some(_)) => {
                return Err(self.refuse(at, "a tag", "the plain value"));
            }
            Event::Scalar(text, style, ..) => match (&*text, style) {
                ("" | "~" | "null", ScalarStyle::Plain) => Kind::Null,
                _ => Kind::Scalar(text.into_owned()),
            },
            Event::SequenceStart(..) => return self.list(at),
            Event::MappingStart(..) => return self.map(at),
            Event::Alias(_) => {
                return Err(self.refuse(at, "an alias", "the value itself, written out"));
            }
            _ => return Err(self.refuse(at, "an incomplete value", "a value")),
        };
        Ok(Node { at, kind })
    }

    fn list(&mut self, at: Range<usize>) -> Result<Node, SyntaxError> {
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Node { at, kind: Kind::List(items) }),
                (event, at) => items.push(self.node(event, at)?),
            }
        }
    }

    fn map(&mut self, at: Range<usize>) -> Result<Node, SyntaxError> {
        let mut entries = Vec::new();
        loop {
            let key = match self.next()? {
                (Event::MappingEnd, _) => return Ok(Node { at, kind: Kind::Map(entries) }),
                (Event::Scalar(name, _, _, None), at) => MapKey { name: name.into_owned(), at },
                (_, at) => {
                    return Err(self.refuse(at, "a key that is not a word", "a word and a colon"));
                }
            };
            let (event, at) = self.next()?;
            entries.push((key, self.node(event, at)?));
        }
    }

    fn refuse(&self, at: Range<usize>, what: &str, expected: &'static str) -> SyntaxError {
        SyntaxError { at, problem: format!("{what} is not supported here"), expected }
    }

    fn range(&self, span: &Span) -> Range<usize> {
        span.byte_range().unwrap_or(self.end..self.end)
    }
}
