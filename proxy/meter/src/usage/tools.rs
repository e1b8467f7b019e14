//! Reads how often hosted tools were called.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rust_decimal::Decimal;
use taximeter_collections::Gather as _;

use super::Report;
use super::members::{Meaning, Place, meaning};
use crate::json::{Malformed, Reader};
use crate::tool_names::{Units, unit};

/// The unit of calls of tools that nobody names.
const UNNAMED: &str = "server_side_tool_calls";

impl Place {
    /// Whether the object has a member for each tool, of which providers add new ones.
    pub(super) const fn holds_tools(self) -> bool {
        matches!(self, Self::ServerToolUse | Self::ServerSideTools | Self::HostedTools)
    }
}

impl Report {
    /// Reads an object that has a member for each tool. Several tools may be charged alike.
    pub(super) fn read_tools(
        &mut self,
        place: Place,
        value: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        self.tells_all_tools |= place == Place::ServerSideTools && value.peek() == Some(b'{');
        let mut told = Units::<u64>::default();
        value.object(|key, value| {
            let unit = match meaning(place, key) {
                None => unit(&tool(key)),
                Some(Meaning::Tool(unit)) => Cow::Borrowed(unit),
                other => return self.read_meaning(other, value),
            };
            if let Some(count) = tool_count(value)?.filter(|count| *count > 0) {
                let known = told.get_mut(unit);
                *known = known.saturating_add(count);
            }
            Ok(())
        })?;
        for (unit, count) in told {
            self.count_tool(unit, count);
        }
        Ok(())
    }

    /// Takes the calls of a tool, which another object may tell too.
    pub(super) fn count_tool(&mut self, unit: Cow<'static, str>, count: u64) {
        let known = self.tools.get_mut(unit);
        *known = count.max(*known);
    }

    /// What is no token, by its name in the usage.
    pub(super) fn settle_units(&self) -> BTreeMap<String, Decimal> {
        let units = self.units.iter().map(|(name, count)| ((*name).to_owned(), *count));
        let mut units: BTreeMap<_, _> = units.gather();
        let called = self.tools.iter().filter(|(_, count)| **count > 0);
        units.extend(called.map(|(name, count)| (name.to_owned(), Decimal::from(*count))));
        if self.tools.values().all(|count| *count == 0) {
            // Sources are charged where no tool is.
            let untold = [(UNNAMED, self.tool_calls), ("search_sources", self.search_sources)];
            let untold = untold.into_iter().find(|(_, count)| *count > 0);
            units.extend(untold.map(|(name, count)| (name.to_owned(), count.into())));
        }
        units
    }

    /// Those of the calls that passed of which this says nothing.
    pub(crate) fn untold(
        &self,
        mut calls: BTreeMap<String, Decimal>,
        is_whole: bool,
    ) -> BTreeMap<String, Decimal> {
        let told = self.settle_units();
        if is_whole && self.tells_all_tools {
            calls.clear();
        }
        calls.retain(|unit, _| told.get(unit).is_none_or(|count| count.is_zero() && !is_whole));
        calls
    }
}

/// The name of a tool, without what all names of its kind begin with.
fn tool(key: &[u8]) -> String {
    let name = String::from_utf8_lossy(key).to_ascii_lowercase();
    name.strip_prefix("server_side_tool_").unwrap_or(&name).to_owned()
}

/// Reads the number of calls of one tool, or an object with that number in it. `None` where there is
/// none.
pub(crate) fn tool_count(value: &mut Reader<'_>) -> Result<Option<u64>, Malformed> {
    if value.peek() != Some(b'{') {
        return value.index();
    }
    let (mut calls, mut others) = (None, None);
    value.object(|key, value| {
        if value.peek() == Some(b'{') {
            return value.skip();
        }
        let Some(count) = value.index()? else { return Ok(()) };
        let kept = match key {
            b"invocation" | b"invocations" | b"count" | b"calls" | b"requests" | b"num_calls"
            | b"num_requests" => &mut calls,
            _ => &mut others,
        };
        *kept = Some(count.max(kept.unwrap_or(0)));
        Ok(())
    })?;
    // A tool that tells something else of itself was called at least once.
    let others = others.map(|other: u64| other.min(1));
    Ok(calls.or(others))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(usage: &str) -> Vec<String> {
        let report = Report::read(&mut Reader::new(usage.as_bytes())).unwrap().unwrap();
        let units = report.settle_units().into_iter();
        units.map(|(name, count)| format!("{name} {count}")).collect()
    }

    #[test]
    fn each_provider_tells_the_calls_of_its_tools_in_a_form_of_its_own() {
        for (usage, expected) in [
            (
                r#"{"server_tool_use":{"web_search_requests":2,"web_fetch_requests":0}}"#,
                &["web_fetch_requests 0", "web_search_requests 2"][..],
            ),
            (
                r#"{"server_tool_use":{"code_execution_requests":3}}"#,
                &["code_execution_requests 3"],
            ),
            (r#"{"server_tool_use":{"teleport_requests":1}}"#, &["teleport_requests 1"]),
            (
                r#"{"server_tool_use":{"tool_calls_requested":4,"tool_calls_executed":4,
                "web_search_requests":4}}"#,
                &["web_search_requests 4"],
            ),
            (r#"{"server_tool_use":null}"#, &[]),
            (
                r#"{"num_server_side_tools_used":6,"server_side_tool_usage_details":
                {"web_search_calls":1,"x_search_calls":3,"code_interpreter_calls":2,
                "file_search_calls":0,"mcp_calls":0}}"#,
                &["code_interpreter_calls 2", "web_search_requests 1", "x_search_calls 3"],
            ),
            (
                r#"{"server_side_tool_usage":{"SERVER_SIDE_TOOL_WEB_SEARCH":2,
                "SERVER_SIDE_TOOL_NEW_THING":1}}"#,
                &["new_thing_calls 1", "web_search_requests 2"],
            ),
            (
                r#"{"server_side_tool_usage":{"web_search":2},
                "server_side_tool_usage_details":{"web_search_calls":2}}"#,
                &["web_search_requests 2"],
            ),
            (r#"{"num_server_side_tools_used":2}"#, &["server_side_tool_calls 2"]),
            (r#"{"num_sources_used":5,"num_server_side_tools_used":0}"#, &["search_sources 5"]),
            (
                r#"{"num_sources_used":5,"server_side_tool_usage_details":{"x_search_calls":1}}"#,
                &["x_search_calls 1"],
            ),
            (
                r#"{"tool_calls_details":{"search_web":{"invocation":2},"fetch_url":{"invocation":1}}}"#,
                &["fetch_url_calls 1", "web_search_requests 2"],
            ),
            (r#"{"tool_calls_details":{"web_search":1}}"#, &["web_search_requests 1"]),
            (
                r#"{"connectors":{"web_search":1,"document_library":2},"connector_tokens":9}"#,
                &["document_library_calls 2", "web_search_requests 1"],
            ),
            (
                r#"{"plugins":{"search":{"count":1,"strategy":"turbo"}}}"#,
                &["web_search_requests 1"],
            ),
            (
                r#"{"x_tools":{"web_search":{"count":1},"code_interpreter":{"count":2}}}"#,
                &["code_interpreter_calls 2", "web_search_requests 1"],
            ),
            (
                r#"{"tool_usage":{"web_search":1},"tool_usage_details":
                {"web_search":{"search_engine":1}}}"#,
                &["web_search_requests 1"],
            ),
            (r#"{"prompt_tokens_details":{"web_search_requests":2}}"#, &["web_search_requests 2"]),
            (r#"{"billed_units":{"classifications":3}}"#, &["classification_calls 3"]),
        ] {
            assert_eq!(units(usage), expected, "{usage}");
        }
    }

    #[test]
    fn tokens_that_connectors_read_are_input() {
        let usage = r#"{"prompt_tokens":196,"completion_tokens":485,"total_tokens":3846,
            "connector_tokens":3165}"#;
        let report = Report::read(&mut Reader::new(usage.as_bytes())).unwrap().unwrap();
        assert_eq!((report.input().number(), report.output().number()), (Some(3361), Some(485)));
    }
}
