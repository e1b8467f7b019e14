//! Requests of sessions, added up by session and UTC day of admission.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use taximeter_ledger::{Correction, End, Place, PostBytes, join_payload};
use taximeter_sessions::{DaySum, RunningRequest};

use super::day::day_of;
use super::post::Post;

/// The first status that is an error.
const ERROR_STATUS_MIN: u16 = 400;

/// A session on a UTC day. The same name of two tenants is two sessions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionDay {
    /// First instant of the day, in microseconds since 1970.
    pub day: i64,
    /// The tenant that pays.
    pub tenant: String,
    /// The name of the session.
    pub session: String,
}

/// Which sessions are asked for.
#[derive(Debug, Clone, Copy, Default)]
pub struct WhichSessions<'a> {
    /// First instant of the first day, in microseconds since 1970, and that of the day after the last one.
    pub days: (i64, i64),
    /// Only those of this tenant, if set.
    pub tenant: Option<&'a str>,
    /// Only those of this name, if set.
    pub session: Option<&'a str>,
}

/// Sees what a session adds up to on a day: the first instant of the day, the tenant, the name, the sum.
pub type SessionVisitor<'a> = dyn FnMut(i64, &str, &str, DaySum) -> ControlFlow<()> + 'a;

/// Sums in one order always, so that those who write several rows at the same time never wait for each
/// other in a circle.
pub type Sums = BTreeMap<SessionDay, DaySum>;

/// What requests and corrections that are new to the store add to their sessions.
#[derive(Debug, Default)]
pub struct NewSessions {
    /// What requests add.
    pub requests: Sums,
    /// What corrections change.
    pub corrections: Sums,
}

impl NewSessions {
    /// Adds a request that was not in the store, if its client names a session.
    pub fn add_post(&mut self, place: Place, bytes: &PostBytes<'_>) {
        if !bytes.has_dimensions() {
            return;
        }
        let mut payload = Vec::new();
        // One whose session cannot be read has none, as for everybody who reads it.
        join_payload(bytes.id, bytes.strings, bytes.members, &mut payload);
        if let Ok(post) = Post::read(place, &payload) {
            self.add_read(&post);
        }
    }

    /// The same of a request that no batch has.
    pub fn add_read(&mut self, post: &Post<'_>) {
        if let Some((day, request)) = session_of(post) {
            add(&mut self.requests, day, DaySum::of(&request));
        }
    }

    /// Adds a correction that was not in the store, of the request `post`.
    pub fn add_correction(&mut self, post: &Post<'_>, correction: &Correction) {
        if let Some((day, request)) = session_of(post) {
            add(&mut self.corrections, day, DaySum::corrected(&request, correction));
        }
    }

    /// How many sums there are.
    pub fn count(&self) -> usize {
        self.requests.len() + self.corrections.len()
    }

    /// All sums, in order.
    pub fn into_sums(self) -> impl Iterator<Item = (SessionDay, DaySum)> {
        let mut sums = self.requests;
        self.corrections.into_iter().for_each(|(day, sum)| add(&mut sums, day, sum));
        sums.into_iter()
    }
}

fn add(sums: &mut Sums, day: SessionDay, sum: DaySum) {
    match sums.get_mut(&day) {
        Some(known) => known.add(&sum),
        None => drop(sums.insert(day, sum)),
    }
}

/// Whether a request is of a session of this name.
#[must_use]
pub fn is_of(post: &Post<'_>, session: &str) -> bool {
    let dimensions = post.view().dimensions.as_deref();
    dimensions.and_then(|dimensions| dimensions.session.as_deref()) == Some(session)
}

/// The session of a request on its day, and what its sum needs to know, if its client names one.
#[must_use]
pub fn session_of<'a>(post: &'a Post<'_>) -> Option<(SessionDay, RunningRequest<'a>)> {
    let view = post.view();
    let dimensions = view.dimensions.as_deref()?;
    let day = SessionDay {
        day: day_of(view.started_at.as_microsecond()),
        tenant: view.tenant.to_owned(),
        session: dimensions.session.clone()?,
    };
    let is_error = view.status.is_some_and(|status| status >= ERROR_STATUS_MIN);
    let request = RunningRequest {
        id: view.id,
        ended_at: view.ended_at,
        has_failed: view.end != End::Complete || is_error,
        agent: dimensions.agent.as_deref(),
        client: dimensions.client.as_deref(),
        row: post.row(),
    };
    Some((day, request))
}
