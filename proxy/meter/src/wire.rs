//! Wire formats: the shape of the requests and answers of a route. Each format has one file.

mod arguments;
mod batches;
mod chat_completions;
mod choices;
mod cohere_chat;
mod completions;
mod converse;
mod embeddings;
pub(crate) mod error;
mod generate;
mod generate_content;
mod images;
mod invocations;
mod llama_completion;
mod messages;
mod ocr;
mod ollama;
mod responses;
mod speech;
mod token_ids;
mod transcriptions;
mod vertex_generate;
mod videos;

use crate::facts::Format;

macro_rules! wires {
    ($($(#[$words:meta])* $wire:ident: $format:expr,)+) => {
        /// Shape of an exchange; follows from the route.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Wire {
            $($(#[$words])* $wire,)+
        }

        impl Wire {
            /// Each of them, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$wire),+];

            /// How answers of this shape are read; `None` where they are not.
            pub(crate) fn format(self) -> Option<&'static dyn Format> {
                match self {
                    $(Self::$wire => $format,)+
                }
            }
        }
    };
}

wires! {
    /// `/v1/chat/completions`
    ChatCompletions: Some(&chat_completions::ChatCompletions),
    /// `/v1/chat/completions/batch` of vLLM: several chats, and a choice for each
    ChatBatch: Some(&chat_completions::ChatCompletions),
    /// `/v1/completions`
    Completions: Some(&completions::Completions),
    /// `/v1/responses`
    Responses: Some(&responses::Responses),
    /// `/v1/messages`
    Messages: Some(&messages::Messages),
    /// `/v1/embeddings`, also rerank, score, classify, pooling and moderations: input only
    Embeddings: Some(&embeddings::Embeddings),
    /// `/generate` of SGLang, LMDeploy and TGI
    Generate: Some(&generate::Generate { has_one_prompt: false }),
    /// `/completion` of llama.cpp
    LlamaCompletion: Some(&llama_completion::LlamaCompletion),
    /// `/api/chat` of Ollama
    OllamaChat: Some(&ollama::OllamaNative),
    /// `/api/generate` of Ollama
    OllamaGenerate: Some(&ollama::OllamaNative),
    /// `/v2/chat` of Cohere
    CohereChat: Some(&cohere_chat::CohereChat),
    /// `/v1beta/models/…:generateContent` of Gemini
    GenerateContent: Some(&generate_content::GenerateContent),
    /// `/model/…/converse` of Bedrock
    Converse: Some(&converse::Converse),
    /// `/inference/v1/generate` of vLLM
    TokenIds: Some(&token_ids::TokenIds),
    /// `/vertex_generate` of SGLang
    VertexGenerate: Some(&vertex_generate::VertexGenerate),
    /// `/invocations` of vLLM and SGLang
    Invocations: Some(&invocations::Invocations),
    /// `/v1/audio/transcriptions` and `/v1/audio/translations`
    Transcriptions: Some(&transcriptions::Transcriptions),
    /// `/v1/audio/speech`
    Speech: Some(&speech::Speech),
    /// `/v1/images/…`
    Images: Some(&images::Images),
    /// `/v1/videos` and `/v1/videos/{id}/remix`
    Videos: Some(&videos::Videos),
    /// `/v1/ocr`
    Ocr: Some(&ocr::Ocr),
    /// `/v1/batches` and `/v1/messages/batches`: a batch, not the answers of its requests
    Batches: Some(&batches::Batches),
    /// Anything else: times are measured, usage stays unknown.
    Opaque: None,
}

impl Wire {
    /// How the answers to a request are read. `has_one_prompt` says whether they are all to one
    /// prompt, where the answers do not.
    pub(crate) fn format_of(self, has_one_prompt: bool) -> Option<&'static dyn Format> {
        match self {
            Self::Generate if has_one_prompt => Some(&generate::Generate { has_one_prompt: true }),
            _ => self.format(),
        }
    }

    /// Whether requests usually name a model. On the other wire formats engines serve the model
    /// that they have loaded, and providers have a default.
    #[must_use]
    pub const fn expects_model(self) -> bool {
        matches!(
            self,
            Self::ChatCompletions
                | Self::ChatBatch
                | Self::Completions
                | Self::Responses
                | Self::Messages
                | Self::Embeddings
                | Self::CohereChat
                | Self::OllamaChat
                | Self::OllamaGenerate
        )
    }

    /// Whether a body without `stream` asks for a stream.
    #[must_use]
    pub const fn streams_by_default(self) -> bool {
        matches!(self, Self::OllamaChat | Self::OllamaGenerate)
    }

    /// Whether an answer that is a list is a stream of its elements: each says what an event would.
    pub(crate) const fn streams_lists(self) -> bool {
        matches!(self, Self::GenerateContent)
    }

    /// Whether an answer without text, usage and a reason to finish may be whole: what it brings is
    /// something else, or nothing was spoken.
    pub(crate) const fn may_lack_text(self) -> bool {
        !matches!(self.output(), Output::Text)
            || matches!(self, Self::Transcriptions | Self::Invocations)
    }

    /// Whether a body may be a form (`multipart/form-data`).
    #[must_use]
    pub const fn takes_form(self) -> bool {
        matches!(self, Self::Transcriptions | Self::Images | Self::Videos)
    }

    /// Whether the engine keeps to `max_tokens` and its like at the top of the body.
    #[must_use]
    pub const fn obeys_max_tokens(self) -> bool {
        matches!(self, Self::ChatCompletions | Self::Completions | Self::Responses | Self::Messages)
    }

    /// Whether the input is text that can be counted: sound, images and documents cannot.
    #[must_use]
    pub const fn has_countable_input(self) -> bool {
        !matches!(
            self,
            Self::Transcriptions
                | Self::Images
                | Self::Videos
                | Self::Ocr
                | Self::Batches
                | Self::Opaque
        )
    }

    /// Whether input and output, if there is one, are text.
    #[must_use]
    pub const fn is_text(self) -> bool {
        self.has_countable_input() && !matches!(self.output(), Output::NotText)
    }

    /// What an answer generates.
    #[must_use]
    pub const fn output(self) -> Output {
        match self {
            Self::Embeddings => Output::None,
            Self::Speech
            | Self::Images
            | Self::Videos
            | Self::Ocr
            | Self::Batches
            | Self::Opaque => Output::NotText,
            _ => Output::Text,
        }
    }
}

/// What the answers of a wire format generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Nothing: its tokens are zero, and known.
    None,
    /// Text, which can be counted.
    Text,
    /// Something whose tokens only the engine knows.
    NotText,
}
