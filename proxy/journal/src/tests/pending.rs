//! Tests of requests whose usage is pending: the journal completes each once, and knows after any
//! end which are left.

use jiff::Timestamp;
use taximeter_ledger::{Completion, Correction, PendingRequest, RecordUsage, TenantId};

use super::bench::price;
use super::*;

fn pending_post(number: u128) -> Entry {
    let Entry::Post(mut record) = post(number) else { panic!() };
    record.response_id = Some(format!("resp_{number}"));
    record.usage.go_on();
    Entry::Post(record)
}

fn completion(request: &PendingRequest) -> Entry {
    Entry::Correction(Box::new(Correction {
        id: request.completion_id(),
        corrects: request.id,
        started_at: request.started_at,
        tenant: request.tenant.clone(),
        made_at: Timestamp::UNIX_EPOCH,
        reason: "seen".to_owned(),
        before: None,
        after: None,
        completion: Some(Box::new(Completion {
            response_id: request.response_id.clone(),
            response_model: None,
            service_tier: None,
            finish_reasons: vec!["completed".to_owned()],
            error: None,
            requests: None,
            models: Vec::new(),
            usage: RecordUsage::counted(Some(9), Some(5), &[]),
            reported_cost: None,
        })),
        completed: None,
    }))
}

fn find(journal: &Journal, number: u128) -> Option<PendingRequest> {
    let acme = TenantId::new("acme").unwrap();
    journal.pending(&acme, "local", &format!("resp_{number}"))
}

fn begin(journal: &Journal, number: u128) {
    append(journal, &reserve(number)).unwrap();
    append(journal, &pending_post(number)).unwrap();
}

fn completions(bench: &Bench) -> usize {
    bench.read(1).iter().filter(|framed| framed.kind == Kind::Correction).count()
}

#[test]
fn a_start_knows_what_is_pending_however_old_its_post_is() {
    let bench = Bench { segment_bytes: 400, ..Bench::new(Durability::Os) };
    let (journal, _) = bench.open();
    for number in [1, 2] {
        begin(&journal, number);
    }
    for number in 10..60 {
        append(&journal, &reserve(number)).unwrap();
        append(&journal, &post(number)).unwrap();
    }
    append(&journal, &completion(&find(&journal, 2).unwrap())).unwrap();
    drop(journal);
    assert!(bench.segments().len() > 5);
    for _ in 0..3 {
        let (journal, recovery) = bench.open();
        assert!(recovery.from_seq > 20, "{recovery:?}");
        assert_eq!((find(&journal, 1).is_some(), find(&journal, 2)), (true, None));
        assert_eq!(journal.state().pending, 1);
    }
    let (journal, _) = bench.open();
    append(&journal, &completion(&find(&journal, 1).unwrap())).unwrap();
    drop(journal);
    let (journal, recovery) = bench.open();
    assert_eq!((find(&journal, 1), recovery.strays), (None, 0));
}

#[test]
fn many_threads_that_complete_a_request_do_it_once() {
    let bench = Bench::new(Durability::Group);
    let (journal, _) = bench.open();
    for number in 0..20 {
        begin(&journal, number);
    }
    let requests: Vec<_> = (0..20).map(|number| find(&journal, number).unwrap()).collect();
    let done: usize = std::thread::scope(|scope| {
        let complete = || {
            let appended = requests.iter().map(|request| append(&journal, &completion(request)));
            let (done, late): (Vec<_>, Vec<_>) = appended.partition(Result::is_ok);
            assert!(late.iter().all(|end| *end == Err(AppendError::NotPending)), "{late:?}");
            done.len()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(complete)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((done, completions(&bench)), (20, 20));
    assert_eq!((journal.state().pending, journal.state().lost), (0, 0));
}

#[test]
fn a_completion_that_is_not_taken_leaves_its_request_pending() {
    let bench = Bench { queue_bytes_max: 1_500, ..Bench::new(Durability::Os) };
    let (journal, _) = bench.open();
    let numbers = 10..60;
    numbers.clone().for_each(|number| begin(&journal, number));
    let mut requests = numbers.clone().map(|number| find(&journal, number).unwrap());
    let request = requests.next().unwrap();
    bench.disk.set(|script| script.stuck_after = Some(0));
    let is_taken = |other: &PendingRequest| journal.append(&completion(other)).map(drop).is_ok();
    // The writer takes the first one out of the queue and waits for the disk.
    assert!(requests.next().as_ref().is_some_and(is_taken));
    bench.disk.wait_until_stuck();
    // Those of others fill the queue. All of them are equally long.
    let others = 1 + requests.by_ref().take_while(is_taken).count() as u64;
    let refused = journal.append(&completion(&request)).map(drop);
    let still = find(&journal, 10);
    bench.disk.set(|script| script.stuck_after = None);
    assert_eq!((refused, still.as_ref()), (Err(AppendError::QueueFull), Some(&request)));
    assert!(requests.next().is_some(), "none was refused");
    wait_for(&journal, 2 * numbers.count() as u64 + others);
    append(&journal, &completion(&request)).unwrap();
    assert_eq!(find(&journal, 10), None);
    assert_eq!(append(&journal, &completion(&request)), Err(AppendError::NotPending));
}

#[test]
fn a_completion_that_cannot_be_written_yet_is_written_later_and_once() {
    let bench = Bench::new(Durability::Os);
    let (journal, _) = bench.open();
    begin(&journal, 1);
    let request = find(&journal, 1).unwrap();
    bench.disk.set(|script| script.full_after = Some(0));
    assert_eq!(append(&journal, &completion(&request)), Err(AppendError::Unavailable));
    // It is queued: nobody else may add another one.
    assert_eq!(append(&journal, &completion(&request)), Err(AppendError::NotPending));
    bench.disk.set(|script| script.full_after = None);
    wait_for(&journal, 3);
    assert_eq!(completions(&bench), 1);
}

#[test]
fn a_completion_that_a_kill_has_taken_can_be_made_again() {
    let bench = Bench::new(Durability::Os);
    let (journal, _) = bench.open();
    begin(&journal, 1);
    let request = find(&journal, 1).unwrap();
    let before = fs::read(bench.last_segment()).unwrap();
    append(&journal, &completion(&request)).unwrap();
    drop(journal);
    // What was written after it never came to the disk.
    fs::write(bench.last_segment(), before).unwrap();
    let (journal, _) = bench.open();
    append(&journal, &completion(&find(&journal, 1).unwrap())).unwrap();
    assert_eq!(completions(&bench), 1);
}

#[test]
fn what_is_no_longer_kept_is_told() {
    let bench = Bench { queue_bytes_max: 64 << 20, ..Bench::new(Durability::Os) };
    let (journal, _) = bench.open();
    for number in 0..=taximeter_ledger::PENDING_MAX as u128 {
        journal.append_detached(&pending_post(number));
    }
    assert_eq!(bench.events(), ["PendingDropped"]);
    assert_eq!(journal.state().pending, taximeter_ledger::PENDING_MAX);
}

/// The clock of a machine that is 500 days ahead of its ledger, or right.
fn clock_of(days: i64) -> fn() -> Timestamp {
    match days {
        500 => || Timestamp::from_second(500 * 86_400).unwrap(),
        40 => || Timestamp::from_second(40 * 86_400).unwrap(),
        _ => || Timestamp::from_second(60).unwrap(),
    }
}

fn open_at(bench: &Bench, now: fn() -> Timestamp) -> Journal {
    let options = Options { now, ..bench.options(OnDamage::Strict) };
    let disk = Arc::new(bench.scripted());
    Journal::open_on(bench.dir.path(), options, &price, disk).unwrap().0
}

/// Opens the journal with this clock, and gives the number of pending requests after it has begun
/// segments.
fn pending_after(bench: &Bench, now: fn() -> Timestamp) -> usize {
    let journal = open_at(bench, now);
    let before = bench.segments().len();
    for number in 1_000.. {
        append(&journal, &reserve(number)).unwrap();
        append(&journal, &void(number)).unwrap();
        if bench.segments().len() > before + 2 {
            break;
        }
    }
    journal.state().pending
}

#[test]
fn nothing_pending_is_given_up_because_of_its_age_while_the_clock_is_ahead() {
    let filled = || {
        let bench = Bench { segment_bytes: 1_000, ..Bench::new(Durability::Os) };
        let journal = open_at(&bench, clock_of(0));
        for number in [1, 2] {
            begin(&journal, number);
        }
        drop(journal);
        bench
    };
    let bench = filled();
    assert_eq!(pending_after(&bench, clock_of(500)), 2, "the clock is ahead");
    assert_eq!(pending_after(&bench, clock_of(0)), 2, "the clock was set right");
    // The time is known by now, and those who begin have what the file says of it.
    let bench = filled();
    let right = Timestamp::from_second(40 * 86_400).unwrap();
    fs::write(bench.dir.path().join("clock.trust"), format!("{right} {right} right\n")).unwrap();
    assert_eq!(pending_after(&bench, clock_of(40)), 0, "they are older than their answers");
}
