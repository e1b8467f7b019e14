//! The thread of `serve` that pushes one signal to a collector by OTLP.
//!
//! It knows only bytes. A source has batches of one signal and learns which of them were taken. A
//! round begins at fixed times and ends when the next one should begin. So a collector that is down
//! or slow costs no more than the memory of one round. The source decides what it loses by that.
//! Requests never wait for a push.

mod answer;
mod collector;
mod grpc;
mod signal;

use std::io;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use taximeter_config::Exporter;
use taximeter_net::retry::backoff;
use taximeter_net::sending::SenderThread;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use self::answer::Answer;
use self::collector::Collector;

pub use self::signal::{LOGS, METRICS, Signal, TRACES};

/// How long what is left may take at the end.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// A batch that is sent in one request.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The request's protobuf.
    pub body: Bytes,
    /// Data points, spans or log records in it.
    pub items: usize,
}

/// A source of batches.
pub trait Source: Send {
    /// Begins a round with the current content. Returns how many items were lost before it, because
    /// too many waited.
    fn begin(&mut self) -> usize;

    /// The next batch of the round.
    fn next(&mut self) -> Option<Batch>;

    /// Notes that the collector has the last batch.
    fn taken(&mut self);

    /// Ends the round, also after a panic. Returns how many of its items were never given out.
    fn abandon(&mut self) -> usize;
}

/// The result of a batch.
#[derive(Debug, PartialEq, Eq)]
pub enum ExportOutcome<'a> {
    /// The collector has it.
    Sent {
        /// Which signal.
        signal: &'static str,
        /// Items in it.
        items: usize,
        /// Those among them that it does not take.
        rejected: usize,
        /// What it said.
        message: &'a str,
    },
    /// The collector took nothing. The batch is sent again.
    Failed {
        /// Which signal.
        signal: &'static str,
        /// Why.
        reason: &'a str,
    },
    /// The batch is given up.
    Dropped {
        /// Which signal.
        signal: &'static str,
        /// Items that were not sent.
        items: usize,
        /// Why.
        reason: &'a str,
    },
    /// A round panicked. The next one begins normally.
    Panicked,
}

type Tell = Box<dyn Fn(&ExportOutcome<'_>) + Send>;

/// The thread that pushes one signal.
#[derive(Debug)]
pub struct Pusher(SenderThread);

impl Pusher {
    /// Starts a round of `source` at each `period`.
    ///
    /// Errors: the certificates to trust or to show cannot be read, or the system has no thread for it.
    pub fn start(
        exporter: &Exporter,
        signal: Signal,
        period: Duration,
        source: impl Source + 'static,
        tell: impl Fn(&ExportOutcome<'_>) + Send + 'static,
    ) -> io::Result<Self> {
        // A push has its time even where rounds follow each other faster.
        let limit = period.max(exporter.timeout);
        let rounds = Rounds {
            collector: Collector::new(exporter, signal)?,
            signal: signal.name,
            source,
            sending: 0,
            tell: Box::new(tell),
        };
        let rest = async |rounds: &mut Rounds<_>| rounds.last().await;
        let run = async move |rounds: &mut Rounds<_>| rounds.run(period, limit).await;
        SenderThread::start("otlp", rounds, run, rest).map(Self)
    }

    /// Asks the thread to send a last round, if the collector takes it soon, and to end. Does not
    /// wait for it.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Waits until the thread has ended.
    pub async fn ended(self) {
        self.0.ended().await;
    }
}

struct Rounds<S> {
    collector: Collector,
    signal: &'static str,
    source: S,
    /// Items of the batch that is being sent.
    sending: usize,
    tell: Tell,
}

impl<S: Source> Rounds<S> {
    /// Round after round, for ever.
    async fn run(&mut self, period: Duration, limit: Duration) {
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is now, when there is nothing yet.
        ticks.tick().await;
        loop {
            ticks.tick().await;
            self.guarded(limit).await;
        }
    }

    /// What is there at the end, once.
    async fn last(&mut self) {
        self.drop_rest("the gateway ends");
        self.guarded(STOP_WAIT).await;
    }

    /// One round within `limit`, whatever happens in it.
    async fn guarded(&mut self, limit: Duration) {
        let round = AssertUnwindSafe(timeout(limit, self.round())).catch_unwind().await;
        match round {
            Ok(Ok(())) => {}
            Ok(Err(_)) => self.drop_rest("the next round begins"),
            Err(_) => {
                (self.tell)(&ExportOutcome::Panicked);
                self.drop_rest("panicked");
            }
        }
    }

    async fn round(&mut self) {
        let lost = self.source.begin();
        if lost > 0 {
            self.tell_dropped(lost, "too many wait for the collector");
        }
        while let Some(batch) = self.source.next() {
            self.sending = batch.items;
            self.send(&batch).await;
            self.sending = 0;
        }
    }

    /// Sends a batch until the collector takes it or never will.
    async fn send(&mut self, batch: &Batch) {
        let signal = self.signal;
        let mut attempt = 0;
        loop {
            let failed = match self.collector.send(&batch.body).await {
                Answer::Taken { rejected, message } => {
                    self.source.taken();
                    let (items, message) = (batch.items, message.as_str());
                    (self.tell)(&ExportOutcome::Sent { signal, items, rejected, message });
                    return;
                }
                Answer::Refused { reason } => {
                    let (items, reason) = (batch.items, reason.as_str());
                    (self.tell)(&ExportOutcome::Dropped { signal, items, reason });
                    return;
                }
                Answer::Later { reason, wait } => (reason, wait),
            };
            let (reason, wait) = failed;
            (self.tell)(&ExportOutcome::Failed { signal, reason: &reason });
            sleep(backoff(attempt, wait)).await;
            attempt += 1;
        }
    }

    fn drop_rest(&mut self, reason: &str) {
        let items = std::mem::take(&mut self.sending) + self.source.abandon();
        if items > 0 {
            self.tell_dropped(items, reason);
        }
    }

    fn tell_dropped(&self, items: usize, reason: &str) {
        (self.tell)(&ExportOutcome::Dropped { signal: self.signal, items, reason });
    }
}

#[cfg(test)]
mod tests;
