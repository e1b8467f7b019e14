//! Changes of a JSON Patch as changes of the text that it is of.
//!
//! Whether the text then says what it should is for the caller to see, by reading it again: here is
//! no more knowledge of YAML than where things stand.

use std::ops::Range;

use serde_json::Value;

use super::render;
use super::tree::{Entry, Kind, Node};
use crate::patch::{Operation, Pointer, Step};

/// `text`, whose tree is `root`, after the first of `operations` and all further ones that can be
/// written beside it; `None` where one cannot be written.
pub(crate) fn edit(text: &str, root: &Node, operations: &[Operation]) -> Option<String> {
    let mut edits: Vec<(Edit, &Pointer)> = Vec::new();
    let mut parents: Vec<(&[Step], bool)> = Vec::new();
    for operation in operations {
        let (path, change) = match operation {
            Operation::Add { path, value } => (path, Change::Add(value)),
            Operation::Replace { path, value } => (path, Change::Replace(value)),
            Operation::Remove { path } => (path, Change::Remove),
        };
        let (last, way) = path.0.split_last()?;
        // Indices count what was added before, and the text does not have that yet.
        let added = parents.iter().filter(|(parent, is_add)| *parent == way && *is_add).count();
        let step = match last {
            Step::Index(index) => Step::Index(index.checked_sub(added)?),
            Step::Key(key) => Step::Key(key.clone()),
        };
        let (node, entry) = find(root, way)?;
        // What is written into nothing is all that is there: a second one would not see it.
        let waits = node.kind.is_empty() && parents.iter().any(|(parent, _)| *parent == way);
        let edit = written(text, node, entry, &step, change)?;
        parents.push((way, matches!(change, Change::Add(_))));
        let overlaps =
            |(other, _): &(Edit, _)| edit.0.start < other.0.end && other.0.start < edit.0.end;
        if !waits && !edits.iter().any(overlaps) {
            edits.push((edit, path));
        }
    }
    // What ends at the same place ends from the inside out.
    taximeter_collections::sort_by_key(&mut edits, |((range, _), path)| {
        (range.start, usize::MAX - path.0.len())
    });
    let (mut changed, mut from) = (String::new(), 0);
    for ((range, new), _) in edits {
        changed.push_str(text.get(from..range.start)?);
        changed.push_str(&new);
        from = range.end;
    }
    changed.push_str(text.get(from..)?);
    Some(changed)
}

/// The node at the end of a way, and the entry of a block that it is the value of.
fn find<'a>(root: &'a Node, way: &[Step]) -> Option<(&'a Node, Option<&'a Entry>)> {
    let mut found = (root, None);
    for step in way {
        found = match (step, &found.0.kind) {
            (Step::Key(key), Kind::Map { entries, flow }) => {
                let entry = entries.iter().find(|entry| entry.key == *key)?;
                (&entry.value, (!flow).then_some(entry))
            }
            (Step::Index(index), Kind::List { items, .. }) => (items.get(*index)?, None),
            _ => return None,
        };
    }
    Some(found)
}

/// What stands where after one change of `node`.
fn written(
    text: &str,
    node: &Node,
    entry: Option<&Entry>,
    last: &Step,
    change: Change<'_>,
) -> Option<Edit> {
    if let (true, Some(entry), Change::Add(value)) = (node.kind.is_empty(), entry, change) {
        return Some(into_empty(text, entry, last, value));
    }
    match (&node.kind, last) {
        (Kind::Map { entries, flow: false }, Step::Key(key)) => {
            of_block_map(text, entries, key, change)
        }
        (Kind::Map { entries, flow: true }, Step::Key(key)) => {
            of_flow_map(text, node, entries, key, change)
        }
        (Kind::List { items, flow: false }, Step::Index(index)) => {
            of_block_list(text, items, *index, entry, change)
        }
        (Kind::List { items, flow: true }, Step::Index(index)) => {
            of_flow_list(text, node, items, *index, change)
        }
        _ => None,
    }
}

#[derive(Clone, Copy)]
enum Change<'a> {
    Add(&'a Value),
    Replace(&'a Value),
    Remove,
}

type Edit = (Range<usize>, String);

/// The first element of a `[]` or `{}`, which becomes a block like what it stands in.
fn into_empty(text: &str, entry: &Entry, last: &Step, value: &Value) -> Edit {
    let whole = match last {
        Step::Key(key) => Value::Object([(key.clone(), value.clone())].into_iter().collect()),
        Step::Index(_) => Value::Array(vec![value.clone()]),
    };
    let new = render::entry(&entry.key, &whole, column(text, entry.at.start));
    (entry.at.start..entry.value.at.end, new.trim_start().to_owned())
}

fn of_block_map(text: &str, entries: &[Entry], key: &str, change: Change<'_>) -> Option<Edit> {
    let column = column(text, entries.first()?.at.start);
    let position = entries.iter().position(|entry| entry.key == key);
    match (change, position) {
        (Change::Add(value), None) => {
            let end = line_end(text, entries.last()?.value.at.end);
            Some((end..end, behind(text, end, &render::entry(key, value, column))))
        }
        (Change::Replace(value), Some(position)) => {
            let entry = entries.get(position)?;
            let is_scalar = matches!(entry.value.kind, Kind::Scalar(_));
            let is_line = !text.get(entry.value.at.clone())?.contains('\n');
            let new = render::entry(key, value, column);
            if is_scalar && is_line && !new.contains('\n') && !entry.value.at.is_empty() {
                return Some((entry.value.at.clone(), render::inline(value)));
            }
            Some((entry.at.start..entry.value.at.end, new.trim_start().to_owned()))
        }
        (Change::Remove, Some(position)) => {
            let entry = entries.get(position)?;
            if is_first_on_line(text, entry.at.start) {
                return Some((lines(text, entry.at.start, entry.value.at.end), String::new()));
            }
            // Behind the dash of a list, where the next one comes to stand.
            let next = entries.get(position + 1)?;
            Some((entry.at.start..next.at.start, String::new()))
        }
        _ => None,
    }
}

fn of_flow_map(
    text: &str,
    node: &Node,
    entries: &[Entry],
    key: &str,
    change: Change<'_>,
) -> Option<Edit> {
    let position = entries.iter().position(|entry| entry.key == key);
    let places: Vec<Range<usize>> =
        entries.iter().map(|entry| entry.at.start..entry.value.at.end).collect();
    match (change, position) {
        (Change::Add(value), None) => {
            let key = Value::from(key).to_string();
            let written = |value: String| format!("{key}: {value}");
            Some(into_flow(text, node, &places, places.len(), value, written))
        }
        (Change::Replace(value), Some(position)) => {
            let entry = entries.get(position)?;
            if entry.value.at.is_empty() {
                return Some((entry.value.at.clone(), format!(" {value}")));
            }
            let pretty = pretty(text, node, &places, value);
            Some((entry.value.at.clone(), pretty))
        }
        (Change::Remove, Some(position)) => from_flow(&places, position),
        _ => None,
    }
}

fn of_block_list(
    text: &str,
    items: &[Node],
    index: usize,
    entry: Option<&Entry>,
    change: Change<'_>,
) -> Option<Edit> {
    let column = column(text, dash(text, items.first()?.at.start)?);
    match change {
        Change::Add(value) => {
            let new = render::item(value, column);
            // Comments before the first element are that element's.
            if let (0, Some(entry)) = (index, entry) {
                let end = line_end(text, entry.at.end);
                return Some((end..end, behind(text, end, &new)));
            }
            let Some(next) = items.get(index) else {
                let end = line_end(text, items.last()?.at.end);
                return Some((end..end, behind(text, end, &new)));
            };
            let start = line_start(text, dash(text, next.at.start)?);
            Some((start..start, format!("{new}\n")))
        }
        Change::Replace(value) => {
            let item = items.get(index)?;
            let new = render::item(value, column);
            Some((dash(text, item.at.start)?..item.at.end, new.trim_start().to_owned()))
        }
        Change::Remove => {
            let item = items.get(index)?;
            let dash = dash(text, item.at.start)?;
            (items.len() > 1 && is_first_on_line(text, dash))
                .then(|| (lines(text, dash, item.at.end), String::new()))
        }
    }
}

fn of_flow_list(
    text: &str,
    node: &Node,
    items: &[Node],
    index: usize,
    change: Change<'_>,
) -> Option<Edit> {
    let places: Vec<Range<usize>> = items.iter().map(|item| item.at.clone()).collect();
    match change {
        Change::Add(value) => Some(into_flow(text, node, &places, index, value, |value| value)),
        Change::Replace(value) => {
            Some((places.get(index)?.clone(), pretty(text, node, &places, value)))
        }
        Change::Remove => from_flow(&places, index),
    }
}

/// An element into a `[…]` or `{…}`: on a line of its own where the others have one.
fn into_flow(
    text: &str,
    node: &Node,
    places: &[Range<usize>],
    index: usize,
    value: &Value,
    written: impl Fn(String) -> String,
) -> Edit {
    let new = written(pretty(text, node, places, value));
    let gap = match indent(text, node, places) {
        Some((column, _)) => format!("\n{}", " ".repeat(column)),
        None => " ".to_owned(),
    };
    match (places.get(index), places.last()) {
        (Some(next), _) => (next.start..next.start, format!("{new},{gap}")),
        (None, Some(last)) => (last.end..last.end, format!(",{gap}{new}")),
        (None, None) => (node.at.start + 1..node.at.start + 1, new),
    }
}

fn from_flow(places: &[Range<usize>], index: usize) -> Option<Edit> {
    let place = places.get(index)?;
    let range =
        match (index.checked_sub(1).and_then(|before| places.get(before)), places.get(index + 1)) {
            (_, Some(next)) => place.start..next.start,
            (Some(before), None) => before.end..place.end,
            (None, None) => place.clone(),
        };
    Some((range, String::new()))
}

/// JSON as the elements beside it are written: on one line, or on several.
fn pretty(text: &str, node: &Node, places: &[Range<usize>], value: &Value) -> String {
    let Some((column, step)) = indent(text, node, places) else { return value.to_string() };
    let pretty = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    let mut lines = pretty.lines();
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |written, line| {
        let inside = line.trim_start_matches(' ');
        let depth = (line.len() - inside.len()) / 2;
        format!("{written}\n{}{inside}", " ".repeat(column + depth * step))
    })
}

/// The column of the elements, and how far behind their parent's they stand; `None` where they are
/// on the line of the bracket.
fn indent(text: &str, node: &Node, places: &[Range<usize>]) -> Option<(usize, usize)> {
    let first = places.first()?.start;
    if !text.get(node.at.start..first)?.contains('\n') {
        return None;
    }
    let column = column(text, first);
    let line = text.get(line_start(text, node.at.start)..)?;
    let outer = line.len() - line.trim_start_matches(' ').len();
    Some((column, column.saturating_sub(outer).max(1)))
}

/// Where the dash before an element stands.
fn dash(text: &str, item: usize) -> Option<usize> {
    let before = text.get(..item)?.trim_end();
    before.ends_with('-').then(|| before.len() - 1)
}

/// Lines that come behind the line that ends at `end`.
fn behind(text: &str, end: usize, new: &str) -> String {
    let is_broken = end == 0 || text.get(..end).is_some_and(|before| before.ends_with('\n'));
    if is_broken { format!("{new}\n") } else { format!("\n{new}") }
}

fn column(text: &str, at: usize) -> usize {
    text.get(line_start(text, at)..at).map_or(0, |line| line.chars().count())
}

fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1)
}

/// Behind the line break after `at`, or the text's end; a line that has just ended stays ended.
fn line_end(text: &str, at: usize) -> usize {
    let is_broken = at > 0 && text.get(..at).is_some_and(|before| before.ends_with('\n'));
    if is_broken {
        return at;
    }
    let rest = text.get(at..).unwrap_or_default();
    rest.find('\n').map_or(text.len(), |end| at + end + 1)
}

fn lines(text: &str, start: usize, end: usize) -> Range<usize> {
    line_start(text, start)..line_end(text, end)
}

fn is_first_on_line(text: &str, at: usize) -> bool {
    text.get(line_start(text, at)..at).is_some_and(|before| before.trim().is_empty())
}
