//! Pushes what each round tells anew. A round ends when the next one should begin, so a collector
//! that is down costs no more than the memory of one round.

use std::io;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt as _;
use taximeter_net::retry::backoff;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::answer::Answer;
use super::collector::Collector;
use super::outcome::Teller;
use super::source::{Batch, Source};

/// Rounds of one signal.
pub(super) struct Rounds<S> {
    pub(super) collector: Collector,
    pub(super) source: S,
    /// Items of the batch that is being sent.
    pub(super) sending: usize,
    pub(super) told: Teller,
}

impl<S: Source> Rounds<S> {
    /// Round after round, for ever.
    pub(super) async fn run(&mut self, period: Duration, limit: Duration) {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is now, when there is nothing yet.
        ticks.tick().await;
        loop {
            ticks.tick().await;
            self.guarded(limit).await;
        }
    }

    /// What is there at the end, once, within `limit`.
    pub(super) async fn last(&mut self, limit: Duration) {
        self.drop_rest("the gateway ends");
        self.guarded(limit).await;
    }

    /// One round within `limit`, whatever happens in it.
    pub(super) async fn guarded(&mut self, limit: Duration) {
        let round = AssertUnwindSafe(timeout(limit, self.round())).catch_unwind().await;
        match round {
            Ok(Ok(())) => {}
            Ok(Err(_)) => self.drop_rest("the next round begins"),
            Err(_) => {
                self.told.panicked();
                self.drop_rest("panicked");
            }
        }
    }

    async fn round(&mut self) {
        let lost = self.source.begin();
        self.told.dropped(lost, "too many come at once");
        while let Some(batch) = self.source.next() {
            self.sending = batch.items;
            if let Err(fault) = self.send(&batch).await {
                self.told.dropped(batch.items, &fault.to_string());
            }
            self.sending = 0;
        }
    }

    /// Sends a batch until the collector takes it or never will.
    ///
    /// Errors: it cannot be compressed.
    async fn send(&mut self, batch: &Batch) -> io::Result<()> {
        let packed = self.collector.packed(&batch.body)?;
        let mut attempt = 0;
        loop {
            match self.collector.send(&packed).await {
                Answer::Taken { rejected, message } => {
                    self.source.taken();
                    self.told.sent(batch.items, rejected, &message);
                    return Ok(());
                }
                Answer::Refused { reason } => {
                    self.told.dropped(batch.items, &reason);
                    return Ok(());
                }
                Answer::Later { reason, wait } => {
                    self.told.failed(&reason);
                    sleep(backoff(attempt, wait)).await;
                    attempt += 1;
                }
            }
        }
    }

    fn drop_rest(&mut self, reason: &str) {
        let items = std::mem::take(&mut self.sending) + self.source.abandon();
        self.told.dropped(items, reason);
    }
}

#[cfg(test)]
mod tests;
