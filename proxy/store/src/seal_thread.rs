//! The thread of `serve` that seals requests of the store, apart from those that run and from the one
//! that feeds.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taximeter_system::clock;
use taximeter_system::thread::{Share, Started, yield_to_others};

use crate::{Sealer, StoreError};

/// Everybody who follows requests by their numbers has seen those that are so old.
const SEEN_AFTER: Duration = Duration::from_secs(60);
/// Time between two attempts to open the store.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);

/// Opens the sealer: `None` while another process has it.
type OpenSealer = Box<dyn FnMut() -> Result<Option<Sealer>, StoreError> + Send>;

/// What a look may do.
pub struct Look<'a> {
    /// The number of the newest request that everybody has seen. `None` before that is known.
    pub seen: Option<i64>,
    /// Whether the thread is to go on.
    pub go_on: &'a dyn Fn() -> bool,
}

/// The thread that seals. It yields to all others.
#[derive(Debug)]
pub struct SealThread {
    stop: Arc<AtomicBool>,
    thread: Started,
}

impl SealThread {
    /// Starts the thread. It does `work` at each look; that says when the next one is to be. After an
    /// error, which `on_fault` hears, the store is opened again.
    ///
    /// Errors: the system has no thread for it.
    pub fn start(
        open: impl FnMut() -> Result<Option<Sealer>, StoreError> + Send + 'static,
        work: impl FnMut(&mut Sealer, &Look<'_>) -> Result<Duration, StoreError> + Send + 'static,
        on_fault: impl FnMut(&StoreError) + Send + 'static,
    ) -> io::Result<Self> {
        Self::paced((SEEN_AFTER, RETRY_INTERVAL), open, work, on_fault)
    }

    /// The same with other times.
    fn paced(
        times: (Duration, Duration),
        open: impl FnMut() -> Result<Option<Sealer>, StoreError> + Send + 'static,
        work: impl FnMut(&mut Sealer, &Look<'_>) -> Result<Duration, StoreError> + Send + 'static,
        on_fault: impl FnMut(&StoreError) + Send + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = Started::new("sealer", move || {
            yield_to_others(Share::Least);
            seal_until_stopped(times, Box::new(open), work, on_fault, &stopped);
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
    (seen_after, retry): (Duration, Duration),
    mut open: OpenSealer,
    mut work: impl FnMut(&mut Sealer, &Look<'_>) -> Result<Duration, StoreError>,
    mut on_fault: impl FnMut(&StoreError),
    stop: &AtomicBool,
) {
    let go_on = || !stop.load(Ordering::Acquire);
    let (mut opened, mut newest) = (None, Newest::default());
    while go_on() {
        let sealer = opened.take().map_or_else(&mut *open, |sealer| Ok(Some(sealer)));
        let looked = sealer.and_then(|sealer| {
            let Some(mut sealer) = sealer else { return Ok(None) };
            let seen = newest.seen(sealer.newest()?, clock::now(), seen_after);
            let pause = work(&mut sealer, &Look { seen, go_on: &go_on })?;
            Ok(Some((sealer, pause)))
        });
        let pause = match looked {
            Ok(Some((sealer, pause))) => {
                opened = Some(sealer);
                pause
            }
            Ok(None) => {
                newest = Newest::default();
                retry
            }
            Err(fault) => {
                // Who builds the store anew numbers its requests anew.
                newest = Newest::default();
                on_fault(&fault);
                retry
            }
        };
        if go_on() {
            thread::park_timeout(pause);
        }
    }
}

/// The newest requests at the last looks.
#[derive(Debug, Default)]
struct Newest(VecDeque<(Instant, i64)>);

impl Newest {
    /// Notes the newest request now. The newest one of at least `age` ago.
    fn seen(&mut self, newest: i64, now: Instant, age: Duration) -> Option<i64> {
        self.0.push_back((now, newest));
        let is_old = |at: &(Instant, i64)| now.saturating_duration_since(at.0) >= age;
        while self.0.get(1).is_some_and(is_old) {
            self.0.pop_front();
        }
        self.0.front().filter(|first| is_old(first)).map(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::samples::{feed, journal, record};
    use crate::{SealPolicy, Store};

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
        let fault = done.clone();
        let short = Duration::from_millis(5);
        let work = move |sealer: &mut Sealer, look: &Look<'_>| {
            if let Some(newest) = look.seen {
                let policy = SealPolicy { closed_until, ..SealPolicy::default() };
                done.send(Ok(sealer.work(&policy, newest, look.go_on)?.sealed)).unwrap();
            }
            Ok(short)
        };
        let sealing = SealThread::paced((short * 5, short), open, work, move |error| {
            fault.send(Err(error.to_string())).unwrap();
        });
        let sealing = sealing.unwrap();
        assert!(heard.recv().unwrap().is_err_and(|fault| fault.contains("nowhere")));
        let (mut sealed, mut fed) = (0, 0);
        while sealed < 50 {
            fed = (fed + 10).min(50);
            store.catch_up(&mut [feed(&entries[..fed])]).unwrap();
            sealed += heard.recv().unwrap().unwrap();
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

    #[test]
    fn a_request_is_seen_when_it_is_old_enough() {
        let (begun, age) = (clock::now(), Duration::from_secs(60));
        let mut newest = Newest::default();
        let mut seen =
            |seconds, number| newest.seen(number, begun + Duration::from_secs(seconds), age);
        assert_eq!((seen(0, 5), seen(59, 6), seen(60, 7)), (None, None, Some(5)));
        assert_eq!((seen(118, 8), seen(119, 9), seen(500, 10)), (Some(5), Some(6), Some(9)));
    }

    fn closed_until() -> Timestamp {
        record(0).started_at + SignedDuration::from_hours(24 * 30)
    }
}
