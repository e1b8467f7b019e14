//! `taximeter count --against URL`: asks the engine's own tokenizer.
//!
//! It works with three engines. The owner in their list of models tells them apart. vLLM and SGLang
//! have `/tokenize`. llama.cpp has `/tokenize` and `/apply-template`.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use taximeter_config::UpstreamUrl;
use taximeter_gateway::recognise::owner;
use taximeter_meter::{Dialect, Wire};
use taximeter_net::ask::{AskFault, ask};

/// Members of a chat request that vLLM and llama.cpp use to render it.
const CHAT_MEMBERS: [&str; 9] = [
    "messages",
    "tools",
    "tool_choice",
    "documents",
    "chat_template",
    "chat_template_kwargs",
    "add_generation_prompt",
    "continue_final_message",
    "reasoning_effort",
];

/// What the engine is asked to count.
pub(super) enum Input<'a> {
    /// A text. Marks of special tokens in it count as text.
    Text(&'a str),
    /// Chats: for each, the prompt that our template rendered, and the body of a request for it.
    Chats(Vec<(Option<String>, Cow<'a, [u8]>)>),
    /// The body of another request.
    Request(Wire, &'a [u8]),
}

/// The answer of an engine.
pub(super) struct Answer {
    /// The name of the engine.
    pub(super) engine: &'static str,
    pub(super) tokens: u64,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AgainstError {
    /// The engine does not answer.
    #[error(transparent)]
    Ask(#[from] AskFault),
    /// The engine has no tokenizer to ask.
    #[error("cannot count with the engine at {0}; only vLLM, SGLang and llama.cpp can count")]
    Unknown(String),
    /// The engine refuses, or its answer has no count.
    #[error("{engine} does not count this input: {path} answers with status {status}")]
    Refused {
        /// Its name.
        engine: &'static str,
        /// The path of the request.
        path: &'static str,
        /// The HTTP status.
        status: u16,
    },
    /// No engine can count this input.
    #[error("{0}")]
    Unsupported(&'static str),
}

/// Asks the engine at `url`.
pub(super) async fn tokens(url: &UpstreamUrl, input: &Input<'_>) -> Result<Answer, AgainstError> {
    let (_, models) = ask(url, "/v1/models", None).await?;
    let engine = match owner(&models) {
        Some(Dialect::Vllm) => Engine { name: "vLLM", url },
        Some(Dialect::Sglang) => Engine { name: "SGLang", url },
        Some(Dialect::LlamaCpp) => Engine { name: "llama.cpp", url },
        _ => return Err(AgainstError::Unknown(url.authority())),
    };
    let tokens = match input {
        Input::Text(text) => engine.of_text(text, Marks::Text).await?,
        Input::Chats(chats) => {
            let mut sum = 0;
            for (rendered, body) in chats {
                sum += engine.of_chat(body, rendered.as_deref()).await?;
            }
            sum
        }
        Input::Request(Wire::Completions, body) => {
            let mut sum = 0;
            for prompt in prompts(body)? {
                sum += engine.of_text(&prompt, Marks::Prompt).await?;
            }
            sum
        }
        Input::Request(..) => {
            let reason = "an engine can only count texts, chats and completions";
            return Err(AgainstError::Unsupported(reason));
        }
    };
    Ok(Answer { engine: engine.name, tokens })
}

/// How the engine reads marks of special tokens in a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Marks {
    /// As text.
    Text,
    /// As tokens. The engine adds none of its own.
    Tokens,
    /// As tokens. The engine adds its own around the text.
    Prompt,
}

struct Engine<'a> {
    name: &'static str,
    url: &'a UpstreamUrl,
}

impl Engine<'_> {
    async fn of_text(&self, text: &str, marks: Marks) -> Result<u64, AgainstError> {
        let framed = marks == Marks::Prompt;
        self.tokenise(if self.name == "llama.cpp" {
            let special = marks != Marks::Text;
            json!({"content": text, "add_special": framed, "parse_special": special})
        } else {
            json!({"prompt": text, "add_special_tokens": framed})
        })
        .await
    }

    async fn of_chat(&self, body: &[u8], rendered: Option<&str>) -> Result<u64, AgainstError> {
        let mut request: Map<String, Value> = serde_json::from_slice(body).unwrap_or_default();
        request.retain(|name, _| CHAT_MEMBERS.contains(&name.as_str()));
        let chat = Value::Object(request);
        match self.name {
            "vLLM" => self.tokenise(chat).await,
            "llama.cpp" => {
                let answer = self.post("/apply-template", &chat).await?;
                match answer.get("prompt").and_then(Value::as_str) {
                    Some(prompt) => self.of_text(prompt, Marks::Tokens).await,
                    None => Err(self.refused("/apply-template", 200)),
                }
            }
            _ => match rendered {
                Some(prompt) => self.of_text(prompt, Marks::Tokens).await,
                None => Err(AgainstError::Unsupported(
                    "SGLang cannot render a chat; use --tokenizer FOLDER with a chat template",
                )),
            },
        }
    }

    async fn tokenise(&self, request: Value) -> Result<u64, AgainstError> {
        const PATH: &str = "/tokenize";
        let answer = self.post(PATH, &request).await?;
        let listed =
            answer.get("tokens").and_then(Value::as_array).map(|tokens| tokens.len() as u64);
        listed
            .or_else(|| answer.get("count").and_then(Value::as_u64))
            .ok_or_else(|| self.refused(PATH, 200))
    }

    async fn post(&self, path: &'static str, request: &Value) -> Result<Value, AgainstError> {
        let (status, answer) = ask(self.url, path, Some(request.to_string().into_bytes())).await?;
        match serde_json::from_slice(&answer) {
            Ok(answer) if status.is_success() => Ok(answer),
            _ => Err(self.refused(path, status.as_u16())),
        }
    }

    const fn refused(&self, path: &'static str, status: u16) -> AgainstError {
        AgainstError::Refused { engine: self.name, path, status }
    }
}

/// The prompts of a completion.
fn prompts(body: &[u8]) -> Result<Vec<String>, AgainstError> {
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    match request.get("prompt") {
        Some(Value::String(prompt)) => Some(vec![prompt.clone()]),
        Some(Value::Array(prompts)) => {
            prompts.iter().map(|prompt| prompt.as_str().map(str::to_owned)).collect()
        }
        _ => None,
    }
    .ok_or(AgainstError::Unsupported("a prompt of token ids needs no tokenizer"))
}
