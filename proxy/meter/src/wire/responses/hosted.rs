//! Reads what hosted tools did in a response: the calls among its items, and the provider's own
//! count of them.

use std::borrow::Cow;

use crate::calls::{CallId, Calls};
use crate::json::{Malformed, Reader, Text};
use crate::tool_names::unit;
use crate::usage::{Report, tool_count};

/// What an item of the output says of itself.
#[derive(Debug, Default)]
pub(super) struct Item<'a> {
    kind: Option<Text<'a>>,
    pub(super) id: Option<Text<'a>>,
    pub(super) name: Option<Text<'a>>,
    status: Option<Text<'a>>,
    /// What a web search does in place of searching.
    does_else: bool,
    container: Option<Text<'a>>,
    /// The MCP server that is asked.
    server: Option<Text<'a>>,
}

impl<'a> Item<'a> {
    /// Reads a member. Steps over what says nothing about a call.
    pub(super) fn read_member(
        &mut self,
        key: &[u8],
        value: &mut Reader<'a>,
    ) -> Result<(), Malformed> {
        match key {
            b"type" => self.kind = value.text()?,
            b"id" => self.id = value.text()?,
            b"name" => self.name = value.text()?,
            b"status" => self.status = value.text()?,
            b"container_id" => self.container = value.text()?,
            b"server_label" => self.server = value.text()?,
            // Where a shell runs, if not at the client.
            b"environment" => value.member(b"container_id", |value| {
                self.container = value.text()?;
                Ok(())
            })?,
            b"action" => value.member(b"type", |value| {
                self.does_else = value.text()?.is_some_and(|kind| !kind.is("search"));
                Ok(())
            })?,
            _ => value.skip()?,
        }
        Ok(())
    }

    /// Whether it is a call.
    pub(super) fn is_call(&self) -> bool {
        let kind = self.kind.as_ref().map(Text::decode).unwrap_or_default();
        kind.ends_with("_call") || kind == "mcp_approval_request"
    }

    /// Whether the client is to run it by its name.
    pub(super) fn is_for_client(&self) -> bool {
        match self.kind.as_ref().map(Text::decode).as_deref() {
            Some("function_call") => true,
            Some("custom_tool_call") => self.search_of_posts().is_none(),
            _ => false,
        }
    }

    /// Whether it is what was said so far in a shorter form.
    pub(super) fn is_compaction(&self) -> bool {
        self.kind.is_some_and(|kind| kind.is("compaction"))
    }

    /// The call that it is, at `place` in the output, but for those of the client's functions.
    pub(super) fn calls(&self, place: u64) -> Calls {
        let mut calls = Calls::default();
        self.add_to(place, &mut calls);
        calls
    }

    /// Adds the same to `calls`.
    pub(super) fn add_to(&self, place: u64, calls: &mut Calls) {
        let kind = self.kind.as_ref().map(Text::decode).unwrap_or_default();
        let tool: &str = match kind.strip_suffix("_call") {
            Some(tool) => tool,
            None if kind == "mcp_list_tools" => &kind,
            None => return,
        };
        let id = CallId::of_item(self.id, place);
        if self.status.is_some_and(|status| status.is("failed")) {
            return calls.fail(id);
        }
        match tool {
            // They have names.
            "function" => {}
            "custom_tool" => {
                if let Some(unit) = self.search_of_posts() {
                    calls.add_call(unit, id);
                }
            }
            "shell" => {
                if self.container.is_some() {
                    calls.run_code(self.container.as_ref());
                }
                calls.add_call(unit(tool), id);
            }
            "mcp" => {
                let [server, name] = [self.server, self.name].map(|it| it.unwrap_or_default());
                let server = Some(server.decode()).filter(|server| !server.is_empty());
                calls.ask_server(server.as_deref(), &name.decode(), id);
            }
            // To open a page that was found is no search.
            "web_search" if self.does_else => {}
            "code_interpreter" => calls.run_code(self.container.as_ref()),
            "image_generation" => calls.draw(id),
            tool => calls.add_call(unit(tool), id),
        }
    }

    /// xAI tells its searches of posts as calls of custom tools.
    fn search_of_posts(&self) -> Option<Cow<'static, str>> {
        let unit = unit(&self.name?.decode());
        matches!(unit, Cow::Borrowed("x_search_calls")).then_some(unit)
    }
}

/// Reads what the provider says that hosted tools used.
pub(super) fn tool_usage(value: &mut Reader<'_>, calls: &mut Calls) -> Result<(), Malformed> {
    value.object(|tool, value| match tool {
        b"image_gen" | b"image_generation" => drawing(value, calls),
        // It is charged by its containers.
        b"code_interpreter" => tell(Cow::Borrowed("code_interpreter_sessions"), value, calls),
        tool => tell(unit(&String::from_utf8_lossy(tool)), value, calls),
    })
}

fn tell(
    unit: Cow<'static, str>,
    value: &mut Reader<'_>,
    calls: &mut Calls,
) -> Result<(), Malformed> {
    if let Some(count) = tool_count(value)? {
        calls.tell(unit, count);
    }
    Ok(())
}

/// Reads the tokens of the model that draws, and how many pictures it drew.
fn drawing(value: &mut Reader<'_>, calls: &mut Calls) -> Result<(), Malformed> {
    value.clone().object(|key, value| match key {
        b"images" | b"num_images" => tell(Cow::Borrowed("images"), value, calls),
        _ => value.skip(),
    })?;
    if let Some(report) = Report::read(value)?.filter(|report| report.has_tokens()) {
        calls.paint(report);
    }
    Ok(())
}

/// Reads from the list of tools which model draws, and how large the containers are, if something
/// was drawn or ran in one: the list may be long.
pub(super) fn equipment(tools: Option<Reader<'_>>, calls: &mut Calls) -> Result<(), Malformed> {
    let is_asked = calls.draws() || calls.runs_code();
    let Some(mut tools) = tools.filter(|_| is_asked) else { return Ok(()) };
    tools.array(|tool| {
        let (mut draws, mut model) = (false, None);
        tool.object(|key, value| {
            match key {
                b"type" => draws = value.text()?.is_some_and(|kind| kind.is("image_generation")),
                b"model" => model = value.text()?,
                b"container" | b"environment" => value.member(b"memory_limit", |value| {
                    if let Some(memory) = value.text()? {
                        calls.set_memory(&memory);
                    }
                    Ok(())
                })?,
                _ => value.skip()?,
            }
            Ok(())
        })?;
        if draws {
            calls.set_painter(model);
        }
        Ok(())
    })
}
