//! Sessions of any size and shape.

use crate::fixtures::{of_agent, request, session};
use crate::{REQUESTS_MAX, Request, SessionBuilder, table};

#[test]
fn a_chain_of_as_many_agents_as_requests_is_a_tree_like_any_other() {
    let chain = (0..REQUESTS_MAX).map(|number| {
        let parent = number.checked_sub(1).map(|parent| parent.to_string());
        of_agent(number as u128, &number.to_string(), parent.as_deref())
    });
    let session = session(chain);
    assert_eq!(session.agents.len(), REQUESTS_MAX);
    let last = session.agents.last().unwrap();
    assert_eq!(last.depth as usize, REQUESTS_MAX - 1);
    assert_eq!(session.agents[0].with_children, session.sums);
    assert!(table(&session, 100).lines().count() < 120);
}

#[test]
fn further_requests_are_in_the_sums_alone() {
    let mut builder = SessionBuilder::default();
    for number in 0..REQUESTS_MAX + 3 {
        builder.add(request(number as u128, i64::try_from(number).unwrap()));
    }
    let session = builder.finish("acme", "s-1").unwrap();
    assert_eq!(session.requests_left_out, 3);
    assert_eq!(session.sums.requests, REQUESTS_MAX as u64 + 3);
    assert_eq!(session.last_id.0.as_u128(), REQUESTS_MAX as u128 + 2);
    assert_eq!(session.turns.len(), REQUESTS_MAX);
    let last = "3 requests after the first 100,000 are in the sums only.\n";
    assert!(table(&session, 100).ends_with(last));
}

#[test]
fn without_a_request_there_is_no_session() {
    assert_eq!(SessionBuilder::default().finish("acme", "s-1"), None);
}

#[test]
fn names_cannot_leave_their_place_in_the_table() {
    let named =
        Request { turn: Some("\u{1b}[2J\u{202e}".to_owned()), ..of_agent(1, "a\nb", Some("\r")) };
    let text = table(&session([named]), 80);
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']), "{text:?}");
    assert!(text.contains("a\\nb names \\r as its parent, which has no request here."), "{text}");
}
