//! Tests of what checkpoints say of time.

use std::cell::Cell;
use std::time::Instant;

use jiff::Timestamp;
use taximeter_ledger::{Checkpoint, FramedEntry, Settled};
use taximeter_system::clock;

use super::bench::price;
use super::*;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

thread_local! {
    /// Seconds since 1970.
    static WALL: Cell<i64> = const { Cell::new(0) };
}

fn wall() -> Timestamp {
    Timestamp::from_second(WALL.get()).unwrap()
}

/// Both clocks of a gateway, and its journal.
struct Gateway {
    bench: Bench,
    journal: Journal,
    now: Instant,
}

impl Gateway {
    fn start_at(bench: Bench, second: i64) -> Self {
        WALL.set(second);
        let options = Options { now: wall, ..bench.options(OnDamage::Strict) };
        let (journal, _) = Journal::open(bench.dir.path(), options, &price).unwrap();
        Self { bench, journal, now: clock::now() }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        WALL.set(WALL.get() + time.as_secs().cast_signed());
        self.mark();
    }

    fn mark(&self) {
        self.journal.mark(self.now, HOUR);
    }

    fn reserve(&self, number: u128) {
        let Entry::Reserve(mut reserve) = reserve(number) else { panic!() };
        reserve.started_at = wall();
        append(&self.journal, &Entry::Reserve(reserve)).unwrap();
    }

    /// The time of each checkpoint, and what it says, after the journal has closed.
    fn end(self) -> Vec<(i64, Option<i64>)> {
        self.journal.close().unwrap();
        let checkpoint = |framed: FramedEntry| match framed.entry().unwrap() {
            Entry::Checkpoint(checkpoint) => Some(*checkpoint),
            _ => None,
        };
        let said = |Checkpoint { at, settled, .. }: Checkpoint| {
            let until = settled.map(|Settled { at: said, until, request_seconds_max }| {
                assert!(said <= at && until <= said);
                assert_eq!(request_seconds_max, 3600);
                until.as_second()
            });
            (at.as_second(), until)
        };
        self.bench.read(1).into_iter().filter_map(checkpoint).map(said).collect()
    }
}

#[test]
fn an_idle_gateway_says_about_once_an_hour_that_time_has_passed() {
    let mut gateway = Gateway::start_at(Bench::new(Durability::Os), 7 * 3600 + 3000);
    gateway.mark();
    for _ in 0..150 {
        gateway.pass(MINUTE);
    }
    // Ten minutes after the start, and with each hour that begins; the last one is that of the end.
    let marks = [25_200 + 3600, 25_200 + 7200, 25_200 + 10_800];
    let marks = marks.map(|at| (at, Some(at)));
    assert_eq!(gateway.end(), marks);
}

#[test]
fn what_was_open_when_an_hour_began_is_said_soon_after_it_has_ended() {
    let mut gateway = Gateway::start_at(Bench::new(Durability::Os), 7 * 3600);
    gateway.mark();
    for _ in 0..55 {
        gateway.pass(MINUTE);
    }
    gateway.reserve(1);
    for minute in 0..60 {
        gateway.pass(MINUTE);
        if minute == 27 {
            append(&gateway.journal, &post(1)).unwrap();
        }
    }
    let [seven, eight] = [7 * 3600, 8 * 3600];
    let open = Some(seven + 3300);
    let marks = [
        (seven + 600, Some(seven + 600)),
        (eight, open),
        (eight + 600, open),
        (eight + 1200, open),
        (eight + 1800, Some(eight + 1800)),
    ];
    assert_eq!(gateway.end(), marks);
}

#[test]
fn what_is_open_is_not_settled_and_what_has_ended_is() {
    let mut gateway = Gateway::start_at(Bench::new(Durability::Os), 3600);
    gateway.mark();
    gateway.pass(MINUTE);
    gateway.reserve(1);
    gateway.pass(MINUTE);
    gateway.reserve(2);
    gateway.pass(HOUR);
    append(&gateway.journal, &post(1)).unwrap();
    gateway.pass(HOUR);
    append(&gateway.journal, &void(2)).unwrap();
    gateway.pass(HOUR);
    let open = [(7_320, Some(3_660)), (10_920, Some(3_720)), (14_520, Some(14_520))];
    assert_eq!(gateway.end(), open);
}

#[test]
fn a_clock_that_is_in_doubt_says_the_time_that_is_known_without_it() {
    // Before somebody has looked at the clock, nothing is said.
    let gateway = Gateway::start_at(Bench::new(Durability::Os), 3600);
    gateway.reserve(1);
    assert_eq!(gateway.end(), [(3600, None)]);

    let mut gateway = Gateway::start_at(Bench::new(Durability::Os), 500 * 86_400);
    let dir = gateway.bench.dir.path().to_owned();
    let wait = gateway.journal.age_wait().clone();
    let newest = Some(Timestamp::UNIX_EPOCH);
    let mut retention = Retention::new(&dir, 1, 0, newest, (gateway.now, wall()), wait);
    retention.look((gateway.now, wall()));
    gateway.mark();
    for _ in 0..26 {
        gateway.now += HOUR;
        WALL.set(WALL.get() + 3600);
        retention.look((gateway.now, wall()));
        gateway.mark();
    }
    // The newest entry was made in 1970. After a day of a steady clock, the clock is right.
    let said: Vec<_> = gateway.end().into_iter().map(|(_, until)| until.unwrap()).collect();
    let (doubted, trusted) = said.split_at(24);
    assert!(doubted.iter().zip(0..).all(|(until, hours)| *until == hours * 3600), "{doubted:?}");
    assert!(trusted.iter().all(|until| *until > 500 * 86_400), "{trusted:?}");
}

#[test]
fn an_idle_gateway_begins_a_segment_where_one_is_full() {
    let bench = Bench { segment_bytes: 400, ..Bench::new(Durability::Os) };
    let mut gateway = Gateway::start_at(bench, 0);
    gateway.mark();
    for _ in 0..40 {
        gateway.pass(HOUR);
    }
    let bench = {
        gateway.journal.close().unwrap();
        gateway.bench
    };
    let segments = files::list(bench.dir.path(), &disk::Kernel).unwrap();
    assert!(segments.len() > 2, "{segments:?}");
    let (journal, recovery) = bench.open();
    assert_eq!(recovery.next_seq, 41);
    journal.close().unwrap();
}
