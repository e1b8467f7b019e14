//! Reads the text of a prompt, or its chat, so that a tokenizer can count it.

mod chat;
mod cloud;
mod images;
mod model;
#[cfg(test)]
mod tests;
mod tools;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use taximeter_json::Value;

pub use chat::prompt_chats;
use model::Model;
use taximeter_meter::Wire;

/// Tokens that open the answer to a chat.
const ANSWER_TOKENS: u64 = 3;

/// Levels of lists and objects that are read inside a content; what lies deeper counts as its JSON.
/// Each level is read once more for its parts, so the limit is also one on time.
const CONTENT_DEPTH_MAX: usize = 8;

/// What engines call what is embedded, compared or classified, but for `input`: rerank, score, and
/// routes of their own.
const BESIDE_INPUT: [&str; 15] = [
    "query",
    "queries",
    "documents",
    "texts",
    "items",
    "text",
    "text_1",
    "text_2",
    "data_1",
    "data_2",
    "inputs",
    "content",
    "messages",
    "requests",
    "prompt",
];

/// Members of a part with text for the model, or with further parts.
const PART_TEXTS: [&str; 15] = [
    "text",
    "refusal",
    "thinking",
    "name",
    "content",
    "output",
    "summary",
    "prompt_string",
    // Gemini and Bedrock
    "parts",
    "functionCall",
    "functionResponse",
    "toolUse",
    "toolResult",
    "reasoningContent",
    "reasoningText",
];

/// What of a request is to be counted: the tokens of each of `texts`, and `tokens`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// Texts, each to be counted by itself. A lone surrogate is U+FFFD.
    pub texts: Vec<String>,
    /// Tokens that need no counting: the form around messages, and prompts given as token ids.
    pub tokens: u64,
    /// Tokens of images beside these, by published formulas; 1024 × 1024 where the size is not to be
    /// had.
    pub image_tokens: u64,
    /// Whether the count will be an estimate even with the model's own vocabulary: something is
    /// left out (audio, files), is an image, or takes a form that only the provider knows (nested
    /// tools, state).
    pub estimated: bool,
}

/// The prompt in the body of a request on `wire`, for `model`; `None` is the one that the body names.
///
/// The form around messages and tools is OpenAI's; the chat templates of other engines' models differ. A body
/// that cannot be read is one text as a whole; an opaque wire has no text.
#[must_use]
pub fn prompt_text(wire: Wire, model: Option<&str>, body: &[u8]) -> Prompt {
    let mut prompt = PromptReader::default();
    match members(body) {
        Some(request) => {
            let named = request.get("model").copied().map(Node::of);
            let named = match named {
                Some(Node::Text(name)) => name,
                _ => Cow::default(),
            };
            prompt.model = Model::new(model.unwrap_or(&named));
            prompt.read(wire, &request);
        }
        None => {
            prompt.estimated = true;
            prompt.add_text(String::from_utf8_lossy(body));
        }
    }
    let PromptReader { texts, tokens, image_tokens, estimated, .. } = prompt;
    Prompt { texts, tokens, image_tokens, estimated }
}

/// How many characters the body of a request for speech wants spoken; `None` where it has no text.
#[must_use]
pub fn spoken_characters(body: &[u8]) -> Option<u64> {
    match Node::of(*members(body)?.get("input")?) {
        Node::Text(text) => Some(text.chars().count() as u64),
        _ => None,
    }
}

type Members<'a> = BTreeMap<Cow<'a, str>, Value<'a>>;

/// The members of a body, if all of it is one JSON object.
fn members(body: &[u8]) -> Option<Members<'_>> {
    let whole: &RawValue = serde_json::from_slice(body).ok()?;
    Value::checked(whole.get()).members().map(Members::from_iter)
}

/// A JSON value, its parts not read yet.
enum Node<'a> {
    Text(Cow<'a, str>),
    List(Vec<Value<'a>>),
    Object(Members<'a>),
    Number,
    /// True, false or null.
    Word,
}

/// A prompt being read; what it becomes is said there.
#[derive(Default)]
struct PromptReader {
    texts: Vec<String>,
    tokens: u64,
    image_tokens: u64,
    estimated: bool,
    model: Model,
}

impl PromptReader {
    fn read(&mut self, wire: Wire, request: &Members<'_>) {
        match wire {
            Wire::ChatCompletions => self.read_chat(request),
            Wire::ChatBatch => self.read_chats(request),
            Wire::Completions => {
                self.read_inputs(request.get("prompt"));
                self.read_beside(request, &["suffix"]);
            }
            Wire::Embeddings => {
                self.read_inputs(request.get("input"));
                self.read_beside(request, &BESIDE_INPUT);
            }
            Wire::Responses => {
                self.estimated = true;
                self.read_beside(request, &["instructions", "input"]);
                self.read_json(request, &["tools", "text"]);
            }
            Wire::Messages => {
                self.estimated = true;
                self.read_beside(request, &["system", "messages"]);
                self.read_json(request, &["tools"]);
            }
            Wire::Generate => {
                let keys = ["text", "inputs", "input_ids", "prompt"];
                self.read_inputs(keys.iter().find_map(|&key| request.get(key)));
                // SGLang: what is no text, and how many answers there are to one prompt.
                let beside =
                    ["image_data", "video_data", "audio_data", "input_embeds", "sampling_params"];
                self.estimated |= beside.iter().any(|&key| match request.get(key) {
                    Some(value) if key == "sampling_params" => asks_for_several(*value),
                    value => value.is_some_and(|value| !is_word(*value)),
                });
            }
            Wire::LlamaCompletion => self.read_inputs(request.get("prompt")),
            Wire::VertexGenerate
            | Wire::TokenIds
            | Wire::Invocations
            | Wire::CohereChat
            | Wire::GenerateContent
            | Wire::Converse => self.read_cloud(wire, request),
            Wire::OllamaChat => {
                self.read_beside(request, &["messages"]);
                self.read_json(request, &["tools", "format"]);
            }
            Wire::OllamaGenerate => {
                self.read_beside(request, &["system", "prompt", "suffix"]);
                self.read_json(request, &["format"]);
                // What was said before, as token ids.
                if let Some(Node::List(ids)) = request.get("context").copied().map(Node::of) {
                    self.tokens += ids.len() as u64;
                }
            }
            Wire::Speech => {
                self.read_inputs(request.get("input"));
                self.read_beside(request, &["instructions"]);
            }
            Wire::Transcriptions
            | Wire::Images
            | Wire::Videos
            | Wire::Ocr
            | Wire::Batches
            | Wire::Opaque => self.estimated = true,
        }
    }

    fn read_chat(&mut self, request: &Members<'_>) {
        let Some(messages) = request.get("messages") else {
            self.estimated = true;
            return;
        };
        self.read_messages(*messages);
        for tools in ["tools", "functions"].iter().filter_map(|&key| request.get(key)) {
            self.read_tools(Node::of(*tools));
        }
        self.read_json(request, &["response_format"]);
    }

    /// Several chats, of which each is read by itself.
    fn read_chats(&mut self, request: &Members<'_>) {
        match request.get("messages").copied().map(Node::of) {
            Some(Node::List(chats)) => chats.into_iter().for_each(|chat| self.read_messages(chat)),
            _ => self.estimated = true,
        }
        self.read_json(request, &["response_format"]);
    }

    fn read_messages(&mut self, messages: Value<'_>) {
        let Node::List(messages) = Node::of(messages) else {
            self.estimated = true;
            return;
        };
        for message in messages {
            match Node::of(message) {
                Node::Object(members) => self.read_message(&members),
                _ => {
                    self.tokens += self.model.form.message;
                    self.estimated = true;
                }
            }
        }
        self.tokens += ANSWER_TOKENS;
        self.estimated |= !self.model.form.is_of_chats;
    }

    fn read_message(&mut self, members: &Members<'_>) {
        let is_named = members.get("name").is_some_and(|name| !is_word(*name));
        let form = self.model.form;
        self.tokens += if is_named { form.named_message } else { form.message };
        for (key, &value) in members {
            match (&**key, Node::of(value)) {
                ("content", _) => self.read_content(value, CONTENT_DEPTH_MAX),
                // An id joins a tool's answer to its call; whether the model sees it is not known.
                ("tool_call_id", _) => self.estimated = true,
                (_, Node::Text(text)) => self.add_text(text),
                (_, Node::Word) => {}
                (_, Node::List(_) | Node::Object(_) | Node::Number) => self.add_json(value),
            }
        }
    }

    /// A text, a list of texts, token ids, or a list of lists of them.
    fn read_inputs(&mut self, inputs: Option<&Value<'_>>) {
        match inputs.copied().map(Node::of) {
            Some(Node::Text(text)) => self.add_text(text),
            Some(Node::List(inputs)) => {
                for input in inputs {
                    match Node::of(input) {
                        Node::Text(text) => self.add_text(text),
                        Node::Number => self.tokens += 1,
                        Node::List(ids) => self.tokens += ids.len() as u64,
                        _ => self.read_content(input, CONTENT_DEPTH_MAX),
                    }
                }
            }
            // llama.cpp: a text with images.
            Some(Node::Object(part)) => self.read_part(&part, CONTENT_DEPTH_MAX),
            _ => self.estimated = true,
        }
    }

    /// Members that add to the prompt in a way of the engine's own.
    fn read_beside(&mut self, request: &Members<'_>, keys: &[&str]) {
        for &value in keys.iter().filter_map(|&key| request.get(key)) {
            if !is_word(value) {
                self.estimated = true;
                self.read_content(value, CONTENT_DEPTH_MAX);
            }
        }
    }

    /// Members whose JSON stands for the form that the engine writes them in.
    fn read_json(&mut self, request: &Members<'_>, keys: &[&str]) {
        for &value in keys.iter().filter_map(|&key| request.get(key)) {
            if !is_word(value) {
                self.add_json(value);
            }
        }
    }

    /// Content of a message: a text, or parts of many kinds.
    fn read_content(&mut self, content: Value<'_>, depth_left: usize) {
        match (Node::of(content), depth_left.checked_sub(1)) {
            (Node::Text(text), _) => self.add_text(text),
            (Node::Word, _) => {}
            (Node::Number, _) | (_, None) => self.add_json(content),
            (Node::List(parts), Some(depth_left)) => {
                for part in parts {
                    self.read_content(part, depth_left);
                }
            }
            (Node::Object(part), Some(depth_left)) => self.read_part(&part, depth_left),
        }
    }

    fn read_part(&mut self, part: &Members<'_>, depth_left: usize) {
        let kind = part.get("type").copied().map(Node::of);
        self.estimated |= !matches!(kind, Some(Node::Text(kind)) if kind == "text");
        self.read_image(part);
        self.read_document(part);
        // Only members with text for the model: ids are not, and the data of images is not text.
        for key in PART_TEXTS {
            if let Some(&value) = part.get(key) {
                self.read_content(value, depth_left);
            }
        }
        self.read_json(part, &["arguments", "input", "args", "response", "json"]);
    }

    /// The image of a part, if it is one: OpenAI's two forms, and Anthropic's.
    fn read_image(&mut self, part: &Members<'_>) {
        let is = |kinds: &[&str]| text_of(part, "type").is_some_and(|kind| kinds.contains(&&*kind));
        self.image_tokens += if is(&["image"]) {
            let source = part.get("source").copied().map(Node::of);
            let data = match source {
                Some(Node::Object(source)) => text_of(&source, "data"),
                _ => None,
            };
            images::anthropic(data.as_deref())
        } else if is(&["image_url", "input_image"]) {
            let (url, detail) = match part.get("image_url").copied().map(Node::of) {
                Some(Node::Object(image)) => (text_of(&image, "url"), text_of(&image, "detail")),
                Some(Node::Text(url)) => (Some(url), text_of(part, "detail")),
                _ => (None, None),
            };
            self.model.images.tokens(&url.unwrap_or_default(), detail.as_deref())
        } else {
            0
        };
    }

    /// A document of Anthropic's whose text stands in the request.
    fn read_document(&mut self, part: &Members<'_>) {
        let is_document = text_of(part, "type").is_some_and(|kind| kind == "document");
        if let Some(Node::Object(source)) = part.get("source").copied().map(Node::of)
            && is_document
        {
            match text_of(&source, "type").as_deref() {
                Some("text") => self.read_beside(&source, &["data"]),
                Some("content") => self.read_beside(&source, &["content"]),
                _ => {}
            }
        }
    }

    fn add_text(&mut self, text: Cow<'_, str>) {
        if !text.is_empty() {
            self.texts.push(text.into_owned());
        }
    }

    fn add_json(&mut self, value: Value<'_>) {
        self.estimated = true;
        self.texts.push(value.as_str().to_owned());
    }
}

impl<'a> Node<'a> {
    fn of(value: Value<'a>) -> Self {
        let node = match value.first() {
            Some(b'"') => value.text().map(Node::Text),
            Some(b'[') => value.elements().map(Node::List),
            Some(b'{') => value.members().map(|members| Node::Object(Members::from_iter(members))),
            _ if is_word(value) => Some(Node::Word),
            _ => None,
        };
        node.unwrap_or(Node::Number)
    }
}

/// Whether sampling parameters, or a list of them, ask for more than one answer to a prompt.
fn asks_for_several(parameters: Value<'_>) -> bool {
    match Node::of(parameters) {
        Node::Object(members) => {
            members.get("n").is_some_and(|n| n.as_str() != "1" && !is_word(*n))
        }
        Node::List(each) => each.into_iter().any(asks_for_several),
        _ => false,
    }
}

/// A member that is a text.
fn text_of<'a>(members: &Members<'a>, name: &str) -> Option<Cow<'a, str>> {
    match Node::of(*members.get(name)?) {
        Node::Text(text) => Some(text),
        _ => None,
    }
}

/// Whether a value is true, false or null.
fn is_word(value: Value<'_>) -> bool {
    matches!(value.first(), Some(b't' | b'f' | b'n'))
}
