//! The difference between two JSON values as a JSON Patch (RFC 6902).

use serde::{Serialize, Serializer};
use serde_json::Value;

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "op", rename_all = "lowercase")]
pub enum Operation {
    /// A new key of an object, or a new element before the one that has this index now.
    Add {
        /// Where.
        path: Pointer,
        /// What.
        value: Value,
    },
    /// Takes away what is there.
    Remove {
        /// Where.
        path: Pointer,
    },
    /// Puts another value in its place.
    Replace {
        /// Where.
        path: Pointer,
        /// What.
        value: Value,
    },
}

/// Way from the root of a value to a place in it. Serialised as a JSON Pointer (RFC 6901).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pointer(pub Vec<Step>);

/// One step of a way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Of an object.
    Key(String),
    /// Of an array.
    Index(usize),
}

impl Pointer {
    fn then(&self, step: Step) -> Self {
        Self([self.0.as_slice(), &[step]].concat())
    }
}

impl Serialize for Pointer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl std::fmt::Display for Pointer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|step| match step {
            Step::Key(key) => write!(f, "/{}", key.replace('~', "~0").replace('/', "~1")),
            Step::Index(index) => write!(f, "/{index}"),
        })
    }
}

/// What makes `after` of `before`, change by change: each holds for what those before it left.
///
/// Elements of arrays are compared from both ends, so that one that came or went is one change.
#[must_use]
pub fn between(before: &Value, after: &Value) -> Vec<Operation> {
    let mut operations = Vec::new();
    differ(&Pointer::default(), before, after, &mut operations);
    operations
}

fn differ(at: &Pointer, before: &Value, after: &Value, operations: &mut Vec<Operation>) {
    match (before, after) {
        _ if before == after => {}
        (Value::Object(before), Value::Object(after)) => {
            for key in before.keys().filter(|key| !after.contains_key(*key)) {
                operations.push(Operation::Remove { path: at.then(Step::Key(key.clone())) });
            }
            for (key, value) in after {
                let path = at.then(Step::Key(key.clone()));
                match before.get(key) {
                    Some(before) => differ(&path, before, value, operations),
                    None => operations.push(Operation::Add { path, value: value.clone() }),
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => elements(at, before, after, operations),
        _ => operations.push(Operation::Replace { path: at.clone(), value: after.clone() }),
    }
}

fn elements(at: &Pointer, before: &[Value], after: &[Value], operations: &mut Vec<Operation>) {
    let same = |(one, other): &(&Value, &Value)| one == other;
    let first = before.iter().zip(after).take_while(same).count();
    let (before, after) = (before.get(first..), after.get(first..));
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let last = before.iter().rev().zip(after.iter().rev()).take_while(same).count();
    let before = before.get(..before.len() - last).unwrap_or_default();
    let after = after.get(..after.len() - last).unwrap_or_default();
    let path = |index: usize| at.then(Step::Index(first + index));
    for (index, (before, after)) in before.iter().zip(after).enumerate() {
        // Another element is not a change of this one.
        if before.get("name") == after.get("name") {
            differ(&path(index), before, after, operations);
        } else {
            operations.push(Operation::Replace { path: path(index), value: after.clone() });
        }
    }
    for index in (after.len()..before.len()).rev() {
        operations.push(Operation::Remove { path: path(index) });
    }
    for (index, value) in after.iter().enumerate().skip(before.len()) {
        operations.push(Operation::Add { path: path(index), value: value.clone() });
    }
}

#[cfg(test)]
mod tests;
