//! Pushes what comes once: spans and log records. They wait for a collector that is away as batches,
//! which are bounded by bytes, and are sent again until it takes them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use taximeter_net::retry::backoff;
use taximeter_system::clock;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval, sleep_until, timeout};

use super::answer::Answer;
use super::backlog::Backlog;
use super::collector::Collector;
use super::outcome::Teller;
use super::source::Source;

/// How long a batch is sent again and again before it is given up.
const RETRY_TIME_MAX: Duration = Duration::from_secs(3600);

/// A source whose items come once.
pub trait QueueSource: Source {
    /// Is notified when much has come since the last round.
    fn filling(&self) -> Arc<Notify>;

    /// Notes how many of its items wait in batches.
    fn note_waiting(&self, items: usize);
}

/// An answer that is awaited. It is kept when the sender is told to end, so that what the collector
/// has just taken is not told as dropped.
type Sending = Pin<Box<dyn Future<Output = Option<Answer>> + Send>>;

/// What the sender does.
enum State {
    Idle,
    Sending(u64, Sending),
    Pausing(Instant),
}

/// The queue of one signal on its way.
pub(super) struct Queued<S> {
    collector: Arc<Collector>,
    source: S,
    backlog: Backlog,
    state: State,
    /// Failures since the collector has last answered well.
    failures: u32,
    told: Teller,
}

impl<S: QueueSource> Queued<S> {
    /// Nothing waits yet, and at most so many bytes will.
    pub(super) fn new(collector: Collector, source: S, bytes_max: usize, told: Teller) -> Self {
        Self {
            collector: Arc::new(collector),
            source,
            backlog: Backlog::new(bytes_max),
            state: State::Idle,
            failures: 0,
            told,
        }
    }

    /// Makes batches at each `period`, and sends them, for ever.
    pub(super) async fn run(&mut self, period: Duration) {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is now, when there is nothing yet.
        ticks.tick().await;
        let filling = self.source.filling();
        loop {
            tokio::select! {
                _ = ticks.tick() => self.gather(),
                () = filling.notified() => self.gather(),
                ended = next(&mut self.state) => self.go_on(ended, clock::now()),
            }
            self.begin();
        }
    }

    /// Sends what is there at the end, within `limit`.
    pub(super) async fn last(&mut self, limit: Duration) {
        self.gather();
        self.failures = 0;
        if matches!(self.state, State::Pausing(_)) {
            self.state = State::Idle;
        }
        let all = async {
            self.begin();
            while !matches!(self.state, State::Idle) {
                let ended = next(&mut self.state).await;
                self.go_on(ended, clock::now());
                self.begin();
            }
        };
        // What is left is told.
        let _ = timeout(limit, all).await;
        let left = self.backlog.clear();
        self.told.dropped(left, "the gateway ends");
        self.source.note_waiting(0);
    }

    /// Makes batches of what has come.
    fn gather(&mut self) {
        let gathered = catch_unwind(AssertUnwindSafe(|| self.gather_all()));
        if gathered.is_err() {
            self.told.panicked();
            let lost = self.source.abandon();
            self.told.dropped(lost, "panicked");
        }
        self.source.note_waiting(self.backlog.items());
    }

    fn gather_all(&mut self) {
        let lost = self.source.begin();
        self.told.dropped(lost, "too many come at once");
        let sending = match self.state {
            State::Sending(number, _) => Some(number),
            State::Idle | State::Pausing(_) => None,
        };
        while let Some(batch) = self.source.next() {
            match self.collector.packed(&batch.body) {
                Ok(body) => {
                    let gone = self.backlog.push(body, batch.items, sending);
                    self.told.dropped(gone, "too many wait for the collector");
                }
                Err(fault) => self.told.dropped(batch.items, &fault.to_string()),
            }
        }
    }

    /// Begins to send a batch, if none is being sent and one may be.
    fn begin(&mut self) {
        if !matches!(self.state, State::Idle) {
            return;
        }
        let Some((number, body)) = self.backlog.due(clock::now()) else { return };
        let collector = self.collector.clone();
        let send = async move { collector.send(&body).await };
        let send = AssertUnwindSafe(send).catch_unwind().map(Result::ok);
        self.state = State::Sending(number, Box::pin(send));
    }

    /// Goes on after a pause, or after an answer to a batch; `None` in place of that is a panic.
    fn go_on(&mut self, ended: Option<(u64, Option<Answer>)>, now: Instant) {
        self.state = State::Idle;
        let Some((number, answer)) = ended else { return };
        match answer {
            Some(Answer::Taken { rejected, message }) => {
                self.failures = 0;
                let items = self.backlog.remove(number);
                self.told.sent(items, rejected, &message);
            }
            Some(Answer::Refused { reason }) => {
                let items = self.backlog.remove(number);
                self.told.dropped(items, &reason);
            }
            Some(Answer::Later { reason, wait }) => {
                self.told.failed(&reason);
                let tried = self.backlog.tried(number);
                if tried.is_some_and(|tried| now.duration_since(tried) >= RETRY_TIME_MAX) {
                    let items = self.backlog.remove(number);
                    self.told.dropped(items, "the collector has not taken it for an hour");
                }
                self.state = State::Pausing(now + backoff(self.failures, wait));
                self.failures = self.failures.saturating_add(1);
            }
            None => {
                self.told.panicked();
                let items = self.backlog.remove(number);
                self.told.dropped(items, "panicked");
            }
        }
        self.source.note_waiting(self.backlog.items());
    }
}

/// Waits until what the sender does has ended: for ever if it does nothing. Returns the batch that
/// was sent, and the answer to it.
async fn next(state: &mut State) -> Option<(u64, Option<Answer>)> {
    match state {
        State::Idle => std::future::pending().await,
        State::Sending(number, sending) => {
            let number = *number;
            Some((number, sending.await))
        }
        State::Pausing(until) => {
            sleep_until((*until).into()).await;
            None
        }
    }
}

#[cfg(test)]
mod tests;
