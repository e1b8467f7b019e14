//! Tests with requests of a gateway whose wall clock was set while it ran.

use jiff::SignedDuration;
use taximeter_pricing::Flag;

use super::*;

/// Requests in the order in which they ended: the clock goes back by hours, and then a day ahead.
fn rides() -> Vec<Record> {
    let minutes = [600, 610, 605, 120, 130, 1570, 1580, 125];
    let ride = |(number, minutes)| Record {
        started_at: record(0).started_at + SignedDuration::from_mins(minutes),
        ..record(number)
    };
    let mut rides: Vec<_> = (0..).zip(minutes).map(ride).collect();
    for ride in &mut rides {
        ride.ended_at = ride.started_at + SignedDuration::from_secs(1);
    }
    rides[2].ended_at = rides[2].started_at - SignedDuration::from_hours(8);
    rides[4].ended_at = rides[4].started_at + SignedDuration::from_hours(24);
    for ride in [2, 4] {
        rides[ride].usage.flags.push(Flag::Clock);
    }
    rides
}

#[test]
fn a_clock_that_steps_costs_no_request_and_puts_each_in_one_hour() {
    let posts = journal(rides());
    let (_dir, mut store) = open();
    // Each ends a feeding: what follows belongs into hours before the last that was fed.
    for end in 1..=posts.len() {
        store.catch_up(&mut [feed(&posts[..end])]).unwrap();
    }
    let mut requests = 0;
    let count = |_: &HourKey, hour: &Hour| {
        requests += hour.sums.requests;
        Ok::<_, StoreError>(())
    };
    store.hours(november(), None, count).unwrap();
    assert_eq!(requests, 8);
    let (mut records, mut sums) = (Vec::new(), 0);
    let gather = |records: &mut Vec<Record>, post: &Post<'_>| records.push(post.whole().unwrap());
    let visit = |audited: Audited<'_, Vec<Record>>| match audited {
        Audited::Posts(_, page) => records.extend(page),
        Audited::Unreadable(place, fault) => panic!("{place:?}: {fault}"),
        Audited::Sum(Sum { kept, due, .. }) => {
            assert_eq!(kept, due);
            sums += 1;
        }
        Audited::Correction(_) | Audited::GoneCorrection(_) => {}
        other => panic!("{other:?}"),
    };
    store.audit(gather, visit).unwrap();
    assert_eq!((records.len(), sums), (8, 3), "each once, in three hours");
    for record in records {
        let number = usize::try_from(record.seq).unwrap() - 1;
        assert_eq!(record, Record { seq: record.seq, ..rides()[number].clone() }, "as it was read");
    }
}

#[test]
fn who_ran_while_the_clock_was_set_ran_as_long_as_the_other_clock_says() {
    let posts = journal(rides());
    let (_dir, mut store) = open();
    store.catch_up(&mut [feed(&posts)]).unwrap();
    let mut lengths = Vec::new();
    let visit = |row: &BilledRequest<'_>, ended_at: Timestamp| {
        lengths.push((ended_at - row.started_at).total(jiff::Unit::Millisecond).unwrap());
    };
    store.runs(november(), visit).unwrap();
    lengths.sort_by(f64::total_cmp);
    assert_eq!(lengths, [1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1180.0, 1180.0]);
}

on_postgres! {
    a_clock_that_steps_costs_no_request_and_puts_each_in_one_hour,
    who_ran_while_the_clock_was_set_ran_as_long_as_the_other_clock_says,
}
