//! Tests of the sums per hour, including corrections.

use jiff::{SignedDuration, Timestamp, ToSpan as _};
use rust_decimal::Decimal;
use taximeter_billing::export::{Entries, SequenceRange};
use taximeter_billing::{BilledRequest, Grouping, Invoice, Invoicer, Unit, corrected};
use taximeter_ledger::{
    Charge, Completed, Completion, Correction, RecordCost, RecordUsage, RequestId,
};
use uuid::Uuid;

use super::*;

/// The `number`th correction of the request: `amount` is owed from now on.
pub(super) fn correction(
    number: u32,
    of: &Record,
    before: Option<&RecordCost>,
    amount: i64,
) -> Correction {
    let mut after = record(0).cost.unwrap();
    after.lines[0].unit_price = Decimal::new(amount, 2);
    after.lines[0].amount = Decimal::from(40) * Decimal::new(amount, 2);
    after.amount = after.lines[0].amount;
    Correction {
        id: RequestId(Uuid::from_u128(u128::from(number) + 1)),
        corrects: of.id,
        started_at: of.started_at,
        tenant: of.tenant.clone(),
        made_at: of.ended_at + SignedDuration::from_secs(i64::from(number)),
        reason: "a price was wrong".to_owned(),
        before: before.cloned(),
        after: Some(after),
        completion: None,
        completed: None,
    }
}

pub(super) fn entries(corrections: &[Correction]) -> Vec<FramedEntry> {
    let entry = |correction: &Correction| Entry::Correction(Box::new(correction.clone()));
    segment(1, corrections.iter().map(entry))
}

pub(super) fn changed(entries: &[FramedEntry]) -> Feed<'_> {
    feed_as("corrections", entries)
}

/// The `number`th request of one in every ten minutes, of one of many kinds.
pub(super) fn ride(number: u32) -> Record {
    let mut ride = record(number);
    ride.started_at = record(0).started_at + SignedDuration::from_mins(10 * i64::from(number));
    ride.ended_at = ride.started_at + SignedDuration::from_secs(2);
    ride.tenant = taximeter_ledger::TenantId(["acme", "beta"][number as usize % 2].into());
    ride.upstream = ["local", "cloud"][number as usize / 2 % 2].to_owned();
    if number.is_multiple_of(3) {
        (ride.cost, ride.response_model, ride.request_model) = (None, None, None);
    }
    if number.is_multiple_of(7) {
        let known = ride.cost.take();
        ride.charge(Charge::unknown(known, []));
    }
    if number.is_multiple_of(5) {
        ride.labels.clear();
        ride.key_id = None;
    }
    // Some go on in the background.
    if number.is_multiple_of(7) {
        (ride.cost, ride.usage) = (None, RecordUsage::counted(Some(9), None, &[]));
        ride.usage.go_on();
    }
    ride
}

/// What completes a ride that went on in the background.
fn completion(number: u32, of: &Record) -> Correction {
    let usage = record(0).usage;
    Correction {
        completion: Some(Box::new(Completion {
            response_id: of.response_id.clone().unwrap(),
            response_model: Some("m-2027".to_owned()),
            service_tier: None,
            finish_reasons: Vec::new(),
            error: None,
            requests: None,
            models: Vec::new(),
            usage,
            reported_cost: None,
        })),
        ..correction(number, of, None, 5)
    }
}

/// A correction of each fourth request, and another one of each eighth. Most that went on in the
/// background are completed first.
pub(super) fn corrections(rides: &[Record]) -> Vec<Correction> {
    let mut all: Vec<Correction> = Vec::new();
    for (number, ride) in (0_u32..).zip(rides) {
        let mut completed = None;
        let mut before = ride.owed().cloned();
        if ride.is_pending() && number % 14 != 7 {
            let completion = completion(3 * number, ride);
            completed = completion.completion.as_deref().map(Completed::of);
            before.clone_from(&completion.after);
            all.push(completion);
        } else if ride.is_pending() {
            continue;
        }
        for (divisor, amount) in [(4, 3), (8, 2)] {
            if number % divisor == 0 {
                let number = 3 * number + divisor / 4;
                let next = correction(number, ride, before.as_ref(), amount);
                before.clone_from(&next.after);
                all.push(Correction { completed: completed.clone(), ..next });
            }
        }
    }
    all
}

/// Of which requests.
#[derive(Debug, Clone, Copy)]
struct Scope<'a> {
    period: Period,
    zone: &'a Zone,
    tenant: Option<&'a str>,
}

fn bill_of(store: &mut Store, scope: Scope<'_>, by: &str) -> Bill {
    let Scope { period, zone, tenant } = scope;
    let by: Grouping = by.parse().unwrap();
    let parts = period.parts(by.unit().unwrap_or(Unit::Month), zone).unwrap();
    let mut biller = Biller::new(period, zone.clone(), by);
    for part in parts {
        let add = |key: &HourKey, hour: &Hour| {
            assert!(part.contains(key.hour));
            biller.add_hour(key, hour).unwrap();
            Ok::<_, StoreError>(())
        };
        store.hours(part, tenant, add).unwrap();
    }
    biller.finish()
}

/// The same from sums, with a cut at `cut`, and the hours of beta told apart; and an invoice of them,
/// which `recent_since` is a cut of.
fn bill_of_sums(store: &mut Store, scope: Scope<'_>, by: &str, cut: Timestamp) -> (Bill, Invoice) {
    let Scope { period, zone, tenant } = scope;
    let by: Grouping = by.parse().unwrap();
    let unit = by.unit().unwrap_or(Unit::Month);
    let mut biller = Biller::new(period, zone.clone(), by);
    let mut invoicer = Invoicer::new(period, zone.clone(), minute(600) + 7 * 24.hours());
    let mut cuts = period.starts(unit, zone).unwrap();
    cuts.extend([cut, invoicer.recent_since()]);
    cuts.sort();
    let granularity = Granularity { cuts: &cuts, is_hourly: &|key| key.tenant == "beta" };
    for part in period.parts(unit, zone).unwrap() {
        let add = |key: &HourKey, hour: &Hour| {
            biller.add_hour(key, hour).unwrap();
            invoicer.add(key, hour).unwrap();
            Ok::<_, StoreError>(())
        };
        store.sums(part, tenant, granularity, add).unwrap();
    }
    (biller.finish(), invoicer.finish().unwrap())
}

fn invoice_of_hours(store: &mut Store, scope: Scope<'_>) -> Invoice {
    let Scope { period, zone, tenant } = scope;
    let mut invoicer = Invoicer::new(period, zone.clone(), minute(600) + 7 * 24.hours());
    for part in period.parts(Unit::Month, zone).unwrap() {
        let add = |key: &HourKey, hour: &Hour| {
            invoicer.add(key, hour).unwrap();
            Ok::<_, StoreError>(())
        };
        store.hours(part, tenant, add).unwrap();
    }
    invoicer.finish().unwrap()
}

/// The same bill, without a store.
fn expected(rides: &[Record], corrections: &[Correction], scope: Scope<'_>, by: &str) -> Bill {
    let Scope { period, zone, tenant } = scope;
    let mut biller = Biller::new(period, zone.clone(), by.parse().unwrap());
    for ride in rides {
        let row = BilledRequest::from(ride);
        if !period.contains(row.started_at) || tenant.is_some_and(|tenant| tenant != row.tenant) {
            continue;
        }
        // The instant itself tells hour, day and month.
        let hour = row.started_at;
        biller.add_hour(&HourKey { hour, ..HourKey::of(&row) }, &Hour::of(&row)).unwrap();
        for correction in corrections.iter().filter(|correction| correction.corrects == ride.id) {
            for (key, corrected) in corrected(&row, correction) {
                biller.add_hour(&HourKey { hour, ..key }, &corrected).unwrap();
            }
        }
    }
    biller.finish()
}

fn minute(minute: i64) -> Timestamp {
    record(0).started_at + SignedDuration::from_mins(minute)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn a_bill_from_hours_equals_one_from_the_records(
        count in 1_u32..60,
        early in 0_usize..60,
        from in 0_i64..600,
        minutes in 1_i64..300,
        tenant in prop::option::of(prop::sample::select(vec!["acme", "beta", "nobody"])),
        zone in prop::sample::select(vec![
            "UTC", "Europe/Berlin", "Asia/Kolkata", "Asia/Kathmandu", "America/St_Johns",
        ]),
    ) {
        let zone = &zone.parse::<Zone>().unwrap();
        let rides: Vec<_> = (0..count).map(ride).collect();
        let corrections = corrections(&rides);
        let (posts, changes) = (journal(rides.iter().cloned()), entries(&corrections));
        let (_dir, mut store) = open();
        // Some corrections come before their requests, and all of it comes twice.
        store.catch_up(&mut [changed(&changes[..early.min(changes.len())])]).unwrap();
        store.catch_up(&mut [feed(&posts), changed(&changes)]).unwrap();
        store.catch_up(&mut [changed(&changes[..0])]).unwrap();
        let period = Period::new(minute(from), minute(from + minutes)).unwrap();
        for period in [period, Period::month_of(minute(0), zone).unwrap()] {
            let scope = Scope { period, zone, tenant };
            for by in ["tenant,model", "hour,key,label:team", "day,provider,upstream", "month,route"] {
                let expected = expected(&rides, &corrections, scope, by);
                prop_assert_eq!(bill_of(&mut store, scope, by), expected.clone());
                let (bill, invoice) = bill_of_sums(&mut store, scope, by, minute(from + minutes / 2));
                prop_assert_eq!(bill, expected);
                prop_assert_eq!(invoice, invoice_of_hours(&mut store, scope));
            }
        }
    }
}

#[test]
fn corrections_come_in_the_order_in_which_they_were_written() {
    let rides = [ride(1)];
    let first = correction(7, &rides[0], rides[0].cost.as_ref(), 3);
    let second = correction(3, &rides[0], first.after.as_ref(), 2);
    let second = Correction { made_at: first.made_at + SignedDuration::from_secs(9), ..second };
    let (_dir, mut store) = open();
    let written = [first, second];
    store.catch_up(&mut [feed(&journal(rides)), changed(&entries(&written))]).unwrap();
    let mut found = Vec::new();
    let take = |_: &BilledRequest<'_>, correction: &Correction| {
        found.push(correction.clone());
        Ok::<_, StoreError>(())
    };
    store.corrections(november(), None, take).unwrap();
    assert_eq!(found, written);
}

#[test]
fn the_entries_of_a_period_are_told_by_gateway_and_by_tenant() {
    let (mut odd, mut before, mut other) = (ride(2), ride(3), ride(4));
    odd.gateway = "pod \\ \"1\"/0".to_owned();
    odd.request_id = r#"","gateway":"not/0""#.to_owned();
    before.started_at = "2026-10-31T23:59:59Z".parse().unwrap();
    other.tenant = taximeter_ledger::TenantId("zeta".into());
    let rides = [ride(1), odd.clone(), before, other];
    let corrected = correction(7, &rides[0], rides[0].cost.as_ref(), 3);
    let (_dir, mut store) = open();
    let corrections = entries(&[corrected]);
    store.catch_up(&mut [feed(&journal(rides.clone())), changed(&corrections)]).unwrap();
    let range = |first, last, records| SequenceRange { first, last, records };
    let all = store.entries(november(), None).unwrap();
    let gateways = [(rides[0].gateway.clone(), range(1, 4, 2)), (odd.gateway, range(2, 2, 1))];
    assert_eq!(all, Entries { sequences: gateways.into(), corrections: 1 });
    let zeta = store.entries(november(), Some("zeta")).unwrap();
    let gateways = [(rides[0].gateway.clone(), range(4, 4, 1))];
    assert_eq!(zeta, Entries { sequences: gateways.into(), corrections: 0 });
}

/// `store` stays as it is while `feeder`, which is the same, gets a request of another gateway.
pub(super) fn stays_as_it_is(store: &mut Store, feeder: &mut Store) {
    let count = |store: &mut Store| store.entries(november(), None).unwrap().sequences.len();
    catch_up(store, &journal([ride(1)]));
    let held = store.at_one_moment(|store| {
        let before = count(store);
        store.hours(november(), None, |_, _| Ok::<_, StoreError>(()))?;
        let other = Record { gateway: "another/0".to_owned(), ..ride(2) };
        feeder.catch_up(&mut [feed_as("another", &journal([other]))]).unwrap();
        Ok::<_, StoreError>((before, count(store)))
    });
    assert_eq!(held.unwrap(), (1, 1));
    assert_eq!(count(store), 2);
    let fault = StoreError::NoDataDir("gone".into());
    assert!(store.at_one_moment(|_| Err::<(), _>(fault)).is_err());
    assert_eq!(count(store), 2, "it can be asked again");
}

#[test]
fn what_is_fed_meanwhile_is_not_there_until_the_moment_is_over() {
    let (dir, mut store) = open();
    stays_as_it_is(&mut store, &mut Store::open(dir.path()).unwrap());
}

#[test]
fn sums_that_are_too_large_together_are_kept_apart() {
    let (_dir, mut store) = open();
    let huge = |number| {
        let mut huge = record(number);
        huge.usage.output_tokens = Some(u64::MAX - 20);
        huge
    };
    catch_up(&mut store, &journal([huge(1), record(2), huge(3)]));
    catch_up(&mut store, &journal([huge(1), record(2), huge(3), record(4), huge(5)]));
    let mut parts = Vec::new();
    let take = |_: &HourKey, hour: &Hour| {
        parts.push((hour.sums.requests, hour.sums.output_tokens));
        Ok::<_, StoreError>(())
    };
    store.hours(november(), None, take).unwrap();
    let huge = u64::MAX - 20;
    assert_eq!(parts, [(2, Some(huge + 10)), (1, Some(huge)), (2, Some(huge + 10))]);
    let mut sums = Vec::new();
    let take = |_: &HourKey, hour: &Hour| {
        sums.push((hour.sums.requests, hour.sums.output_tokens));
        Ok::<_, StoreError>(())
    };
    let granularity = Granularity { cuts: &[], is_hourly: &|_| false };
    store.sums(november(), None, granularity, take).unwrap();
    assert_eq!(sums, parts);
}

#[test]
fn what_nobody_tells_apart_is_one_sum() {
    let (_dir, mut store) = open();
    let rides: Vec<_> =
        (0..30).map(|number| Record { tenant: ride(0).tenant, ..ride(6 * number) }).collect();
    catch_up(&mut store, &journal(rides));
    let mut count = |cuts: &[Timestamp]| {
        let mut found = Vec::new();
        let take = |key: &HourKey, hour: &Hour| {
            found.push((key.hour, hour.sums.requests));
            Ok::<_, StoreError>(())
        };
        let granularity = Granularity { cuts, is_hourly: &|_| false };
        store.sums(november(), None, granularity, take).unwrap();
        found.sort();
        found
    };
    let whole = count(&[]);
    assert_eq!(whole.iter().map(|(_, requests)| requests).sum::<u64>(), 30);
    assert!(whole.len() < 10, "{whole:?}");
    let cut = ride(6 * 15).started_at;
    let halves = count(&[cut]);
    assert!(
        halves.len() > whole.len() && halves.iter().any(|(hour, _)| *hour >= cut),
        "{halves:?}"
    );
}

#[test]
fn hours_come_in_order_whatever_came_first() {
    let (_dir, mut store) = open();
    let mut backwards: Vec<_> = (0..30).map(ride).collect();
    backwards.reverse();
    catch_up(&mut store, &journal(backwards));
    let mut keys = Vec::new();
    let take = |key: &HourKey, _: &Hour| {
        keys.push(key.clone());
        Ok::<_, StoreError>(())
    };
    store.hours(november(), None, take).unwrap();
    assert!(keys.is_sorted() && keys.len() > 10, "{keys:?}");
}

on_postgres! {
    a_bill_from_hours_equals_one_from_the_records,
    corrections_come_in_the_order_in_which_they_were_written,
    the_entries_of_a_period_are_told_by_gateway_and_by_tenant,
    sums_that_are_too_large_together_are_kept_apart,
    what_nobody_tells_apart_is_one_sum,
    hours_come_in_order_whatever_came_first,
}
