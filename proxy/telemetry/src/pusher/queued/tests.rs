//! Tests of the queues.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::super::nobody::{Told, nobody};
use super::super::outcome::ExportOutcome;
use super::super::signal::TRACES;
use super::super::source::Batch;
use super::*;

/// Batches of so many items each; one panics while it is made.
#[derive(Default)]
struct Batches {
    came: Vec<usize>,
    panics_at: Option<usize>,
    waiting: AtomicUsize,
}

impl Source for Batches {
    fn begin(&mut self) -> usize {
        0
    }

    fn next(&mut self) -> Option<Batch> {
        assert!(self.panics_at.is_none() || self.panics_at != self.came.first().copied());
        let items = (!self.came.is_empty()).then(|| self.came.remove(0))?;
        Some(Batch { body: vec![0; 100].into(), items })
    }

    fn taken(&mut self) {}

    fn abandon(&mut self) -> usize {
        std::mem::take(&mut self.came).iter().sum()
    }
}

impl QueueSource for Batches {
    fn filling(&self) -> Arc<Notify> {
        Arc::default()
    }

    fn note_waiting(&self, items: usize) {
        self.waiting.store(items, Relaxed);
    }
}

/// A queue to nobody, with room for so many bytes, and what it tells.
fn queued(bytes_max: usize, came: &[usize]) -> (Queued<Batches>, Told) {
    let (collector, teller, told) = nobody();
    let source = Batches { came: came.to_vec(), ..Batches::default() };
    (Queued::new(collector, source, bytes_max, teller), told)
}

fn dropped(items: usize, reason: &str) -> String {
    format!("{:?}", ExportOutcome::Dropped { signal: TRACES.name, items, reason })
}

fn later(wait: Option<Duration>) -> Option<Answer> {
    Some(Answer::Later { reason: "busy".to_owned(), wait })
}

/// The number of the batch that is sent next; it is not sent.
fn due(queued: &mut Queued<Batches>, now: Instant) -> u64 {
    queued.backlog.due(now).expect("a batch").0
}

#[test]
fn a_batch_is_kept_until_the_collector_has_it_and_pauses_grow() {
    let (mut queued, told) = queued(1 << 20, &[3, 4]);
    queued.gather();
    assert_eq!(queued.source.waiting.load(Relaxed), 7);
    let mut now = clock::now();
    let mut pauses = Vec::new();
    for nth in [0, 1, 0, 1, 0] {
        assert_eq!(due(&mut queued, now), nth);
        queued.go_on(Some((nth, later(None))), now);
        let State::Pausing(until) = queued.state else { panic!("it goes on at once") };
        pauses.push(until - now);
        now = until;
        queued.go_on(None, now);
    }
    let half = |nth: u32| Duration::from_millis(250) * 2_u32.pow(nth);
    for (nth, pause) in (0..).zip(&pauses) {
        assert!((half(nth)..=2 * half(nth)).contains(pause), "{pauses:?}");
    }
    let hour = Duration::from_secs(3600);
    queued.go_on(Some((1, later(Some(hour)))), now);
    assert!(matches!(queued.state, State::Pausing(until) if until >= now + hour));
    assert_eq!(queued.source.waiting.load(Relaxed), 7, "nothing is lost");
    let taken = Answer::Taken { rejected: 1, message: String::new() };
    queued.go_on(Some((1, Some(taken))), now);
    queued.go_on(Some((0, Some(Answer::Refused { reason: "400".to_owned() }))), now);
    assert_eq!(queued.source.waiting.load(Relaxed), 0);
    let sent = ExportOutcome::Sent { signal: TRACES.name, items: 4, rejected: 1, message: "" };
    let told = told.lock().unwrap();
    assert_eq!(told[told.len() - 2..], [format!("{sent:?}"), dropped(3, "400")]);
}

#[test]
fn a_batch_is_given_up_after_an_hour_and_no_earlier() {
    let (mut queued, told) = queued(1 << 20, &[3]);
    queued.gather();
    let first = clock::now();
    due(&mut queued, first);
    queued.go_on(Some((0, later(None))), first + RETRY_TIME_MAX - Duration::from_secs(1));
    assert_eq!(queued.backlog.items(), 3);
    queued.go_on(Some((0, later(None))), first + RETRY_TIME_MAX);
    assert_eq!(queued.backlog.items(), 0);
    let reason = "the collector has not taken it for an hour";
    assert_eq!(told.lock().unwrap().last(), Some(&dropped(3, reason)));
}

#[test]
fn what_has_no_room_makes_the_oldest_go_and_tells_its_items() {
    let (mut queued, told) = queued(500, &[1, 2, 4]);
    queued.gather();
    assert_eq!(queued.backlog.items(), 6);
    assert_eq!(*told.lock().unwrap(), [dropped(1, "too many wait for the collector")]);
}

#[test]
fn what_panics_while_it_is_made_loses_nothing_that_waits_already() {
    let (mut queued, told) = queued(1 << 20, &[1, 2, 4]);
    queued.source.panics_at = Some(2);
    queued.gather();
    assert_eq!(queued.backlog.items(), 1);
    let panicked = format!("{:?}", ExportOutcome::Panicked);
    assert_eq!(*told.lock().unwrap(), [panicked.clone(), dropped(6, "panicked")]);
    queued.go_on(Some((0, None)), clock::now());
    assert_eq!(queued.backlog.items(), 0);
    assert_eq!(told.lock().unwrap()[2..], [panicked, dropped(1, "panicked")]);
}

#[test]
fn at_the_end_what_the_collector_does_not_take_is_told() {
    let (mut queued, told) = queued(1 << 20, &[1, 2]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        queued.state = State::Pausing(clock::now() + RETRY_TIME_MAX);
        queued.last(Duration::from_millis(100)).await;
    });
    let told = told.lock().unwrap();
    assert!(told[0].starts_with("Failed"), "it was tried: {told:?}");
    assert_eq!(told.last(), Some(&dropped(3, "the gateway ends")));
}
