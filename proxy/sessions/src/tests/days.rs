//! Sums by day, and lists of them.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rust_decimal::Decimal;
use taximeter_billing::BilledRequest;
use taximeter_ledger::{Correction, RecordCost, RequestId};
use taximeter_pricing::Source;
use uuid::Uuid;

use crate::{DaySum, RunningRequest, Top, TopBy, listing_table};

fn cost(amount: &str, at_least: bool) -> RecordCost {
    RecordCost {
        at_least,
        currency: "USD".to_owned(),
        amount: amount.parse().unwrap(),
        list_amount: amount.parse().unwrap(),
        price_id: "p".to_owned(),
        price_match: None,
        lines: Vec::new(),
    }
}

static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

fn request(number: u128, seconds: i64) -> RunningRequest<'static> {
    let started_at: Timestamp = "2026-11-20T09:00:00Z".parse().unwrap();
    let started_at = started_at + SignedDuration::from_secs(seconds);
    let row = BilledRequest {
        started_at,
        tenant: "acme",
        model: None,
        provider: "p",
        upstream: "u",
        operation: "chat",
        route: "/v1/chat/completions",
        key_id: None,
        labels: &NO_LABELS,
        source: Source::Reported,
        input_tokens: Some(100),
        cache_read_input_tokens: Some(50),
        output_tokens: Some(10),
        reasoning_output_tokens: None,
        cost: None,
        dimensions: None,
    };
    RunningRequest {
        id: RequestId(Uuid::from_u128(number)),
        ended_at: started_at + SignedDuration::from_secs(1),
        has_failed: false,
        agent: None,
        client: None,
        row,
    }
}

/// The same with this cost.
fn charged<'a>(cost: &'a RecordCost, request: RunningRequest<'a>) -> RunningRequest<'a> {
    RunningRequest { row: BilledRequest { cost: Some(cost), ..request.row }, ..request }
}

/// The sum of two requests, others for each number.
pub(super) fn sum(number: u128) -> DaySum {
    let cost = cost(&format!("0.{number:04}"), number.is_multiple_of(3));
    let mut sum = DaySum::of(&charged(&cost, request(number, 7)));
    sum.add(&DaySum::of(&RunningRequest { agent: Some("a"), ..request(number + 1000, 9) }));
    sum
}

type Parts = (i64, Option<String>, [Option<u64>; 3], Option<(u64, u32, bool)>, bool);

fn parts() -> impl Strategy<Value = Vec<Parts>> {
    let tokens = || prop::option::of(any::<u32>().prop_map(u64::from));
    let price = prop::option::of((0..10_u64.pow(12), 0..13_u32, any::<bool>()));
    let name = prop::option::of("[a-z]{0,3}");
    let one = (0..90_000_i64, name, [tokens(), tokens(), tokens()], price, any::<bool>());
    prop::collection::vec(one, 1..30)
}

fn sums(parts: &[Parts]) -> Vec<DaySum> {
    let costs: Vec<_> = parts
        .iter()
        .map(|(.., price, _)| {
            price.map(|(digits, scale, at_least)| {
                let amount = Decimal::new(i64::try_from(digits).unwrap(), scale);
                cost(&amount.to_string(), at_least)
            })
        })
        .collect();
    let each = parts.iter().zip(&costs).enumerate();
    each.map(|(number, ((seconds, name, tokens, _, has_failed), cost))| {
        let [input_tokens, cache_read_input_tokens, output_tokens] = *tokens;
        let request = request(number as u128, *seconds);
        let row = BilledRequest {
            input_tokens,
            cache_read_input_tokens,
            output_tokens,
            cost: cost.as_ref(),
            ..request.row
        };
        let (agent, client) = (name.as_deref(), name.as_deref());
        DaySum::of(&RunningRequest { agent, client, has_failed: *has_failed, row, ..request })
    })
    .collect()
}

fn whole(sums: &[DaySum]) -> DaySum {
    let mut all = sums[0].clone();
    sums[1..].iter().for_each(|sum| all.add(sum));
    all
}

proptest! {
    #[test]
    fn what_is_kept_is_what_is_read(parts in parts()) {
        let sum = whole(&sums(&parts));
        let bytes = sum.encode();
        prop_assert_eq!(DaySum::decode(&bytes), Ok(sum));
        for end in 0..bytes.len() {
            prop_assert!(DaySum::decode(&bytes[..end]).is_err());
        }
        prop_assert!(DaySum::decode(&[&bytes[..], &[0]].concat()).is_err());
    }

    #[test]
    fn no_bytes_are_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let _ = DaySum::decode(&bytes);
        let _ = DaySum::decode(&[&[1], &bytes[..]].concat());
    }

    #[test]
    fn a_sum_is_the_same_in_whatever_parts_it_was_made(parts in parts(), cut in 0..30_usize) {
        let sums = sums(&parts);
        let (head, tail) = sums.split_at(cut.min(sums.len() - 1).max(1).min(sums.len()));
        let mut halves = whole(head);
        if !tail.is_empty() {
            halves.add(&whole(tail));
        }
        prop_assert_eq!(halves, whole(&sums));
    }

    #[test]
    fn the_first_of_a_list_are_those_of_a_sorted_one(
        parts in parts(),
        sessions in 1..9_usize,
        most in 0..9_usize,
        by in prop_oneof![Just(TopBy::Cost), Just(TopBy::Length), Just(TopBy::Latest)],
    ) {
        let mut named: BTreeMap<(String, String), Vec<DaySum>> = BTreeMap::new();
        for (at, sum) in sums(&parts).into_iter().enumerate() {
            // The same name of two tenants is two sessions.
            let key = ((at % 2).to_string(), (at % sessions).to_string());
            named.entry(key).or_default().push(sum);
        }
        let mut top = Top::new(by, most);
        for ((tenant, session), sums) in &named {
            sums.iter().for_each(|sum| top.add(tenant, session, sum.clone()));
        }
        let mut all: Vec<_> = named.iter().map(|(key, sums)| (key, whole(sums))).collect();
        all.sort_by_key(|(_, sum)| {
            let length = sum.ended_at.duration_since(sum.first.0);
            std::cmp::Reverse(match by {
                TopBy::Cost => (sum.sums.cost, SignedDuration::ZERO, sum.last),
                TopBy::Length => (None, length, sum.last),
                TopBy::Latest => (None, SignedDuration::ZERO, sum.last),
            })
        });
        let listing = top.finish();
        prop_assert_eq!(listing.count, all.len() as u64);
        prop_assert_eq!(listing.total, whole(&sums(&parts)).sums);
        let found: Vec<_> = listing.sessions.iter().map(|it| (&it.tenant, &it.session)).collect();
        let expected: Vec<_> = all.iter().take(most).map(|((t, s), _)| (t, s)).collect();
        prop_assert_eq!(found, expected);
        for (listed, (_, sum)) in listing.sessions.iter().zip(&all) {
            prop_assert_eq!(&listed.sums, &sum.sums);
            prop_assert_eq!((listed.started_at, listed.last_id), (sum.first.0, sum.last.1));
        }
    }
}

fn correction(members: &serde_json::Value) -> Correction {
    let mut correction = serde_json::json!({
        "id": "0193e9a0-0000-7000-8000-000000000002", "tenant": "acme", "reason": "typo",
        "corrects": "0193e9a0-0000-7000-8000-000000000001",
        "started_at": "2026-11-20T16:59:59.999999Z", "made_at": "2026-11-20T16:59:59.999999Z",
    });
    let more = members.as_object().unwrap().clone();
    correction.as_object_mut().unwrap().extend(more);
    serde_json::from_value(correction).unwrap()
}

#[test]
fn a_correction_takes_back_what_was_owed_and_charges_the_rest() {
    let (before, after) = (cost("5.00", true), cost("4.00", false));
    let row = charged(&before, request(1, 0));
    let mut sum = DaySum::of(&row);
    assert_eq!((sum.sums.cost, sum.sums.unknown_cost_requests), (Some(5.into()), 1));
    let changed = correction(&serde_json::json!({"before": before, "after": after}));
    sum.add(&DaySum::corrected(&row, &changed));
    assert_eq!(sum, DaySum::of(&charged(&after, row)));
    // And to nothing that is known.
    let changed = correction(&serde_json::json!({"before": after}));
    sum.add(&DaySum::corrected(&charged(&after, row), &changed));
    assert_eq!((sum.sums.cost, sum.sums.unknown_cost_requests), (Some(Decimal::ZERO), 1));
}

#[test]
fn what_completes_a_request_adds_its_tokens_and_no_request() {
    let whole = request(1, 0);
    let row = RunningRequest { row: whole.row.pending(), ..whole };
    let mut sum = DaySum::of(&row);
    assert_eq!((sum.sums.unknown_usage_requests, sum.sums.unknown_cost_requests), (1, 1));
    let after = cost("2", false);
    let usage = serde_json::json!({
        "source": "reported", "input_tokens": 100, "cache_read_input_tokens": 50, "output_tokens": 10,
    });
    let completion = serde_json::json!({"response_id": "resp_1", "usage": usage});
    let changed = correction(&serde_json::json!({"after": after, "completion": completion}));
    sum.add(&DaySum::corrected(&row, &changed));
    assert_eq!(sum, DaySum::of(&charged(&after, whole)));
}

#[test]
fn a_list_says_how_many_there_are_and_which_are_shown() {
    let dear = cost("11", false);
    let mut top = Top::new(TopBy::Cost, 1);
    top.add("acme", "cheap", DaySum::of(&charged(&cost("0.5", true), request(1, 0))));
    top.add(
        "acme",
        "dear",
        DaySum::of(&RunningRequest {
            client: Some("codex/0.169"),
            agent: Some("root"),
            ..charged(&dear, request(2, 5))
        }),
    );
    let text = listing_table(&top.finish(), TopBy::Cost, "2026-11-20 (UTC)", 140);
    let expected = "\
2 sessions, 2026-11-20 (UTC): the 1 dearest

session  tenant  client       started                  length  agents  requests  input  cached  output  cost (USD)
──────────────────────────────────────────────────────────────────────────────────────────────────────────────────
dear     acme    codex/0.169  2026-11-20 09:00:05 UTC     1 s       1         1    100    50 %      10       11.00
──────────────────────────────────────────────────────────────────────────────────────────────────────────────────
total                                                                         2    200              20      ≥11.50

≥ means at least: some costs are unknown or known in part.
";
    assert_eq!(text, expected);
    let nothing = listing_table(&Top::new(TopBy::Cost, 1).finish(), TopBy::Cost, "today", 80);
    assert_eq!(nothing, "0 sessions, today\n\nNo request names a session.\n");
}
