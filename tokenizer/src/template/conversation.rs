//! Brings messages, tools and variables into the shape that vLLM passes to a chat template.
//!
//! It follows vLLM 0.32 (`renderers/chat_utils.py`, `renderers/hf.py`): a message keeps its role,
//! its content, and what belongs to the role. Texts are joined by line ends. Arguments of calls are
//! objects. A tool is its type, name, description and parameters.

use indexmap::IndexMap;
use minijinja::Value;
use minijinja::value::ValueKind;

use super::content::Shape;
use super::error::TemplateError;

/// Most messages that are rendered: some templates copy what they have so far with each of them.
const MESSAGES_MAX: usize = 4096;

/// Types of parts that are text, and the member that has it.
const TEXT_PARTS: &[(&str, &str)] = &[
    ("text", "text"),
    ("input_text", "text"),
    ("output_text", "text"),
    ("refusal", "refusal"),
    ("thinking", "thinking"),
];

/// Types of parts that are not, by how their types begin, and what templates call them.
const MEDIA_PARTS: &[(&str, &str)] = &[
    ("image", "image"),
    ("input_image", "image"),
    ("audio", "audio"),
    ("input_audio", "audio"),
    ("video", "video"),
];

type Members = IndexMap<Value, Value>;

/// The messages of a request.
pub(super) struct Conversation {
    pub(super) messages: Vec<Value>,
    /// Whether parts are no text.
    pub(super) media: bool,
}

impl Conversation {
    pub(super) fn read(request: &Value, shape: &Shape) -> Result<Self, TemplateError> {
        let messages = member(request, "messages").filter(|list| list.kind() == ValueKind::Seq);
        let messages = messages.ok_or(TemplateError::Request("it has no list of messages"))?;
        if messages.len().is_some_and(|count| count > MESSAGES_MAX) {
            return Err(TemplateError::Limit("messages of the request"));
        }
        let mut read = Reader { shape, media: false };
        let mut conversation: Vec<Members> = Vec::new();
        for message in messages.try_iter().into_iter().flatten() {
            conversation.push(read.message(&message)?);
        }
        let media = read.media;
        if !shape.developer && conversation.iter().any(|message| has_role(message, "developer")) {
            conversation = with_one_system_message(conversation);
        }
        let messages = conversation.into_iter().map(Value::from_object).collect();
        Ok(Self { messages, media })
    }
}

/// What else of a request a template can name.
pub(super) fn variables(request: &Value, variables: &mut Members) -> Result<(), TemplateError> {
    for asked in ["chat_template", "continue_final_message", "add_special_tokens"] {
        if member(request, asked).is_some_and(|value| value.is_true()) {
            return Err(TemplateError::Request("it asks for a form of its own"));
        }
    }
    let kwargs = member(request, "chat_template_kwargs");
    if let Some(kwargs) = kwargs.as_ref().and_then(Value::as_object) {
        for (name, value) in kwargs.try_iter_pairs().into_iter().flatten() {
            if !matches!(name.as_str(), Some("chat_template" | "tokenize" | "messages")) {
                variables.insert(name, value);
            }
        }
    }
    let none = || Value::from(());
    if let Some(effort) = member(request, "reasoning_effort") {
        let thinks = Value::from(effort.as_str() != Some("none"));
        variables.entry("enable_thinking".into()).or_insert(thinks);
        variables.insert("reasoning_effort".into(), effort);
    }
    let asked = member(request, "add_generation_prompt");
    let asked = asked.unwrap_or_else(|| Value::from(true));
    variables.insert("add_generation_prompt".into(), asked);
    let documents = member(request, "documents").unwrap_or_else(none);
    variables.insert("documents".into(), documents);
    let tools = match member(request, "tools") {
        Some(tools) => tools
            .try_iter()
            .into_iter()
            .flatten()
            .map(|each| tool(&each))
            .collect::<Result<_, _>>()?,
        None => none(),
    };
    variables.insert("tools".into(), tools);
    Ok(())
}

fn tool(tool: &Value) -> Result<Value, TemplateError> {
    let function = member(tool, "function")
        .ok_or(TemplateError::Request("it has a tool that is not a function"))?;
    let mut members = Members::new();
    for name in ["name", "description", "parameters"] {
        let value = member(&function, name).unwrap_or_else(|| Value::from(()));
        members.insert(name.into(), value);
    }
    for name in ["strict", "defer_loading"] {
        members.extend(member(&function, name).map(|value| (name.into(), value)));
    }
    let mut outer = Members::new();
    outer.insert("type".into(), "function".into());
    outer.insert("function".into(), Value::from_object(members));
    Ok(Value::from_object(outer))
}

struct Reader<'a> {
    shape: &'a Shape,
    media: bool,
}

impl Reader<'_> {
    fn message(&mut self, message: &Value) -> Result<Members, TemplateError> {
        let role = member(message, "role").filter(|role| role.kind() == ValueKind::String);
        let role = role.ok_or(TemplateError::Request("a message has no role"))?;
        let parts = self.parts(member(message, "content"))?;
        let is = |name: &str| role.as_str() == Some(name);
        let is_text = parts.iter().all(|part| matches!(part, ContentPart::Text(_)));
        let content = match (self.shape.parts, is("tool") && is_text) {
            (true, false) => parts.into_iter().map(ContentPart::into_value).collect(),
            // vLLM leaves empty parts out when it joins them itself, not when it joins them again.
            (parts_wanted, _) => Value::from(joined(parts, parts_wanted)),
        };
        let mut read = Members::new();
        read.insert("role".into(), role.clone());
        read.insert("content".into(), content);
        if is("assistant") {
            if let Some(calls) = member(message, "tool_calls").filter(|calls| calls.is_true()) {
                let calls = calls.try_iter().into_iter().flatten();
                let calls = calls.map(|call| tool_call(&call)).collect::<Result<Value, _>>()?;
                read.insert("tool_calls".into(), calls);
            }
            // vLLM's name for it, and the one that clients of other engines send.
            let reasoning = member(message, "reasoning").or(member(message, "reasoning_content"));
            if let Some(reasoning) = reasoning {
                read.insert("reasoning".into(), reasoning.clone());
                read.insert("reasoning_content".into(), reasoning);
            }
        }
        let beside = if is("tool") { ["tool_call_id", "name"] } else { ["name", "task"] };
        for name in beside {
            read.extend(member(message, name).map(|value| (name.into(), value)));
        }
        Ok(read)
    }

    fn parts(&mut self, content: Option<Value>) -> Result<Vec<ContentPart>, TemplateError> {
        let Some(content) = content else { return Ok(Vec::new()) };
        match content.kind() {
            ValueKind::String => Ok(vec![ContentPart::Text(content)]),
            ValueKind::Seq => {
                let parts = content.try_iter().into_iter().flatten();
                parts.filter_map(|part| self.part(&part).transpose()).collect()
            }
            _ => Err(TemplateError::Request("a content is neither a text nor a list")),
        }
    }

    fn part(&mut self, part: &Value) -> Result<Option<ContentPart>, TemplateError> {
        if part.kind() == ValueKind::String {
            return Ok(Some(ContentPart::Text(part.clone())));
        }
        let unknown = TemplateError::Request("a part of a content has no known type");
        let kind = member(part, "type");
        let kind = kind.as_ref().and_then(Value::as_str).ok_or(unknown.clone())?;
        if let Some((_, text)) = TEXT_PARTS.iter().find(|(name, _)| *name == kind) {
            return Ok(member(part, text).map(ContentPart::Text));
        }
        let media = MEDIA_PARTS.iter().find(|(start, _)| kind.starts_with(start));
        let (_, name) = media.ok_or(unknown)?;
        self.media = true;
        Ok(Some(ContentPart::Media(name)))
    }
}

enum ContentPart {
    Text(Value),
    Media(&'static str),
}

impl ContentPart {
    fn into_value(self) -> Value {
        let mut members = Members::new();
        let kind = match &self {
            Self::Text(_) => "text",
            Self::Media(kind) => kind,
        };
        members.insert("type".into(), kind.into());
        if let Self::Text(text) = self {
            members.insert("text".into(), text);
        }
        Value::from_object(members)
    }
}

fn joined(parts: Vec<ContentPart>, with_empty: bool) -> String {
    let texts: Vec<String> = parts
        .into_iter()
        .filter_map(|part| match part {
            ContentPart::Text(text) => {
                Some(text.to_string()).filter(|text| with_empty || !text.is_empty())
            }
            ContentPart::Media(_) => None,
        })
        .collect();
    texts.join("\n")
}

/// A call with its arguments as an object; those that are none are empty, as in vLLM.
fn tool_call(call: &Value) -> Result<Value, TemplateError> {
    let fault = TemplateError::Request("a call of a tool has no function");
    let pairs =
        |value: &Value| -> Option<Members> { Some(value.as_object()?.try_iter_pairs()?.collect()) };
    let function = member(call, "function");
    let mut function = function.as_ref().and_then(pairs).ok_or(fault.clone())?;
    let mut call = pairs(call).ok_or(fault)?;
    let given = function.get(&Value::from("arguments"));
    let given = match given.and_then(|given| given.as_str()) {
        Some(text) => serde_json::from_slice(text.as_bytes()).ok(),
        None => given.cloned(),
    };
    let arguments = given
        .filter(|given: &Value| given.kind() == ValueKind::Map)
        .unwrap_or_else(|| Value::from_object(Members::new()));
    function.insert("arguments".into(), arguments);
    call.insert("function".into(), Value::from_object(function));
    Ok(Value::from_object(call))
}

fn has_role(message: &Members, role: &str) -> bool {
    message.get(&Value::from("role")).is_some_and(|found| found.as_str() == Some(role))
}

/// A developer's messages are the system's, and there is one of these, in front.
fn with_one_system_message(conversation: Vec<Members>) -> Vec<Members> {
    let is_system =
        |message: &Members| has_role(message, "system") || has_role(message, "developer");
    let (mut system, mut others): (Vec<_>, Vec<_>) =
        conversation.iter().cloned().partition(is_system);
    let leads = conversation.first().is_some_and(is_system);
    if let (true, [only]) = (leads, system.as_mut_slice()) {
        only.insert("role".into(), "system".into());
        others.insert(0, std::mem::take(only));
        return others;
    }
    let texts: Vec<String> = system
        .iter()
        .filter_map(|message| message.get(&Value::from("content")))
        .map(text_of)
        .filter(|text| !text.is_empty())
        .collect();
    let mut merged = Members::new();
    merged.insert("role".into(), "system".into());
    merged.insert("content".into(), Value::from(texts.join("\n\n")));
    others.insert(0, merged);
    others
}

fn text_of(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = content.try_iter().into_iter().flatten();
    let texts: Vec<String> =
        parts.filter_map(|part| member(&part, "text")).map(|text| text.to_string()).collect();
    texts.join("\n")
}

/// A member of an object; `None` where it is absent or null.
pub(super) fn member(object: &Value, name: &str) -> Option<Value> {
    object.get_attr(name).ok().filter(|value| !value.is_undefined() && !value.is_none())
}
