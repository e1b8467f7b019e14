//! Splits a usage into disjoint parts: each token is on exactly one meter.

use crate::meter::MeterName;
use crate::tariff::Tariff;
use crate::usage::Usage;

/// The parts of an input with this number of tokens, including parts of zero.
///
/// A part that is not reported separately stays in its whole. Cached tokens of unknown modality
/// count as text as far as there is text. A cached part larger than the input is charged as
/// reported.
pub(crate) fn of_input(
    usage: &Usage,
    tokens: u64,
    tariff: &Tariff<'_>,
) -> impl Iterator<Item = (MeterName, u64)> {
    let read = usage.cache_read_input_tokens.unwrap_or(0);
    let write_long = usage.cache_write_long_input_tokens.unwrap_or(0);
    let write = usage.cache_write_input_tokens.unwrap_or(0).max(write_long);
    let told = usage.modalities.as_deref().copied().unwrap_or_default();
    let cached = told.cache_read;
    let outside = |part: Option<u64>, cached: Option<u64>| {
        part.unwrap_or(0).saturating_sub(cached.unwrap_or(0))
    };

    let mut cached_text = Rest(read);
    let cached_parts = [
        (MeterName::CacheReadAudio, cached.audio.unwrap_or(0)),
        (MeterName::CacheReadImage, cached.image.unwrap_or(0)),
    ]
    .map(|(meter, tokens)| cached_text.take(meter, tokens, tariff));
    let mut text = Rest(tokens.saturating_sub(read).saturating_sub(write));
    let parts = [
        (MeterName::InputAudio, outside(told.input.audio, cached.audio)),
        (MeterName::InputImage, outside(told.input.image, cached.image)),
        (MeterName::InputVideo, outside(told.input.video, cached.video)),
    ]
    .map(|(meter, tokens)| text.take(meter, tokens, tariff));

    let whole = [
        (MeterName::Input, text.0),
        (MeterName::CacheRead, cached_text.0),
        (MeterName::CacheWrite, write - write_long),
        (MeterName::CacheWriteLong, write_long),
    ];
    whole.into_iter().chain(parts).chain(cached_parts)
}

/// The parts of an output with this number of tokens, including parts of zero.
///
/// Reasoning without a rate of its own counts as output. Reasoning larger than the output is
/// charged as reported.
pub(crate) fn of_output(
    usage: &Usage,
    tokens: u64,
    tariff: &Tariff<'_>,
) -> impl Iterator<Item = (MeterName, u64)> {
    let told = usage.modalities.as_deref().copied().unwrap_or_default().output;
    let reasoning = match tariff.is_separate(MeterName::Reasoning) {
        true => usage.reasoning_output_tokens.unwrap_or(0),
        false => 0,
    };
    let mut text = Rest(tokens.saturating_sub(reasoning));
    let parts = [
        (MeterName::OutputAudio, told.audio.unwrap_or(0)),
        (MeterName::OutputImage, told.image.unwrap_or(0)),
        (MeterName::OutputVideo, told.video.unwrap_or(0)),
    ]
    .map(|(meter, tokens)| text.take(meter, tokens, tariff));
    [(MeterName::Output, text.0), (MeterName::Reasoning, reasoning)].into_iter().chain(parts)
}

/// What is left of a whole.
struct Rest(u64);

impl Rest {
    /// Takes a part out if it has a rate of its own.
    fn take(&mut self, meter: MeterName, tokens: u64, tariff: &Tariff<'_>) -> (MeterName, u64) {
        let tokens = if tariff.is_separate(meter) { tokens.min(self.0) } else { 0 };
        self.0 -= tokens;
        (meter, tokens)
    }
}
