//! Makes one report of several: of an earlier and a later one, and of the parts of a request.

use taximeter_pricing::{ByModality, Modalities};

use super::readings::{Reading, Readings, Tokens};
use super::{PASSES_MAX, Part, Report};

impl Report {
    /// Puts `self` over an earlier report, member by member. What it does not mention stays, and so
    /// does a number that it calls zero.
    pub(crate) fn over(self, earlier: Self) -> Self {
        let mut readings = self.readings.over(&earlier.readings);
        // The earlier total is that of the earlier numbers.
        let tells_more = [Tokens::Input, Tokens::BareInput, Tokens::Output]
            .iter()
            .any(|tokens| self.readings.get(*tokens).is_positive());
        if tells_more && !self.readings.get(Tokens::Total).is_positive() {
            *readings.get_mut(Tokens::Total) = Reading::Absent;
        }
        Self {
            is_partial: self.is_partial,
            part: self.part,
            service_tier: None,
            readings,
            has_input_details: self.has_input_details || earlier.has_input_details,
            is_reasoning_beside: self.is_reasoning_beside || earlier.is_reasoning_beside,
            modalities: every(self.modalities, earlier.modalities, |later, earlier| {
                later.filter(|later| *later > 0).or(earlier).or(later)
            }),
            units: earlier.units.into_iter().chain(self.units).collect(),
            tools: self.tools.over(earlier.tools),
            tells_all_tools: self.tells_all_tools || earlier.tells_all_tools,
            tool_calls: self.tool_calls.max(earlier.tool_calls),
            search_sources: self.search_sources.max(earlier.search_sources),
            conditions: earlier.conditions.into_iter().chain(self.conditions).collect(),
            cost: self.cost.over(earlier.cost),
            iterations: if self.iterations.is_empty() {
                earlier.iterations
            } else {
                self.iterations
            },
            invalid: self.invalid.saturating_add(earlier.invalid),
        }
    }

    /// Adds what another part of the same request used: another prompt, or another choice, whose
    /// prompt is the same.
    ///
    /// The sum of a number that one of them does not report is unknown.
    pub(crate) fn plus(self, other: Self) -> Self {
        let share_prompt = matches!(other.part, Some(Part::Choice(_)));
        let (one, other) = (self.with_cache_inside(), other.with_cache_inside());
        let mut units = one.units;
        for (name, quantity) in other.units {
            *units.entry(name).or_default() += quantity;
        }
        let mut tools = one.tools;
        for (unit, count) in other.tools {
            let known = tools.get_mut(unit);
            *known = known.saturating_add(count);
        }
        let mut iterations = one.iterations;
        iterations.extend(other.iterations);
        iterations.truncate(PASSES_MAX);
        let mut readings = one.readings.plus(&other.readings, share_prompt);
        if share_prompt {
            // Each total has the prompt in it.
            let total = readings.get_mut(Tokens::Total);
            let twice = one.readings.get(Tokens::Input).min(other.readings.get(Tokens::Input));
            *total = match (*total, twice) {
                (Reading::Number(total), Reading::Number(twice)) => {
                    Reading::Number(total.saturating_sub(twice))
                }
                _ => Reading::Absent,
            };
        }
        Self {
            is_partial: one.is_partial || other.is_partial,
            part: one.part,
            service_tier: other.service_tier.or(one.service_tier),
            readings,
            has_input_details: true,
            is_reasoning_beside: one.is_reasoning_beside || other.is_reasoning_beside,
            modalities: Modalities {
                input: parts(
                    one.modalities.input,
                    other.modalities.input,
                    if share_prompt { Option::max } else { both },
                ),
                ..every(one.modalities, other.modalities, both)
            },
            units,
            tools,
            tells_all_tools: one.tells_all_tools && other.tells_all_tools,
            tool_calls: one.tool_calls.saturating_add(other.tool_calls),
            search_sources: one.search_sources.saturating_add(other.search_sources),
            conditions: one.conditions.into_iter().chain(other.conditions).collect(),
            cost: one.cost.plus(&other.cost),
            iterations,
            invalid: one.invalid.saturating_add(other.invalid),
        }
    }

    /// The same usage in the shape whose input includes the cached tokens. Only usage of one
    /// shape can be added.
    fn with_cache_inside(mut self) -> Self {
        let mut readings = Readings::default();
        for (tokens, reading) in [
            (Tokens::Input, self.input()),
            (Tokens::CacheRead, self.cache_read()),
            (Tokens::CacheWrite, self.cache_write()),
            (Tokens::CacheWriteLong, self.readings.get(Tokens::CacheWriteLong)),
            (Tokens::Output, self.output()),
            (Tokens::Reasoning, self.reasoning()),
            (Tokens::Citations, self.readings.get(Tokens::Citations)),
            (Tokens::Total, self.readings.get(Tokens::Total)),
        ] {
            readings.take(tokens, reading);
        }
        self.modalities = self.settle_modalities();
        self.readings = readings;
        self.has_input_details = true;
        self
    }
}

/// The sum of both numbers where both are known.
fn both(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one.saturating_add(other))
}

type Join = fn(Option<u64>, Option<u64>) -> Option<u64>;

fn every(one: Modalities, other: Modalities, join: Join) -> Modalities {
    Modalities {
        input: parts(one.input, other.input, join),
        output: parts(one.output, other.output, join),
        cache_read: parts(one.cache_read, other.cache_read, join),
    }
}

fn parts(one: ByModality, other: ByModality, join: Join) -> ByModality {
    ByModality {
        text: join(one.text, other.text),
        audio: join(one.audio, other.audio),
        image: join(one.image, other.image),
        video: join(one.video, other.video),
        multimodal: join(one.multimodal, other.multimodal),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use taximeter_pricing::{Member, Usage};

    use super::*;
    use crate::dialect::Reasoning;
    use crate::json::Reader;

    /// Usage objects of every shape whose cached tokens have a name of their own.
    fn any_report() -> impl Strategy<Value = String> {
        let number = || prop::option::of(0_u64..1 << 50);
        let numbers = prop::collection::vec(number(), 8);
        (0..3_usize, numbers, prop::option::of(any::<bool>())).prop_map(|(shape, n, _)| {
            let text = |n: &Option<u64>| n.map_or_else(|| "null".to_owned(), |n| n.to_string());
            let n: Vec<_> = n.iter().map(text).collect();
            match shape {
                0 => format!(
                    r#"{{"prompt_tokens":{},"completion_tokens":{},"prompt_tokens_details":
                    {{"cached_tokens":{},"cache_write_tokens":{},"audio_tokens":{}}},
                    "completion_tokens_details":{{"reasoning_tokens":{},"audio_tokens":{}}},
                    "num_search_queries":{}}}"#,
                    n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]
                ),
                1 => format!(
                    r#"{{"prompt_tokens":{},"completion_tokens":{},"cached_tokens":{},
                    "reasoning_tokens":{}}}"#,
                    n[0], n[1], n[2], n[3]
                ),
                _ => format!(
                    r#"{{"input_tokens":{},"output_tokens":{},"cache_read_input_tokens":{},
                    "cache_creation_input_tokens":{},"output_tokens_details":
                    {{"thinking_tokens":{}}}}}"#,
                    n[0], n[1], n[2], n[3], n[4]
                ),
            }
        })
    }

    fn read(report: &str) -> Report {
        *Report::read(&mut Reader::new(report.as_bytes())).unwrap().unwrap()
    }

    fn settled(report: &Report) -> Usage {
        report.settle(Reasoning::InOutput, &mut Vec::new())
    }

    fn numbers(usage: &Usage) -> [Option<u64>; 5] {
        [
            usage.input_tokens,
            usage.cache_read_input_tokens,
            usage.cache_write_input_tokens,
            usage.output_tokens,
            usage.reasoning_output_tokens,
        ]
    }

    proptest! {
        #[test]
        fn a_sum_has_every_number_of_both_and_what_one_does_not_know_it_does_not(
            one in any_report(),
            other in any_report(),
        ) {
            let (one, other) = (read(&one), read(&other));
            let sum = one.clone().plus(other.clone());
            let (parts, all) = ([settled(&one), settled(&other)], settled(&sum));
            let [first, second] = parts.each_ref().map(numbers);
            for (at, number) in numbers(&all).into_iter().enumerate() {
                let expected = first[at].zip(second[at]).map(|(one, other)| one + other);
                prop_assert_eq!(number, expected, "number {}", at);
            }
            let audio = |report: &Report| report.modalities.output.audio;
            prop_assert_eq!(audio(&sum), both(audio(&one), audio(&other)));
            let queries = |report: &Report| report.units.get("search_queries").copied();
            let expected = match (queries(&one), queries(&other)) {
                (Some(one), Some(other)) => Some(one + other),
                (one, other) => one.or(other),
            };
            prop_assert_eq!(queries(&sum), expected);
            prop_assert_eq!(other.plus(one), sum);
        }
    }

    #[test]
    fn long_cache_writes_passes_and_costs_are_added_too() {
        let report = |cost: &str| {
            read(&format!(
                r#"{{"input_tokens":1,"output_tokens":4,"total_tokens":9,"cost":{cost},
                "cache_creation":{{"ephemeral_5m_input_tokens":1,"ephemeral_1h_input_tokens":2}},
                "iterations":[{{"type":"compaction","input_tokens":7}}]}}"#
            ))
        };
        let sum = report("0.1").plus(report("2e-1"));
        assert_eq!(sum.cost().as_deref(), Some("0.3"));
        assert_eq!(sum.readings.get(Tokens::Total), Reading::Number(18));
        let usage = settled(&sum);
        assert_eq!(numbers(&usage), [Some(8), None, Some(6), Some(8), None]);
        assert_eq!(usage.cache_write_long_input_tokens, Some(4));
        assert_eq!(usage.passes.len(), 2);
    }

    #[test]
    fn a_number_that_cannot_be_read_in_one_part_is_unknown_in_the_sum() {
        let good = read(r#"{"prompt_tokens":9,"completion_tokens":4}"#);
        let bad = read(r#"{"prompt_tokens":9,"completion_tokens":1e308}"#);
        let sum = good.plus(bad);
        assert_eq!((sum.input(), sum.output()), (Reading::Number(18), Reading::Unreadable));
        assert_eq!((sum.invalid, sum.invalid_members()), (1, [Member::OutputTokens].into()));
    }
}
