//! Asks engines, GPUs and hosts for their metrics, while the configuration says so.

use std::sync::{Arc, Weak};
use std::time::Duration;

use taximeter_control::{AnnotationsFile, Plan, Scraper};
use taximeter_gateway::gateway::{Current, Gateway};
use tokio::time::sleep;

use super::remembering::Remembering;

/// Time between two looks at whether there is anything to ask.
const LOOK_PERIOD: Duration = Duration::from_secs(1);

/// Starts the threads that ask and remember once a configuration wants it. The first ends with the
/// process.
pub(super) fn start(current: Current) -> Remembering {
    let gateway = current.get();
    let board = gateway.fleet.clone();
    let remembering = Remembering::of(&gateway);
    let kept = remembering.clone();
    gateway.background.spawn(async move {
        loop {
            let gateway = current.get();
            let is_read = gateway.config.fleet.is_some();
            // Without a thread it is tried again. What was kept before is bounded in any case.
            let is_kept =
                (is_read || gateway.samples.get().is_some()) && kept.start(current.clone());
            drop(gateway);
            if is_read && is_kept && Scraper::start(board.clone(), plans(current.clone())).is_ok() {
                return;
            }
            sleep(LOOK_PERIOD).await;
        }
    });
    remembering
}

/// What is asked: once, and again for each further configuration, and when the pod's annotations change.
fn plans(current: Current) -> impl FnMut() -> Option<Plan> + Send + 'static {
    let mut last = Weak::<Gateway>::new();
    let mut annotations = AnnotationsFile::default();
    move || {
        let gateway = current.get();
        let file = gateway.config.fleet.as_ref().and_then(|fleet| fleet.annotations.as_deref());
        let has_changed = annotations.refresh(file);
        if Weak::as_ptr(&last) == Arc::as_ptr(&gateway) && !has_changed {
            return None;
        }
        last = Arc::downgrade(&gateway);
        Some(Plan::of(&gateway.config, &annotations, |index| gateway.running(index).clone()))
    }
}
