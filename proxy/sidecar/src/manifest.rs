//! Manifests: one or many documents of YAML or JSON → the same text with sidecars in it.
//!
//! A document is changed where the patch says, and nowhere else: comments, order and quotes stay.
//! What the text then says is read again and held against what it should say.

mod kinds;
mod kserve;

use std::fmt;
use std::ops::Range;

use serde_json::Value;

use self::kinds::{Found, Place, Shape};
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
    #[error("column {column}: {problem}; expected YAML or JSON")]
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
        /// Where the object begins, from 1.
        line: usize,
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
        line: usize,
        /// As above.
        object: String,
    },
    /// A kind of object that has containers, and that is not known.
    #[error(
        "{object}: has containers at {place}, and inject does not know objects of this kind; with \
         --allow-unknown it stays as it is"
    )]
    Unknown {
        /// Where the containers are, from 1.
        line: usize,
        /// As above.
        object: String,
        /// The way to the containers: `spec.template.spec`.
        place: String,
    },
}

impl ManifestFault {
    /// Where in the input it is, from 1.
    #[must_use]
    pub const fn line(&self) -> Option<usize> {
        match self {
            Self::TooLong => None,
            Self::Syntax { line, .. }
            | Self::Unfit { line, .. }
            | Self::Form { line, .. }
            | Self::Unknown { line, .. } => Some(*line),
        }
    }
}

/// `text` with a sidecar in each object that has pods, but for those that say that they want none.
/// What is no such object stays byte for byte, and so does all when injected before. Of objects of
/// an unknown kind that have containers there is a note, if `allow_unknown`.
///
/// Errors: all that is in the way; nothing is written then.
pub fn written(
    text: &str,
    sidecar: &Sidecar,
    allow_unknown: bool,
) -> Result<Written, Vec<ManifestFault>> {
    if text.len() > MANIFEST_BYTES_MAX {
        return Err(vec![ManifestFault::TooLong]);
    }
    let documents = tree::documents(text).map_err(|fault| vec![syntax(text, 0, fault)])?;
    let mut written = Written { text: String::new(), injected: 0, notes: Vec::new() };
    let mut faults = Vec::new();
    for (index, range) in documents.iter().enumerate() {
        let document = Document {
            text: text.get(range.clone()).unwrap_or_default(),
            number: index + 1,
            first_line: line_at(text, range.start),
        };
        match one(&document, sidecar, allow_unknown, &mut written) {
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

/// One document of the input.
struct Document<'text> {
    text: &'text str,
    /// From 1.
    number: usize,
    /// The line of the input on which it begins, from 1.
    first_line: usize,
}

impl Document<'_> {
    /// The line of the input on which the value at a JSON pointer begins.
    fn line(&self, root: &Node, pointer: &str) -> usize {
        let start = root.pointed(pointer).map_or(root.at.start, |at| at.start);
        self.first_line + line_at(self.text, start) - 1
    }
}

/// A document with sidecars.
fn one(
    document: &Document<'_>,
    sidecar: &Sidecar,
    allow_unknown: bool,
    told: &mut Written,
) -> Result<String, Stop> {
    let Some(root) = tree::parse(document.text)? else { return Ok(document.text.to_owned()) };
    let before = root.value();
    let Found { places, unknown } = kinds::find(&before);
    let (mut after, mut faults) = (before.clone(), Vec::new());
    for Place { object: at, pods, shape, note } in places {
        let Some(object) = before.pointer(&at) else { continue };
        let object = named(document.number, object);
        let mut tell = |note: &dyn fmt::Display| told.notes.push(format!("{object}: {note}"));
        if pods.is_empty() {
            tell(&"left as it is, it has no pod template");
        }
        for pod in pods {
            let Some(pod) = after.pointer_mut(&pod) else { continue };
            let injected = match shape {
                Shape::Pod => inject(pod, sidecar, false),
                Shape::Predictor => kserve::inject(pod, sidecar),
            };
            match injected {
                Ok(Some(Injected { pod: new, notes })) => {
                    *pod = new;
                    told.injected += 1;
                    notes.iter().for_each(|note| tell(note));
                    note.iter().for_each(|note| tell(note));
                }
                Ok(None) => tell(&"left as it is, as it asks for"),
                Err(why) => {
                    let (line, object) = (document.line(&root, &at), object.clone());
                    faults.push(ManifestFault::Unfit { line, object, why });
                }
            }
        }
    }
    for (at, containers) in unknown {
        let line = document.line(&root, &containers);
        let object = named(document.number, before.pointer(&at).unwrap_or(&Value::Null));
        let way = containers.strip_prefix(&at).unwrap_or(&containers);
        let place = way.trim_start_matches('/').replace('/', ".");
        if allow_unknown {
            let what = "left as it is, inject does not know objects of this kind";
            told.notes
                .push(format!("{object}: {what}; its containers are at {place}, line {line}"));
        } else {
            faults.push(ManifestFault::Unknown { line, object, place });
        }
    }
    if !faults.is_empty() {
        return Err(Stop::Objects(faults));
    }
    let line = document.line(&root, "");
    change(document.text, root, &after).ok_or_else(|| {
        let object = named(document.number, &before);
        Stop::Objects(vec![ManifestFault::Form { line, object }])
    })
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

fn named(number: usize, object: &Value) -> String {
    let text = |place: &str| object.pointer(place).and_then(Value::as_str);
    let kind = text("/kind").unwrap_or("object");
    let name = text("/metadata/name").or_else(|| text("/metadata/generateName"));
    format!("document {number}, {kind} {}", name.unwrap_or("without a name"))
}

/// The line of a byte, from 1.
fn line_at(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}

fn syntax(text: &str, offset: usize, fault: Fault) -> ManifestFault {
    let Range { start, .. } = offset + fault.at..text.len();
    let before = text.get(..start).unwrap_or(text);
    let line = line_at(text, start);
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    ManifestFault::Syntax { line, column, problem: fault.problem }
}

#[cfg(test)]
mod tests;
