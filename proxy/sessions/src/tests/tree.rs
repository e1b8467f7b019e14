//! Agents, whatever clients claim of their parents.

use proptest::prelude::*;

use crate::fixtures::{of_agent, request, session};
use crate::tree::ParentState;
use crate::{Request, Session};

/// Each agent with its depth and its state.
fn shown(session: &Session) -> Vec<(&str, u32, Option<ParentState>)> {
    let shown = session
        .agents
        .iter()
        .map(|agent| (agent.agent.as_deref().unwrap_or("-"), agent.depth, agent.parent_state));
    shown.collect()
}

#[test]
fn agents_stand_below_their_parents_in_the_order_in_which_they_came() {
    let session = session([
        of_agent(1, "root", None),
        of_agent(2, "b", Some("root")),
        of_agent(3, "a", Some("root")),
        of_agent(4, "b1", Some("b")),
        of_agent(5, "root", None),
    ]);
    let known = Some(ParentState::Known);
    assert_eq!(
        shown(&session),
        [("root", 0, None), ("b", 1, known), ("b1", 2, known), ("a", 1, known)]
    );
    let costs: Vec<_> = session
        .agents
        .iter()
        .map(|agent| (agent.sums.requests, agent.with_children.cost.unwrap().to_string()))
        .collect();
    let expected = [(2, "1.25"), (1, "0.5"), (1, "0.25"), (1, "0.25")];
    assert_eq!(costs, expected.map(|(requests, cost)| (requests, cost.to_owned())));
}

#[test]
fn a_parent_may_come_later_or_never() {
    let session = session([
        of_agent(1, "child", Some("root")),
        of_agent(2, "orphan", Some("nobody")),
        of_agent(3, "root", None),
    ]);
    let expected = [
        ("orphan", 0, Some(ParentState::Missing)),
        ("root", 0, None),
        ("child", 1, Some(ParentState::Later)),
    ];
    assert_eq!(shown(&session), expected);
}

#[test]
fn an_agent_that_is_its_own_ancestor_stands_at_the_top() {
    let alone = session([of_agent(1, "a", Some("a"))]);
    assert_eq!(shown(&alone), [("a", 0, Some(ParentState::Itself))]);
    let circle = session([
        of_agent(1, "below", Some("c")),
        of_agent(2, "a", Some("b")),
        of_agent(3, "b", Some("c")),
        of_agent(4, "c", Some("a")),
    ]);
    let expected = [
        ("a", 0, Some(ParentState::Cycle)),
        ("c", 1, Some(ParentState::Known)),
        ("below", 2, Some(ParentState::Later)),
        ("b", 2, Some(ParentState::Later)),
    ];
    assert_eq!(shown(&circle), expected);
    assert_eq!(circle.agents[0].with_children, circle.sums);
}

#[test]
fn the_first_parent_that_an_agent_names_counts_and_others_are_told() {
    let session = session([
        of_agent(1, "x", None),
        of_agent(2, "y", None),
        of_agent(3, "a", None),
        of_agent(4, "a", Some("y")),
        of_agent(5, "a", Some("x")),
    ]);
    let agent = session.agents.iter().find(|agent| agent.agent.as_deref() == Some("a")).unwrap();
    assert_eq!(agent.parent_agent.as_deref(), Some("y"));
    assert_eq!((agent.depth, agent.other_parent_requests), (1, 1));
}

#[test]
fn requests_whose_client_names_no_agent_are_an_agent_without_a_name() {
    let session = session([request(1, 0), of_agent(2, "sub", None), request(3, 5)]);
    assert_eq!(shown(&session), [("-", 0, None), ("sub", 0, None)]);
    assert_eq!(session.agents[0].sums.requests, 2);
}

/// Requests of few agents, each with any parent.
fn claims() -> impl Strategy<Value = Vec<Request>> {
    let name = || prop::option::of(0..6_u8);
    prop::collection::vec((name(), name()), 1..40).prop_map(|claims| {
        let request = |(number, (agent, parent)): (usize, (Option<u8>, Option<u8>))| Request {
            agent: agent.map(|name| name.to_string()),
            parent_agent: parent.map(|name| name.to_string()),
            ..request(number as u128, i64::try_from(number).unwrap())
        };
        claims.into_iter().enumerate().map(request).collect()
    })
}

proptest! {
    #[test]
    fn whatever_is_claimed_each_agent_is_in_the_tree_once(requests in claims()) {
        let mut names: Vec<_> = requests.iter().map(|request| request.agent.clone()).collect();
        names.sort();
        names.dedup();
        let session = session(requests);
        let mut found: Vec<_> = session.agents.iter().map(|agent| agent.agent.clone()).collect();
        found.sort();
        prop_assert_eq!(found, names);
        // A list with depths is a tree if none is more than one deeper than the one before.
        let depths: Vec<_> = session.agents.iter().map(|agent| agent.depth).collect();
        prop_assert_eq!(depths[0], 0);
        prop_assert!(depths.windows(2).all(|pair| pair[1] <= pair[0] + 1));
        // What stands below an agent is what it says it works for.
        for (at, agent) in session.agents.iter().enumerate() {
            let above = session.agents[..at].iter().rev().find(|other| other.depth < agent.depth);
            prop_assert_eq!(above.is_some(), agent.depth > 0);
            if let Some(above) = above {
                prop_assert_eq!(&above.agent, &agent.parent_agent);
            }
        }
    }
}
