//! Clocks that are set back over midnight, and requests that stay open, while days are sealed.

use std::cell::Cell;
use std::sync::Arc;

use jiff::SignedDuration;
use taximeter_journal::disk_budget::DiskBudget;
use taximeter_journal::room::RoomLimits;

use super::*;
use crate::GoneCause;
use crate::tests::closing::says;
use crate::verify::{Findings, verify};

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// The first instant of a day of November.
fn day(number: i64) -> Timestamp {
    closed(number - 1).closed_until
}

/// The post of a request that was admitted then.
fn post(number: u32, started_at: Timestamp) -> Entry {
    let ended_at = started_at + SignedDuration::from_secs(1);
    Entry::Post(Box::new(Record { started_at, ended_at, ..record(number) }))
}

/// All that a store says, and that nothing is wrong with it.
fn books(dir: &Path) -> (Vec<Record>, Bill) {
    let mut store = Store::open(dir).unwrap();
    let mut findings = Findings::default();
    verify(dir, &mut store, &mut |_| {}, &mut findings).unwrap();
    let mut report = Vec::new();
    findings.write(&mut report).unwrap();
    assert_eq!(findings.wrong(), 0, "{}", String::from_utf8_lossy(&report));
    let records = records(&mut store, &Filter::default(), None);
    (records, bill(&mut store, "tenant,model,hour"))
}

/// What a store says that never had files.
fn expected(entries: &[FramedEntry]) -> (Vec<Record>, Bill) {
    let dir = tempfile::tempdir().unwrap();
    catch_up(&mut Store::open(dir.path()).unwrap(), entries);
    books(dir.path())
}

/// Requests of the first two days of November and of the third one. The clock is set back then: the next
/// ones are of the second day once more, and a minute later the clock is right.
fn set_back() -> Vec<FramedEntry> {
    let times = (0..8)
        .map(|number| day(1) + HOUR * (3 * number))
        .chain((0..8).map(|number| day(2) + HOUR * (3 * number)))
        .chain([day(3) + HOUR, day(3) + HOUR * 2])
        // Behind these the clock is set back.
        .chain((0..6).map(|number| day(3) - HOUR + SignedDuration::from_secs(number)))
        .chain([day(3) + HOUR * 3, day(4)]);
    segment(1, (0..).zip(times).map(|(number, at)| post(number, at)))
}

#[test]
fn a_clock_that_is_set_back_over_midnight_while_a_day_is_sealed_loses_and_doubles_nothing() {
    let entries = set_back();
    let (whole, mut closed_before) = (expected(&entries), 0);
    // The requests with the clock set back come after so many looks of the sealer.
    for step in (0_u32..).step_by(3) {
        let dir = tempfile::tempdir().unwrap();
        catch_up(&mut Store::open(dir.path()).unwrap(), &entries[..18]);
        let mut sealer = sealer(dir.path()).with_rows_max(3);
        let (looks, newest) = (Cell::new(0), sealer.newest().unwrap());
        let go_on = || {
            if looks.replace(looks.get() + 1) == step {
                catch_up(&mut Store::open(dir.path()).unwrap(), &entries[..24]);
            }
            true
        };
        sealer.work(&closed(2), newest, &go_on).unwrap();
        if looks.get() <= step {
            assert!(step > 20 && (1..step).contains(&closed_before), "{closed_before} of {step}");
            return;
        }
        assert_eq!(books(dir.path()), expected(&entries[..24]), "after {step} looks");
        // To the clock that is set back, the second day is not over. What is closed stays as it is.
        let of_day = dir.path().join("days/2026-11-02.parquet");
        let before = fs::read(&of_day).ok();
        closed_before += u32::from(before.is_some());
        assert_eq!(seal(&mut sealer, &closed(1)).sealed, 0);
        assert_eq!(fs::read(&of_day).ok(), before);
        // The clock is right again.
        catch_up(&mut Store::open(dir.path()).unwrap(), &entries);
        for days in [2, 3, 3] {
            seal(&mut sealer, &closed(days));
        }
        assert!(before.is_none_or(|before| fs::read(&of_day).unwrap() == before));
        assert_eq!(books(dir.path()), whole, "after {step} looks");
        assert_eq!(requests_in_tables(&dir), 1);
    }
}

#[test]
fn what_is_closed_goes_by_the_time_that_was_written_and_not_by_a_clock_that_is_set_back() {
    let dir = tempfile::tempdir().unwrap();
    let at = |hours: i64| (day(1) + HOUR * i32::try_from(hours).unwrap()).to_string();
    let mut said = vec![post(0, day(1)), says(&at(50), &at(50))];
    let mut feed_all = |entry: Option<Entry>| {
        said.extend(entry);
        catch_up(&mut Store::open(dir.path()).unwrap(), &segment(1, said.clone()));
    };
    feed_all(None);
    let sealer = sealer(dir.path());
    let closed_until =
        |hours: i64| sealer.closed_until(day(1) + HOUR * i32::try_from(hours).unwrap());
    assert_eq!(closed_until(50).unwrap(), day(3));
    assert_eq!(closed_until(47).unwrap(), day(2), "the clock is set back over midnight");
    assert_eq!(closed_until(50).unwrap(), day(3));
    // A gateway whose clock is set back says a time from before.
    feed_all(Some(says(&at(47), &at(47))));
    assert_eq!(closed_until(50).unwrap(), day(2));
    feed_all(Some(says(&at(51), &at(51))));
    assert_eq!(closed_until(51).unwrap(), day(3));
}

/// A stream was admitted in the first hour and is open for days: no day is closed. Meanwhile room ends.
#[test]
fn a_stream_that_is_open_while_room_ends_keeps_no_other_request_and_is_billed_when_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let opened = day(1) + SignedDuration::from_mins(7);
    let stream = post(500, opened);
    let mut entries: Vec<_> = (0..30)
        .map(|number| post(number, day(1) + HOUR * (2 * i32::try_from(number).unwrap())))
        .collect();
    entries.push(says(&(day(3) + HOUR * 13).to_string(), &opened.to_string()));
    let open = segment(1, entries.clone());
    catch_up(&mut Store::open(dir.path()).unwrap(), &open);
    let mut sealer = sealer(dir.path()).with_rows_max(5);
    let now = day(3) + HOUR * 13;
    let closed_until = sealer.closed_until(now).unwrap();
    assert_eq!(closed_until, day(1), "the first day has an open request");
    let small = SealPolicy { room: Some(100), closed_until, ..SealPolicy::default() };
    assert_eq!(seal(&mut sealer, &small).sealed, 30, "they leave in parts");
    assert_eq!(books(dir.path()), expected(&open));
    let budget = Arc::new(DiskBudget::default());
    let limits = |bytes_max| RoomLimits { bytes_max, segment_bytes: 1, serves: false };
    budget.look(dir.path(), &limits(None)).unwrap();
    budget.look(dir.path(), &limits(budget.bytes().map(|used| used * 5 / 4 - 5))).unwrap();
    taximeter_journal::make_room(dir.path(), (0, 0), &budget).unwrap();
    let made = sealer.make_room(&budget, now, &|| true).unwrap().unwrap();
    assert_eq!(made.days.len(), 1);
    assert_eq!(
        (made.days[0].cause, made.days[0].day),
        (GoneCause::Room, jiff::civil::date(2026, 11, 1))
    );
    // It ends, and its day is over.
    let ended = [stream, says(&(now + HOUR).to_string(), &(now + HOUR).to_string())];
    let all = segment(1, entries.into_iter().chain(ended));
    let mut store = Store::open(dir.path()).unwrap();
    assert_eq!(catch_up(&mut store, &all).records, 1);
    let (whole, expected_bill) = expected(&all);
    assert_eq!(bill(&mut store, "tenant,model,hour"), expected_bill);
    let closed_until = sealer.closed_until(now + HOUR).unwrap();
    assert_eq!(closed_until, day(3));
    for _ in 0..2 {
        seal(&mut sealer, &SealPolicy { closed_until, ..SealPolicy::default() });
    }
    assert_eq!(requests_in_tables(&dir), 0);
    let (kept, billed) = books(dir.path());
    assert_eq!(billed, expected_bill);
    // The day without details is left out, with what came late for it.
    let of_later: Vec<_> = whole.into_iter().filter(|it| it.started_at >= day(2)).collect();
    assert_eq!(kept, of_later);
    store.rebuild(&mut [feed(&all)]).unwrap();
    assert_eq!(books(dir.path()), (kept, billed));
}
