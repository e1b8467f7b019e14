//! The meaning of LiteLLM's price fields.

use crate::import::json::Members;
use crate::meter::MeterName;
use crate::row::ServiceTier;

/// The `mode` of a model: what it is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Embeddings, moderations.
    InputOnly,
    Rerank,
    Search,
    Transcription,
    Speech,
    Images,
    Videos,
    /// Text, and every mode that is not known.
    Other,
}

impl Mode {
    pub(super) fn of(members: &Members<'_>) -> Self {
        match members.text("mode").as_deref() {
            Some("embedding" | "moderation") => Self::InputOnly,
            Some("rerank") => Self::Rerank,
            Some("search" | "vector_store") => Self::Search,
            Some("audio_transcription") => Self::Transcription,
            Some("audio_speech") => Self::Speech,
            Some("image_generation" | "image_edit") => Self::Images,
            Some("video_generation") => Self::Videos,
            _ => Self::Other,
        }
    }

    pub(super) const fn is_input_only(self) -> bool {
        matches!(self, Self::InputOnly | Self::Rerank)
    }
}

/// The meter, the context and the tier of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldMeaning {
    pub(super) meter: MeterName,
    /// The rate holds above this number of input tokens.
    pub(super) above: Option<u64>,
    pub(super) tier: Option<ServiceTier>,
}

/// The only field whose price is for a thousand.
pub(super) const PER_THOUSAND_FILE_SEARCHES: &str = "file_search_cost_per_1k_calls";

const BY_SIZE: &str = "depends on the size, which no answer reports";
const UNKNOWN: &str = "is an unknown field";
const TIER: &str = "belongs to an unknown service tier";
const ELSEWHERE: &str = "no answer reports the quantity that it charges for";
const FREE: &str =
    "a free quantity per day or month belongs to the bill, not to the price of a request";
const REGION: &str = "the file does not say to which endpoints it belongs";
const RESERVED: &str = "charges for the time of reserved machines, not for requests";
const CITATIONS: &str = "citations are counted as output";

/// The meaning of a field. `None` if the field does not affect the cost.
///
/// Errors: the field affects the cost but cannot be imported, with the reason.
pub(super) fn meaning(
    field: &str,
    mode: Mode,
    members: &Members<'_>,
) -> Result<Option<FieldMeaning>, &'static str> {
    let (rest, tier) = tier(field)?;
    let (base, above) = above(rest);
    let meter = match token(base) {
        Some(meter) => meter,
        None => match other(base, mode, members)? {
            Some(meter) => meter,
            None => return Ok(None),
        },
    };
    Ok(Some(FieldMeaning { meter, above, tier }))
}

fn tier(field: &str) -> Result<(&str, Option<ServiceTier>), &'static str> {
    let tiers = [
        ("_batches", Some(ServiceTier::Batch)),
        ("_flex", Some(ServiceTier::Flex)),
        ("_priority", Some(ServiceTier::Priority)),
        ("_ultrafast", Some(ServiceTier::Ultrafast)),
        ("_balanced", None),
        ("_decisions", None),
    ];
    for (end, tier) in tiers {
        if let Some(rest) = field.strip_suffix(end).filter(|rest| rest.contains("cost")) {
            return tier.map(|tier| (rest, Some(tier))).ok_or(TIER);
        }
    }
    Ok((field, None))
}

/// Reads `…_above_272k_tokens`. A suffix such as `above_1hr` is a time to live.
fn above(field: &str) -> (&str, Option<u64>) {
    let parts = field.strip_suffix("k_tokens").and_then(|rest| rest.rsplit_once("_above_"));
    match parts.and_then(|(base, thousands)| Some((base, thousands.parse::<u64>().ok()?))) {
        Some((base, thousands)) => (base, thousands.checked_mul(1000)),
        None => (field, None),
    }
}

fn token(base: &str) -> Option<MeterName> {
    Some(match base {
        "input_cost_per_token" => MeterName::Input,
        "input_cost_per_audio_token" => MeterName::InputAudio,
        "input_cost_per_image_token" => MeterName::InputImage,
        "input_cost_per_video_token" => MeterName::InputVideo,
        "cache_read_input_token_cost" | "input_cost_per_token_cache_hit" => MeterName::CacheRead,
        "cache_read_input_audio_token_cost" => MeterName::CacheReadAudio,
        "cache_read_input_image_token_cost" => MeterName::CacheReadImage,
        "cache_creation_input_token_cost" => MeterName::CacheWrite,
        "cache_creation_input_token_cost_above_1hr"
        | "cache_creation_input_token_cost_above_12hr" => MeterName::CacheWriteLong,
        "output_cost_per_token" => MeterName::Output,
        "output_cost_per_reasoning_token" => MeterName::Reasoning,
        "output_cost_per_audio_token" => MeterName::OutputAudio,
        "output_cost_per_image_token" => MeterName::OutputImage,
        "output_cost_per_video_token" => MeterName::OutputVideo,
        _ => return None,
    })
}

/// Meters that do not count tokens.
fn other(base: &str, mode: Mode, members: &Members<'_>) -> Result<Option<MeterName>, &'static str> {
    let has = |field: &str| members.get(field).is_some();
    let sized = |before: &str| {
        let mut fields = members.each().filter_map(|(field, _)| field.strip_prefix(before));
        fields.any(|size| size.starts_with(|first: char| first.is_ascii_digit()))
    };
    Ok(Some(match base {
        "input_cost_per_request" => MeterName::Requests,
        "code_interpreter_cost_per_session" => MeterName::CodeInterpreterSessions,
        PER_THOUSAND_FILE_SEARCHES => MeterName::FileSearchCalls,
        "input_cost_per_query" if mode == Mode::Rerank => MeterName::SearchUnits,
        "input_cost_per_query" if mode == Mode::Search => MeterName::Requests,
        "ocr_cost_per_page" => MeterName::Pages,
        "input_cost_per_second" if mode == Mode::Transcription => MeterName::AudioSeconds,
        // Many rows have the same price under both names.
        "output_cost_per_second" if mode == Mode::Transcription => {
            if has("input_cost_per_second") {
                return Ok(None);
            }
            MeterName::AudioSeconds
        }
        "output_cost_per_second" if mode == Mode::Speech => MeterName::AudioSeconds,
        "output_cost_per_second" if mode == Mode::Videos && sized("output_cost_per_second_") => {
            return Err(BY_SIZE);
        }
        "output_cost_per_second" | "output_cost_per_video_per_second" if mode == Mode::Videos => {
            MeterName::VideoSeconds
        }
        "input_cost_per_character" if mode == Mode::Speech => MeterName::Characters,
        "output_cost_per_image" | "input_cost_per_image"
            if mode == Mode::Images && sized("output_cost_per_image_") =>
        {
            return Err(BY_SIZE);
        }
        "output_cost_per_image" if mode == Mode::Images => MeterName::Images,
        // An older name of the same price.
        "input_cost_per_image" if mode == Mode::Images && !has("output_cost_per_image") => {
            MeterName::Images
        }
        _ => return no_price(base),
    }))
}

/// Fields that do not affect the cost, or cannot be imported.
fn no_price(base: &str) -> Result<Option<MeterName>, &'static str> {
    let is_sized = |before: &str| {
        base.strip_prefix(before)
            .is_some_and(|size| size.starts_with(|first: char| first.is_ascii_digit()))
    };
    match base {
        // The same prices in a unit of Databricks, and the field that says what a search's price is
        // for.
        "input_dbu_cost_per_token" | "output_dbu_cost_per_token" | "web_search_billing_unit" => {
            Ok(None)
        }
        "citation_cost_per_token" => Err(CITATIONS),
        "search_free_requests" => Err(FREE),
        "regional_endpoint_uplift_multiplier" => Err(REGION),
        "cost_per_second" => Err(RESERVED),
        _ if base.contains("pixel") => Err(BY_SIZE),
        _ if is_sized("output_cost_per_second_") || is_sized("output_cost_per_image_") => {
            Err(BY_SIZE)
        }
        _ if base.contains("_cost") || base.starts_with("cost_") => Err(ELSEWHERE),
        _ if base.contains("pricing") || base.contains("multiplier") => Err(UNKNOWN),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(field: &str) -> Result<Option<FieldMeaning>, &'static str> {
        meaning(field, Mode::Other, &Members::default())
    }

    #[test]
    fn a_field_says_what_it_is_of_above_what_and_in_which_tier() {
        let long_write = "cache_creation_input_token_cost_above_1hr";
        for (field, meter, above, tier) in [
            ("input_cost_per_token", MeterName::Input, None, None),
            (
                "input_cost_per_token_above_272k_tokens_priority",
                MeterName::Input,
                Some(272_000),
                Some(ServiceTier::Priority),
            ),
            ("output_cost_per_token_batches", MeterName::Output, None, Some(ServiceTier::Batch)),
            (long_write, MeterName::CacheWriteLong, None, None),
            (
                &format!("{long_write}_above_200k_tokens"),
                MeterName::CacheWriteLong,
                Some(200_000),
                None,
            ),
        ] {
            assert_eq!(placed(field), Ok(Some(FieldMeaning { meter, above, tier })), "{field}");
        }
    }

    #[test]
    fn what_cannot_be_taken_has_a_reason_and_what_is_no_price_has_none() {
        for (field, why) in [
            ("input_cost_per_token_decisions", TIER),
            ("output_cost_per_second_720p", BY_SIZE),
            ("input_cost_per_pixel", BY_SIZE),
            ("file_search_cost_per_gb_per_day", ELSEWHERE),
            ("some_new_cost_per_thing", ELSEWHERE),
            ("search_free_requests", FREE),
        ] {
            assert_eq!(placed(field), Err(why), "{field}");
        }
        for field in ["max_input_tokens", "supports_vision", "source", "mode", "metadata"] {
            assert_eq!(placed(field), Ok(None), "{field}");
        }
    }
}
