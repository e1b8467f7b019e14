//! The thread of `serve` that seals requests of the store, apart from those that run and from the one
//! that feeds.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use taximeter_system::thread::{Started, yield_to_others};

use crate::{SealPolicy, SealWork, Sealer, StoreError};

/// Time between two looks at what is due.
const LOOK_PERIOD: Duration = Duration::from_secs(10);
/// After so many looks everybody who follows requests by their numbers has seen the new ones.
const SEEN_LOOKS: usize = 6;

/// Opens the sealer: `None` while another process has it.
type OpenSealer = Box<dyn FnMut() -> Result<Option<Sealer>, StoreError> + Send>;

/// The thread that seals. It yields to all others.
#[derive(Debug)]
pub struct SealThread {
    stop: Arc<AtomicBool>,
    thread: Started,
}

impl SealThread {
    /// Starts the thread. It asks `policy` at each look, and `on_done` hears what each one did that
    /// did anything. After an error the store is opened again.
    ///
    /// Errors: the system has no thread for it.
    pub fn start(
        open: impl FnMut() -> Result<Option<Sealer>, StoreError> + Send + 'static,
        policy: impl FnMut(&mut Sealer) -> Result<SealPolicy, StoreError> + Send + 'static,
        on_done: impl FnMut(Result<SealWork, StoreError>) + Send + 'static,
    ) -> io::Result<Self> {
        Self::paced(LOOK_PERIOD, open, policy, on_done)
    }

    /// The same, with another time between two looks.
    fn paced(
        period: Duration,
        open: impl FnMut() -> Result<Option<Sealer>, StoreError> + Send + 'static,
        policy: impl FnMut(&mut Sealer) -> Result<SealPolicy, StoreError> + Send + 'static,
        on_done: impl FnMut(Result<SealWork, StoreError>) + Send + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = Started::new("sealer", move || {
            yield_to_others();
            seal_until_stopped(period, Box::new(open), policy, on_done, &stopped);
        })?;
        Ok(Self { stop, thread })
    }

    /// Asks the thread to end soon. What it has begun is begun anew by the next start.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.thread.thread.unpark();
    }

    /// Waits until the thread has ended.
    pub async fn ended(self) {
        self.thread.ended().await;
    }
}

fn seal_until_stopped(
    period: Duration,
    mut open: OpenSealer,
    mut policy: impl FnMut(&mut Sealer) -> Result<SealPolicy, StoreError>,
    mut on_done: impl FnMut(Result<SealWork, StoreError>),
    stop: &AtomicBool,
) {
    let go_on = || !stop.load(Ordering::Acquire);
    let (mut opened, mut seen) = (None, VecDeque::new());
    while go_on() {
        let sealer = opened.take().map_or_else(&mut *open, |sealer| Ok(Some(sealer)));
        let looked = sealer.and_then(|sealer| {
            let Some(mut sealer) = sealer else { return Ok(None) };
            seen.push_back(sealer.newest()?);
            let done = match seen.get(seen.len().wrapping_sub(SEEN_LOOKS + 1)).copied() {
                None => SealWork::default(),
                Some(newest) => {
                    let policy = policy(&mut sealer)?;
                    sealer.work(&policy, newest, &go_on)?
                }
            };
            Ok(Some((sealer, done)))
        });
        while seen.len() > SEEN_LOOKS {
            seen.pop_front();
        }
        match looked {
            Ok(None) => seen.clear(),
            Ok(Some((sealer, done))) => {
                opened = Some(sealer);
                if done != SealWork::default() {
                    on_done(Ok(done));
                }
            }
            Err(fault) => {
                // Who builds the store anew numbers its requests anew.
                seen.clear();
                on_done(Err(fault));
            }
        }
        if go_on() {
            thread::park_timeout(period);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::Store;
    use crate::samples::{feed, journal, record};

    #[tokio::test]
    async fn what_is_due_is_sealed_beside_who_feeds_and_faults_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap();
        let entries = journal((0..50).map(record));
        let (path, closed_until) = (dir.path().to_owned(), closed_until());
        let (done, heard) = mpsc::channel();
        let mut attempts = 0;
        let open = move || {
            attempts += 1;
            match attempts {
                1 => Sealer::open(&path.join("nowhere"), "pod-7f9c/0"),
                2 => Ok(None),
                _ => Sealer::open(&path, "pod-7f9c/0"),
            }
        };
        let policy = move |_: &mut Sealer| Ok(SealPolicy { room: None, closed_until });
        let sealing = SealThread::paced(Duration::from_millis(5), open, policy, move |result| {
            done.send(result).unwrap();
        });
        let sealing = sealing.unwrap();
        assert!(matches!(heard.recv().unwrap(), Err(StoreError::NoDataDir(_))));
        let (mut sealed, mut fed) = (0, 0);
        while sealed < 50 {
            fed = (fed + 10).min(50);
            store.catch_up(&mut [feed(&entries[..fed])]).unwrap();
            sealed += heard.recv().unwrap().unwrap().sealed;
        }
        assert_eq!(sealed, 50);
        sealing.stop();
        sealing.ended().await;
        let mut count = 0;
        let newest = store.newest().unwrap();
        let tally = |_: &taximeter_ledger::Record| {
            count += 1;
            Ok::<_, StoreError>(())
        };
        store.records(&crate::Filter::default(), newest, None, tally).unwrap();
        assert_eq!(count, 50);
    }

    fn closed_until() -> Timestamp {
        record(0).started_at + SignedDuration::from_hours(24 * 30)
    }
}
