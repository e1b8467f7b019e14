//! Tells the form of a prompt from the name of its model (OpenAI, "How to count tokens with
//! tiktoken").

use super::images::Rule;

/// How a model counts what is no text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model {
    pub(super) form: Form,
    pub(super) images: Rule,
}

/// Tokens of the form around messages and tools.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    /// Around each message.
    pub(super) message: u64,
    /// Around each message that has a name.
    pub(super) named_message: u64,
    /// Around each function.
    pub(super) function: u64,
    /// Whether the form of functions is known to be this one.
    pub(super) is_known: bool,
    /// Whether messages stand in this form. Those of open models are rendered by a template.
    pub(super) is_of_chats: bool,
}

impl Default for Model {
    fn default() -> Self {
        Self::new("")
    }
}

impl Model {
    pub(super) fn new(name: &str) -> Self {
        let name = name.strip_prefix("openai/").unwrap_or(name);
        let name = name.strip_prefix("ft:").unwrap_or(name);
        let starts = |names: &[&str]| names.iter().any(|start| name.starts_with(start));
        let is_4o = starts(&["gpt-4o", "chatgpt-4o"]);
        // gpt-4.1 and gpt-4.5 came after gpt-4o.
        let is_older = starts(&["gpt-3.5", "gpt-35"])
            || (starts(&["gpt-4"]) && !is_4o && !starts(&["gpt-4.1", "gpt-4.5"]));
        // There, a name stood in place of the role.
        let is_oldest = name == "gpt-3.5-turbo-0301";
        let form = Form {
            message: if is_oldest { 4 } else { 3 },
            named_message: if is_oldest { 3 } else { 4 },
            function: if is_older { 10 } else { 7 },
            is_known: is_4o || is_older,
            is_of_chats: !starts(&["gpt-oss", "gpt2", "gpt-2"]),
        };
        Self { form, images: Rule::of(name) }
    }
}
