//! Turns a usage object into one `Usage`.

use taximeter_pricing::{Flag, Modalities, Pass, Usage};

use super::Report;
use super::readings::{Reading, Tokens};
use crate::dialect::Reasoning;

impl Report {
    /// The usage, and the flags that go with it.
    pub(crate) fn settle(&self, placed: Reasoning, flags: &mut Vec<Flag>) -> Usage {
        let modalities = self.settle_modalities();
        let usage = Usage {
            input_tokens: self.input().number(),
            cache_read_input_tokens: self.cache_read().number(),
            cache_write_input_tokens: self.cache_write().number(),
            cache_write_long_input_tokens: self.readings.get(Tokens::CacheWriteLong).number(),
            output_tokens: self.settle_output(placed, flags),
            reasoning_output_tokens: self.reasoning().number(),
            modalities: modalities.are_mixed().then(|| Box::new(modalities)),
            units: self.settle_units(),
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
    pub(crate) fn input(&self) -> Reading {
        let whole = self.readings.first(&[Tokens::BilledInput, Tokens::Input]);
        let bare = self.readings.get(Tokens::BareInput);
        let input = if whole.is_positive() || bare == Reading::Absent {
            whole
        } else if self.has_input_details {
            bare.max(whole)
        } else {
            bare.and(self.cache_beside()).max(whole)
        };
        let beside = [Tokens::ToolInput, Tokens::ImageInput];
        beside.iter().fold(input, |input, tokens| input.and(self.readings.get(*tokens)))
    }

    /// What was cached beside an input that leaves it out.
    fn cache_beside(&self) -> Reading {
        let written = self.readings.get(Tokens::CacheWriteBeside);
        self.readings.get(Tokens::CacheReadBeside).and(self.with_lifetimes(written))
    }

    /// Whether the cached part stands beside the input.
    fn is_cached_beside(&self) -> bool {
        let whole = self.readings.first(&[Tokens::BilledInput, Tokens::Input]);
        !whole.is_positive()
            && !self.has_input_details
            && self.readings.get(Tokens::BareInput) != Reading::Absent
            && self.cache_beside() != Reading::Absent
    }

    /// Cache reads. They are no part of an input that is billed.
    pub(super) fn cache_read(&self) -> Reading {
        let is_billed = [Tokens::BilledInput, Tokens::BilledOutput]
            .iter()
            .any(|tokens| self.readings.get(*tokens).is_positive());
        if is_billed {
            return Reading::Absent;
        }
        self.readings.first(&[Tokens::CacheRead, Tokens::CacheReadBeside])
    }

    /// Cache writes of every time to live.
    pub(super) fn cache_write(&self) -> Reading {
        self.with_lifetimes(self.readings.first(&[Tokens::CacheWrite, Tokens::CacheWriteBeside]))
    }

    /// Cache writes, of which each time to live may have a number of its own.
    fn with_lifetimes(&self, written: Reading) -> Reading {
        if written == Reading::Unreadable { written } else { written.max(self.cache_lifetimes()) }
    }

    /// The sum of the cache writes that have a number for their time to live.
    pub(super) fn cache_lifetimes(&self) -> Reading {
        let short = self.readings.get(Tokens::CacheWriteShort);
        short.and(self.readings.get(Tokens::CacheWriteLong))
    }

    /// Output, without what the dialect or the total say to be beside it.
    pub(crate) fn output(&self) -> Reading {
        let output = self.readings.first(&[Tokens::BilledOutput, Tokens::Output]);
        let beside = [Tokens::OtherOutput, Tokens::ReasoningBeside];
        beside.iter().fold(output, |output, tokens| output.and(self.readings.get(*tokens)))
    }

    pub(super) fn reasoning(&self) -> Reading {
        self.readings.first(&[Tokens::Reasoning, Tokens::ReasoningBeside])
    }

    /// Fills in the one of input and output that only the total tells.
    pub(crate) fn complete_by_total(&mut self) {
        let (tokens, known) = match (self.input(), self.output()) {
            (Reading::Number(known @ 1..), Reading::Absent) => (Tokens::Output, known),
            // A prompt is never nothing.
            (Reading::Absent | Reading::Number(0), Reading::Number(known @ 1..)) => {
                (Tokens::Input, known)
            }
            _ => return,
        };
        // Whether a total includes what is cached beside the input is not known.
        let total = self.readings.get(Tokens::Total).number().unwrap_or(0);
        if total > known && !self.is_cached_beside() {
            self.readings.take(tokens, Reading::Number(total - known));
        }
    }

    /// All output. It includes reasoning and citations that the engine reports beside it, or
    /// reasoning that only the total shows. The total is asked before anything is added. A part
    /// that is no number leaves the sum unknown.
    fn settle_output(&self, placed: Reasoning, flags: &mut Vec<Flag>) -> Option<u64> {
        let output = self.output().number()?;
        // What is beside the output for certain is in it already.
        let told = self.readings.get(Tokens::Reasoning);
        let cited = self.readings.get(Tokens::Citations);
        let (reasoning, citations) = (told.number().unwrap_or(0), cited.number().unwrap_or(0));
        let all = output + reasoning + citations;
        let with_all = Reading::Number(output).and(told).and(cited).number();
        let placed = match placed {
            Reasoning::Unknown if self.is_reasoning_beside => Reasoning::BesideOutput,
            Reasoning::Unknown => Reasoning::InTotalOnly,
            known => known,
        };
        if placed == Reasoning::BesideTotal {
            return with_all;
        }
        if self.is_cached_beside() {
            return Some(output);
        }
        let untold = if placed == Reasoning::BesideOutput { with_all } else { Some(output) };
        let total = self.readings.get(Tokens::Total).number();
        let (Some(input), Some(total)) = (self.input().number(), total) else { return untold };
        let sums = [output, output + reasoning, output + citations, all];
        if let Some(sum) = sums.into_iter().find(|sum| total == input + sum) {
            return Some(sum);
        }
        let may_hide = placed == Reasoning::InTotalOnly || output == 0;
        if total > input + all && may_hide {
            flags.push(Flag::Hidden);
            return Some(total - input);
        }
        flags.push(Flag::TotalMismatch);
        untold
    }

    /// Whether one of its iterations has made what was said before shorter.
    pub(crate) fn has_compaction(&self) -> bool {
        self.iterations.iter().any(|pass| pass.kind == "compaction")
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

    pub(super) fn settle_modalities(&self) -> Modalities {
        let mut modalities = self.modalities;
        let images = self.readings.get(Tokens::ImageInput).number();
        modalities.input.image = modalities.input.image.or(images);
        modalities
    }
}
