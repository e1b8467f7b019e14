//! Queries of the store. Each query runs on its own thread, so no thread that carries requests or
//! counts tokens waits for it. Both the number of queries and their time are limited.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use taximeter_gateway::gateway::Gateway;
use taximeter_store::{Location, Store};
use taximeter_system::clock;
use tokio::sync::oneshot;

use super::problem::ApiError;

/// Longest time for one query. It is shorter than the time for a whole answer, so that the answer
/// can say what happened.
const QUERY_TIMEOUT: Duration = Duration::from_secs(9);

/// When a query must give up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// Lets a long query stop early.
    ///
    /// Errors: the time has passed, so nobody waits for the answer.
    pub(super) fn check(self) -> Result<(), ApiError> {
        if clock::now() < self.0 { Ok(()) } else { Err(slow()) }
    }

    /// Whether the time has passed.
    pub(super) fn has_passed(self) -> bool {
        self.check().is_err()
    }
}

/// Runs a query of the gateway's store.
///
/// Errors: those of `query`; the store cannot be opened; too many queries run; it takes too long.
pub(super) async fn ask<T: Send + 'static>(
    gateway: &Arc<Gateway>,
    query: impl FnOnce(&mut Store, Deadline) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let location = Location::of(&gateway.config, &gateway.id);
    ask_thread(gateway, move |deadline| query(&mut location.open()?, deadline)).await
}

/// Runs a query of whatever takes its time.
///
/// Errors: those of `query`; too many queries run; it takes too long.
pub(super) async fn ask_thread<T: Send + 'static>(
    gateway: &Arc<Gateway>,
    query: impl FnOnce(Deadline) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let permits = &gateway.admin.questions;
    let permit = permits.take().ok_or_else(|| {
        ApiError::Busy(format!("the store already runs {} queries", permits.most))
    })?;
    let deadline = Deadline(clock::now() + QUERY_TIMEOUT);
    let (sender, receiver) = oneshot::channel();
    let thread = move || {
        let answer = query(deadline);
        // The client may send its next query as soon as it has this answer.
        drop(permit);
        // The client may have left.
        let _ = sender.send(answer);
    };
    thread::Builder::new()
        .name("query".to_owned())
        .spawn(thread)
        .map_err(|_| ApiError::Busy("the system has no thread for the query".to_owned()))?;
    match tokio::time::timeout(QUERY_TIMEOUT, receiver).await {
        Ok(Ok(answer)) => answer,
        // The thread panicked. The panic is on stderr.
        Ok(Err(_)) => Err(ApiError::Internal),
        Err(_) => Err(slow()),
    }
}

const fn slow() -> ApiError {
    ApiError::Slow { seconds: QUERY_TIMEOUT.as_secs() }
}
