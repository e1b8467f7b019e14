//! Looks from time to time at what a receiver lacks, so that people hear of it before it goes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use taximeter_config::Push;
use taximeter_journal::disk_budget::DiskBudget;
use taximeter_journal::{PushBacklog, PushOutcome};
use taximeter_system::clock;

use super::line::{Line, Tell};
use super::older::Older;

/// Time between two looks: each one counts.
const LOOK_PERIOD: Duration = Duration::from_secs(60);
/// A receiver that takes events is looked at if the next one is so old.
const LATE: SignedDuration = SignedDuration::from_hours(1);

/// What was told of a receiver.
pub(super) struct Watch {
    receiver: String,
    keep_days: u32,
    budget: Arc<DiskBudget>,
    looked: Option<Instant>,
    /// What was told last; `None` before anything was.
    told: Option<Option<PushBacklog>>,
}

impl Watch {
    pub(super) fn new(config: &Push, keep_days: u32, budget: Arc<DiskBudget>) -> Self {
        // A query may have a key.
        let scheme = if config.url.tls { "https" } else { "http" };
        let path = config.url.prefix.split('?').next().unwrap_or_default();
        let receiver = format!("{scheme}://{}{path}", config.url.authority());
        Self { receiver, keep_days, budget, looked: None, told: None }
    }

    /// Looks at what a receiver lacks that has taken nothing. What cannot be counted now is counted later.
    pub(super) async fn look(&mut self, requests: &Line, older: &mut Older, tell: &Tell) {
        let Some(oldest) = requests.pending().next() else { return };
        let (ledger, since, sent) = (oldest.ledger, oldest.since, requests.sent());
        let now = clock::now();
        if self.looked.is_some_and(|looked| now < looked + LOOK_PERIOD) {
            return;
        }
        let Ok(lacked) = older.ask(move |store| store.lacked(ledger, sent)).await else { return };
        self.looked = Some(now);
        let days_of_room = self.budget.days_of_room(lacked.bytes_before);
        let of = (lacked.requests, since);
        self.tell(Some(PushBacklog::new(of, clock::wall(), self.keep_days, days_of_room)), tell);
    }

    /// The same for a receiver that takes events, and lacks many.
    pub(super) async fn look_if_late(&mut self, requests: &Line, older: &mut Older, tell: &Tell) {
        let oldest = requests.pending().next().map(|oldest| oldest.since);
        if oldest.is_some_and(|since| clock::wall().duration_since(since) > LATE) {
            self.look(requests, older, tell).await;
        }
    }

    /// The receiver has all.
    pub(super) fn has_all(&mut self, tell: &Tell) {
        if self.told != Some(None) {
            self.looked = None;
            self.tell(None, tell);
        }
    }

    fn tell(&mut self, backlog: Option<PushBacklog>, tell: &Tell) {
        let is_at_risk = |told: Option<PushBacklog>| told.is_some_and(|it| it.is_at_risk);
        let has_turned = is_at_risk(self.told.flatten()) != is_at_risk(backlog);
        self.told = Some(backlog);
        tell(&PushOutcome::Behind { receiver: &self.receiver, backlog, has_turned });
    }
}
