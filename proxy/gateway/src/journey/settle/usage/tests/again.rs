//! What a record has of a usage is all that was priced.

use jiff::Timestamp;
use proptest::option::of;
use proptest::prelude::*;
use rust_decimal::Decimal;
use taximeter_meter::Reported;
use taximeter_pricing::{ByModality, Condition, Modalities, Pass, PriceBook, Query};

use super::*;

const BOOK: &str = "
modality_without_rate: text
cache_without_rate: input
models:
- model: m
  rates: {input: 3, output: 5, reasoning: 7, input_audio: 11, requests: 13, search_queries: 17}
  long_context: [{over: 500, rates: {input: 19, output: 23}}]
  when: {speed: {fast: {times: 2}}}
";

fn parts() -> impl Strategy<Value = ByModality> {
    let part = || of(0..1000_u64);
    (part(), part(), part(), part(), part()).prop_map(|(text, audio, image, video, multimodal)| {
        ByModality { text, audio, image, video, multimodal }
    })
}

fn any_usage() -> impl Strategy<Value = Usage> {
    let tokens = || of(0..1000_u64);
    let modalities = (parts(), parts(), parts())
        .prop_map(|(input, output, cache_read)| Box::new(Modalities { input, output, cache_read }));
    let numbers = [tokens(), tokens(), tokens(), tokens(), tokens(), tokens()];
    let told = (of(0..5_i64), any::<bool>(), of(0..50_u64));
    (numbers, of(modalities), told).prop_map(
        |(numbers, modalities, (queries, fast, pass_tokens))| {
            let [input, read, write, write_long, output, reasoning] = numbers;
            let pass = |tokens| Pass {
                model: Some("m".to_owned()),
                usage: Usage {
                    input_tokens: Some(tokens),
                    output_tokens: Some(1),
                    ..Usage::default()
                },
            };
            Usage {
                input_tokens: input,
                cache_read_input_tokens: read,
                cache_write_input_tokens: write,
                cache_write_long_input_tokens: write_long,
                output_tokens: output,
                reasoning_output_tokens: reasoning,
                modalities,
                units: queries
                    .map(|n| ("search_queries".to_owned(), Decimal::from(n)))
                    .into_iter()
                    .collect(),
                conditions: fast
                    .then(|| (Condition::Speed, "fast".to_owned()))
                    .into_iter()
                    .collect(),
                passes: pass_tokens.map(pass).into_iter().collect(),
            }
        },
    )
}

proptest! {
    #[test]
    fn a_record_priced_again_costs_what_it_cost(usage in any_usage()) {
        let measurement = Measurement {
            reported: Some(Reported { usage, ..Reported::default() }),
            ..chat("{}")
        };
        let (recorded, priced) =
            super::usage(TokenParts::of(Wire::ChatCompletions), &measurement, &EXACT);
        let json = serde_json::to_string(&recorded).unwrap();
        let read: RecordUsage = serde_json::from_str(&json).unwrap();
        let again = Usage::from(&read);
        prop_assert_eq!(&again, &priced);
        let book = PriceBook::fixed("test", BOOK, "test.yaml").unwrap();
        let query = Query {
            provider: Some("vllm"),
            response_model: Some("m"),
            request_model: None,
            service_tier: None,
            at: Timestamp::UNIX_EPOCH,
        };
        prop_assert_eq!(book.cost(&query, &again), book.cost(&query, &priced));
    }
}
