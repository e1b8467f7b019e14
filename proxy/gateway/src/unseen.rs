//! Finds what a prompt has beside the text in its request: files, sounds, kept items, tools that
//! the provider defines. Nobody can tell its tokens from the request.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use taximeter_json::Value;
use taximeter_meter::Wire;

/// Levels of lists and objects that are read inside a content.
const CONTENT_DEPTH_MAX: usize = 8;

/// Largest body that is read for this, in bytes. A larger one counts by the words in it.
const READ_BYTES_MAX: usize = 1 << 20;

/// Longest word that is searched for, in bytes.
const WORD_BYTES_MAX: usize = 24;

/// A word that is searched for. To prepare the search costs more than most searches.
type Word = LazyLock<Finder<'static>>;

macro_rules! words {
    ($($name:ident: $word:literal,)*) => {
        $(static $name: Word = LazyLock::new(|| Finder::new($word));)*
    };
}

words! {
    TYPE: "\"type\"",
    ID: "\"id\"",
    TOOLS: "\"tools\"",
    SYSTEM_TOOL: "\"systemTool\"",
    DATA: "Data\"",
    SNAKE_DATA: "_data\"",
    MULTIMODAL_DATA: "\"multimodal_data\"",
    IMAGE: "\"image\"",
    IMAGES: "\"images\"",
    VIDEO: "\"video\"",
    AUDIO: "\"audio\"",
    DOCUMENT: "\"document\"",
    INPUT_EMBEDS: "\"input_embeds\"",
    PROMPT_EMBEDS: "\"prompt_embeds\"",
    SESSION_PARAMS: "\"session_params\"",
}

/// What of a prompt the text in its request does not show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Unseen {
    /// A part is somewhere else, or is no text and no image: its tokens are unknown.
    pub(crate) parts: bool,
    /// There are images. Their tokens are estimated, and can be more than their bytes.
    pub(crate) images: bool,
}

impl Unseen {
    const PARTS: Self = Self { parts: true, images: false };

    const fn add(&mut self, other: Self) {
        self.parts |= other.parts;
        self.images |= other.images;
    }
}

/// What the prompt in the body of a request on `wire` has beside its text. The body comes in pieces.
///
/// Most bodies have only words that mean nothing of the kind, and are not read any further.
pub(crate) fn unseen_parts(wire: Wire, body: &[&[u8]]) -> Unseen {
    let length: usize = body.iter().map(|piece| piece.len()).sum();
    let is_read = length <= READ_BYTES_MAX;
    if !wire.has_countable_input() || !may_be_there(wire, body, is_read) {
        return Unseen::default();
    }
    if !is_read {
        return Unseen { parts: true, images: true };
    }
    let whole = body.concat();
    let Ok(text) = str::from_utf8(&whole) else { return Unseen::PARTS };
    match Node::of(Value::checked(text.trim_ascii())) {
        Node::Object(request) => of_request(wire, &request),
        _ => Unseen::PARTS,
    }
}

/// Whether the body has a word that may announce such a part. Words that announce other things most of
/// the time count only if the body is read then.
fn may_be_there(wire: Wire, body: &[&[u8]], is_read: bool) -> bool {
    let has = |word: &Word| has_word(body, word);
    let has_any = |words: &[&Word]| words.iter().any(|word| has_word(body, word));
    match wire {
        Wire::GenerateContent => has_any(&[&DATA, &SNAKE_DATA, &TOOLS]),
        Wire::Converse => has_any(&[&IMAGE, &DOCUMENT, &VIDEO, &SYSTEM_TOOL]),
        Wire::OllamaChat | Wire::OllamaGenerate => has(&IMAGES),
        Wire::Generate | Wire::VertexGenerate => {
            has_any(&[&SNAKE_DATA, &INPUT_EMBEDS, &SESSION_PARAMS])
        }
        Wire::LlamaCompletion => has(&MULTIMODAL_DATA),
        Wire::Completions => has(&PROMPT_EMBEDS),
        Wire::Responses => has_unknown_type(body) || is_read && has(&ID),
        Wire::ChatCompletions | Wire::ChatBatch | Wire::Invocations => {
            has_unknown_type(body) || has_any(&[&AUDIO, &PROMPT_EMBEDS])
        }
        Wire::Embeddings => has_unknown_type(body) || has_any(&[&DATA, &SNAKE_DATA]),
        _ => has_unknown_type(body),
    }
}

/// Whether a word is in the body, also where two pieces meet.
fn has_word(body: &[&[u8]], word: &Word) -> bool {
    debug_assert!(word.needle().len() <= WORD_BYTES_MAX, "{word:?}");
    let is_in = |bytes: &[u8]| word.find(bytes).is_some();
    body.iter().any(|piece| is_in(piece)) || body.windows(2).any(|two| is_in(&seam(two)))
}

/// The end of a piece and the start of the next one. Pieces that are shorter than a word are rare, and
/// a word that spans three of them is not found.
fn seam(two: &[&[u8]]) -> Vec<u8> {
    let [before, behind] = two else { return Vec::new() };
    let end = before.get(before.len().saturating_sub(WORD_BYTES_MAX)..).unwrap_or(before);
    let start = behind.get(..WORD_BYTES_MAX).unwrap_or(behind);
    [end, start].concat()
}

/// Whether a member `type` has a value that is not known to be text, a plain tool or a schema.
fn has_unknown_type(body: &[&[u8]]) -> bool {
    body.iter().any(|piece| types_are_unknown(piece))
        || body.windows(2).any(|two| has_word(&[&seam(two)], &TYPE))
}

fn types_are_unknown(bytes: &[u8]) -> bool {
    TYPE.find_iter(bytes).any(|at| {
        let behind = bytes.get(at + TYPE.needle().len()..).unwrap_or_default().trim_ascii_start();
        let value = behind.strip_prefix(b":").map(<[u8]>::trim_ascii_start);
        let Some(text) = value.and_then(|value| value.strip_prefix(b"\"")) else {
            // A schema may have a list of types, or a property of that name.
            return false;
        };
        let word = text.get(..WORD_BYTES_MAX).unwrap_or(text).split(|byte| *byte == b'"').next();
        !word.is_some_and(is_plain)
    })
}

/// Whether a type is text, a tool or a call that the request holds whole, or part of a schema.
fn is_plain(word: &[u8]) -> bool {
    matches!(
        word,
        b"text"
            | b"input_text"
            | b"output_text"
            | b"summary_text"
            | b"reasoning_text"
            | b"refusal"
            | b"message"
            | b"function"
            | b"custom"
            | b"function_call"
            | b"function_call_output"
            | b"custom_tool_call"
            | b"tool_use"
            | b"tool_result"
            | b"tool_call"
            | b"thinking"
            | b"object"
            | b"string"
            | b"number"
            | b"integer"
            | b"boolean"
            | b"array"
            | b"null"
            | b"json_schema"
            | b"json_object"
            | b"ephemeral"
            | b"auto"
            | b"any"
            | b"tool"
            | b"none"
            | b"enabled"
            | b"disabled"
            | b"adaptive"
            | b"grammar"
    )
}

type Members<'a> = BTreeMap<Cow<'a, str>, Value<'a>>;

/// A value of a body that was checked before.
enum Node<'a> {
    Text(Cow<'a, str>),
    List(Vec<Value<'a>>),
    Object(Members<'a>),
    /// A number, true, false or null.
    Other,
}

impl<'a> Node<'a> {
    fn of(value: Value<'a>) -> Self {
        let node = match value.first() {
            Some(b'"') => value.text().map(Node::Text),
            Some(b'[') => value.elements().map(Node::List),
            Some(b'{') => value.members().map(|members| Node::Object(Members::from_iter(members))),
            _ => None,
        };
        node.unwrap_or(Node::Other)
    }
}

/// A member that is a text.
fn text_of<'a>(members: &Members<'a>, name: &str) -> Option<Cow<'a, str>> {
    members.get(name)?.text()
}

fn of_request(wire: Wire, request: &Members<'_>) -> Unseen {
    let mut unseen = Unseen::default();
    let mut contents = |keys: &[&str]| {
        for value in keys.iter().filter_map(|key| request.get(*key)) {
            unseen.add(of_content(*value, CONTENT_DEPTH_MAX));
        }
    };
    match wire {
        Wire::Responses => contents(&["input", "instructions"]),
        Wire::GenerateContent => contents(&["contents", "systemInstruction", "system_instruction"]),
        Wire::Embeddings => contents(&["input", "messages", "content", "requests", "documents"]),
        Wire::Generate | Wire::VertexGenerate => contents(&["instances"]),
        Wire::LlamaCompletion | Wire::OllamaGenerate => contents(&["prompt"]),
        _ => contents(&["system", "messages", "input", "prompt", "documents"]),
    }
    let given = |key: &str| request.get(key).is_some_and(|value| is_given(*value));
    let beside = [
        "image_data",
        "video_data",
        "audio_data",
        "input_embeds",
        "session_params",
        "prompt_embeds",
        "images",
    ];
    if beside.into_iter().any(given) || request.get("tools").is_some_and(|it| has_own_tool(*it)) {
        unseen.parts = true;
    }
    if let Some(Node::Object(config)) = request.get("toolConfig").copied().map(Node::of)
        && config.get("tools").is_some_and(|tools| has_member(*tools, "systemTool"))
    {
        unseen.parts = true;
    }
    unseen
}

/// Whether a member has a value: null, false and what is empty are none.
fn is_given(value: Value<'_>) -> bool {
    match Node::of(value) {
        Node::Text(text) => !text.is_empty(),
        Node::List(list) => !list.is_empty(),
        Node::Object(members) => !members.is_empty(),
        Node::Other => !matches!(value.as_str(), "null" | "false"),
    }
}

/// Whether the provider defines one of the tools: it has no schema in the request, and what it finds
/// becomes part of the prompt.
fn has_own_tool(tools: Value<'_>) -> bool {
    let Node::List(tools) = Node::of(tools) else { return false };
    tools.into_iter().any(|tool| match Node::of(tool) {
        Node::Object(tool) => match text_of(&tool, "type").as_deref() {
            Some("function" | "custom") => false,
            Some(_) => true,
            // Gemini has functions under a name, Anthropic and others beside it.
            None => ![
                "functionDeclarations",
                "function_declarations",
                "function",
                "name",
                "input_schema",
                "toolSpec",
            ]
            .into_iter()
            .any(|key| tool.contains_key(key)),
        },
        _ => false,
    })
}

fn has_member(list: Value<'_>, key: &str) -> bool {
    let Node::List(list) = Node::of(list) else { return false };
    list.into_iter().any(|item| matches!(Node::of(item), Node::Object(it) if it.contains_key(key)))
}

/// Content of a message, a list of messages or of items, or an object with such a content.
fn of_content(content: Value<'_>, depth_left: usize) -> Unseen {
    let mut unseen = Unseen::default();
    let Some(depth_left) = depth_left.checked_sub(1) else { return unseen };
    match Node::of(content) {
        Node::List(parts) => {
            parts.into_iter().for_each(|part| unseen.add(of_content(part, depth_left)));
        }
        Node::Object(part) => unseen.add(of_part(&part, depth_left)),
        Node::Text(_) | Node::Other => {}
    }
    unseen
}

fn of_part(part: &Members<'_>, depth_left: usize) -> Unseen {
    let kind = text_of(part, "type");
    let mut unseen = of_kind(part, kind.as_deref());
    let given = |key: &&str| part.get(*key).is_some_and(|value| is_given(*value));
    // A sound that an assistant has said is kept, and so are parts that Gemini, Bedrock, Ollama and
    // llama.cpp name by a member of their own. Their images are not counted.
    const NAMED: [&str; 12] = [
        "fileData",
        "file_data",
        "inlineData",
        "inline_data",
        "image",
        "video",
        "document",
        "audio",
        "images",
        "multimodal_data",
        "image_data",
        "encrypted_content",
    ];
    let is_typed_image = matches!(kind.as_deref(), Some("image" | "input_image" | "image_url"));
    if !is_typed_image && NAMED.iter().any(given) {
        unseen.parts = true;
    }
    for key in ["content", "output", "parts", "toolResult", "functionResponse", "messages"] {
        if let Some(value) = part.get(key) {
            unseen.add(of_content(*value, depth_left));
        }
    }
    unseen
}

/// What a part is by its type.
fn of_kind(part: &Members<'_>, kind: Option<&str>) -> Unseen {
    let source = part.get("source").copied().map(Node::of);
    match kind {
        // An item that is named by its id alone.
        None if part.contains_key("id") && !part.keys().any(|key| key != "id" && key != "type") => {
            Unseen::PARTS
        }
        Some("image" | "input_image" | "image_url") => {
            let is_kept = part.get("file_id").is_some_and(|id| is_given(*id))
                || matches!(&source, Some(Node::Object(source)) if source.contains_key("file_id"));
            Unseen { parts: is_kept, images: true }
        }
        // Its text stands in the request.
        Some("document")
            if matches!(&source, Some(Node::Object(source))
                if matches!(text_of(source, "type").as_deref(), Some("text" | "content"))) =>
        {
            match source {
                Some(Node::Object(source)) => {
                    source.get("content").map_or_else(Unseen::default, |content| {
                        of_content(*content, CONTENT_DEPTH_MAX)
                    })
                }
                _ => Unseen::default(),
            }
        }
        Some("search_result" | "redacted_thinking" | "item" | "local_shell_call") | None => {
            Unseen::default()
        }
        Some("local_shell_call_output" | "custom_tool_call_output" | "apply_patch_call_output") => {
            Unseen::default()
        }
        Some("reasoning") => Unseen::default(),
        Some(kind) if is_plain(kind.as_bytes()) => Unseen::default(),
        // Files, sounds, films, kept items, calls of tools that ran at the provider, and what else
        // may come.
        Some(_) => Unseen::PARTS,
    }
}

#[cfg(test)]
mod tests;
