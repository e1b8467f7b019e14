//! All parts of a session add up to it.

use jiff::SignedDuration;
use proptest::prelude::*;
use rust_decimal::Decimal;
use taximeter_ledger::{End, RequestKind};

use crate::fixtures::{cost, request, session};
use crate::request::Price;
use crate::sums::Sums;
use crate::{Request, Session};

fn prices() -> impl Strategy<Value = Price> {
    let known =
        (0..10_u64.pow(12), 0..13_u32, any::<bool>()).prop_map(|(digits, scale, is_whole)| {
            let amount = Decimal::new(i64::try_from(digits).unwrap(), scale);
            Price { is_whole, ..cost(&amount.to_string()) }
        });
    prop_oneof![4 => known, 1 => Just(Price::default())]
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let name = || prop::option::of((0..4_u8).prop_map(|name| name.to_string()));
    let tokens = || prop::option::of(0..100_000_u64);
    let kind = prop::option::of(Just(RequestKind::Compaction));
    let end = prop_oneof![Just(End::Complete), Just(End::ClientLeft), Just(End::UpstreamError)];
    let one =
        (name(), name(), name(), [tokens(), tokens(), tokens()], prices(), (kind, end, 0..400_i64));
    prop::collection::vec(one, 1..60).prop_map(|all| {
        let mut at = 0;
        let made = all.into_iter().enumerate().map(|(number, one)| {
            let (agent, parent_agent, turn, [input, cached, output], price, (kind, end, wait)) =
                one;
            at += wait;
            Request {
                agent,
                parent_agent,
                turn,
                kind,
                end,
                input_tokens: input,
                cache_read_input_tokens: cached,
                output_tokens: output,
                usage_is_unknown: input.is_none() || output.is_none(),
                price,
                ..request(number as u128, at)
            }
        });
        made.collect()
    })
}

fn sum<'a>(parts: impl Iterator<Item = &'a Sums>) -> Sums {
    let mut all = Sums::default();
    parts.for_each(|part| all.add(part));
    all
}

fn check(session: &Session, requests: &[Request]) -> Result<(), TestCaseError> {
    let currency = session.currency.as_deref();
    let of_requests: Vec<_> = requests.iter().map(|request| Sums::of(request, currency)).collect();
    prop_assert_eq!(&sum(of_requests.iter()), &session.sums);
    prop_assert_eq!(&sum(session.agents.iter().map(|agent| &agent.sums)), &session.sums);
    prop_assert_eq!(&sum(session.turns.iter().map(|turn| &turn.sums)), &session.sums);
    let tops = session.agents.iter().filter(|agent| agent.depth == 0);
    prop_assert_eq!(&sum(tops.map(|agent| &agent.with_children)), &session.sums);
    // By another way than that of the sums.
    let known: Decimal = requests.iter().filter_map(|request| request.price.known).sum();
    prop_assert_eq!(session.sums.cost.unwrap_or_default(), known);
    let whole = requests.iter().filter(|request| request.price.known.is_some());
    let whole = whole.filter(|request| request.price.is_whole).count();
    prop_assert_eq!(session.sums.is_at_least(), whole < requests.len());
    Ok(())
}

proptest! {
    #[test]
    fn agents_turns_and_requests_add_up_to_the_session(requests in requests()) {
        check(&session(requests.clone()), &requests)?;
    }

    #[test]
    fn no_request_is_wasted_twice(requests in requests()) {
        let session = session(requests.clone());
        let mut ids: Vec<_> =
            session.waste.iter().flat_map(|waste| &waste.requests).map(|it| it.id).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), count);
        for waste in &session.waste {
            prop_assert_eq!(&sum(waste.requests.iter().map(|it| &it.sums)), &waste.sums);
        }
        // Who left is told, whether it came again or not.
        let left = requests.iter().filter(|request| request.end == End::ClientLeft);
        for request in left {
            prop_assert!(ids.binary_search(&request.id).is_ok());
        }
    }
}

#[test]
fn a_cost_in_another_currency_is_unknown() {
    let mut other = request(2, 1);
    other.price.currency = Some("EUR".to_owned());
    let session = session([request(1, 0), other]);
    assert_eq!(session.currency.as_deref(), Some("USD"));
    assert_eq!(session.sums.cost, Some("0.25".parse().unwrap()));
    assert_eq!(session.sums.unknown_cost_requests, 1);
}

#[test]
fn a_cost_that_cannot_be_added_exactly_leaves_an_at_least() {
    let (mut huge, mut tiny) = (request(1, 0), request(2, 1));
    huge.price = cost(&Decimal::MAX.to_string());
    tiny.price = cost("0.0000000000001");
    let session = session([huge, tiny]);
    assert_eq!(session.sums.cost, Some(Decimal::MAX));
    assert_eq!(session.sums.unknown_cost_requests, 1);
}

#[test]
fn the_share_of_the_cache_is_of_requests_of_which_it_is_known() {
    let mut unknown = request(2, 1);
    unknown.cache_read_input_tokens = None;
    let session = session([request(1, 0), unknown]);
    assert_eq!((session.sums.input_tokens, session.cache_read_share), (Some(2000), Some(0.9)));
    let mut alone = request(1, 0);
    alone.cache_read_input_tokens = None;
    assert_eq!(super::super::fixtures::session([alone]).cache_read_share, None);
}

#[test]
fn a_session_ends_with_the_last_end_and_not_with_the_last_request() {
    let mut long = request(1, 0);
    long.ended_at = long.started_at + SignedDuration::from_secs(600);
    let (end, first) = (long.ended_at, long.id);
    let last = request(2, 10);
    let session = session([last.clone(), long]);
    assert_eq!((session.ended_at, session.first_id, session.last_id), (end, first, last.id));
}
