//! Requests for the tests.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use taximeter_ledger::{End, RequestId};
use uuid::Uuid;

use crate::request::{Price, Request};
use crate::session::{Session, SessionBuilder};

/// A complete request with this number, admitted so many seconds after the first one; it took 1 s.
pub(crate) fn request(number: u128, seconds: i64) -> Request {
    let started_at: Timestamp = "2026-11-20T09:00:00Z".parse().unwrap();
    let started_at = started_at + SignedDuration::from_secs(seconds);
    Request {
        id: RequestId(Uuid::from_u128(number)),
        started_at,
        ended_at: started_at + SignedDuration::from_secs(1),
        end: End::Complete,
        status: Some(200),
        agent: None,
        parent_agent: None,
        turn: None,
        kind: None,
        client: Some("codex/0.169".to_owned()),
        model: Some("m".to_owned()),
        input_tokens: Some(1000),
        cache_read_input_tokens: Some(900),
        output_tokens: Some(10),
        usage_is_unknown: false,
        price: cost("0.25"),
        is_free: false,
        time_to_first_token: Some(0.5),
        longest_stall: None,
        tools: BTreeMap::new(),
        units: BTreeMap::new(),
    }
}

/// A request of an agent below a parent.
pub(crate) fn of_agent(number: u128, agent: &str, parent: Option<&str>) -> Request {
    let seconds = i64::try_from(number).unwrap();
    Request {
        agent: Some(agent.to_owned()),
        parent_agent: parent.map(str::to_owned),
        ..request(number, seconds)
    }
}

/// A cost that is known.
pub(crate) fn cost(amount: &str) -> Price {
    Price { known: Some(amount.parse().unwrap()), is_whole: true, currency: Some("USD".to_owned()) }
}

/// The session of these requests.
pub(crate) fn session(requests: impl IntoIterator<Item = Request>) -> Session {
    let mut builder = SessionBuilder::default();
    requests.into_iter().for_each(|request| builder.add(request));
    builder.finish("acme", "s-1").unwrap()
}
