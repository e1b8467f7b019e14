//! The names of hosted tools, and the units in which their calls are counted.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Units with a name of a provider's choice that one answer may have.
const UNITS_MAX: usize = 32;

/// The unit of the calls that exceed [`UNITS_MAX`].
const OTHERS: &str = "other_tool_calls";

/// Longest name of a unit, in bytes.
const UNIT_BYTES_MAX: usize = 64;

/// Last words of a name that say what is counted.
const COUNTED: [&str; 6] = ["_calls", "_requests", "_sessions", "_queries", "_sources", "_pages"];

/// The unit in which the calls of a tool are counted. `tool` is the provider's own name of the
/// tool, or of the number of its calls.
///
/// A tool that nobody knows has a unit all the same, so that the cost of its calls is unknown and
/// not zero.
pub(crate) fn unit(tool: &str) -> Cow<'static, str> {
    let tool = sanitised(tool);
    let known = match tool.strip_suffix("_calls").unwrap_or(&tool) {
        "web_search" | "web_search_preview" | "search_web" | "search" | "browser_search" => {
            "web_search_requests"
        }
        "web_fetch" => "web_fetch_requests",
        "code_execution" | "bash_code_execution" | "text_editor_code_execution" => {
            "code_execution_requests"
        }
        "tool_search" | "tool_search_tool_regex" | "tool_search_tool_bm25" => "tool_search_calls",
        "python" => "code_interpreter_calls",
        "mcp" => "mcp_calls",
        "mcp_list_tools" => "mcp_list_tools_calls",
        "computer" => "computer_calls",
        "shell" => "shell_calls",
        "local_shell" => "local_shell_calls",
        "apply_patch" => "apply_patch_calls",
        "visit" => "visit_website_calls",
        "x_keyword_search" | "x_semantic_search" | "x_user_search" | "x_thread_fetch" => {
            "x_search_calls"
        }
        _ if COUNTED.iter().any(|word| tool.ends_with(word)) => return Cow::Owned(tool),
        _ => return Cow::Owned(tool + "_calls"),
    };
    Cow::Borrowed(known)
}

/// Lower case letters, digits and underscores, cut to a length that may be kept.
fn sanitised(tool: &str) -> String {
    let room = UNIT_BYTES_MAX - "_calls".len();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric();
    let kept =
        tool.bytes().map(|byte| if is_plain(byte) { byte.to_ascii_lowercase() } else { b'_' });
    let name: String = kept.take(room).map(char::from).collect();
    let name = name.trim_matches('_');
    if name.is_empty() { "tool".to_owned() } else { name.to_owned() }
}

/// Values by the name of a unit. What exceeds the number of names that are kept goes to one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Units<T>(BTreeMap<Cow<'static, str>, T>);

impl<T> Default for Units<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Units<T> {
    pub(crate) fn get(&self, unit: &str) -> Option<&T> {
        self.0.get(unit)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(unit, value)| (unit.as_ref(), value))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.values()
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.values_mut()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps the units that `keep` holds for.
    pub(crate) fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.0.retain(|unit, _| keep(unit));
    }
}

impl<T: Copy> Units<T> {
    /// These over earlier ones, unit by unit.
    pub(crate) fn over(mut self, earlier: Self) -> Self {
        for (unit, value) in earlier.0 {
            self.0.entry(unit).or_insert(value);
        }
        self
    }
}

impl<T: Default> Units<T> {
    /// The value of `unit`. Names of our own always have room.
    pub(crate) fn get_mut(&mut self, unit: Cow<'static, str>) -> &mut T {
        let has_room = matches!(unit, Cow::Borrowed(_))
            || self.0.len() < UNITS_MAX
            || self.0.contains_key(&unit);
        self.0.entry(if has_room { unit } else { Cow::Borrowed(OTHERS) }).or_default()
    }
}

impl<T> IntoIterator for Units<T> {
    type Item = (Cow<'static, str>, T);
    type IntoIter = std::collections::btree_map::IntoIter<Cow<'static, str>, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_nobody_knows_has_a_unit_by_its_name() {
        for (tool, counted_in) in [
            ("web_search", "web_search_requests"),
            ("search_web", "web_search_requests"),
            ("bash_code_execution", "code_execution_requests"),
            ("mcp", "mcp_calls"),
            ("mcp_calls", "mcp_calls"),
            ("nova_grounding", "nova_grounding_calls"),
            ("teleport_requests", "teleport_requests"),
            ("Deep Dive/2", "deep_dive_2_calls"),
            ("", "tool_calls"),
            ("é", "tool_calls"),
            ("requests", "requests_calls"),
        ] {
            assert_eq!(unit(tool), counted_in, "{tool}");
        }
        let long = unit(&"x".repeat(1 << 20));
        assert!(long.len() <= UNIT_BYTES_MAX && long.ends_with("_calls"), "{long}");
    }

    #[test]
    fn more_names_than_are_kept_share_one() {
        let mut units = Units::<u64>::default();
        for tool in 0..100 {
            *units.get_mut(unit(&format!("tool{tool}"))) += 1;
        }
        *units.get_mut(unit("web_search")) += 1;
        assert_eq!(units.iter().count(), UNITS_MAX + 2);
        assert_eq!(units.values().sum::<u64>(), 101);
        assert_eq!(units.get(OTHERS), Some(&68));
    }
}
