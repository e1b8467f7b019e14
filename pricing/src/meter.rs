//! What is counted and has a price.

use serde::{Deserialize, Serialize};

/// What is counted. The meters of one request are disjoint: each token is on exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeterName {
    /// Input neither read from nor written to a cache, of text or of what has no rate of its own.
    Input,
    /// The same of sound.
    InputAudio,
    /// The same of pictures.
    InputImage,
    /// The same of films.
    InputVideo,
    /// Input served from a cache.
    CacheRead,
    /// The same of sound.
    CacheReadAudio,
    /// The same of pictures.
    CacheReadImage,
    /// Input written to a cache with the short time to live.
    CacheWrite,
    /// Input written to a cache with the long time to live.
    CacheWriteLong,
    /// Output; without what has a rate of its own.
    Output,
    /// Generated sound.
    OutputAudio,
    /// Generated pictures.
    OutputImage,
    /// Generated films.
    OutputVideo,
    /// Reasoning, when it has a rate of its own.
    Reasoning,
    /// The request itself, once it has used anything.
    Requests,
    /// Calls of a web search.
    WebSearchRequests,
    /// Calls of a search in files.
    FileSearchCalls,
    /// Containers that a model's code ran in.
    CodeInterpreterSessions,
    /// Queries that a search was made of (Perplexity, Gemini's grounding).
    SearchQueries,
    /// Searches as Cohere bills them: a query with up to 100 documents.
    SearchUnits,
    /// Sound, where it is charged by its length.
    AudioSeconds,
    /// Films, where they are charged by their length.
    VideoSeconds,
    /// Pictures, where they are charged one by one.
    Images,
    /// Characters of a text that is spoken.
    Characters,
    /// Pages that are read.
    Pages,
}

impl MeterName {
    /// Every meter, in the order of bills.
    pub const ALL: [Self; 25] = [
        Self::Input,
        Self::InputAudio,
        Self::InputImage,
        Self::InputVideo,
        Self::CacheRead,
        Self::CacheReadAudio,
        Self::CacheReadImage,
        Self::CacheWrite,
        Self::CacheWriteLong,
        Self::Output,
        Self::OutputAudio,
        Self::OutputImage,
        Self::OutputVideo,
        Self::Reasoning,
        Self::Requests,
        Self::WebSearchRequests,
        Self::FileSearchCalls,
        Self::CodeInterpreterSessions,
        Self::SearchQueries,
        Self::SearchUnits,
        Self::AudioSeconds,
        Self::VideoSeconds,
        Self::Images,
        Self::Characters,
        Self::Pages,
    ];

    /// The word on a record and the key in a price file; of what is no token also its name in
    /// [`Usage::units`](crate::Usage::units).
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::InputAudio => "input_audio",
            Self::InputImage => "input_image",
            Self::InputVideo => "input_video",
            Self::CacheRead => "cache_read",
            Self::CacheReadAudio => "cache_read_audio",
            Self::CacheReadImage => "cache_read_image",
            Self::CacheWrite => "cache_write",
            Self::CacheWriteLong => "cache_write_long",
            Self::Output => "output",
            Self::OutputAudio => "output_audio",
            Self::OutputImage => "output_image",
            Self::OutputVideo => "output_video",
            Self::Reasoning => "reasoning",
            Self::Requests => "requests",
            Self::WebSearchRequests => "web_search_requests",
            Self::FileSearchCalls => "file_search_calls",
            Self::CodeInterpreterSessions => "code_interpreter_sessions",
            Self::SearchQueries => "search_queries",
            Self::SearchUnits => "search_units",
            Self::AudioSeconds => "audio_seconds",
            Self::VideoSeconds => "video_seconds",
            Self::Images => "images",
            Self::Characters => "characters",
            Self::Pages => "pages",
        }
    }

    /// What one of it is called: `tokens`, `seconds`, `requests` and so on.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self.kind() {
            Kind::InputTokens | Kind::OutputTokens => "tokens",
            Kind::Beside | Kind::InPlaceOfTokens => {
                let name = self.as_str();
                name.rsplit_once('_').map_or(name, |(_, unit)| unit)
            }
        }
    }

    /// Whether it counts tokens, whose prices files say per 1,000,000.
    #[must_use]
    pub const fn counts_tokens(self) -> bool {
        matches!(self.kind(), Kind::InputTokens | Kind::OutputTokens)
    }

    /// Whether it counts tokens that were generated.
    pub(crate) const fn is_output(self) -> bool {
        matches!(self.kind(), Kind::OutputTokens)
    }

    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Input
            | Self::InputAudio
            | Self::InputImage
            | Self::InputVideo
            | Self::CacheRead
            | Self::CacheReadAudio
            | Self::CacheReadImage
            | Self::CacheWrite
            | Self::CacheWriteLong => Kind::InputTokens,
            Self::Output
            | Self::OutputAudio
            | Self::OutputImage
            | Self::OutputVideo
            | Self::Reasoning => Kind::OutputTokens,
            Self::Requests
            | Self::WebSearchRequests
            | Self::FileSearchCalls
            | Self::CodeInterpreterSessions
            | Self::SearchQueries
            | Self::SearchUnits => Kind::Beside,
            Self::AudioSeconds
            | Self::VideoSeconds
            | Self::Images
            | Self::Characters
            | Self::Pages => Kind::InPlaceOfTokens,
        }
    }
}

impl std::fmt::Display for MeterName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a meter stands to the tokens of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    InputTokens,
    OutputTokens,
    /// Charged beside tokens.
    Beside,
    /// The same work by another measure: charged where tokens are not.
    InPlaceOfTokens,
}

#[cfg(test)]
mod tests {
    use serde::de::value::{Error, StrDeserializer};

    use super::*;

    #[test]
    fn each_meter_is_read_by_the_word_that_it_is_written_with() {
        for meter in MeterName::ALL {
            let word = StrDeserializer::<Error>::new(meter.as_str());
            assert_eq!(MeterName::deserialize(word).unwrap(), meter);
        }
        assert!(MeterName::ALL.is_sorted());
    }

    #[test]
    fn what_is_no_token_is_counted_in_the_last_word_of_its_name() {
        for (meter, unit) in [
            (MeterName::InputAudio, "tokens"),
            (MeterName::Reasoning, "tokens"),
            (MeterName::WebSearchRequests, "requests"),
            (MeterName::FileSearchCalls, "calls"),
            (MeterName::CodeInterpreterSessions, "sessions"),
            (MeterName::AudioSeconds, "seconds"),
            (MeterName::SearchQueries, "queries"),
            (MeterName::Images, "images"),
        ] {
            assert_eq!(meter.unit(), unit);
        }
    }
}
