//! Meters: what is counted and has a price.

use serde::{Deserialize, Serialize};

/// What is counted. The meters of one request are disjoint: each token is on exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeterName {
    /// Input that is neither read from nor written to a cache. This is text, and every modality
    /// without a rate of its own.
    Input,
    /// The same for audio.
    InputAudio,
    /// The same for images.
    InputImage,
    /// The same for video.
    InputVideo,
    /// Input that was served from a cache.
    CacheRead,
    /// The same for audio.
    CacheReadAudio,
    /// The same for images.
    CacheReadImage,
    /// Input that was written to a cache with the short time to live.
    CacheWrite,
    /// Input that was written to a cache with the long time to live.
    CacheWriteLong,
    /// Output, without the parts that have a rate of their own.
    Output,
    /// Generated audio.
    OutputAudio,
    /// Generated images.
    OutputImage,
    /// Generated video.
    OutputVideo,
    /// Reasoning, if it has a rate of its own.
    Reasoning,
    /// The request itself, if it has used anything.
    Requests,
    /// Calls of a web search.
    WebSearchRequests,
    /// Calls of a file search.
    FileSearchCalls,
    /// Containers in which a model's code ran.
    CodeInterpreterSessions,
    /// Pages that a tool has fetched. They are free where a row has no rate.
    WebFetchRequests,
    /// Calls of Perplexity's tool that reads a page.
    FetchUrlCalls,
    /// Calls of Groq's tool that visits a page.
    VisitWebsiteCalls,
    /// Searches of posts (xAI).
    XSearchCalls,
    /// Searches in attached documents (xAI).
    DocumentSearchCalls,
    /// Queries of the customer's own data (Gemini).
    RetrievalQueries,
    /// Answers that a map backs (Gemini).
    MapsGroundingRequests,
    /// Sources that a search has read, where these are charged (xAI).
    SearchSources,
    /// Runs of code that are charged one by one (xAI).
    CodeInterpreterCalls,
    /// Runs of code in Anthropic's containers.
    CodeExecutionRequests,
    /// Pictures that a tool draws and that are charged one by one.
    ImageGenerationCalls,
    /// Queries of a search (Perplexity, Gemini's grounding).
    SearchQueries,
    /// Searches as Cohere counts them: a query with up to 100 documents.
    SearchUnits,
    /// Audio that is charged by its length.
    AudioSeconds,
    /// Video that is charged by its length.
    VideoSeconds,
    /// Images that are charged one by one.
    Images,
    /// Characters of a text that is spoken.
    Characters,
    /// Pages of a document that are read.
    Pages,
}

impl MeterName {
    /// Every meter, in the order of bills.
    pub const ALL: [Self; 36] = [
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
        Self::WebFetchRequests,
        Self::FetchUrlCalls,
        Self::VisitWebsiteCalls,
        Self::XSearchCalls,
        Self::DocumentSearchCalls,
        Self::RetrievalQueries,
        Self::MapsGroundingRequests,
        Self::SearchSources,
        Self::CodeInterpreterCalls,
        Self::CodeExecutionRequests,
        Self::ImageGenerationCalls,
        Self::SearchQueries,
        Self::SearchUnits,
        Self::AudioSeconds,
        Self::VideoSeconds,
        Self::Images,
        Self::Characters,
        Self::Pages,
    ];

    /// The word in records and the key in price files. For a meter that does not count tokens, it
    /// is also the name in [`Usage::units`](crate::Usage::units).
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
            Self::WebFetchRequests => "web_fetch_requests",
            Self::FetchUrlCalls => "fetch_url_calls",
            Self::VisitWebsiteCalls => "visit_website_calls",
            Self::XSearchCalls => "x_search_calls",
            Self::DocumentSearchCalls => "document_search_calls",
            Self::RetrievalQueries => "retrieval_queries",
            Self::MapsGroundingRequests => "maps_grounding_requests",
            Self::SearchSources => "search_sources",
            Self::CodeInterpreterCalls => "code_interpreter_calls",
            Self::CodeExecutionRequests => "code_execution_requests",
            Self::ImageGenerationCalls => "image_generation_calls",
            Self::SearchQueries => "search_queries",
            Self::SearchUnits => "search_units",
            Self::AudioSeconds => "audio_seconds",
            Self::VideoSeconds => "video_seconds",
            Self::Images => "images",
            Self::Characters => "characters",
            Self::Pages => "pages",
        }
    }

    /// The unit: `tokens`, `seconds`, `requests` and so on.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self.kind() {
            MeterKind::InputTokens | MeterKind::OutputTokens => "tokens",
            MeterKind::Beside | MeterKind::InPlaceOfTokens => {
                let name = self.as_str();
                name.rsplit_once('_').map_or(name, |(_, unit)| unit)
            }
        }
    }

    /// Whether it counts tokens. Price files give their prices per 1,000,000.
    #[must_use]
    pub const fn counts_tokens(self) -> bool {
        matches!(self.kind(), MeterKind::InputTokens | MeterKind::OutputTokens)
    }

    /// Whether it counts generated tokens.
    pub(crate) const fn is_output(self) -> bool {
        matches!(self.kind(), MeterKind::OutputTokens)
    }

    /// The meter of a quantity with this name in [`Usage::units`](crate::Usage::units).
    #[must_use]
    pub fn of_unit(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|meter| meter.as_str() == name && !meter.counts_tokens())
    }

    /// Whether a request may be charged for such a quantity alone, without any tokens.
    #[must_use]
    pub const fn may_stand_alone(self) -> bool {
        matches!(self.kind(), MeterKind::InPlaceOfTokens) || matches!(self, Self::SearchUnits)
    }

    pub(crate) const fn kind(self) -> MeterKind {
        match self {
            Self::Input
            | Self::InputAudio
            | Self::InputImage
            | Self::InputVideo
            | Self::CacheRead
            | Self::CacheReadAudio
            | Self::CacheReadImage
            | Self::CacheWrite
            | Self::CacheWriteLong => MeterKind::InputTokens,
            Self::Output
            | Self::OutputAudio
            | Self::OutputImage
            | Self::OutputVideo
            | Self::Reasoning => MeterKind::OutputTokens,
            Self::Requests
            | Self::WebSearchRequests
            | Self::FileSearchCalls
            | Self::CodeInterpreterSessions
            | Self::WebFetchRequests
            | Self::FetchUrlCalls
            | Self::VisitWebsiteCalls
            | Self::XSearchCalls
            | Self::DocumentSearchCalls
            | Self::RetrievalQueries
            | Self::MapsGroundingRequests
            | Self::SearchSources
            | Self::CodeInterpreterCalls
            | Self::CodeExecutionRequests
            | Self::ImageGenerationCalls
            | Self::SearchQueries
            | Self::SearchUnits => MeterKind::Beside,
            Self::AudioSeconds
            | Self::VideoSeconds
            | Self::Images
            | Self::Characters
            | Self::Pages => MeterKind::InPlaceOfTokens,
        }
    }
}

impl std::fmt::Display for MeterName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Some of the meters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MeterSet(u64);

// One bit for each.
const _: () = assert!(MeterName::ALL.len() <= u64::BITS as usize);

impl MeterSet {
    pub(crate) const fn contains(self, meter: MeterName) -> bool {
        self.0 & (1_u64 << meter as u32) != 0
    }
}

impl FromIterator<MeterName> for MeterSet {
    fn from_iter<I: IntoIterator<Item = MeterName>>(meters: I) -> Self {
        Self(meters.into_iter().fold(0, |set, meter| set | 1_u64 << meter as u32))
    }
}

/// How a meter relates to the tokens of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MeterKind {
    InputTokens,
    OutputTokens,
    /// Charged in addition to tokens.
    Beside,
    /// Another measure of the same work, charged instead of tokens.
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
    fn a_set_has_what_was_put_in_and_nothing_else() {
        for meter in MeterName::ALL {
            let set = MeterSet::from_iter([meter]);
            let inside = MeterName::ALL.into_iter().filter(|other| set.contains(*other));
            assert_eq!(inside.collect::<Vec<_>>(), [meter]);
        }
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
