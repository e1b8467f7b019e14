//! A document of YAML → a tree that knows where in the text everything stands, and what that is as
//! JSON. Scalars mean what they mean to Kubernetes, as far as anything here asks.

use std::collections::HashMap;
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span, StrInput, StructureStyle};
use serde_json::{Map, Value};

/// Nested lists and maps; a pod has some fifteen.
const DEPTH_MAX: usize = 64;
/// Values of a document, those counted that aliases repeat.
const NODES_MAX: usize = 1 << 20;

/// One value, and the bytes of the text it stands at, its comments left out.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) at: Range<usize>,
    pub(crate) kind: Kind,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
    Scalar(Scalar),
    List {
        items: Vec<Node>,
        flow: bool,
    },
    Map {
        entries: Vec<Entry>,
        flow: bool,
    },
    /// Somewhere else in the text.
    Alias(Box<Node>),
}

#[derive(Debug, Clone)]
pub(crate) struct Scalar {
    text: String,
    style: ScalarStyle,
    is_text: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    /// Where the key stands.
    pub(crate) at: Range<usize>,
    pub(crate) value: Node,
}

impl Node {
    /// Where the value at a JSON pointer stands, with its key. `None` if it is not there as such: an
    /// alias stands somewhere else.
    pub(crate) fn pointed(&self, pointer: &str) -> Option<Range<usize>> {
        let (mut node, mut start) = (self, self.at.start);
        for step in pointer.split('/').skip(1) {
            let key = step.replace("~1", "/").replace("~0", "~");
            (node, start) = match &node.kind {
                Kind::Map { entries, .. } => {
                    let entry = entries.iter().find(|entry| entry.key == key)?;
                    (&entry.value, entry.at.start)
                }
                Kind::List { items, .. } => {
                    let item = items.get(key.parse::<usize>().ok()?)?;
                    (item, item.at.start)
                }
                Kind::Scalar(_) | Kind::Alias(_) => return None,
            };
        }
        Some(start..node.at.end)
    }
}

/// Why a text is no tree, and at which byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) problem: String,
}

/// Where documents begin: the first at 0, each other at its `---`.
pub(crate) fn documents(text: &str) -> Result<Vec<Range<usize>>, Fault> {
    let mut events = Events::new(text);
    let mut starts = Vec::new();
    loop {
        match events.next()? {
            (Event::StreamEnd, _) => break,
            (Event::DocumentStart(..), at) => starts.push(at.start),
            _ => {}
        }
    }
    if let Some(first) = starts.first_mut() {
        *first = 0;
    }
    let ends = starts.iter().copied().skip(1).chain([text.len()]);
    Ok(starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect())
}

/// The tree of the one document in `text`; `None` when there is nothing in it.
pub(crate) fn parse(text: &str) -> Result<Option<Node>, Fault> {
    let mut events = Events::new(text);
    let mut root = None;
    loop {
        match events.next()? {
            (Event::StreamStart | Event::DocumentEnd, _) => {}
            (Event::DocumentStart(..), _) if root.is_none() => {
                let (event, at) = events.next()?;
                root = Some(events.node(event, at)?);
            }
            (_, at) if root.is_some() && at.start < text.len() => {
                return Err(fault(at.start, "another document begins here"));
            }
            _ => return Ok(root.filter(|node| !node.value().is_null())),
        }
    }
}

fn fault(at: usize, problem: impl Into<String>) -> Fault {
    Fault { at, problem: problem.into() }
}

struct Events<'text> {
    text: &'text str,
    parser: Parser<'text, StrInput<'text>>,
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
}

impl<'text> Events<'text> {
    fn new(text: &'text str) -> Self {
        let options = granit_parser::options! {
            emit_comments: false,
            flow_nesting_limit: DEPTH_MAX,
            block_nesting_limit: DEPTH_MAX,
        };
        let parser = Parser::new_from_str_with_options(text, options);
        Self { text, parser, anchors: HashMap::new(), nodes: 0 }
    }

    fn next(&mut self) -> Result<(Event<'text>, Range<usize>), Fault> {
        let end = self.text.len();
        let range = |span: &Span| span.byte_range().unwrap_or(end..end);
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, range(&span))),
            Some(Err(error)) => {
                Err(fault(error.marker().byte_offset().unwrap_or(end).min(end), error.info()))
            }
            None => Ok((Event::StreamEnd, end..end)),
        }
    }

    fn count(&mut self, nodes: usize, at: usize) -> Result<(), Fault> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > NODES_MAX {
            return Err(fault(at, format!("more than {NODES_MAX} values")));
        }
        Ok(())
    }

    fn node(&mut self, event: Event<'text>, at: Range<usize>) -> Result<Node, Fault> {
        let began = self.nodes;
        self.count(1, at.start)?;
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.is_some_and(|tag| tag.core_suffix() == Some("str"));
                let scalar = Scalar { text: text.into_owned(), style, is_text };
                (Node { at: self.without_rest(at, style), kind: Kind::Scalar(scalar) }, anchor)
            }
            Event::SequenceStart(style, anchor, _) => (self.list(at, style)?, anchor),
            Event::MappingStart(style, anchor, _) => (self.map(at, style)?, anchor),
            Event::Alias(id) => {
                let Some((target, nodes)) = self.anchors.get(&id).cloned() else {
                    return Err(fault(at.start, "an alias of what it stands in"));
                };
                self.count(nodes, at.start)?;
                return Ok(Node { at, kind: Kind::Alias(Box::new(target)) });
            }
            _ => return Err(fault(at.start, "a value is missing")),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), self.nodes - began));
        }
        Ok(node)
    }

    /// Blocks of text end with the line breaks behind them; these are theirs only where they say so.
    fn without_rest(&self, at: Range<usize>, style: ScalarStyle) -> Range<usize> {
        if !matches!(style, ScalarStyle::Literal | ScalarStyle::Folded) {
            return at;
        }
        let block = self.text.get(at.clone()).unwrap_or_default();
        let head = block.lines().next().unwrap_or_default();
        let end = if head.contains('+') { block.len() } else { block.trim_end().len() };
        at.start..at.start + end
    }

    fn list(&mut self, at: Range<usize>, style: StructureStyle) -> Result<Node, Fault> {
        let flow = style == StructureStyle::Flow;
        let mut items: Vec<Node> = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, end) => {
                    let within = items.last().map_or(at.end, |last| last.at.end);
                    let at = at.start..if flow { end.end } else { within };
                    return Ok(Node { at, kind: Kind::List { items, flow } });
                }
                (event, at) => items.push(self.node(event, at)?),
            }
        }
    }

    fn map(&mut self, at: Range<usize>, style: StructureStyle) -> Result<Node, Fault> {
        let flow = style == StructureStyle::Flow;
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let (key, key_at) = match self.next()? {
                (Event::MappingEnd, end) => {
                    let within = entries.last().map_or(at.end, |last| last.value.at.end);
                    let at = at.start..if flow { end.end } else { within };
                    return Ok(Node { at, kind: Kind::Map { entries, flow } });
                }
                (Event::Scalar(name, ..), at) => (name.into_owned(), at),
                (_, at) => return Err(fault(at.start, "a key that is no word")),
            };
            if entries.iter().any(|entry| entry.key == key) {
                return Err(fault(key_at.start, format!("`{key}` is there twice")));
            }
            let (event, value_at) = self.next()?;
            let mut value = self.node(event, value_at)?;
            if value.at.is_empty() {
                // Nothing stands behind the colon.
                let rest = self.text.get(key_at.end..).unwrap_or_default();
                let colon = rest.find(':').map_or(0, |at| at + 1);
                value.at = key_at.end + colon..key_at.end + colon;
            }
            entries.push(Entry { key, at: key_at, value });
        }
    }
}

impl Kind {
    /// Whether it is a list or a map with nothing in it.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::List { items, .. } => items.is_empty(),
            Self::Map { entries, .. } => entries.is_empty(),
            Self::Scalar(_) | Self::Alias(_) => false,
        }
    }
}

impl Node {
    /// What it is as JSON.
    pub(crate) fn value(&self) -> Value {
        match &self.kind {
            Kind::Scalar(scalar) => scalar.value(),
            Kind::List { items, .. } => items.iter().map(Self::value).collect(),
            Kind::Map { entries, .. } => {
                let mut members = Map::new();
                for Entry { key, value, .. } in entries.iter().filter(|entry| entry.key != "<<") {
                    members.insert(key.clone(), value.value());
                }
                for merged in entries.iter().filter(|entry| entry.key == "<<") {
                    merge(&mut members, merged.value.value());
                }
                Value::Object(members)
            }
            Kind::Alias(target) => target.value(),
        }
    }
}

/// What is merged stands behind what is there.
fn merge(members: &mut Map<String, Value>, merged: Value) {
    match merged {
        Value::Object(more) => {
            for (key, value) in more {
                members.entry(key).or_insert(value);
            }
        }
        Value::Array(list) => list.into_iter().for_each(|one| merge(members, one)),
        _ => {}
    }
}

impl Scalar {
    /// As YAML 1.1 reads it, which Kubernetes does; numbers in other forms than JSON's stay text.
    fn value(&self) -> Value {
        let text = self.text.as_str();
        if self.is_text || self.style != ScalarStyle::Plain {
            return Value::from(text);
        }
        match text {
            "" | "~" | "null" | "Null" | "NULL" => Value::Null,
            "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => true.into(),
            "false" | "False" | "FALSE" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
                false.into()
            }
            _ => match serde_json::from_slice(text.as_bytes()) {
                Ok(Value::Number(number)) => Value::Number(number),
                _ => Value::from(text),
            },
        }
    }
}
