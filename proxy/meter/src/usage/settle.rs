//! Turns a usage object into one `Usage`.

use taximeter_pricing::{Flag, Member, Pass, Usage};

use super::Report;
use crate::dialect::Reasoning;

impl Report {
    /// The usage, and the flags that go with it.
    pub(crate) fn settle(&self, placed: Reasoning, flags: &mut Vec<Flag>) -> Usage {
        let usage = Usage {
            input_tokens: self.settle_input(),
            cache_read_input_tokens: self.cache_read().filter(|_| !self.is_billed),
            cache_write_input_tokens: self.cache_write(),
            cache_write_long_input_tokens: self.cache_write_long(),
            output_tokens: self.settle_output(placed, flags),
            reasoning_output_tokens: self.reasoning(),
            modalities: self.modalities.are_mixed().then(|| Box::new(self.modalities)),
            units: self.units.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
            conditions: self.conditions.clone(),
            passes: self.settle_passes(flags),
        };
        if usage.inconsistent().next().is_some() {
            flags.push(Flag::Inconsistent);
        }
        usage
    }

    /// All input. It includes the cached part that Anthropic and Bedrock report beside it. A part
    /// that is no number leaves the sum unknown.
    pub(super) fn settle_input(&self) -> Option<u64> {
        let input = self.input.filter(|_| !self.invalid_members.contains(&Member::InputTokens))?;
        if self.includes_cache {
            return Some(input);
        }
        let lacks_part = self.lacks(Member::CacheReadInputTokens)
            || self.lacks(Member::CacheWriteInputTokens) && self.write_inside.is_none();
        let (read, write) = (self.read_outside.unwrap_or(0), self.cache_write_outside());
        (!lacks_part).then(|| input + read + write.unwrap_or(0))
    }

    /// All output. It includes reasoning and citations that the engine reports beside it, or
    /// reasoning that only the total shows. The total is asked before anything is added. A part
    /// that is no number leaves the sum unknown.
    fn settle_output(&self, placed: Reasoning, flags: &mut Vec<Flag>) -> Option<u64> {
        let output =
            self.output.filter(|_| !self.invalid_members.contains(&Member::OutputTokens))?;
        let reasoning = self.reasoning().unwrap_or(0);
        let citations = self.citations.unwrap_or(0);
        let all = output + reasoning + citations;
        let with_all = Some(all).filter(|_| !self.lacks(Member::ReasoningOutputTokens));
        let placed = match placed {
            Reasoning::Unknown => self.placed.unwrap_or(Reasoning::InTotalOnly),
            known => known,
        };
        if placed == Reasoning::BesideTotal {
            return with_all;
        }
        let has_cache_outside = self.read_outside.is_some()
            || self.write_outside.is_some()
            || self.lacks(Member::CacheReadInputTokens)
            || self.lacks(Member::CacheWriteInputTokens);
        if has_cache_outside && !self.includes_cache {
            return Some(output);
        }
        let untold = if placed == Reasoning::BesideOutput { with_all } else { Some(output) };
        let input = self.input.filter(|_| !self.invalid_members.contains(&Member::InputTokens));
        let (Some(input), Some(total)) = (input, self.total) else { return untold };
        let sums = [output, output + reasoning, output + citations, all];
        if let Some(sum) = sums.into_iter().find(|sum| total == input + sum) {
            return Some(sum);
        }
        if total > input + all && placed == Reasoning::InTotalOnly {
            flags.push(Flag::Hidden);
            return Some(total - input);
        }
        flags.push(Flag::TotalMismatch);
        untold
    }

    /// The iterations that the numbers at the top exclude. Those of the answer itself are included,
    /// and the answer is the fall-back's where there is one.
    fn settle_passes(&self, flags: &mut Vec<Flag>) -> Vec<Pass> {
        let fell_back = self.iterations.iter().any(|pass| pass.kind == "fallback_message");
        let answer = if fell_back { "fallback_message" } else { "message" };
        let beside = self.iterations.iter().filter(|pass| pass.kind != answer);
        beside
            .map(|pass| Pass {
                model: pass.model.clone(),
                usage: pass.report.settle(Reasoning::InOutput, flags),
            })
            .collect()
    }
}
