//! Manifests: one or many documents of YAML or JSON → the same text with sidecars in it.
//!
//! A document is changed where the patch says, and nowhere else: comments, order and quotes stay.
//! What the text then says is read again and held against what it should say.

use std::ops::Range;

use serde_json::Value;

use crate::inject::{Injected, inject};
use crate::options::Sidecar;
use crate::patch;
use crate::unfit::Unfit;
use crate::yaml::edit::edit;
use crate::yaml::tree::{self, Fault, Node};

/// Longest input, in bytes; of an object, a cluster keeps a tenth of that.
const MANIFEST_BYTES_MAX: usize = 16 << 20;
/// How often what could not be written beside something else is tried again, with one more to see
/// that all is written.
const ROUNDS_MAX: usize = 8;
/// Lists within lists.
const LISTS_MAX: usize = 4;

/// What has pods, and where: kind, the group of its API, the way to the pod.
const KINDS: &[(&str, &str, &str)] = &[
    ("Pod", "", ""),
    ("PodTemplate", "", "/template"),
    ("ReplicationController", "", "/spec/template"),
    ("Deployment", "apps", "/spec/template"),
    ("StatefulSet", "apps", "/spec/template"),
    ("DaemonSet", "apps", "/spec/template"),
    ("ReplicaSet", "apps", "/spec/template"),
    ("Job", "batch", "/spec/template"),
    ("CronJob", "batch", "/spec/jobTemplate/spec/template"),
];

/// A text with sidecars.
#[derive(Debug, PartialEq, Eq)]
pub struct Written {
    /// The whole of it.
    pub text: String,
    /// Objects that have one now, those that had it before counted too.
    pub injected: usize,
    /// What whoever applies it should know, with the object's place in front.
    pub notes: Vec<String>,
}

/// Why nothing was written; the text names document, kind and name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestFault {
    /// Too long.
    #[error("the input is longer than {MANIFEST_BYTES_MAX} bytes; split it")]
    TooLong,
    /// Neither YAML nor JSON.
    #[error("line {line}, column {column}: {problem}; expected YAML or JSON")]
    Syntax {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// A pod that gets no sidecar.
    #[error("{object}: {why}")]
    Unfit {
        /// As `document 2, Deployment vllm`.
        object: String,
        /// What is in the way.
        why: Unfit,
    },
    /// The text has a form that a change cannot be written into.
    #[error(
        "{object}: its YAML has what is not written into (anchors, aliases, tags); give it as \
         JSON, as `yq -o json` makes it"
    )]
    Form {
        /// As above.
        object: String,
    },
}

/// `text` with a sidecar in each object that has pods, but for those that say that they want none.
/// What is no such object stays byte for byte, and so does all when injected before.
///
/// Errors: all that is in the way; nothing is written then.
pub fn written(text: &str, sidecar: &Sidecar) -> Result<Written, Vec<ManifestFault>> {
    if text.len() > MANIFEST_BYTES_MAX {
        return Err(vec![ManifestFault::TooLong]);
    }
    let documents = tree::documents(text).map_err(|fault| vec![syntax(text, 0, fault)])?;
    let mut written = Written { text: String::new(), injected: 0, notes: Vec::new() };
    let mut faults = Vec::new();
    for (index, range) in documents.iter().enumerate() {
        let document = text.get(range.clone()).unwrap_or_default();
        match one(document, index + 1, sidecar, &mut written) {
            Ok(new) => written.text.push_str(&new),
            Err(Stop::Syntax(fault)) => faults.push(syntax(text, range.start, fault)),
            Err(Stop::Objects(more)) => faults.extend(more),
        }
    }
    if documents.is_empty() {
        text.clone_into(&mut written.text);
    }
    if faults.is_empty() { Ok(written) } else { Err(faults) }
}

enum Stop {
    Syntax(Fault),
    Objects(Vec<ManifestFault>),
}

impl From<Fault> for Stop {
    fn from(fault: Fault) -> Self {
        Self::Syntax(fault)
    }
}

/// A document with sidecars.
fn one(text: &str, number: usize, sidecar: &Sidecar, told: &mut Written) -> Result<String, Stop> {
    let Some(root) = tree::parse(text)? else { return Ok(text.to_owned()) };
    let before = root.value();
    let mut places = Vec::new();
    find(&before, String::new(), LISTS_MAX, &mut places);
    let (mut after, mut faults) = (before.clone(), Vec::new());
    for place in places {
        let Some(object) = before.pointer(&place.object) else { continue };
        let object = named(number, object);
        let Some(pod) = after.pointer_mut(&place.pod) else { continue };
        match inject(pod, sidecar, false) {
            Ok(Some(Injected { pod: new, notes })) => {
                *pod = new;
                told.injected += 1;
                told.notes.extend(notes.into_iter().map(|note| format!("{object}: {note}")));
            }
            Ok(None) => told.notes.push(format!("{object}: left as it is, as it asks for")),
            Err(why) => faults.push(ManifestFault::Unfit { object, why }),
        }
    }
    if !faults.is_empty() {
        return Err(Stop::Objects(faults));
    }
    let changed = change(text, root, &after);
    changed
        .ok_or_else(|| Stop::Objects(vec![ManifestFault::Form { object: named(number, &before) }]))
}

/// `text` changed so that it says `after`; `None` where that cannot be written.
fn change(text: &str, mut root: Node, after: &Value) -> Option<String> {
    let mut text = text.to_owned();
    for _ in 0..ROUNDS_MAX {
        let operations = patch::between(&root.value(), after);
        if operations.is_empty() {
            return Some(text);
        }
        text = edit(&text, &root, &operations)?;
        root = tree::parse(&text).ok()??;
    }
    None
}

/// An object with pods, and the pod in it: JSON pointers.
struct Place {
    object: String,
    pod: String,
}

fn find(object: &Value, at: String, lists_max: usize, places: &mut Vec<Place>) {
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (kind, version) = (text("kind"), text("apiVersion"));
    let items = object.get("items").and_then(Value::as_array);
    if let Some(items) = items.filter(|_| kind.ends_with("List") && lists_max > 0) {
        let (inner, default) = (kind.trim_end_matches("List"), version);
        for (index, item) in items.iter().enumerate() {
            let at = format!("{at}/items/{index}");
            // Elements of a `PodList` may leave out what they are.
            if item.get("kind").is_none() {
                push(inner, default, at, places);
            } else {
                find(item, at, lists_max - 1, places);
            }
        }
        return;
    }
    push(kind, version, at, places);
}

fn push(kind: &str, version: &str, at: String, places: &mut Vec<Place>) {
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let known = KINDS.iter().find(|(known, of, _)| *known == kind && *of == group);
    if let Some((_, _, way)) = known {
        places.push(Place { pod: format!("{at}{way}"), object: at });
    }
}

fn named(number: usize, object: &Value) -> String {
    let text = |place: &str| object.pointer(place).and_then(Value::as_str);
    let kind = text("/kind").unwrap_or("object");
    let name = text("/metadata/name").or_else(|| text("/metadata/generateName"));
    format!("document {number}, {kind} {}", name.unwrap_or("without a name"))
}

fn syntax(text: &str, offset: usize, fault: Fault) -> ManifestFault {
    let Range { start, .. } = offset + fault.at..text.len();
    let before = text.get(..start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    ManifestFault::Syntax { line, column, problem: fault.problem }
}

#[cfg(test)]
mod tests;
