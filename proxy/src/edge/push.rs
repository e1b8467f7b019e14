//! The thread of `serve` that sends the ledger's requests to a receiver of CloudEvents.
//!
//! It reads the journal, so that what the receiver misses costs nothing but disk: in the order of
//! the journal, one batch at a time, each one again until the receiver has it. An event's id stays
//! the same, so that a receiver can drop what comes twice. A batch that is refused is halved until
//! the event is found that is to blame; that one is set aside, and the others go on.

mod cursor;
mod receiver;
mod rejected;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use taximeter_billing::export::CloudEvent;
use taximeter_config::Push;
use taximeter_ledger::{Entry, Position, RequestId};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use self::cursor::Cursor;
use self::receiver::{Answer, Receiver, backoff};
use super::journal;

/// Time between two looks at a journal that has nothing new.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// How long what is left may take at the end; the rest is sent at the next start.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// Something that became of events.
#[derive(Debug)]
pub(crate) enum Told<'a> {
    /// The receiver has them.
    Stored {
        /// How many.
        events: usize,
    },
    /// The receiver takes all but this one, which was set aside.
    Rejected {
        /// Its request.
        id: RequestId,
        /// What the receiver said.
        reason: &'a str,
    },
    /// Nothing was taken; it is sent again.
    Failed {
        /// Why.
        reason: &'a str,
    },
    /// The journal has dropped entries that were not sent.
    Lost {
        /// Their first sequence number.
        first: u64,
        /// Their last.
        last: u64,
    },
    /// The journal is another one than before; all of it is sent.
    Replaced,
}

type Tell = Box<dyn Fn(&Told<'_>) + Send>;

/// A thread that sends what is new.
#[derive(Debug)]
pub(crate) struct Pusher {
    stop: Arc<Notify>,
    thread: JoinHandle<()>,
}

impl Pusher {
    /// Starts sending what the journal in `data_dir` gets after entry `newest`, or after the one
    /// that was the last to be sent before.
    ///
    /// Errors: the system has no thread for it, or no runtime.
    pub(crate) fn start(
        data_dir: &Path,
        config: &Push,
        newest: u64,
        tell: impl Fn(&Told<'_>) + Send + 'static,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stop = Arc::new(Notify::new());
        let mut queue = Queue {
            dir: data_dir.to_owned(),
            cursor: Cursor::load(data_dir, newest),
            entries: None,
            pending: VecDeque::new(),
            receiver: Receiver::new(config),
            batch_max: config.batch_max,
            tell: Box::new(tell),
        };
        let stopped = stop.clone();
        let thread = thread::Builder::new().name("push".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = queue.send_all() => {}
                    () = stopped.notified() => {}
                }
                // A receiver that is down now gets it after the next start.
                let _ = timeout(STOP_WAIT, queue.send_rest()).await;
            });
        })?;
        Ok(Self { stop, thread })
    }

    /// Sends what is left if the receiver takes it soon, then ends the thread.
    pub(crate) fn stop(self) {
        self.stop.notify_one();
        // One that panicked has told what it could; the rest is sent after the next start.
        let _ = self.thread.join();
    }
}

/// What is still to be sent.
struct Queue {
    dir: PathBuf,
    cursor: Cursor,
    entries: Option<journal::Entries>,
    pending: VecDeque<Event>,
    receiver: Receiver,
    batch_max: usize,
    tell: Tell,
}

/// An event, and its place in the journal.
struct Event {
    id: RequestId,
    position: Position,
    json: Vec<u8>,
}

/// Why nothing goes on; it is tried again.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("{reason}")]
    Receiver {
        reason: String,
        /// How long the receiver wants to be left alone.
        wait: Option<Duration>,
    },
    #[error("cannot read the journal: {0}")]
    Journal(#[from] journal::JournalError),
    #[error("cannot read an entry of the journal: {0}")]
    Entry(#[from] taximeter_ledger::Fault),
    #[error("cannot write to the data directory: {0}")]
    Disk(#[from] io::Error),
}

impl Queue {
    /// Sends for ever.
    async fn send_all(&mut self) {
        let mut attempt = 0;
        loop {
            match self.send_rest().await {
                Ok(()) => {
                    attempt = 0;
                    sleep(LOOK_INTERVAL).await;
                }
                Err(fault) => {
                    (self.tell)(&Told::Failed { reason: &fault.to_string() });
                    let asked =
                        if let Fault::Receiver { wait, .. } = &fault { *wait } else { None };
                    sleep(backoff(attempt, asked)).await;
                    attempt += 1;
                }
            }
        }
    }

    /// Sends all that the journal has.
    async fn send_rest(&mut self) -> Result<(), Fault> {
        loop {
            self.read()?;
            if self.pending.is_empty() {
                return Ok(());
            }
            self.send_batch().await?;
        }
    }

    /// Sends what is pending, in pieces where the receiver refuses the whole.
    async fn send_batch(&mut self) -> Result<(), Fault> {
        let mut size = self.pending.len();
        while !self.pending.is_empty() {
            let count = size.min(self.pending.len());
            let events = self.pending.iter().take(count).map(|event| &*event.json);
            match self.receiver.send(events).await {
                Answer::Stored => {
                    self.done(count)?;
                    (self.tell)(&Told::Stored { events: count });
                }
                Answer::Refused { .. } if count > 1 => size = count.div_ceil(2),
                Answer::Refused { reason } => {
                    if let Some(event) = self.pending.front() {
                        rejected::set_aside(&self.dir, &event.json, &reason)?;
                        (self.tell)(&Told::Rejected { id: event.id, reason: &reason });
                    }
                    self.done(1)?;
                    size = self.pending.len();
                }
                Answer::Later { reason, wait } => return Err(Fault::Receiver { reason, wait }),
            }
        }
        Ok(())
    }

    /// The first `count` need not be sent again.
    fn done(&mut self, count: usize) -> Result<(), Fault> {
        if let Some(last) = self.pending.drain(..count).next_back() {
            self.cursor = Cursor::at(last.position);
            self.cursor.save(&self.dir)?;
        }
        Ok(())
    }

    /// Fills what is pending up to a batch.
    fn read(&mut self) -> Result<(), Fault> {
        while self.pending.len() < self.batch_max {
            let Some(framed) = self.next()? else { return Ok(()) };
            if let Entry::Post(record) = framed.entry()? {
                let json = serde_json::to_vec(&CloudEvent::of(&record)).map_err(io::Error::from)?;
                let position = framed.position();
                self.pending.push_back(Event { id: record.id, position, json });
            }
        }
        Ok(())
    }

    /// The next entry that was not sent.
    fn next(&mut self) -> Result<Option<taximeter_ledger::Framed>, Fault> {
        if let Some(entries) = &mut self.entries {
            return match entries.next().transpose() {
                Ok(next) => Ok(next),
                Err(fault) => {
                    // From where the receiver has it, with open eyes.
                    self.entries = None;
                    self.pending.clear();
                    Err(fault.into())
                }
            };
        }
        let mut entries = journal::read(&self.dir, self.cursor.first());
        let first = entries.next().transpose()?;
        match self.cursor.check(first.as_ref().map(taximeter_ledger::Framed::position)) {
            cursor::Found::Nothing => Ok(None),
            cursor::Found::Last => {
                let next = entries.next().transpose()?;
                self.entries = Some(entries);
                Ok(next)
            }
            cursor::Found::Next => {
                self.entries = Some(entries);
                Ok(first)
            }
            cursor::Found::Gap { first: lost, last } => {
                (self.tell)(&Told::Lost { first: lost, last });
                self.entries = Some(entries);
                Ok(first)
            }
            cursor::Found::Other => {
                (self.tell)(&Told::Replaced);
                self.cursor = Cursor::START;
                Ok(None)
            }
        }
    }
}
