//! Looking at a pod, and changing it, where nothing has to be there.

use serde_json::{Map, Value};

use crate::unfit::Unfit;

/// A text, if it is one.
pub(crate) fn text(value: &Value) -> Option<&str> {
    value.as_str()
}

/// The elements of a list; none where it is missing.
pub(crate) fn list<'a>(of: &'a Value, key: &str) -> &'a [Value] {
    of.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The element with this name.
pub(crate) fn named<'a>(list: &'a [Value], name: &str) -> Option<&'a Value> {
    list.iter().find(|element| name_of(element) == name)
}

/// The name of an element of a list.
pub(crate) fn name_of(element: &Value) -> &str {
    element.get("name").and_then(text).unwrap_or_default()
}

/// A number that can be a port.
pub(crate) fn port(value: &Value) -> Option<u16> {
    value.as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)
}

/// The object at `key`, made where it is missing.
///
/// Errors: something else is there.
pub(crate) fn object_in<'a>(of: &'a mut Value, key: &str) -> Result<&'a mut Value, Unfit> {
    entry(of, key, Value::Object(Map::new()), Value::is_object)
}

/// The list at `key`, made where it is missing.
///
/// Errors: something else is there.
pub(crate) fn list_in<'a>(of: &'a mut Value, key: &str) -> Result<&'a mut Vec<Value>, Unfit> {
    entry(of, key, Value::Array(Vec::new()), Value::is_array)?
        .as_array_mut()
        .ok_or_else(|| Unfit::Shape(key.to_owned()))
}

fn entry<'a>(
    of: &'a mut Value,
    key: &str,
    empty: Value,
    fits: impl Fn(&Value) -> bool,
) -> Result<&'a mut Value, Unfit> {
    let members = of.as_object_mut().ok_or_else(|| Unfit::Shape(key.to_owned()))?;
    let value = members.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = empty;
    }
    if fits(value) { Ok(value) } else { Err(Unfit::Shape(key.to_owned())) }
}

/// Puts a member into the object at `key`.
///
/// Errors: something else is there.
pub(crate) fn put(of: &mut Value, key: &str, member: &str, value: Value) -> Result<(), Unfit> {
    let object = object_in(of, key)?;
    let members = object.as_object_mut().ok_or_else(|| Unfit::Shape(key.to_owned()))?;
    members.insert(member.to_owned(), value);
    Ok(())
}

/// Takes a member out of the object at `key`.
pub(crate) fn take(of: &mut Value, key: &str, member: &str) {
    if let Some(members) = of.get_mut(key).and_then(Value::as_object_mut) {
        members.remove(member);
    }
}

/// Puts an element into a list: in place of the one with its name, else at `index` or the end.
pub(crate) fn put_named(list: &mut Vec<Value>, element: Value, index: usize) {
    match list.iter_mut().find(|other| name_of(other) == name_of(&element)) {
        Some(other) => *other = element,
        None => list.insert(index.min(list.len()), element),
    }
}
