//! Counting what the engine did not report, off the threads that carry requests.

use taximeter_meter::{Wire, prompt_text};
use taximeter_tokenizer::{Tokenizer, estimate};

use crate::edge::upstream::RequestBody;

/// What is to be counted.
pub(super) struct Job {
    pub(super) wire: Wire,
    /// Chooses the vocabulary.
    pub(super) model: Option<String>,
    pub(super) body: Option<RequestBody>,
    pub(super) body_bytes: u64,
    /// Whether the input is to be counted.
    pub(super) input: bool,
    /// Generated text that passed, and how many bytes there were in all; `None` if it is not to be
    /// counted.
    pub(super) output: Option<(String, u64)>,
}

/// What was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    /// By bytes, or with a vocabulary that may not be the model's.
    pub(super) estimated: bool,
}

impl Job {
    /// Counts. Takes milliseconds for long texts.
    pub(super) fn run(self) -> Count {
        let mut count = Count::default();
        if !self.input && self.output.as_ref().is_some_and(|(text, _)| text.is_empty()) {
            count.output_tokens = Some(0);
            return count;
        }
        let choice = Tokenizer::for_model(self.model.as_deref().unwrap_or_default());
        count.estimated = !choice.exact;
        if self.input {
            count.input_tokens = Some(match &self.body {
                Some(body) => {
                    let body: Vec<u8> = body.pieces().flat_map(|piece| piece.to_vec()).collect();
                    let prompt = prompt_text(self.wire, &body);
                    count.estimated |= prompt.estimated;
                    let counted = choice.tokenizer.count(&prompt.texts);
                    count.estimated |= counted.estimated;
                    prompt.tokens + counted.tokens
                }
                None => {
                    count.estimated = true;
                    estimate(self.body_bytes)
                }
            });
        }
        if let Some((text, bytes)) = &self.output {
            let counted = choice.tokenizer.count([text]);
            let beyond = bytes.saturating_sub(text.len() as u64);
            count.estimated |= counted.estimated || beyond > 0;
            count.output_tokens = Some(counted.tokens + estimate(beyond));
        }
        count
    }
}
