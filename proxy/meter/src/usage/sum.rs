//! Adds the usage of the parts of one request: its prompts, or its choices.

use rust_decimal::Decimal;
use taximeter_pricing::{ByModality, Modalities};

use super::{PASSES_MAX, Report};

impl Report {
    /// Adds what another part of the same request used.
    ///
    /// The sum of a number that one of them does not report is unknown.
    pub(crate) fn plus(self, other: Self) -> Self {
        let (one, other) = (self.with_cache_inside(), other.with_cache_inside());
        let mut units = one.units;
        for (name, quantity) in other.units {
            *units.entry(name).or_default() += quantity;
        }
        let mut iterations = one.iterations;
        iterations.extend(other.iterations);
        iterations.truncate(PASSES_MAX);
        Self {
            is_partial: one.is_partial || other.is_partial,
            is_billed: one.is_billed || other.is_billed,
            service_tier: other.service_tier.or(one.service_tier),
            input: both(one.input, other.input),
            output: both(one.output, other.output),
            total: both(one.total, other.total),
            read_inside: both(one.read_inside, other.read_inside),
            write_inside: both(one.write_inside, other.write_inside),
            write_inside_12h: both(one.write_inside_12h, other.write_inside_12h),
            reasoning: both(one.reasoning, other.reasoning),
            citations: both(one.citations, other.citations),
            placed: one.placed.or(other.placed),
            modalities: Modalities {
                input: all(one.modalities.input, other.modalities.input),
                output: all(one.modalities.output, other.modalities.output),
                cache_read: all(one.modalities.cache_read, other.modalities.cache_read),
            },
            units,
            conditions: one.conditions.into_iter().chain(other.conditions).collect(),
            cost: one.cost.zip(other.cost).and_then(|(one, other)| costs(&one, &other)),
            iterations,
            invalid: one.invalid.saturating_add(other.invalid),
            invalid_members: &one.invalid_members | &other.invalid_members,
            part: one.part,
            includes_cache: true,
            ..Self::default()
        }
    }

    /// The same usage in the shape whose input includes the cached tokens. Only usage of one
    /// shape can be added.
    fn with_cache_inside(mut self) -> Self {
        self.input = self.settle_input();
        self.read_inside = self.cache_read();
        self.write_inside = self.cache_write();
        self.write_inside_12h = self.cache_write_long();
        self.reasoning = self.reasoning();
        self.includes_cache = true;
        (self.read_outside, self.read_inside_flat, self.reasoning_flat) = (None, None, None);
        (self.write_outside, self.write_outside_5m, self.write_outside_1h) = (None, None, None);
        self
    }
}

/// The sum of both numbers where both are known.
fn both(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.zip(other).map(|(one, other)| one.saturating_add(other))
}

fn all(one: ByModality, other: ByModality) -> ByModality {
    ByModality {
        text: both(one.text, other.text),
        audio: both(one.audio, other.audio),
        image: both(one.image, other.image),
        video: both(one.video, other.video),
        multimodal: both(one.multimodal, other.multimodal),
    }
}

fn costs(one: &str, other: &str) -> Option<String> {
    let amount =
        |text: &str| Decimal::from_str_exact(text).or_else(|_| Decimal::from_scientific(text)).ok();
    amount(one)?.checked_add(amount(other)?).map(|sum| sum.to_string())
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
        assert_eq!(sum.cost.as_deref(), Some("0.3"));
        assert_eq!(sum.total, Some(18));
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
        assert_eq!((sum.input, sum.output, sum.invalid), (Some(18), None, 1));
        assert_eq!(sum.invalid_members, [Member::OutputTokens].into());
    }
}
