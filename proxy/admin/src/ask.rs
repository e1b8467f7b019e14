//! Questions to the store: each on a thread of its own, so many at once, and not for ever. None of
//! the threads that carry requests or count tokens waits for one.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use taximeter_gateway::gateway::Gateway;
use taximeter_store::{Location, Store};
use taximeter_system::clock;
use tokio::sync::oneshot;

use super::problem::Refused;

/// Time for one of them; below that of a whole answer, so that it can say why there is none.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(9);

/// When a question is to give up.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// For whoever visits much.
    ///
    /// Errors: it has passed, and nobody waits for the answer any longer.
    pub(super) fn check(self) -> Result<(), Refused> {
        if clock::now() < self.0 { Ok(()) } else { Err(slow()) }
    }

    /// Whether it has passed.
    pub(super) fn has_passed(self) -> bool {
        self.check().is_err()
    }
}

/// Asks the store of this gateway.
///
/// Errors: `question`'s own; the store cannot be opened; too many are asking; it takes too long.
pub(super) async fn ask<T: Send + 'static>(
    gateway: &Arc<Gateway>,
    question: impl FnOnce(&mut Store, Deadline) -> Result<T, Refused> + Send + 'static,
) -> Result<T, Refused> {
    let permits = &gateway.admin.questions;
    let permit = permits
        .take()
        .ok_or_else(|| Refused::Busy(format!("{} questions are being asked", permits.most)))?;
    let deadline = Deadline(clock::now() + QUESTION_TIMEOUT);
    let location = Location::of(&gateway.config, &gateway.id);
    let (tell, told) = oneshot::channel();
    let thread = move || {
        let answer = location.open().map_err(Refused::from);
        let answer = answer.and_then(|mut store| question(&mut store, deadline));
        // The next one may begin as soon as this is told.
        drop(permit);
        // Who asked may have left.
        let _ = tell.send(answer);
    };
    thread::Builder::new()
        .name("question".to_owned())
        .spawn(thread)
        .map_err(|_| Refused::Busy("the system has no thread for a question".to_owned()))?;
    match tokio::time::timeout(QUESTION_TIMEOUT, told).await {
        Ok(Ok(answer)) => answer,
        // It has panicked, which is on stderr.
        Ok(Err(_)) => Err(Refused::Internal),
        Err(_) => Err(slow()),
    }
}

const fn slow() -> Refused {
    Refused::Slow { seconds: QUESTION_TIMEOUT.as_secs() }
}
