//! The thread of `serve` that feeds the store, away from the requests.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use crate::edge::store::{Entries, Fed, ReadError, Store, StoreError};

/// Least time between two feedings: many entries make one transaction.
const FEED_INTERVAL: Duration = Duration::from_millis(500);

/// Reads the journal on the feeder's thread, from this sequence number on.
pub(crate) type ReadJournal = Box<dyn FnMut(u64) -> Result<Entries, ReadError> + Send>;

/// A thread that keeps the store up with the journal.
#[derive(Debug)]
pub(crate) struct Feeder {
    signals: Arc<Signals>,
    thread: JoinHandle<()>,
}

/// Tells the feeder that the journal has grown; cheap enough for every entry.
#[derive(Debug, Clone)]
pub(crate) struct Bell {
    signals: Arc<Signals>,
    thread: Thread,
}

#[derive(Debug, Default)]
struct Signals {
    grown: AtomicBool,
    stop: AtomicBool,
}

impl Feeder {
    /// Starts with a first feeding; `told` hears what each one did.
    ///
    /// A feeding that fails is tried again after the interval; the journal keeps what is missing.
    /// Errors: the system has no thread for it.
    pub(crate) fn start(
        store: Store,
        read: ReadJournal,
        told: impl FnMut(Result<Fed, StoreError>) + Send + 'static,
    ) -> io::Result<Self> {
        let signals = Arc::new(Signals { grown: true.into(), stop: false.into() });
        let shared = signals.clone();
        let thread = thread::Builder::new()
            .name("feeder".to_owned())
            .spawn(move || feed_until_stopped(store, read, told, &shared))?;
        Ok(Self { signals, thread })
    }

    /// For the one who writes the journal.
    #[must_use]
    pub(crate) fn bell(&self) -> Bell {
        Bell { signals: self.signals.clone(), thread: self.thread.thread().clone() }
    }

    /// Feeds what is left, then ends the thread.
    pub(crate) fn stop(self) {
        self.signals.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        // A feeder that panicked has told what it could; the store catches up at the next start.
        let _ = self.thread.join();
    }
}

impl Bell {
    /// The journal has grown.
    pub(crate) fn ring(&self) {
        if !self.signals.grown.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }
}

fn feed_until_stopped(
    mut store: Store,
    mut read: ReadJournal,
    mut told: impl FnMut(Result<Fed, StoreError>),
    signals: &Signals,
) {
    let mut open = None;
    loop {
        let stop = signals.stop.load(Ordering::Acquire);
        if signals.grown.swap(false, Ordering::AcqRel) || stop {
            let fed = store.catch_up(&mut open, &mut *read);
            if fed.is_err() {
                signals.grown.store(true, Ordering::Release);
            }
            told(fed);
            if stop {
                return;
            }
            // An early wake is harmless: it only makes a smaller transaction.
            thread::park_timeout(FEED_INTERVAL);
        } else {
            thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc;

    use super::*;
    use crate::edge::store::samples::{journal, record};

    #[test]
    fn it_feeds_at_the_start_at_the_bell_and_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut entries = journal([record(1), record(2), record(3), record(4)]);
        let (fourth, third) = (entries.pop().unwrap(), entries.pop().unwrap());
        let entries = Arc::new(Mutex::new(entries));
        let (told, heard) = mpsc::channel();
        let source = entries.clone();
        let read = move |_from| {
            let (source, mut at) = (source.clone(), 0);
            let next = move || {
                let next = source.lock().unwrap().get(at).cloned();
                at += usize::from(next.is_some());
                next.map(Ok)
            };
            Ok(Box::new(std::iter::from_fn(next)) as Entries)
        };
        let store = Store::open(dir.path()).unwrap();
        let feeder = Feeder::start(store, Box::new(read), move |fed| {
            let _ = told.send(fed.unwrap().records);
        })
        .unwrap();
        assert_eq!(heard.recv().unwrap(), 2);

        entries.lock().unwrap().push(third);
        feeder.bell().ring();
        assert_eq!(heard.recv().unwrap(), 1);

        entries.lock().unwrap().push(fourth);
        feeder.stop();
        assert_eq!(heard.iter().sum::<u64>(), 1);
    }
}
