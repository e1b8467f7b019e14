//! Turns in order, and how their context grows.

use taximeter_ledger::RequestKind;

use crate::Request;
use crate::fixtures::{of_agent, request, session};

fn turn(number: u128, turn: Option<&str>, input: u64) -> Request {
    Request {
        turn: turn.map(str::to_owned),
        input_tokens: Some(input),
        ..of_agent(number, "root", None)
    }
}

#[test]
fn requests_of_one_turn_of_an_agent_are_together_and_others_stand_alone() {
    let mut other = turn(4, Some("t1"), 70);
    other.agent = Some("sub".to_owned());
    let session = session([
        turn(1, Some("t1"), 100),
        turn(2, Some("t2"), 300),
        turn(3, Some("t1"), 200),
        other,
        turn(5, None, 400),
        turn(6, None, 500),
    ]);
    let shown: Vec<_> = session
        .turns
        .iter()
        .map(|turn| (turn.number, turn.turn.as_deref(), turn.sums.requests, turn.context_tokens))
        .collect();
    let expected = [
        (1, Some("t1"), 2, Some(200)),
        (2, Some("t2"), 1, Some(300)),
        (3, Some("t1"), 1, Some(70)),
        (4, None, 1, Some(400)),
        (5, None, 1, Some(500)),
    ];
    assert_eq!(shown, expected);
    let growth: Vec<_> = session.turns.iter().map(|turn| turn.context_growth).collect();
    assert_eq!(growth, [None, Some(100), None, Some(100), Some(100)]);
    assert_eq!(session.agents[0].turns, 4);
    let ids = session.turns.iter().flat_map(|turn| &turn.request_ids);
    let ids: Vec<_> = ids.map(|id| id.0.as_u128()).collect();
    assert_eq!(ids, [1, 3, 2, 4, 5, 6], "each request is in one turn");
    assert!(session.turns.iter().all(|turn| turn.sums.requests == turn.request_ids.len() as u64));
}

#[test]
fn a_small_call_to_another_model_does_not_hide_the_growth() {
    let mut title = turn(2, None, 20);
    title.kind = Some(RequestKind::Title);
    let mut small = turn(3, None, 30);
    small.model = Some("small".to_owned());
    let session = session([turn(1, None, 1000), title, small, turn(4, None, 900)]);
    let growth: Vec<_> = session.turns.iter().map(|turn| turn.context_growth).collect();
    assert_eq!(growth, [None, None, None, Some(-100)]);
    assert_eq!(session.turns[1].kinds, [RequestKind::Title]);
}

#[test]
fn the_first_token_of_a_turn_is_that_of_its_first_answer() {
    let waited = |number, turn: &str, wait| Request {
        turn: Some(turn.to_owned()),
        time_to_first_token: wait,
        ..request(number, i64::try_from(number).unwrap())
    };
    let session = session([
        waited(1, "a", None),
        waited(2, "a", Some(3.0)),
        waited(3, "a", Some(9.0)),
        waited(4, "b", Some(1.0)),
        waited(5, "c", None),
    ]);
    let waits: Vec<_> = session.turns.iter().map(|turn| turn.time_to_first_token).collect();
    assert_eq!(waits, [Some(3.0), Some(1.0), None]);
    let spread = session.time_to_first_token.unwrap();
    assert_eq!((spread.count, spread.min, spread.max), (2, 1.0, 3.0));
}

#[test]
fn tools_and_stalls_are_told_with_their_requests() {
    let mut all: Vec<_> = (1..=12).map(|number| request(number, 0)).collect();
    for (at, request) in all.iter_mut().enumerate() {
        request.longest_stall = Some(f64::from(u32::try_from(at).unwrap()));
        request.tools = [("exec".to_owned(), 2), ("read".to_owned(), 1)].into();
    }
    let ids: Vec<_> = all.iter().map(|request| request.id).collect();
    let session = session(all);
    assert_eq!(session.tools, [("exec".to_owned(), 24), ("read".to_owned(), 12)].into());
    assert_eq!(session.agents[0].tools, session.tools);
    assert_eq!(session.stalls.len(), crate::STALLS_MAX);
    let first = &session.stalls[0];
    assert_eq!((first.id, first.seconds), (ids[11], 11.0));
    assert_eq!(session.agents[0].longest_stall, Some(11.0));
}

#[test]
fn the_dearest_turns_stay_in_order() {
    let mut all: Vec<_> = (1..=5).map(|number| turn(number, None, 10)).collect();
    for (request, cost) in all.iter_mut().zip(["0.3", "0.1", "0.2", "0.1", "0.5"]) {
        request.price = crate::fixtures::cost(cost);
    }
    let mut session = session(all);
    assert_eq!(session.dearest_turn().map(|turn| turn.number), Some(5));
    session.keep_turns(4);
    let left: Vec<_> = session.turns.iter().map(|turn| turn.number).collect();
    assert_eq!((left, session.turns_left_out), (vec![1, 2, 3, 5], 1));
    session.keep_turns(9);
    assert_eq!((session.turns.len(), session.turns_left_out), (4, 1));
}
