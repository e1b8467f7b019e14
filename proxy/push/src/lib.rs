//! The thread of `serve` that sends the ledger's requests and their corrections to a receiver of
//! CloudEvents.
//!
//! It reads the journals in their order, one batch at a time, and sends each batch again until the
//! receiver takes it. Each journal has a cursor of its own (`PushCursor` in `journal`), which is a
//! sequence number, because a rebuild numbers the rows of the store anew. An event keeps its id, so
//! that a receiver can drop duplicates. A correction comes after its request, because the request
//! was written first. If the receiver refuses a batch, the thread halves the batch until it finds
//! the event at fault. It sets that event aside and sends the others.
//!
//! Nothing waits for the receiver: the journal goes as if it had all. What it lacks then comes from the
//! store, in the same order (`line.rs`). So an outage costs nothing until the details of requests go
//! that were not sent. People are told a week before (`backlog.rs`).

mod backlog;
mod fault;
mod line;
mod older;
mod receiver;
mod rejected;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taximeter_config::Push;
use taximeter_journal::disk_budget::DiskBudget;
use taximeter_journal::{
    CORRECTIONS, PUSHED, PUSHED_CORRECTIONS, PushCursor, PushOutcome, REQUESTS,
};
use taximeter_net::retry::backoff;
use taximeter_net::sending::SenderThread;
use taximeter_store::Location;
use tokio::time::{sleep, timeout};

use self::backlog::Watch;
use self::fault::PushFault;
use self::line::{Line, Tell};
use self::older::Older;
use self::receiver::{Answer, Receiver};

/// Time between two looks at a journal that has nothing new.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// How long what is left may take at the end; the rest is sent at the next start.
const STOP_WAIT: Duration = Duration::from_secs(2);
/// What is sent, and how long it is there.
#[derive(Debug)]
pub struct Source<'a> {
    /// The data directory, which has the journals.
    pub data_dir: &'a Path,
    /// The store that has what the journals no longer have.
    pub store: Location,
    /// The last entry that was written before the start.
    pub newest: u64,
    /// `ledger.records_keep_days`.
    pub keep_days: u32,
    /// The room of the data directory.
    pub budget: Arc<DiskBudget>,
}

/// The thread that sends new events.
#[derive(Debug)]
pub struct Delivery(SenderThread);

impl Delivery {
    /// Starts to send the entries of the journal that come after the newest one, or after the last one
    /// that was sent before.
    ///
    /// While the data directory cannot be written, nothing is sent.
    ///
    /// # Errors
    /// The system has no thread for it, or no runtime.
    pub fn start(
        source: Source<'_>,
        config: &Push,
        tell: impl Fn(&PushOutcome<'_>) + Send + 'static,
    ) -> io::Result<Self> {
        let Source { data_dir, store, newest, keep_days, budget } = source;
        let queue = Queue {
            // From now on nothing is dropped that the receiver lacks.
            requests: open_requests(data_dir, newest).ok(),
            newest,
            corrections: None,
            dir: data_dir.to_owned(),
            receiver: Receiver::new(config),
            older: Older::new(store),
            watch: Watch::new(config, keep_days, budget),
            batch_max: config.batch_max,
            tell: Box::new(tell),
        };
        let sending = SenderThread::start("push", queue, Queue::send_all, async |queue| {
            // A receiver that is down now gets it after the next start.
            let _ = timeout(STOP_WAIT, queue.send_rest()).await;
        })?;
        Ok(Self(sending))
    }

    /// Asks the thread to send the rest, if the receiver takes it soon, and to end. Does not wait
    /// for it.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Waits until the thread has ended.
    pub async fn ended(self) {
        self.0.ended().await;
    }
}

/// What is still to be sent.
struct Queue {
    dir: PathBuf,
    /// `None` until the directory says where they begin.
    requests: Option<Line>,
    /// The last entry that was written before the start.
    newest: u64,
    /// `None` until it is known where they begin.
    corrections: Option<Line>,
    receiver: Receiver,
    older: Older,
    watch: Watch,
    batch_max: usize,
    tell: Tell,
}

impl Queue {
    /// Sends for ever.
    async fn send_all(&mut self) {
        let mut attempt = 0;
        loop {
            match self.send_rest().await {
                Ok(()) => {
                    attempt = 0;
                    self.watch.has_all(&self.tell);
                    sleep(LOOK_INTERVAL).await;
                }
                Err(fault) => {
                    // Without a cursor, what is written before the next start would not be sent. So
                    // there is no long pause, and it is told once.
                    let may_begin = self.requests.is_some();
                    if may_begin || attempt == 0 {
                        (self.tell)(&PushOutcome::Failed { reason: &fault.to_string() });
                    }
                    if let Some(requests) = &self.requests {
                        self.watch.look(requests, &mut self.older, &self.tell).await;
                    }
                    let asked =
                        if let PushFault::Receiver { wait, .. } = &fault { *wait } else { None };
                    sleep(backoff(if may_begin { attempt } else { 0 }, asked)).await;
                    attempt += 1;
                }
            }
        }
    }

    /// Sends all that the journals have.
    async fn send_rest(&mut self) -> Result<(), PushFault> {
        let Self { dir, requests, newest, corrections, receiver, batch_max, tell, .. } = self;
        let (older, watch) = (&mut self.older, &mut self.watch);
        let requests = match requests {
            Some(line) => line,
            None => requests.insert(open_requests(dir, *newest)?),
        };
        let corrections = match corrections {
            Some(line) => line,
            None => corrections.insert(open_corrections(dir)?),
        };
        let mut sender = Sender { dir, receiver, tell };
        loop {
            // Read before the requests are: so each of theirs is among those.
            corrections.read(*batch_max, older, tell).await?;
            loop {
                requests.read(*batch_max, older, tell).await?;
                if requests.pending().len() == 0 {
                    break;
                }
                watch.look_if_late(requests, older, tell).await;
                sender.send(requests).await?;
            }
            if corrections.pending().len() == 0 {
                return Ok(());
            }
            sender.send(corrections).await?;
        }
    }
}

/// Those behind the last one that was sent, or behind `newest` at the first start.
fn open_requests(dir: &Path, newest: u64) -> io::Result<Line> {
    let file = dir.join(PUSHED);
    let mut cursor = PushCursor::load(&file, || Ok::<_, io::Error>(newest))?;
    if cursor.is_beyond(newest) {
        // All of another journal is sent, also if there is no room to say so.
        PushCursor::forget(&file)?;
        cursor = PushCursor::START;
    }
    cursor.save(&file)?;
    Ok(Line::new(REQUESTS, dir.to_owned(), file, cursor))
}

/// Those that are written from the first start on: what was there before is not sent.
fn open_corrections(dir: &Path) -> Result<Line, PushFault> {
    let (journal, file) = (dir.join(CORRECTIONS), dir.join(PUSHED_CORRECTIONS));
    let cursor = PushCursor::load(&file, || line::newest(&journal))?;
    Ok(Line::new(CORRECTIONS, journal, file, cursor))
}

/// Sends what is pending.
struct Sender<'a> {
    dir: &'a Path,
    receiver: &'a Receiver,
    tell: &'a Tell,
}

impl Sender<'_> {
    /// Sends all that is pending, in pieces where the receiver refuses the whole.
    async fn send(&mut self, line: &mut Line) -> Result<(), PushFault> {
        let mut size = line.pending().len();
        while line.pending().len() > 0 {
            let count = size.min(line.pending().len());
            let events = line.pending().take(count).map(|event| &*event.json);
            match self.receiver.send(events).await {
                Answer::Stored => {
                    line.done(count)?;
                    (self.tell)(&PushOutcome::Stored { events: count });
                }
                Answer::Refused { .. } if count > 1 => size = count.div_ceil(2),
                Answer::Refused { reason } => {
                    if let Some(event) = line.pending().next() {
                        rejected::set_aside(self.dir, &event.json, &reason)?;
                        (self.tell)(&PushOutcome::Rejected { id: event.id, reason: &reason });
                    }
                    line.done(1)?;
                    size = line.pending().len();
                }
                Answer::Later { reason, wait } => return Err(PushFault::Receiver { reason, wait }),
            }
        }
        Ok(())
    }
}
