//! The threads of `serve` that push the signals to a collector by OTLP.
//!
//! They know only bytes. A source has batches of one signal. Metrics are told anew in each round
//! (`rounds`): a round ends when the next one should begin, and the source decides what it loses by
//! that. Spans and log records come once (`queued`): they wait as batches, which are bounded by bytes,
//! and are sent until the collector takes them. Requests never wait for a push.

mod answer;
mod backlog;
mod collector;
mod fault;
#[cfg(test)]
mod nobody;
mod outcome;
mod queued;
mod rounds;
mod signal;
mod source;

use std::io;
use std::time::Duration;

use taximeter_config::Exporter;
use taximeter_net::sending::SenderThread;

use self::collector::Collector;
use self::outcome::Teller;
use self::queued::Queued;
use self::rounds::Rounds;

pub use self::outcome::ExportOutcome;
pub use self::queued::QueueSource;
pub use self::signal::{LOGS, METRICS, Signal, TRACES};
pub use self::source::{Batch, Source};

/// How long what is left may take at the end.
const STOP_WAIT: Duration = Duration::from_secs(5);
/// What may wait of one signal for the collector, in bytes as they are sent.
const BACKLOG_BYTES_MAX: usize = 32 << 20;

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
            source,
            sending: 0,
            told: Teller { signal: signal.name, tell: Box::new(tell) },
        };
        let rest = async |rounds: &mut Rounds<_>| rounds.last(STOP_WAIT).await;
        let run = async move |rounds: &mut Rounds<_>| rounds.run(period, limit).await;
        SenderThread::start("otlp", rounds, run, rest).map(Self)
    }

    /// Makes batches of `source` at each `period`, and sends each until it is taken.
    ///
    /// Errors: the certificates to trust or to show cannot be read, or the system has no thread for it.
    pub fn start_queue(
        exporter: &Exporter,
        signal: Signal,
        period: Duration,
        source: impl QueueSource + 'static,
        tell: impl Fn(&ExportOutcome<'_>) + Send + 'static,
    ) -> io::Result<Self> {
        let collector = Collector::new(exporter, signal)?;
        let told = Teller { signal: signal.name, tell: Box::new(tell) };
        let queued = Queued::new(collector, source, BACKLOG_BYTES_MAX, told);
        let rest = async |queued: &mut Queued<_>| queued.last(STOP_WAIT).await;
        let run = async move |queued: &mut Queued<_>| queued.run(period).await;
        SenderThread::start("otlp", queued, run, rest).map(Self)
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
