//! Reads what stands in lists.

use super::members::{Modality, Side};
use super::readings::{Reading, Tokens};
use super::{Iteration, PASSES_MAX, Report, name};
use crate::json::{Malformed, Reader};

impl Report {
    /// Reads a list of modalities and their tokens (Gemini). A modality may stand there twice.
    pub(super) fn read_modalities(
        &mut self,
        side: Side,
        value: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        value.array(|part| {
            let (mut modality, mut tokens) = (None, Reading::Absent);
            part.object(|key, value| {
                match key {
                    b"modality" => modality = value.text()?,
                    b"tokenCount" => tokens = self.read_tokens(value)?,
                    _ => value.skip()?,
                }
                Ok(())
            })?;
            let modality = modality.and_then(|word| Modality::of_word(&word.decode()));
            if let (Some(modality), Some(tokens)) = (modality, tokens.number()) {
                let kept = self.modality(side, modality);
                *kept = Some(kept.unwrap_or(0).saturating_add(tokens));
            }
            Ok(())
        })
    }

    /// Reads a list of times to live and the tokens that were written for each (Bedrock).
    pub(super) fn read_lifetimes(&mut self, value: &mut Reader<'_>) -> Result<(), Malformed> {
        value.array(|writes| {
            let (mut is_long, mut tokens) = (false, Reading::Absent);
            writes.object(|key, value| {
                match key {
                    b"ttl" => is_long = value.text()?.is_some_and(|time| time.is("1h")),
                    b"inputTokens" => tokens = self.read_tokens(value)?,
                    _ => value.skip()?,
                }
                Ok(())
            })?;
            let kept = if is_long { Tokens::CacheWriteLong } else { Tokens::CacheWriteShort };
            self.add(kept, tokens);
            Ok(())
        })
    }

    /// Reads a list of answers that were generated and not chosen (TGI).
    pub(super) fn read_sequences(&mut self, value: &mut Reader<'_>) -> Result<(), Malformed> {
        value.array(|sequence| {
            sequence.member(b"generated_tokens", |value| {
                let tokens = self.read_tokens(value)?;
                self.add(Tokens::OtherOutput, tokens);
                Ok(())
            })
        })
    }

    fn add(&mut self, tokens: Tokens, reading: Reading) {
        let kept = self.readings.get_mut(tokens);
        *kept = kept.and(reading);
    }

    pub(super) fn read_iterations(&mut self, value: &mut Reader<'_>) -> Result<(), Malformed> {
        self.iterations.clear();
        value.array(|entry| {
            let mut iteration = Iteration::default();
            entry.object(|key, value| {
                match key {
                    b"type" => {
                        iteration.kind =
                            value.text()?.map(|kind| name(&kind.decode())).unwrap_or_default();
                    }
                    b"model" => iteration.model = value.text()?.map(|model| name(&model.decode())),
                    _ => iteration.report.read_member(key, value)?,
                }
                Ok(())
            })?;
            self.invalid = self.invalid.saturating_add(iteration.report.invalid);
            if self.iterations.len() < PASSES_MAX {
                self.iterations.push(iteration);
            }
            Ok(())
        })
    }
}
