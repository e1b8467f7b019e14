//! Writes tool definitions as OpenAI's models see them (OpenAI, "How to count tokens with
//! tiktoken": tool calls).

use std::borrow::Cow;

use super::{Members, Node, PromptReader, text_of};

/// Tokens that open the parameters of a function that has some.
const PARAMETERS_TOKENS: u64 = 3;
/// Tokens around each parameter.
const PARAMETER_TOKENS: u64 = 3;
/// Tokens that a parameter with a list of values has less.
const ENUM_TOKENS_LESS: u64 = 3;
/// Tokens around each of these values.
const ENUM_VALUE_TOKENS: u64 = 3;
/// Tokens after all functions.
const END_TOKENS: u64 = 12;

/// Members of a parameter that the form has a place for; what else it has counts as its JSON.
const KNOWN: [&str; 3] = ["type", "description", "enum"];

impl PromptReader {
    /// `tools`, or the older `functions`.
    pub(super) fn read_tools(&mut self, tools: Node<'_>) {
        let Node::List(tools) = tools else {
            self.estimated |= !matches!(tools, Node::Word);
            return;
        };
        if tools.is_empty() {
            return;
        }
        self.estimated |= !self.model.form.is_known;
        for tool in tools {
            match Node::of(tool) {
                Node::Object(members) => match members.get("function").copied().map(Node::of) {
                    Some(Node::Object(function)) => self.read_function(&function),
                    Some(_) => self.add_json(tool),
                    // One of `functions`, or of the Responses' flat tools.
                    None if members.contains_key("name") => {
                        self.estimated = true;
                        self.read_function(&members);
                    }
                    None => self.add_json(tool),
                },
                _ => self.add_json(tool),
            }
        }
        self.tokens += END_TOKENS;
    }

    fn read_function(&mut self, function: &Members<'_>) {
        self.tokens += self.model.form.function;
        let name = self.text_of(function, "name");
        let description = self.text_of(function, "description");
        self.texts.push(format!("{name}:{}", without_dot(&description)));
        let Some(parameters) = function.get("parameters").copied() else { return };
        let Node::Object(schema) = Node::of(parameters) else { return };
        let properties = schema.get("properties").copied().map(Node::of);
        let Some(Node::Object(properties)) = properties else {
            // References and alternatives at the top.
            if schema.keys().any(|key| !["type", "additionalProperties"].contains(&&**key)) {
                self.add_json(parameters);
            }
            return;
        };
        if !properties.is_empty() {
            self.tokens += PARAMETERS_TOKENS;
        }
        for (name, property) in properties {
            match Node::of(property) {
                Node::Object(members) => self.read_property(&name, &members),
                _ => self.add_json(property),
            }
        }
    }

    fn read_property(&mut self, name: &str, property: &Members<'_>) {
        self.tokens += PARAMETER_TOKENS;
        if let Some(Node::List(values)) = property.get("enum").copied().map(Node::of) {
            self.tokens -= ENUM_TOKENS_LESS;
            for value in values {
                self.tokens += ENUM_VALUE_TOKENS;
                match Node::of(value) {
                    Node::Text(text) => self.add_text(text),
                    _ => self.add_json(value),
                }
            }
        }
        let kind = self.text_of(property, "type");
        let description = self.text_of(property, "description");
        self.texts.push(format!("{name}:{kind}:{}", without_dot(&description)));
        let nested = property.iter().filter(|(key, _)| !KNOWN.contains(&&***key));
        for (_, value) in nested {
            self.add_json(*value);
        }
    }

    /// A text that the form needs; without it, the count is an estimate.
    fn text_of<'a>(&mut self, members: &Members<'a>, name: &str) -> Cow<'a, str> {
        let text = text_of(members, name);
        self.estimated |= text.is_none();
        text.unwrap_or_default()
    }
}

fn without_dot(text: &str) -> &str {
    text.strip_suffix('.').unwrap_or(text)
}
