//! Records for tests.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use rust_decimal::Decimal;
use taximeter_ledger::{
    Counted, Dimensions, End, Gaps, Identity, Record, RecordCost, RecordError, RecordLine,
    RecordTiming, RecordUsage, RequestId, RequestKind, SessionSource, Stages, TenantId,
    UnknownCost, UnknownCostReason,
};
use taximeter_pricing::{Condition, Flag, Member, Pass, Source, Usage};
use uuid::Uuid;

/// 2026-11-20T00:00:00Z, in microseconds since 1970.
pub(crate) const DAY: i64 = 1_795_132_800_000_000;

/// The `number`th request of the day, one each millisecond, of one of four tenants.
pub(crate) fn record(number: u32) -> Record {
    let at = DAY + i64::from(number) * 1000;
    let random = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835) >> 54;
    let id = Uuid::from_u128((u128::from(at.unsigned_abs() / 1000) << 80) | random);
    let tokens = u64::from(number % 97);
    Record {
        id: RequestId(id),
        request_id: format!("client-{number}"),
        attempt: 1,
        seq: u64::from(number) + 1,
        gateway: "gw/0".to_owned(),
        started_at: Timestamp::from_microsecond(at).unwrap(),
        ended_at: Timestamp::from_microsecond(at + 1_180_000).unwrap(),
        tenant: TenantId(["acme", "blue", "city", "dock"][number as usize % 4].into()),
        key_id: Some("key".to_owned()),
        identity: Identity::ApiKey,
        labels: BTreeMap::from([("team".to_owned(), "search".to_owned())]),
        dimensions: None,
        operation: "chat".to_owned(),
        route: "/v1/chat/completions".to_owned(),
        stream: true,
        upstream: "local".to_owned(),
        provider: "vllm".to_owned(),
        request_model: Some("m".to_owned()),
        response_model: Some("m-2026".to_owned()),
        response_id: Some(format!("chatcmpl-{number}")),
        service_tier: None,
        status: Some(200),
        end: End::Complete,
        error_type: None,
        error: None,
        finish_reasons: vec!["stop".to_owned()],
        tools: BTreeMap::new(),
        usage: RecordUsage {
            source: Source::Reported,
            input_tokens: Some(tokens),
            output_tokens: Some(10),
            ..RecordUsage::default()
        },
        timing: RecordTiming {
            time_to_first_token: Some(0.043),
            output_chunks: 10,
            duration: 1.18,
            gateway: 0.000_4,
            ..RecordTiming::default()
        },
        cost: Some(cost(tokens)),
        cost_known: None,
        cost_unknown: Vec::new(),
        reported_cost: None,
        resource: BTreeMap::new(),
    }
}

/// What so many tokens cost.
fn cost(tokens: u64) -> RecordCost {
    let line = RecordLine {
        meter: "input".to_owned(),
        model: None,
        price_match: None,
        tokens: Some(tokens),
        quantity: None,
        unit: None,
        unit_price: Decimal::new(25, 8),
        list_unit_price: None,
        amount: Decimal::from(tokens) * Decimal::new(25, 8),
    };
    RecordCost {
        at_least: false,
        currency: "USD".to_owned(),
        amount: line.amount,
        list_amount: line.amount,
        price_id: "builtin@2026-11-20#m".to_owned(),
        price_match: Some("exact".into()),
        lines: vec![line],
    }
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{0,9}", Just("a\"b\\c\nd\u{1}é😀".to_owned()), Just(String::new())]
}

fn maybe_text() -> impl Strategy<Value = Option<String>> {
    option::of(texts())
}

fn maps() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(texts(), texts(), 0..3)
}

fn counts() -> impl Strategy<Value = Option<u64>> {
    option::of(prop_oneof![9 => 0..100_000_u64, 1 => Just(u64::MAX), 1 => Just(1 << 63)])
}

fn decimals() -> impl Strategy<Value = Decimal> {
    prop_oneof![
        8 => (0..1_000_000_000_i64, 0..12_u32).prop_map(|(digits, scale)| Decimal::new(digits, scale)),
        1 => (any::<i64>(), 0..29_u32).prop_map(|(digits, scale)| Decimal::new(digits, scale)),
        1 => Just(Decimal::MAX),
        1 => Just(-Decimal::new(0, 3)),
    ]
}

/// Whole microseconds, also many.
fn seconds() -> impl Strategy<Value = f64> {
    prop_oneof![9 => 0..100_000_000_u64, 1 => 0..(1_u64 << 52)]
        .prop_map(|micros| micros as f64 / 1e6)
}

/// Any line of a cost.
pub(crate) fn lines() -> impl Strategy<Value = RecordLine> {
    let count = prop_oneof![6 => counts().prop_map(Ok), 1 => option::of(decimals()).prop_map(Err)];
    let prices = (decimals(), option::of(decimals()), option::of(decimals()));
    (count, prices, (texts(), maybe_text(), maybe_text())).prop_map(
        |(count, (unit_price, list_unit_price, amount), (meter, model, unit))| {
            let mut line = RecordLine {
                meter,
                price_match: model.is_some().then(|| "region+date".into()),
                model,
                tokens: count.ok().flatten(),
                quantity: count.err().flatten(),
                unit,
                unit_price,
                list_unit_price,
                amount: Decimal::ZERO,
            };
            let exact = line.count().checked_mul(unit_price);
            line.amount = amount.or(exact).unwrap_or_default();
            line
        },
    )
}

fn costs() -> BoxedStrategy<RecordCost> {
    (vec(lines(), 0..4), option::of(decimals()), option::of(decimals()), (texts(), maybe_text()))
        .prop_map(|(lines, amount, list, (price_id, price_match))| {
            let sum = lines
                .iter()
                .try_fold(Decimal::ZERO, |sum, line| sum.checked_add(line.amount))
                .unwrap_or_default();
            let amount = amount.unwrap_or(sum);
            RecordCost {
                at_least: false,
                currency: "USD".to_owned(),
                amount,
                list_amount: list.unwrap_or(amount),
                price_id,
                price_match: price_match.map(Into::into),
                lines,
            }
        })
        .boxed()
}

fn flags() -> impl Strategy<Value = Vec<Flag>> {
    subsequence(vec![Flag::Estimated, Flag::Missing, Flag::Context, Flag::Clock], 0..3)
}

fn sources() -> impl Strategy<Value = Source> {
    select(vec![Source::Reported, Source::Counted, Source::Unknown, Source::None])
}

fn members() -> impl Strategy<Value = Member> {
    select(vec![Member::InputTokens, Member::OutputTokens])
}

fn usages() -> BoxedStrategy<RecordUsage> {
    let numbers = (counts(), counts(), counts(), counts(), counts(), counts());
    let named = (
        option::of(btree_map("[a-z]{1,5}_input_tokens", 0..99_u64, 0..3)),
        btree_map("[a-z]{1,5}", decimals(), 0..3),
        btree_map(select(vec![Condition::Speed, Condition::Region]), texts(), 0..2),
    );
    let pass = (maybe_text(), counts()).prop_map(|(model, input_tokens)| Pass {
        model,
        usage: Usage { input_tokens, ..Usage::default() },
    });
    let counted = option::of(
        (counts(), counts())
            .prop_map(|(input_tokens, output_tokens)| Counted { input_tokens, output_tokens }),
    );
    let words = (
        sources(),
        btree_map(members(), sources(), 0..3),
        btree_map(members(), flags(), 0..3),
        flags(),
    );
    (numbers.boxed(), named.boxed(), option::of(vec(pass, 0..3)), counted, words.boxed())
        .prop_map(|(numbers, (modalities, units, conditions), passes, counted, words)| {
            let (source, sources, flagged, flags) = words;
            RecordUsage {
                source,
                sources,
                input_tokens: numbers.0,
                cache_read_input_tokens: numbers.1,
                cache_write_input_tokens: numbers.2,
                cache_write_long_input_tokens: numbers.3,
                output_tokens: numbers.4,
                reasoning_output_tokens: numbers.5,
                modalities,
                units,
                conditions,
                passes,
                counted,
                flagged,
                flags,
            }
        })
        .boxed()
}

fn timings() -> BoxedStrategy<RecordTiming> {
    let maybe = || option::of(seconds());
    let stages = option::of(proptest::array::uniform9(option::of(0..100_000_000_u64)));
    (
        (maybe(), maybe(), maybe(), maybe()),
        (seconds(), seconds()),
        prop_oneof![9 => 0..9_u64, 1 => Just(u64::MAX)],
        option::of(vec(0..5_u32, 0..15)),
        stages,
    )
        .prop_map(
            |((chunk, token, per_token, stall), (duration, gateway), chunks, gaps, stages)| {
                RecordTiming {
                    time_to_first_chunk: chunk,
                    time_to_first_token: token,
                    time_per_output_token: per_token,
                    output_chunks: chunks,
                    longest_stall: stall,
                    gaps: gaps.map(Gaps::from),
                    duration,
                    gateway,
                    stages: stages.map(|stages| {
                        Stages::lasting(stages.map(|it| it.map(Duration::from_micros)))
                    }),
                }
            },
        )
        .boxed()
}

/// What a request may be part of, also nothing.
fn dimensions() -> BoxedStrategy<Option<Box<Dimensions>>> {
    use RequestKind::{Compaction, Prewarm, Title};
    use SessionSource::{Body, Derived, Header};
    let names =
        (maybe_text(), maybe_text(), maybe_text(), maybe_text(), maybe_text(), maybe_text());
    let source = option::of(select(vec![Header, Body, Derived]));
    let kind = option::of(select(vec![Prewarm, Compaction, Title]));
    (names, source, kind, maps())
        .prop_map(|(names, session_source, kind, tags)| {
            let (session, agent, parent_agent, client, turn, end_user) = names;
            let told = Dimensions {
                session,
                session_source,
                agent,
                parent_agent,
                client,
                turn,
                end_user,
                tags,
                kind,
            };
            told.if_any()
        })
        .boxed()
}

fn client_ids(number: u32) -> impl Strategy<Value = String> {
    prop_oneof![
        texts(),
        any::<u128>().prop_map(|id| Uuid::from_u128(id).to_string()),
        Just(record(number).id.to_string()),
        Just(record(number).id.to_string().to_uppercase()),
    ]
}

/// Any record of the day, with the id of request `number`.
pub(crate) fn records(number: u32) -> BoxedStrategy<Record> {
    let reasons =
        vec(texts().prop_map(|of| UnknownCost::new(UnknownCostReason::NoRate, Some(&of))), 0..3);
    let error = option::of(
        (maybe_text(), maybe_text(), maybe_text())
            .prop_map(|(status, error_type, code)| RecordError { status, error_type, code }),
    );
    let owed = prop_oneof![
        (costs()).prop_map(|cost| (Some(cost), None)),
        (costs()).prop_map(|cost| (None, Some(RecordCost { at_least: true, ..cost }))),
        Just((None, None)),
    ];
    let words = (
        select(vec![Identity::ApiKey, Identity::Header, Identity::Unknown]),
        select(End::ALL.to_vec()),
        any::<bool>(),
        option::of(0..1000_u16),
        prop_oneof![9 => 0..9_u32, 1 => Just(u32::MAX)],
        0..86_400_000_000_i64,
    );
    let some = (maybe_text(), maybe_text(), maybe_text(), maybe_text(), maybe_text(), maybe_text());
    let all = (texts(), texts(), texts(), texts(), texts());
    let tools = btree_map(texts(), any::<u64>(), 0..3);
    let told = (dimensions(), tools);
    let rest = (error, vec(texts(), 0..3), maybe_text(), maps(), maps(), reasons, told);
    (
        words.boxed(),
        some.boxed(),
        all.boxed(),
        client_ids(number).boxed(),
        (usages(), timings(), owed.boxed()),
        rest.boxed(),
    )
        .prop_map(move |(words, some, all, request_id, (usage, timing, owed), rest)| {
            let started_at = Timestamp::from_microsecond(DAY + words.5).unwrap();
            Record {
                started_at,
                ended_at: Timestamp::from_microsecond(DAY + words.5 + 7).unwrap(),
                identity: words.0,
                end: words.1,
                stream: words.2,
                status: words.3,
                attempt: words.4,
                key_id: some.0,
                request_model: some.1,
                response_model: some.2,
                response_id: some.3,
                service_tier: some.4,
                error_type: some.5,
                operation: all.0,
                route: all.1,
                upstream: all.2,
                provider: all.3,
                gateway: all.4,
                request_id,
                usage,
                timing,
                cost: owed.0,
                cost_known: owed.1,
                error: rest.0,
                finish_reasons: rest.1,
                reported_cost: rest.2,
                dimensions: rest.6.0,
                tools: rest.6.1,
                labels: rest.3,
                resource: rest.4,
                cost_unknown: rest.5,
                ..record(number)
            }
        })
        .boxed()
}
