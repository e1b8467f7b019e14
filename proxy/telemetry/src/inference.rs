//! The series that only the latest generation of the GenAI conventions has for an inference: tokens
//! as counters by modality, and durations under names of its own.

use ::metrics::{CounterFn as _, Label};
use taximeter_ledger::RecordUsage;
use taximeter_pricing::{ByModality, Modalities};

use super::attributes::Attributes;
use super::exemplar::Origin;
use super::instruments::{Buckets, Count, Instruments, SeriesSlot};
use super::names::{Instrument, key};
use super::recorded::RecordedRequest;

/// `gen_ai.token.modality`.
const MODALITIES: [&str; 4] = ["text", "image", "audio", "unknown"];

/// Tokens of one kind, a series for each modality.
type ByName = [SeriesSlot<Count>; MODALITIES.len()];

/// The series of one kind of inference, each made when it is first needed.
#[derive(Default)]
pub(super) struct Inference {
    duration: SeriesSlot<Buckets>,
    first_chunk: SeriesSlot<Buckets>,
    per_chunk: SeriesSlot<Buckets>,
    input_size: SeriesSlot<Buckets>,
    output_size: SeriesSlot<Buckets>,
    input: ByName,
    output: ByName,
    cache_read: ByName,
    cache_write: ByName,
    reasoning: ByName,
}

impl Inference {
    pub(super) fn record(&self, attributes: &Attributes, request: RecordedRequest<'_>) {
        let RecordedRequest { to, record, measurement, origin, .. } = request;
        if !to.tells(Instrument::InferenceDuration) {
            return;
        }
        let of = |slot: &SeriesSlot<Buckets>, instrument, error: bool, sample: Option<f64>| {
            let error = attributes.error.as_ref().filter(|_| error);
            if let Some(sample) = sample {
                slot.get_or_init(|| to.buckets(instrument, attributes.with(error.cloned())))
                    .record_from(sample, origin);
            }
        };
        let (timing, usage) = (&record.timing, &record.usage);
        let duration = request.called(timing.duration);
        of(&self.duration, Instrument::InferenceDuration, true, Some(duration));
        if record.stream {
            let seconds = timing.time_to_first_chunk.map(|seconds| request.called(seconds));
            of(&self.first_chunk, Instrument::InferenceTimeToFirstChunk, false, seconds);
            if timing.output_chunks > 1 {
                let instrument = Instrument::InferenceTimePerOutputChunk;
                self.per_chunk.get_or_init(|| to.buckets(instrument, attributes.with([]))).merge(
                    &measurement.timing.gaps,
                    timing.longest_stall,
                    origin,
                );
            }
        }
        // The usage of a request in the background is recorded once, when it is known.
        if !record.is_pending() {
            self.record_tokens(to, attributes, usage, origin);
        }
    }

    /// Records what an inference has used.
    pub(super) fn record_tokens(
        &self,
        to: &Instruments,
        attributes: &Attributes,
        usage: &RecordUsage,
        origin: Origin,
    ) {
        if !to.tells(Instrument::InferenceInputSize) {
            return;
        }
        let of = |slot: &SeriesSlot<Buckets>, instrument, sample: Option<f64>| {
            if let Some(sample) = sample {
                let labels = || attributes.with(attributes.error.clone());
                slot.get_or_init(|| to.buckets(instrument, labels())).record_from(sample, origin);
            }
        };
        #[expect(clippy::cast_precision_loss, reason = "a histogram's samples are floats")]
        let size = |tokens: Option<u64>| tokens.map(|tokens| tokens as f64);
        of(&self.input_size, Instrument::InferenceInputSize, size(usage.input_tokens));
        of(&self.output_size, Instrument::InferenceOutputSize, size(usage.output_tokens));
        let modalities = usage.modalities.as_ref().map(Modalities::from).unwrap_or_default();
        let silent = ByModality::default();
        let (read, write) = (usage.cache_read_input_tokens, usage.cache_write_input_tokens);
        for (slots, instrument, tokens, parts) in [
            // The conventions want these two of every inference: nothing request is nothing added.
            (
                &self.input,
                Instrument::InferenceInputTokens,
                usage.input_tokens.or(Some(0)),
                modalities.input,
            ),
            (
                &self.output,
                Instrument::InferenceOutputTokens,
                usage.output_tokens.or(Some(0)),
                modalities.output,
            ),
            (&self.cache_read, Instrument::InferenceCacheReadTokens, read, modalities.cache_read),
            (&self.cache_write, Instrument::InferenceCacheWriteTokens, write, silent),
            (
                &self.reasoning,
                Instrument::InferenceReasoningTokens,
                usage.reasoning_output_tokens,
                silent,
            ),
        ] {
            if let Some(tokens) = tokens {
                count(to, attributes, slots, instrument, by_name(tokens, parts));
            }
        }
    }

    /// One that used nothing, which the counters must show all the same.
    pub(super) fn fail(
        &self,
        to: &Instruments,
        attributes: &Attributes,
        seconds: f64,
        origin: Origin,
    ) {
        if !to.tells(Instrument::InferenceDuration) {
            return;
        }
        let labels = || attributes.with(attributes.error.clone());
        self.duration
            .get_or_init(|| to.buckets(Instrument::InferenceDuration, labels()))
            .record_from(seconds, origin);
        for (slots, instrument) in [
            (&self.input, Instrument::InferenceInputTokens),
            (&self.output, Instrument::InferenceOutputTokens),
        ] {
            count(to, attributes, slots, instrument, by_name(0, ByModality::default()));
        }
    }
}

fn count(
    to: &Instruments,
    attributes: &Attributes,
    slots: &ByName,
    instrument: Instrument,
    tokens: [Option<u64>; MODALITIES.len()],
) {
    for ((slot, name), tokens) in slots.iter().zip(MODALITIES).zip(tokens) {
        if let Some(tokens) = tokens {
            slot.get_or_init(|| {
                let modality = Label::new(key::GEN_AI_TOKEN_MODALITY, name);
                to.count(instrument, attributes.with([modality]))
            })
            .increment(tokens);
        }
    }
}

/// `tokens` by modality, in the order of [`MODALITIES`], adding up to them: what is not told, or
/// told in parts larger than the whole, is `unknown`.
fn by_name(tokens: u64, parts: ByModality) -> [Option<u64>; MODALITIES.len()] {
    let [text, image, audio] =
        [parts.text, parts.image, parts.audio].map(|part| part.filter(|n| *n > 0));
    let named = [text, image, audio].iter().flatten().fold(0, |sum: u64, n| sum.saturating_add(*n));
    match tokens.checked_sub(named) {
        Some(0) if named > 0 => [text, image, audio, None],
        Some(rest) => [text, image, audio, Some(rest)],
        None => [None, None, None, Some(tokens)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modalities_add_up_to_the_whole() {
        let parts = |text, image, audio| ByModality { text, image, audio, ..ByModality::default() };
        for (tokens, parts, by) in [
            (10, parts(None, None, None), [None, None, None, Some(10)]),
            (0, parts(None, None, None), [None, None, None, Some(0)]),
            (10, parts(Some(7), Some(3), Some(0)), [Some(7), Some(3), None, None]),
            (10, parts(None, None, Some(4)), [None, None, Some(4), Some(6)]),
            (10, parts(Some(u64::MAX), Some(3), None), [None, None, None, Some(10)]),
        ] {
            assert_eq!(by_name(tokens, parts), by);
            assert_eq!(by.iter().flatten().sum::<u64>(), tokens);
        }
    }
}
