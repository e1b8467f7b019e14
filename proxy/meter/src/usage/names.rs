//! The names of the members of usage objects.

use taximeter_pricing::{ByModality, Condition, Member};

use crate::dialect::Reasoning;

/// The part of a whole that a member of its details counts.
pub(super) fn modality<'m>(parts: &'m mut ByModality, key: &[u8]) -> Option<&'m mut Option<u64>> {
    Some(match key {
        b"text_tokens" => &mut parts.text,
        b"audio_tokens" => &mut parts.audio,
        b"image_tokens" => &mut parts.image,
        b"video_tokens" => &mut parts.video,
        b"multimodal_tokens" => &mut parts.multimodal,
        _ => return None,
    })
}

/// The part of a whole that Google's word for a modality means; pages of documents are images.
pub(super) fn google_modality<'m>(
    parts: &'m mut ByModality,
    word: &str,
) -> Option<&'m mut Option<u64>> {
    Some(match word {
        "TEXT" => &mut parts.text,
        "AUDIO" => &mut parts.audio,
        "IMAGE" | "DOCUMENT" => &mut parts.image,
        "VIDEO" => &mut parts.video,
        _ => return None,
    })
}

/// The condition of the price that a member of a usage object tells.
pub(super) const fn condition(key: &[u8]) -> Option<Condition> {
    match key {
        b"inference_geo" => Some(Condition::InferenceGeo),
        b"speed" => Some(Condition::Speed),
        b"search_context_size" => Some(Condition::SearchContextSize),
        _ => None,
    }
}

/// Where a usage object counts reasoning that has such a member: Perplexity's and xAI's have.
pub(super) fn placed(key: &[u8]) -> Option<Reasoning> {
    let is_mark = matches!(key, b"search_context_size" | b"citation_tokens" | b"num_sources_used");
    is_mark.then_some(Reasoning::BesideOutput)
}

/// The number that a member of a usage object tells.
pub(super) fn member(key: &[u8]) -> Option<Member> {
    Some(match key {
        b"prompt_tokens"
        | b"input_tokens"
        | b"prompt_eval_count"
        | b"tokens_evaluated"
        | b"input_length"
        | b"prompt_n"
        | b"inputTokens"
        | b"promptTokenCount"
        | b"toolUsePromptTokenCount" => Member::InputTokens,
        b"completion_tokens"
        | b"output_tokens"
        | b"eval_count"
        | b"tokens_predicted"
        | b"generated_tokens"
        | b"predicted_n"
        | b"citation_tokens"
        | b"outputTokens"
        | b"candidatesTokenCount" => Member::OutputTokens,
        b"cache_read_input_tokens"
        | b"cached_tokens"
        | b"cached_read_tokens"
        | b"num_cached_tokens"
        | b"cached_prompt_text_tokens"
        | b"prompt_cache_hit_tokens"
        | b"cache_n"
        | b"cacheReadInputTokens"
        | b"cacheReadInputTokenCount"
        | b"cachedContentTokenCount" => Member::CacheReadInputTokens,
        b"cache_creation_input_tokens"
        | b"cache_creation_tokens"
        | b"cache_write_tokens"
        | b"cached_write_tokens"
        | b"created_cache_tokens"
        | b"cache_write_tokens_details"
        | b"ephemeral_5m_input_tokens"
        | b"ephemeral_1h_input_tokens"
        | b"cacheWriteInputTokens"
        | b"cacheWriteInputTokenCount"
        | b"cacheDetails" => Member::CacheWriteInputTokens,
        b"reasoning_tokens" | b"thinking_tokens" | b"thoughtsTokenCount" => {
            Member::ReasoningOutputTokens
        }
        _ => return None,
    })
}
