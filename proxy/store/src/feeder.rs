//! The thread of `serve` that feeds the store, apart from the requests.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use jiff::Timestamp;
use taximeter_system::thread::Started;

use crate::{Fed, Feed, Store, StoreError};

/// Least time between two feedings: many entries make one transaction.
const FEED_INTERVAL: Duration = Duration::from_millis(500);
/// Time between two attempts while the store cannot be used.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// How far the store is behind the journals, shared between threads.
#[derive(Debug, Default)]
pub struct Feeding(Mutex<FeedState>);

/// How far the store is behind the journals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedState {
    /// Sequence number of the last entry of the journal of requests that the store has; 0 before
    /// the first feeding.
    pub stored: u64,
    /// The time of the last feeding that succeeded.
    pub fed_at: Option<Timestamp>,
    /// Why the last feeding failed; `None` when it did not.
    pub fault: Option<String>,
}

impl Feeding {
    /// Notes the result of a feeding.
    pub fn note(&self, fed: &Result<Fed, StoreError>, now: Timestamp) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match fed {
            Ok(fed) => *state = FeedState { stored: fed.stored, fed_at: Some(now), fault: None },
            Err(fault) => state.fault = Some(fault.to_string()),
        }
    }

    /// The state now.
    pub fn state(&self) -> FeedState {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Opens the store.
type OpenStore = Box<dyn FnMut() -> Result<Store, StoreError> + Send>;

/// The thread that feeds the store from the journals.
#[derive(Debug)]
pub struct Feeder {
    signals: Arc<Signals>,
    thread: Started,
}

/// Wakes the feeder when the journal has grown. It is cheap enough for every entry.
#[derive(Debug, Clone)]
pub struct Bell {
    signals: Arc<Signals>,
    thread: Thread,
}

#[derive(Debug, Default)]
struct Signals {
    grown: AtomicBool,
    stop: AtomicBool,
}

impl Feeder {
    /// Starts with a first feeding; `on_fed` hears what each one did.
    ///
    /// A store that cannot be opened or fed is opened again after a while; the journals keep what
    /// is missing.
    /// Errors: the system has no thread for it.
    pub fn start(
        open: impl FnMut() -> Result<Store, StoreError> + Send + 'static,
        feeds: impl Into<Vec<Feed<'static>>>,
        on_fed: impl FnMut(Result<Fed, StoreError>) + Send + 'static,
    ) -> io::Result<Self> {
        let signals = Arc::new(Signals { grown: true.into(), stop: false.into() });
        let (shared, feeds) = (signals.clone(), feeds.into());
        let feed = move || feed_until_stopped(Box::new(open), feeds, on_fed, &shared);
        let thread = Started::new("feeder", feed)?;
        Ok(Self { signals, thread })
    }

    /// A bell for the code that writes the journal.
    #[must_use]
    pub fn bell(&self) -> Bell {
        Bell { signals: self.signals.clone(), thread: self.thread.thread.clone() }
    }

    /// Asks the thread to feed the rest and end. Does not wait for it.
    pub fn stop(&self) {
        self.signals.stop.store(true, Ordering::Release);
        self.thread.thread.unpark();
    }

    /// Waits until the thread has ended. The next start feeds whatever is missing.
    pub async fn ended(self) {
        self.thread.ended().await;
    }
}

impl Bell {
    /// The journal has grown.
    pub fn ring(&self) {
        if !self.signals.grown.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }
}

fn feed_until_stopped(
    mut open: OpenStore,
    mut feeds: Vec<Feed<'_>>,
    mut on_fed: impl FnMut(Result<Fed, StoreError>),
    signals: &Signals,
) {
    let mut opened = None;
    loop {
        let stop = signals.stop.load(Ordering::Acquire);
        if signals.grown.swap(false, Ordering::AcqRel) || stop {
            let store = opened.take().map_or_else(&mut *open, Ok);
            let fed = store.and_then(|mut store| {
                let fed = store.catch_up(&mut feeds)?;
                opened = Some(store);
                Ok(fed)
            });
            let pause = if fed.is_ok() {
                FEED_INTERVAL
            } else {
                signals.grown.store(true, Ordering::Release);
                RETRY_INTERVAL
            };
            on_fed(fed);
            if stop {
                return;
            }
            // An early wake is harmless: it only makes a smaller transaction.
            thread::park_timeout(pause);
        } else {
            thread::park();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc;

    use taximeter_ledger::FramedEntry;

    use super::*;
    use crate::samples::{journal, record};

    /// A journal that can be written to.
    fn growing(entries: &Arc<Mutex<Vec<FramedEntry>>>) -> Feed<'static> {
        let entries = entries.clone();
        Feed::new("journal", move |_from| {
            let (entries, mut at) = (entries.clone(), 0);
            let next = move || {
                let next = entries.lock().unwrap().get(at).cloned();
                at += usize::from(next.is_some());
                next.map(Ok)
            };
            Ok(Box::new(std::iter::from_fn(next)))
        })
    }

    #[test]
    fn it_feeds_at_the_start_at_the_bell_and_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut entries = journal([record(1), record(2), record(3), record(4)]);
        let (fourth, third) = (entries.pop().unwrap(), entries.pop().unwrap());
        let entries = Arc::new(Mutex::new(entries));
        let (sender, heard) = mpsc::channel();
        let (path, feeds) = (dir.path().to_owned(), [growing(&entries)]);
        let feeder = Feeder::start(
            move || Store::open(&path),
            feeds,
            move |fed| {
                let _ = sender.send(fed.unwrap().records);
            },
        )
        .unwrap();
        assert_eq!(heard.recv().unwrap(), 2);

        entries.lock().unwrap().push(third);
        feeder.bell().ring();
        assert_eq!(heard.recv().unwrap(), 1);

        entries.lock().unwrap().push(fourth);
        feeder.stop();
        assert_eq!(heard.iter().sum::<u64>(), 1);
    }

    #[test]
    fn a_store_that_is_moved_away_is_built_anew() {
        let dir = tempfile::tempdir().unwrap();
        let mut entries = journal([record(1), record(2)]);
        let second = entries.pop().unwrap();
        let entries = Arc::new(Mutex::new(entries));
        let (sender, heard) = mpsc::channel();
        let (path, feeds) = (dir.path().to_owned(), [growing(&entries)]);
        let feeder = Feeder::start(
            move || Store::open(&path),
            feeds,
            move |fed| {
                let _ = sender.send(fed.map(|fed| fed.records));
            },
        )
        .unwrap();
        assert_eq!(heard.recv().unwrap().unwrap(), 1);

        std::fs::rename(dir.path().join("store.sqlite"), dir.path().join("old")).unwrap();
        entries.lock().unwrap().push(second);
        feeder.bell().ring();
        assert!(matches!(heard.recv().unwrap(), Err(StoreError::Unavailable { .. })));
        feeder.stop();
        assert_eq!(heard.iter().filter_map(Result::ok).sum::<u64>(), 2);
    }

    #[test]
    fn a_store_that_comes_late_gets_all_that_the_journal_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mounted later");
        let (opened, (sender, heard)) = (path.clone(), mpsc::channel());
        let feeds = [Feed::new("journal", |_| {
            Ok(Box::new(journal([record(1), record(2)]).into_iter().map(Ok)))
        })];
        let feeder = Feeder::start(
            move || Store::open(&opened),
            feeds,
            move |fed| {
                let _ = sender.send(fed.map(|fed| fed.records));
            },
        )
        .unwrap();
        assert!(matches!(heard.recv().unwrap(), Err(StoreError::NoDataDir(_))));

        std::fs::create_dir(&path).unwrap();
        feeder.stop();
        assert_eq!(heard.iter().filter_map(Result::ok).sum::<u64>(), 2);
    }
}
