//! Counts calls of tools by the tool's own name.

use std::collections::BTreeMap;

/// Names that one answer may have beside [`OTHERS`].
const NAMES_MAX: usize = 32;

/// Longest name, in bytes. The rest of a longer one is cut off.
const NAME_BYTES_MAX: usize = 64;

/// The name of the calls that exceed [`NAMES_MAX`].
const OTHERS: &str = "other";

/// Values by the name of a tool. It takes no memory of its own before the first one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ByTool<T>(BTreeMap<String, T>);

impl<T> Default for ByTool<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> ByTool<T> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(tool, value)| (tool.as_str(), value))
    }

    pub(crate) fn into_named(self) -> BTreeMap<String, T> {
        self.0
    }
}

impl<T: Default> ByTool<T> {
    /// The value of a tool.
    pub(crate) fn get_mut(&mut self, tool: &str) -> &mut T {
        let name = kept(tool);
        let has_room = self.0.len() < NAMES_MAX || self.0.contains_key(&name);
        self.0.entry(if has_room { name } else { OTHERS.to_owned() }).or_default()
    }
}

/// A name as it is kept: whoever reads it may print it.
fn kept(name: &str) -> String {
    let head = name.get(..name.floor_char_boundary(NAME_BYTES_MAX)).unwrap_or_default();
    head.replace(char::is_control, "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_bounded_in_number_and_in_length() {
        let mut calls = ByTool::<u64>::default();
        for tool in 0..100 {
            *calls.get_mut(&format!("tool{tool}")) += 1;
        }
        *calls.get_mut("tool7") += 2;
        let named = calls.into_named();
        assert_eq!(named.len(), NAMES_MAX + 1);
        assert_eq!(named.values().sum::<u64>(), 102);
        assert_eq!((named["tool7"], named[OTHERS]), (3, 68));
        for (name, is_kept_as) in [
            ("é".repeat(1 << 20), "é".repeat(32)),
            (format!("x{}", "é".repeat(40)), format!("x{}", "é".repeat(31))),
            ("a\nb\u{1b}[2J".to_owned(), "a_b_[2J".to_owned()),
        ] {
            assert_eq!(kept(&name), is_kept_as);
        }
    }
}
