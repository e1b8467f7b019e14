//! Reads the parameters of a request (`temperature`, `seed`, …), which spans report.

use taximeter_json::Scalar;

/// Items of a list that are kept, as of stop sequences; of all else there is one each.
const ITEMS_MAX: usize = 24;

/// A parameter of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// `temperature`
    Temperature,
    /// `top_p`
    TopP,
    /// `top_k`
    TopK,
    /// `frequency_penalty`
    FrequencyPenalty,
    /// `presence_penalty`
    PresencePenalty,
    /// `seed`
    Seed,
    /// One of `stop` or `stop_sequences`.
    StopSequence,
    /// `reasoning_effort`, or `reasoning.effort`
    ReasoningLevel,
    /// `response_format.type`, or `text.format.type`
    OutputFormat,
    /// One of `modalities`.
    Modality,
    /// `previous_response_id`
    PreviousResponse,
    /// `conversation`, or `conversation.id`
    Conversation,
    /// `prompt.id`: a prompt that the provider keeps.
    Prompt,
    /// `prompt.version`
    PromptVersion,
    /// `encoding_format`
    EncodingFormat,
    /// `dimensions`
    Dimensions,
}

/// A container whose members, or items, are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parent {
    StreamOptions,
    /// One whose items are parameters.
    List,
    ResponseFormat,
    Reasoning,
    Text,
    TextFormat,
    Conversation,
    Prompt,
    /// One of which only matters whether it has something in it.
    Kept,
    /// A list of token ids, or of lists of them.
    PromptIds,
    /// One of which members are only noted.
    Noted,
}

impl Parameter {
    /// The parameter with this key.
    pub(super) fn named(parent: Option<Parent>, key: &str) -> Option<Self> {
        Some(match (parent, key) {
            (None, "temperature") => Self::Temperature,
            (None, "top_p") => Self::TopP,
            (None, "top_k") => Self::TopK,
            (None, "frequency_penalty") => Self::FrequencyPenalty,
            (None, "presence_penalty") => Self::PresencePenalty,
            (None, "seed") => Self::Seed,
            (None, "stop" | "stop_sequences") => Self::StopSequence,
            (None, "reasoning_effort") | (Some(Parent::Reasoning), "effort") => {
                Self::ReasoningLevel
            }
            (Some(Parent::ResponseFormat | Parent::TextFormat), "type") => Self::OutputFormat,
            (None, "modalities") => Self::Modality,
            (None, "previous_response_id") => Self::PreviousResponse,
            (None, "conversation") | (Some(Parent::Conversation), "id") => Self::Conversation,
            (Some(Parent::Prompt), "id") => Self::Prompt,
            (Some(Parent::Prompt), "version") => Self::PromptVersion,
            (None, "encoding_format") => Self::EncodingFormat,
            (None, "dimensions") => Self::Dimensions,
            _ => return None,
        })
    }

    /// Whether there may be several.
    pub(super) const fn is_listed(self) -> bool {
        matches!(self, Self::StopSequence | Self::Modality)
    }

    const fn is_number(self) -> bool {
        matches!(
            self,
            Self::Temperature
                | Self::TopP
                | Self::TopK
                | Self::FrequencyPenalty
                | Self::PresencePenalty
                | Self::Seed
                | Self::Dimensions
        )
    }
}

impl Parent {
    /// The container with this key, where its members are parameters.
    pub(super) fn named(parent: Option<Self>, key: &str) -> Option<Self> {
        match (parent, key) {
            (None, "response_format") => Some(Self::ResponseFormat),
            (None, "reasoning") => Some(Self::Reasoning),
            (None, "text") => Some(Self::Text),
            (Some(Self::Text), "format") => Some(Self::TextFormat),
            (None, "conversation") => Some(Self::Conversation),
            (None, "prompt") => Some(Self::Prompt),
            _ => None,
        }
    }

    /// What it stands in.
    pub(super) const fn parent(self) -> Option<Self> {
        match self {
            Self::TextFormat => Some(Self::Text),
            _ => None,
        }
    }
}

/// Notes a parameter's value: a number as it is written, or a text; the last of several is meant.
pub(super) fn state(
    stated: &mut Vec<(Parameter, String)>,
    parameter: Parameter,
    kind: Scalar,
    text: Option<&str>,
) {
    let is_fit = match kind {
        Scalar::Number => parameter.is_number(),
        Scalar::String => !parameter.is_number(),
        Scalar::True | Scalar::False | Scalar::Null => false,
    };
    let Some(text) = text.filter(|_| is_fit) else { return };
    if !parameter.is_listed() {
        stated.retain(|(other, _)| *other != parameter);
    } else if stated.iter().filter(|(other, _)| *other == parameter).count() >= ITEMS_MAX {
        return;
    }
    stated.push((parameter, text.to_owned()));
}
