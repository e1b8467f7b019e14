//! Service tiers, contexts, hours and conditions, and all of them together.

use proptest::strategy::ValueTree;
use proptest::test_runner::{TestCaseResult, TestRunner};

use super::*;
use crate::{Effect, Rates};

const ROW: &str = "
cache_without_rate: input
modality_without_rate: text
models:
- model: m
  rates: {input: 3, input_audio: 9, cache_read: 0.3, cache_write: 3.75, cache_write_long: 5.9,
          output: 15, reasoning: 20, web_search_requests: 0.01}
  tiers:
    priority: {input: 6, cache_read: 0.6, output: 30}
    batch: {output: 7, web_search_requests: 0.002}
  long_context:
  - over: 1000
    rates: {input: 6, cache_read: 0.6, cache_write: 7.5, output: 22.5}
    tiers: {flex: {input: 5, output: 20}}
  off_peak:
    rates: {input: 1, output: 5}
    windows: [{days: [sat], hours: ['00:00-24:00']}]
  when:
    speed: {fast: {times: 2, rates: {input: 7, output: 35}}}
    region: {eu: {times: 1.1}}
";

fn cached(input: u64, read: u64, write: u64, write_long: u64) -> Usage {
    Usage {
        cache_read_input_tokens: Some(read),
        cache_write_input_tokens: Some(write + write_long),
        cache_write_long_input_tokens: Some(write_long),
        ..usage(input, 1)
    }
}

fn under(usage: Usage, conditions: &[(Condition, &str)]) -> Usage {
    let said = |(condition, word): &(Condition, &str)| (*condition, (*word).to_owned());
    Usage { conditions: conditions.iter().map(said).collect(), ..usage }
}

/// The reasons without the row and the advice.
fn why(result: Result<Cost, Unpriced>) -> Vec<String> {
    let short = |why: String| {
        let why = why.strip_prefix("overrides@undated#m has no rate for ").unwrap();
        let (why, advice) = why.split_once("; ").unwrap();
        let is_of_several = why.matches(" in ").count() + why.matches(" with ").count() > 1;
        let is_stated = !why.contains("off-peak") && !why.contains("speed");
        match is_stated || !is_of_several {
            true => assert_eq!(advice, "add it to the overrides"),
            false => assert_eq!(advice, "no price file can tell the price of this combination"),
        }
        why.to_owned()
    };
    whys(&result.unwrap_err()).into_iter().map(short).collect()
}

fn in_tier<'a>(tier: &'a str, at: &str) -> Query<'a> {
    Query { service_tier: Some(tier), at: at.parse().unwrap(), ..query("vllm", "m") }
}

const FRIDAY: &str = NOON;
const SATURDAY: &str = "2026-11-21T12:00:00Z";

#[test]
fn a_combination_that_the_row_does_not_price_is_unknown_and_named() {
    let book = with(ROW);
    let fast = [(Condition::Speed, "fast")];
    for (tier, at, usage, expected) in [
        (
            "standard",
            FRIDAY,
            cached(1001, 0, 0, 9),
            &["cache_write_long with long context (over 1000 tokens)"][..],
        ),
        ("priority", FRIDAY, cached(100, 0, 9, 0), &["cache_write in tier priority"]),
        (
            "priority",
            FRIDAY,
            usage(1001, 1),
            &[
                "input in tier priority with long context (over 1000 tokens)",
                "output in tier priority with long context (over 1000 tokens)",
            ],
        ),
        ("batch", FRIDAY, usage(1, 1), &["input in tier batch"]),
        ("flex", FRIDAY, usage(1, 0), &["input in tier flex"]),
        ("ultrafast", FRIDAY, usage(0, 1), &["output in tier ultrafast"]),
        ("standard", SATURDAY, cached(9, 9, 0, 0), &["cache_read in off-peak hours"]),
        (
            "standard",
            SATURDAY,
            usage(1001, 0),
            &["input with long context (over 1000 tokens) in off-peak hours"],
        ),
        ("priority", SATURDAY, usage(1, 0), &["input in tier priority in off-peak hours"]),
        ("standard", FRIDAY, under(cached(9, 9, 0, 0), &fast), &["cache_read with speed fast"]),
        (
            "priority",
            FRIDAY,
            under(usage(0, 1), &fast),
            &["output in tier priority with speed fast"],
        ),
        (
            "standard",
            SATURDAY,
            under(usage(0, 1), &fast),
            &["output in off-peak hours with speed fast"],
        ),
    ] {
        let found = book.cost(&in_tier(tier, at), &usage);
        assert_eq!(why(found), expected, "{tier} {at} {usage:?}");
    }
}

#[test]
fn a_combination_has_its_own_rates_times_the_stated_factors() {
    let book = with(ROW);
    let (fast, eu) = ((Condition::Speed, "fast"), (Condition::Region, "eu"));
    for (tier, at, usage, expected) in [
        ("standard", FRIDAY, usage(1, 1), "0.000018"),
        ("standard", FRIDAY, usage(1001, 1), "0.0060285"),
        ("priority", FRIDAY, cached(10, 4, 0, 0), "0.0000684"),
        ("flex", FRIDAY, usage(1001, 1), "0.005025"),
        ("standard", SATURDAY, usage(1, 1), "0.000006"),
        ("standard", FRIDAY, under(usage(1, 1), &[fast]), "0.000084"),
        ("standard", FRIDAY, under(usage(1, 1), &[fast, eu]), "0.0000924"),
        ("priority", FRIDAY, under(usage(1, 1), &[eu]), "0.0000396"),
    ] {
        let found = book.cost(&in_tier(tier, at), &usage).unwrap();
        assert_eq!(found.amount.to_string(), expected, "{tier} {at}");
    }
}

#[test]
fn a_rule_for_a_missing_rate_holds_only_for_what_the_row_never_prices() {
    let row = "cache_without_rate: input\nmodality_without_rate: text\nmodels:\n- model: m\n  rates: \
        {input: 3, output: 15}\n  tiers: {priority: {input: 6, output: 30}}\n";
    let heard = ByModality { audio: Some(4), ..ByModality::default() };
    let told = Modalities { input: heard, ..Modalities::default() };
    let usage = Usage {
        reasoning_output_tokens: Some(1),
        modalities: Some(Box::new(told)),
        ..cached(10, 2, 1, 1)
    };
    let cost = with(row).cost(&in_tier("priority", NOON), &usage).unwrap();
    assert_eq!(cost.amount.to_string(), "0.00009");
    // A write of an hour is not at the price of input where a write of five minutes costs more.
    let cost = |rates: &str, usage: &Usage| {
        let rates = format!("input: 3, cache_write: 3.75, {rates}output: 15");
        with(&row.replace("input: 3, output: 15", &rates)).cost(&query("vllm", "m"), usage)
    };
    assert_eq!(why(cost("", &cached(10, 0, 0, 4))), ["cache_write_long"]);
    assert!(cost("cache_write_long: 6, ", &cached(10, 0, 0, 4)).is_ok());
}

#[test]
fn calls_cost_the_same_in_every_combination_unless_it_says_otherwise() {
    let book = with(ROW);
    let searched = |input| {
        let units = [("web_search_requests".to_owned(), 1.into())].into();
        Usage { units, ..usage(input, 0) }
    };
    for (tier, at, input, expected) in [
        ("standard", FRIDAY, 0, "0.01"),
        ("priority", FRIDAY, 0, "0.01"),
        ("batch", FRIDAY, 0, "0.002"),
        ("standard", FRIDAY, 1001, "0.016006"),
        ("standard", SATURDAY, 0, "0.01"),
    ] {
        let cost = book.cost(&in_tier(tier, at), &searched(input)).unwrap();
        assert_eq!(cost.amount.to_string(), expected, "{tier} {at}");
    }
    // What replaces tokens depends on the tier as tokens do.
    let pages = "models: [{model: m, rates: {pages: 0.004}, tiers: {batch: {pages: 0.002}}}]";
    let read = Usage { units: [("pages".to_owned(), 2.into())].into(), ..Usage::default() };
    let cost = |tier| with(pages).cost(&in_tier(tier, NOON), &read);
    assert_eq!(cost("batch").unwrap().amount.to_string(), "0.004");
    assert_eq!(why(cost("flex")), ["pages in tier flex"]);
}

#[test]
fn a_request_with_a_price_in_some_conditions_only_is_unknown_in_the_others() {
    let book = with(
        "models:\n- model: m\n  rates: {input: 1, output: 1}\n  \
         when: {search_context_size: {low: {rates: {requests: 0.005}}}}\n",
    );
    let low = under(usage(1, 1), &[(Condition::SearchContextSize, "low")]);
    assert_eq!(book.cost(&query("vllm", "m"), &low).unwrap().amount.to_string(), "0.005002");
    let high = under(usage(1, 1), &[(Condition::SearchContextSize, "high")]);
    assert_eq!(why(book.cost(&query("vllm", "m"), &high)), ["requests"]);
}

#[test]
fn a_row_lists_each_combination_with_what_it_lacks() {
    let book = with(ROW);
    let row = book.find(&query("vllm", "m")).unwrap();
    let listed: Vec<_> = row
        .combinations()
        .into_iter()
        .filter(|one| !one.combination.off_peak && one.combination.conditions.is_empty())
        .map(|one| (one.combination.to_string(), one.lacking.len()))
        .collect();
    let long = " with long context (over 1000 tokens)";
    assert_eq!(
        listed,
        [
            (String::new(), 0),
            (" in tier batch".to_owned(), 6),
            (" in tier flex".to_owned(), 7),
            (" in tier priority".to_owned(), 4),
            (long.to_owned(), 3),
            (format!(" in tier batch{long}"), 7),
            (format!(" in tier flex{long}"), 5),
            (format!(" in tier priority{long}"), 7),
        ]
    );
    assert_eq!(row.combinations().len(), 8 * 4);
    let gaps = row.gaps();
    assert_eq!(gaps.len(), 32);
    for gap in [
        "input_audio, cache_write_long, reasoning with long context (over 1000 tokens)",
        "all in tier priority with long context (over 1000 tokens)",
        "all in tier flex",
        "all in tier batch in off-peak hours with speed fast",
        "all in tier ultrafast",
    ] {
        assert!(gaps.iter().any(|found| found == gap), "{gap} in {gaps:#?}");
    }
    assert_eq!(row.costs_as(MeterName::OutputAudio), Some(MeterName::Output));
    assert_eq!(row.costs_as(MeterName::CacheReadImage), Some(MeterName::CacheRead));
    assert_eq!(row.costs_as(MeterName::CacheRead), None);
}

/// A second reading of the rule: the rates of one combination, straight from the row.
fn set<'a>(row: &'a Row, query: &Query<'_>, usage: &Usage) -> Option<&'a Rates> {
    let at = TimeZone::UTC.to_datetime(query.at);
    let off_peak = row.off_peak.as_ref().filter(|off_peak| off_peak.covers(at));
    let input = usage.input_tokens.unwrap();
    let long = row.long_context.iter().rfind(|long| long.threshold.first() <= input);
    let has_tiers = std::iter::once(&row.card)
        .chain(row.long_context.iter().map(|long| &long.card))
        .any(|card| ServiceTier::ALL.iter().any(|tier| card.tiers.rates(*tier).is_some()));
    let tier = tier(row, query.service_tier).unwrap().filter(|_| has_tiers);
    let fast = effects(row, usage).find(|effect| effect.rates.rate(MeterName::Input).is_some());
    let is_plain = tier.is_none() && long.is_none();
    match (off_peak, fast) {
        (None, None) => {
            let card = long.map_or(&row.card, |long| &long.card);
            tier.map_or(Some(&card.rates), |tier| card.tiers.rates(tier))
        }
        (Some(off_peak), None) if is_plain => Some(&off_peak.rates),
        (None, Some(fast)) if is_plain => Some(&fast.rates),
        _ => None,
    }
}

fn effects<'a>(row: &'a Row, usage: &Usage) -> impl Iterator<Item = &'a Effect> {
    let said = usage.conditions.iter();
    said.filter_map(|(condition, word)| row.when.get(condition)?.get(word))
}

/// Checks one request: each line is at a rate of the one set, or the cost is unknown. The
/// reservation covers what is charged.
fn check(book: &PriceBook, query: &Query<'_>, usage: &Usage) -> TestCaseResult {
    let row = book.find(query).unwrap();
    let cost = match book.cost(query, usage) {
        Ok(cost) => Some(cost),
        Err(unpriced) => unpriced.known.map(|known| *known),
    };
    let Some(cost) = cost else { return Ok(()) };
    let set = set(row, query, usage);
    let factor: Decimal = effects(row, usage).filter_map(|effect| effect.times).product();
    for line in &cost.lines {
        let prices: Vec<Decimal> = match line.meter.counts_tokens() {
            true => set.iter().flat_map(|set| set.iter()).map(|(_, rate)| rate * factor).collect(),
            false => {
                let of_effects = effects(row, usage).map(|effect| &effect.rates);
                let stated = of_effects.chain(set).chain([&row.card.rates]);
                stated.filter_map(|rates| rates.rate(line.meter)).take(1).collect()
            }
        };
        prop_assert!(prices.contains(&line.unit_price), "{:?} is not in {:?}", line, set);
        let own = set.and_then(|set| set.rate(line.meter)).filter(|_| line.meter.counts_tokens());
        prop_assert!(own.is_none_or(|own| own * factor == line.unit_price), "{line:?}");
        let is_elsewhere = own.is_none() && row.sets().any(|set| set.rate(line.meter).is_some());
        prop_assert!(!is_elsewhere || !line.meter.counts_tokens(), "{line:?} of {row:?}");
    }
    let (input, output) = (usage.input_tokens.unwrap(), usage.output_tokens.unwrap());
    if let Some(most) = book.upper_bound(query, input, output) {
        prop_assert!(cost.amount <= most, "{} > {most}: {:?}", cost.amount, cost.lines);
        let more = book.upper_bound(query, input + 1, output).unwrap();
        prop_assert!(most <= more, "{most} > {more}");
    }
    Ok(())
}

/// Words that an answer can say: each of the row's conditions and others, or nothing.
fn any_conditions() -> impl Strategy<Value = BTreeMap<Condition, String>> {
    let word = |words: &'static [&'static str]| prop::option::of(prop::sample::select(words));
    (
        word(&["us", "global", "eu"]),
        word(&["fast", "standard", "turbo"]),
        word(&["low", "high"]),
        word(&["eu", "us", "in"]),
    )
        .prop_map(|(geo, speed, size, region)| {
            let said = [
                (Condition::InferenceGeo, geo),
                (Condition::Speed, speed),
                (Condition::SearchContextSize, size),
                (Condition::Region, region),
            ];
            said.into_iter().filter_map(|(what, word)| Some((what, word?.to_owned()))).collect()
        })
}

fn any_mixed_usage(most: u64) -> impl Strategy<Value = Usage> {
    let part = || prop::option::of(0..=100u64);
    (any_usage(most), [part(), part(), part(), part()], any_conditions()).prop_map(
        |(usage, [heard, seen, said, shown], conditions)| {
            let of = |whole: Option<u64>, percent: Option<u64>| Some(whole? * percent? / 200);
            let told = Modalities {
                input: ByModality {
                    audio: of(usage.input_tokens, heard),
                    image: of(usage.input_tokens, seen),
                    ..ByModality::default()
                },
                output: ByModality {
                    audio: of(usage.output_tokens, said),
                    image: of(usage.output_tokens, shown),
                    ..ByModality::default()
                },
                ..Modalities::default()
            };
            Usage { modalities: Some(Box::new(told)), conditions, ..usage }
        },
    )
}

/// The meters of generated rows.
const METERS: [&str; 12] = [
    "input",
    "input_audio",
    "input_image",
    "cache_read",
    "cache_read_audio",
    "cache_write",
    "cache_write_long",
    "output",
    "output_audio",
    "output_image",
    "reasoning",
    "requests",
];

/// Sets of rates in a generated row: the standard ones, hours and a condition, and each tier in
/// each context.
const SETS: usize = 3 + 2 + 3 * ServiceTier::ALL.len();

/// Some sets, each with some meters, as a price file writes them.
struct Sets(std::vec::IntoIter<Option<Vec<Option<u32>>>>);

impl Sets {
    fn next(&mut self) -> Option<String> {
        Some(Self::written(&self.0.next()??, &[]))
    }

    fn next_with(&mut self, always: &[&str]) -> String {
        Self::written(&self.0.next().flatten().unwrap_or_default(), always)
    }

    fn written(prices: &[Option<u32>], always: &[&str]) -> String {
        let stated = METERS.into_iter().enumerate().filter_map(|(position, meter)| {
            let price = prices.get(position).copied().flatten();
            let price = price.or_else(|| always.contains(&meter).then_some(1))?;
            Some(format!("{meter}: {price}"))
        });
        format!("{{{}}}", stated.collect::<Vec<_>>().join(", "))
    }

    fn tiers(&mut self) -> String {
        let stated = ServiceTier::ALL
            .into_iter()
            .filter_map(|tier| Some(format!("{}: {}", tier.as_str(), self.next()?)));
        format!("{{{}}}", stated.collect::<Vec<_>>().join(", "))
    }
}

/// A row with any tiers, contexts, hours and conditions.
fn any_row() -> impl Strategy<Value = String> {
    let set = prop::collection::vec(prop::option::of(0..1000u32), METERS.len());
    let sets = prop::collection::vec(prop::option::of(set), SETS);
    (any::<bool>(), any::<bool>(), sets).prop_map(|(cache, modality, sets)| {
        let mut sets = Sets(sets.into_iter());
        let rule = |holds: bool, word: &'static str| if holds { word } else { "unknown" };
        let mut text = format!(
            "cache_without_rate: {}\nmodality_without_rate: {}\nmodels:\n- model: m\n",
            rule(cache, "input"),
            rule(modality, "text")
        );
        let standard = sets.next_with(&["input", "output"]);
        text += &format!("  rates: {standard}\n  tiers: {}\n", sets.tiers());
        let steps = ["over: 1000", "at_least: 200000"].into_iter().filter_map(|threshold| {
            let rates = sets.next()?;
            Some(format!("{{{threshold}, rates: {rates}, tiers: {}}}", sets.tiers()))
        });
        text += &format!("  long_context: [{}]\n", steps.collect::<Vec<_>>().join(", "));
        if let Some(rates) = sets.next() {
            let windows = "[{days: [sat], hours: ['00:00-24:00']}]";
            text += &format!("  off_peak: {{rates: {rates}, windows: {windows}}}\n");
        }
        let fast = match cache {
            true => format!("{{times: 1.5, rates: {}}}", sets.next_with(&["input"])),
            false => "{times: 2}".to_owned(),
        };
        let region = "{eu: {times: 1.1}, us: {times: 0.9}}";
        text + &format!("  when: {{speed: {{fast: {fast}}}, region: {region}}}\n")
    })
}

fn any_tier() -> impl Strategy<Value = Option<&'static str>> {
    prop::option::of(prop::sample::select(ServiceTier::ALL.map(ServiceTier::as_str).to_vec()))
}

proptest! {
    #[test]
    fn a_generated_row_charges_what_its_one_set_says_and_reserves_no_less(
        row in any_row(),
        usage in any_mixed_usage(400_000),
        tier in any_tier(),
        hour in 0..48u8,
    ) {
        let at = NOON.parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_hours(hour.into());
        let query = Query { service_tier: tier, at, ..query("vllm", "m") };
        check(&with(&row), &query, &usage)?;
    }
}

/// The same weekday and hour in the week nearest to `at` in which the row is in force.
fn in_force(row: &Row, at: &str) -> Timestamp {
    let at: Timestamp = at.parse().unwrap();
    let week = |week: i64| at + jiff::SignedDuration::from_hours(week * 7 * 24);
    let holds = |at: &Timestamp| row.holds_on(TimeZone::UTC.to_datetime(*at).date());
    (0..100).flat_map(|weeks| [week(weeks), week(-weeks)]).find(holds).unwrap()
}

#[test]
fn every_row_charges_what_its_one_set_says_in_every_combination_and_reserves_no_less() {
    let mut runner = TestRunner::deterministic();
    let usages = any_mixed_usage(400_000);
    let words = [None].into_iter().chain(ServiceTier::ALL.map(|tier| Some(tier.as_str())));
    for row in builtin().rows() {
        let provider = row.provider.as_deref().unwrap();
        let thresholds = row.long_context.iter().map(|long| long.threshold.first());
        let inputs: Vec<u64> =
            thresholds.flat_map(|first| [first - 1, first]).chain([100]).collect();
        for (tier, input) in
            words.clone().flat_map(|tier| inputs.iter().map(move |input| (tier, *input)))
        {
            // A Friday at noon, in the night and on a Saturday.
            for at in [NOON, "2026-11-20T03:00:00Z", SATURDAY] {
                let query = Query {
                    service_tier: tier,
                    at: in_force(row, at),
                    ..query(provider, &row.model)
                };
                for _ in 0..4 {
                    let usage = usages.new_tree(&mut runner).unwrap().current();
                    let scaled = |part: Option<u64>| {
                        part.map(|part| part * input / usage.input_tokens.unwrap().max(1))
                    };
                    let usage = Usage {
                        input_tokens: Some(input),
                        cache_read_input_tokens: scaled(usage.cache_read_input_tokens),
                        cache_write_input_tokens: scaled(usage.cache_write_input_tokens),
                        cache_write_long_input_tokens: scaled(usage.cache_write_long_input_tokens),
                        ..usage
                    };
                    check(builtin(), &query, &usage).unwrap();
                }
            }
        }
    }
}
