//! Each rule of waste, at its edges.

use jiff::SignedDuration;
use taximeter_ledger::{End, RequestKind};

use crate::fixtures::{request, session};
use crate::{Request, Session, WasteKind};

/// A request that ended like this. It took 1 s.
fn ended(number: u128, seconds: i64, end: End) -> Request {
    Request { end, ..request(number, seconds) }
}

/// The kinds, each with the numbers of its requests.
fn found(session: &Session) -> Vec<(WasteKind, Vec<u128>)> {
    let numbers = |waste: &crate::Waste| {
        waste.requests.iter().map(|request| request.id.0.as_u128()).collect()
    };
    session.waste.iter().map(|waste| (waste.kind, numbers(waste))).collect()
}

#[test]
fn a_retry_comes_within_a_minute_with_as_much_input() {
    let with = |input: u64, seconds: i64| {
        let mut again = request(2, seconds);
        again.input_tokens = Some(input);
        found(&session([ended(1, 0, End::UpstreamError), again]))
    };
    let retried = vec![(WasteKind::Retry, vec![1])];
    assert_eq!(with(1000, 1), retried);
    assert_eq!((with(990, 1), with(1010, 1)), (retried.clone(), retried.clone()));
    assert_eq!((with(989, 1), with(1011, 1)), (vec![], vec![]));
    assert_eq!((with(1000, 61), with(1000, 62)), (retried, vec![]));
}

#[test]
fn a_count_of_tokens_is_no_attempt_of_what_failed_before_it() {
    let mut failed = ended(1, 0, End::UpstreamError);
    failed.input_tokens = None;
    let again = request(2, 3);
    assert_eq!(found(&session([failed.clone(), again.clone()])), [(WasteKind::Retry, vec![1])]);
    let counted = Request { is_free: true, input_tokens: None, ..again };
    assert_eq!(found(&session([failed, counted])), []);
}

#[test]
fn each_attempt_is_told_with_the_next_one() {
    let session = session([
        ended(1, 0, End::UpstreamError),
        ended(2, 2, End::ClientLeft),
        ended(3, 4, End::Complete),
    ]);
    assert_eq!(found(&session), [(WasteKind::Retry, vec![1, 2])]);
    let by: Vec<_> = session.waste[0]
        .requests
        .iter()
        .map(|request| request.retried_by.unwrap().0.as_u128())
        .collect();
    assert_eq!(by, [2, 3]);
    assert_eq!(session.wasted().cost, Some("0.5".parse().unwrap()));
}

#[test]
fn one_attempt_is_that_of_one_failed_request() {
    let session = session([
        ended(1, 0, End::ClientLeft),
        ended(2, 0, End::ClientLeft),
        ended(3, 5, End::Complete),
    ]);
    assert_eq!(found(&session), [(WasteKind::Retry, vec![1]), (WasteKind::Abandoned, vec![2])]);
}

#[test]
fn a_request_beside_a_failed_one_is_no_other_attempt() {
    let mut failed = ended(1, 0, End::ClientLeft);
    failed.ended_at = failed.started_at + SignedDuration::from_secs(30);
    let at = |seconds| found(&session([failed.clone(), request(2, seconds)]));
    assert_eq!(at(29), [(WasteKind::Abandoned, vec![1])]);
    assert_eq!(at(30), [(WasteKind::Retry, vec![1])]);
}

#[test]
fn another_agent_does_not_retry() {
    let mut other = request(2, 2);
    other.agent = Some("sub".to_owned());
    let session = session([ended(1, 0, End::ClientLeft), other]);
    assert_eq!(found(&session), [(WasteKind::Abandoned, vec![1])]);
}

#[test]
fn an_error_without_usage_is_retried_by_the_same_model() {
    let mut refused = ended(1, 0, End::UpstreamRefused);
    (refused.status, refused.input_tokens, refused.output_tokens) = (Some(529), None, None);
    let with = |model: &str| {
        let mut again = request(2, 3);
        again.model = Some(model.to_owned());
        found(&session([refused.clone(), again]))
    };
    assert_eq!(with("m"), [(WasteKind::Retry, vec![1])]);
    assert_eq!(with("other"), []);
}

#[test]
fn the_cache_misses_after_more_than_five_minutes() {
    let with = |pause: i64, read: Option<u64>| {
        let mut later = request(2, 1 + pause);
        later.cache_read_input_tokens = read;
        session([request(1, 0), later])
    };
    let missed = with(301, Some(499));
    assert_eq!(found(&missed), [(WasteKind::CacheMiss, vec![2])]);
    assert_eq!(missed.waste[0].missed_tokens, Some(501));
    assert_eq!(missed.waste[0].requests[0].pause_seconds, Some(301.0));
    assert!(with(300, Some(0)).waste.is_empty());
    assert!(with(301, Some(500)).waste.is_empty());
    // Nobody knows whether a cache was there.
    assert!(with(301, None).waste.is_empty());
}

#[test]
fn after_a_compaction_the_cache_need_not_have_what_was_before() {
    let mut compaction = request(2, 10);
    compaction.kind = Some(RequestKind::Compaction);
    let mut after = request(3, 1000);
    (after.input_tokens, after.cache_read_input_tokens) = (Some(100), Some(0));
    let session = session([request(1, 0), compaction, after]);
    assert_eq!(found(&session), [(WasteKind::Compaction, vec![2])]);
}
