use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;
use rust_decimal::Decimal;
use taximeter_ledger::{Dimensions, RecordCost};
use taximeter_pricing::Source;

use super::*;
use crate::{BilledRequest, Unit, csv, json};

/// The owned form of a [`BilledRequest`], for making many.
#[derive(Debug, Clone)]
struct Ride {
    at: i64,
    tenant: &'static str,
    model: Option<&'static str>,
    team: Option<&'static str>,
    source: Source,
    input: Option<u64>,
    cached: Option<u64>,
    output: Option<u64>,
    cost: Option<Decimal>,
}

const RIDE: Ride = Ride {
    at: 0,
    tenant: "acme",
    model: Some("m"),
    team: None,
    source: Source::Reported,
    input: Some(100),
    cached: Some(60),
    output: Some(10),
    cost: Some(Decimal::ONE),
};

fn november() -> Period {
    Period::month("2026-11").unwrap()
}

fn bill_of(rides: &[Ride], period: Period, by: &str) -> Result<Bill, BillError> {
    Ok(biller_of(rides, period, by)?.finish())
}

fn biller_of(rides: &[Ride], period: Period, by: &str) -> Result<Biller, BillError> {
    let mut biller = Biller::new(period, Zone::UTC, by.parse().unwrap());
    add(&mut biller, rides, period)?;
    Ok(biller)
}

/// Adds those of a period, as a store has them by the hour.
fn add(biller: &mut Biller, rides: &[Ride], period: Period) -> Result<(), BillError> {
    for ride in rides.iter().filter(|ride| period.contains(at(ride.at))) {
        let labels = ride.team.map(|team| ("team".to_owned(), team.to_owned()));
        let labels = labels.into_iter().collect();
        let cost = ride.cost.map(|amount| cost("USD", amount));
        // Both tenants have the same names.
        let session = ride.team.map(|team| format!("session-{team}"));
        let dimensions = session.map(|session| Dimensions {
            session: Some(session),
            agent: ride.model.map(str::to_owned),
            ..Dimensions::default()
        });
        let row = BilledRequest {
            started_at: at(ride.at),
            tenant: ride.tenant,
            model: ride.model,
            provider: "vllm",
            upstream: "local",
            operation: "chat",
            route: "/v1/chat/completions",
            key_id: None,
            labels: &labels,
            source: ride.source,
            input_tokens: ride.input,
            cache_read_input_tokens: ride.cached,
            output_tokens: ride.output,
            reasoning_output_tokens: None,
            cost: cost.as_ref(),
            dimensions: dimensions.as_ref(),
        };
        let key = HourKey::split(&row, &biller.by.split_by());
        let key = HourKey { hour: key.hour.max(period.from()), ..key };
        biller.add_hour(&key, &Hour::of(&row))?;
    }
    Ok(())
}

fn cost(currency: &str, amount: Decimal) -> RecordCost {
    RecordCost {
        at_least: false,
        currency: currency.to_owned(),
        amount,
        list_amount: amount,
        price_id: "b@1#m".to_owned(),
        price_match: None,
        lines: Vec::new(),
    }
}

/// Seconds after the start of November.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(november().from().as_second() + seconds).unwrap()
}

fn decimal(text: &str) -> Decimal {
    Decimal::from_str_exact(text).unwrap()
}

fn rides() -> impl Strategy<Value = Vec<Ride>> {
    let tokens = || prop::option::of(0_u64..1 << 40);
    let source = prop::sample::select(vec![Source::Reported, Source::Counted, Source::Unknown]);
    let ride = (
        0_i64..30 * 86_400,
        prop::sample::select(vec!["acme", "beta", "gamma"]),
        prop::option::of(prop::sample::select(vec!["m", "n", "=evil"])),
        prop::option::of(prop::sample::select(vec!["search", "ads"])),
        source,
        (tokens(), tokens(), tokens()),
        prop::option::of((0_i64..1 << 40, 0_u32..=12)),
    );
    let ride = ride.prop_map(|(at, tenant, model, team, source, (input, cached, output), cost)| {
        let cost = cost.map(|(digits, places)| Decimal::new(digits, places));
        Ride { at, tenant, model, team, source, input, cached, output, cost }
    });
    prop::collection::vec(ride, 0..60)
}

fn add_up<'a>(all: impl IntoIterator<Item = &'a Sums>) -> Sums {
    let mut sum = Sums::default();
    for sums in all {
        sum.add(sums).unwrap();
    }
    sum
}

proptest! {
    #[test]
    fn the_total_is_the_sum_of_the_rows(rides in rides()) {
        let bill = bill_of(&rides, november(), "tenant,model").unwrap();
        prop_assert_eq!(bill.total.requests, rides.len() as u64);
        if !rides.is_empty() {
            prop_assert_eq!(add_up(bill.rows.iter().map(|line| &line.sums)), bill.total);
        }
    }

    #[test]
    fn every_grouping_has_the_same_total(rides in rides()) {
        let total = bill_of(&rides, november(), "tenant").unwrap().total;
        for by in ["model", "day", "hour,tenant", "label:team", "key,route,upstream,operation"] {
            prop_assert_eq!(&bill_of(&rides, november(), by).unwrap().total, &total, "{}", by);
        }
    }

    #[test]
    fn what_clients_say_splits_the_lines_of_a_tenant_and_changes_no_sum(rides in rides()) {
        let whole = bill_of(&rides, november(), "tenant").unwrap();
        let by = "tenant,session,agent,end_user,tag:team";
        let split = bill_of(&rides, november(), by).unwrap();
        prop_assert_eq!(&split.total, &whole.total);
        for line in &whole.rows {
            let parts = split.rows.iter().filter(|part| part.keys[0] == line.keys[0]);
            prop_assert_eq!(&add_up(parts.map(|part| &part.sums)), &line.sums);
        }
        let none = rides.iter().filter(|ride| ride.team.is_none()).count() as u64;
        let sessions = bill_of(&rides, november(), "session").unwrap();
        let rows = sessions.rows.iter().filter(|line| line.keys == [None]);
        let counts: Vec<_> = rows.map(|line| line.sums.requests).collect();
        prop_assert_eq!(counts, if none > 0 { vec![none] } else { vec![] });
    }

    #[test]
    fn the_period_may_be_split_anywhere(rides in rides(), cut in 1_i64..30 * 86_400) {
        let whole = november();
        let early = Period::new(whole.from(), at(cut)).unwrap();
        let late = Period::new(at(cut), whole.to()).unwrap();
        let halves = [early, late].map(|period| bill_of(&rides, period, "model").unwrap());
        let lines = halves.iter().flat_map(|bill| &bill.rows).map(|line| &line.sums);
        let whole = bill_of(&rides, whole, "model").unwrap();
        prop_assert_eq!(add_up(lines), add_up(whole.rows.iter().map(|line| &line.sums)));
    }

    #[test]
    fn days_of_any_zone_add_up_to_its_month(
        rides in rides(),
        name in prop::sample::select(vec![
            "Europe/Berlin", "Asia/Kolkata", "Asia/Kathmandu", "America/St_Johns",
            "Australia/Lord_Howe", "Pacific/Chatham", "Pacific/Kiritimati",
        ]),
    ) {
        let zone: Zone = name.parse().unwrap();
        let month = Period::month_of(at(10 * 86_400), &zone).unwrap();
        let bill = |by: &str| {
            let by: Grouping = by.parse().unwrap();
            let parts = month.parts(by.unit().unwrap_or(Unit::Month), &zone).unwrap();
            let mut biller = Biller::new(month, zone.clone(), by);
            for part in parts {
                add(&mut biller, &rides, part).unwrap();
            }
            biller.finish()
        };
        let whole = bill("tenant").total;
        for by in ["month", "day", "hour,tenant", "day,tenant"] {
            prop_assert_eq!(&bill(by).total, &whole, "{}", by);
        }
        let days = bill("day");
        for line in &days.rows {
            let on = crate::day(line.keys[0].as_deref().unwrap()).unwrap();
            let day = Period::day(on, &zone).unwrap();
            let inside = rides.iter().filter(|ride| day.contains(at(ride.at))).count();
            prop_assert_eq!(line.sums.requests, inside as u64);
        }
    }

    #[test]
    fn rows_may_come_in_any_order(
        (rides, shuffled) in rides().prop_flat_map(|r| (Just(r.clone()), Just(r).prop_shuffle()))
    ) {
        prop_assert_eq!(
            bill_of(&rides, november(), "tenant,model"),
            bill_of(&shuffled, november(), "tenant,model")
        );
    }

    #[test]
    fn csv_and_json_hold_every_row_and_the_exact_costs(rides in rides()) {
        let bill = bill_of(&rides, november(), "tenant,model,day").unwrap();
        let read: serde_json::Value = serde_json::from_str(&json(&bill)).unwrap();
        let text = csv(&bill);
        let lines: Vec<_> = text.split_terminator("\r\n").skip(1).collect();
        prop_assert_eq!(lines.len(), bill.rows.len());
        let rows = read["rows"].as_array().unwrap();
        for ((line, row), csv) in bill.rows.iter().zip(rows).zip(lines) {
            let cost = line.sums.cost.map(|cost| cost.to_string());
            prop_assert_eq!(row["cost"].as_str(), cost.as_deref());
            prop_assert_eq!(csv.split(',').nth(10), Some(cost.as_deref().unwrap_or("")));
            prop_assert_eq!(row["model"].as_str(), line.keys[1].as_deref());
        }
    }
}

#[test]
fn what_is_unknown_is_counted_apart_and_never_zero() {
    let unknown = Ride {
        source: Source::Unknown,
        input: None,
        cached: None,
        output: None,
        cost: None,
        ..RIDE
    };
    let bill = bill_of(std::slice::from_ref(&unknown), november(), "tenant").unwrap();
    let alone = &bill.rows[0].sums;
    assert_eq!((alone.input_tokens, alone.output_tokens, alone.cost), (None, None, None));
    assert_eq!((alone.unknown_usage_requests, alone.unknown_cost_requests), (1, 1));

    let counted = Ride { source: Source::Counted, ..RIDE };
    let bill = bill_of(&[RIDE, unknown, counted], november(), "tenant").unwrap();
    let mixed = &bill.rows[0].sums;
    assert_eq!((mixed.input_tokens, mixed.cost), (Some(200), Some(Decimal::TWO)));
    assert_eq!((mixed.unknown_usage_requests, mixed.unknown_cost_requests), (1, 1));
    assert_eq!((mixed.counted_requests, mixed.reported_requests()), (1, 1));
}

#[test]
fn a_free_request_costs_zero_and_is_not_unknown() {
    let bill = bill_of(&[Ride { cost: Some(Decimal::ZERO), ..RIDE }], november(), "tenant");
    let total = bill.unwrap().total;
    assert_eq!((total.cost, total.unknown_cost_requests), (Some(Decimal::ZERO), 0));
}

#[test]
fn an_output_that_a_generating_request_lacks_is_unknown() {
    let bill = bill_of(&[Ride { output: None, ..RIDE }], november(), "tenant").unwrap();
    assert_eq!(bill.total.unknown_usage_requests, 1);
}

#[test]
fn what_is_reported_in_other_units_is_not_unknown() {
    let seconds = Ride { input: None, cached: None, output: None, ..RIDE };
    let total = bill_of(&[seconds], november(), "tenant").unwrap().total;
    assert_eq!((total.unknown_usage_requests, total.reported_requests()), (0, 1));
    assert_eq!((total.input_tokens, total.output_tokens), (None, None));
}

#[test]
fn nothing_used_is_known_to_be_zero() {
    let total = bill_of(&[], november(), "tenant").unwrap().total;
    assert_eq!((total.requests, total.input_tokens, total.cost), (0, Some(0), Some(Decimal::ZERO)));
}

#[test]
fn admission_decides_the_month() {
    let last = Ride { at: 30 * 86_400 - 1, ..RIDE };
    let next = Ride { at: 30 * 86_400, ..RIDE };
    let before = Ride { at: -1, ..RIDE };
    let bill = bill_of(&[before, RIDE, last, next], november(), "day").unwrap();
    let days: Vec<_> = bill.rows.iter().map(|line| line.keys[0].as_deref().unwrap()).collect();
    assert_eq!(days, ["2026-11-01", "2026-11-30"]);
}

#[test]
fn an_hour_that_comes_twice_is_two_lines_in_order_of_time() {
    let zone: Zone = "Europe/Berlin".parse().unwrap();
    let before = november().from().as_second();
    let ride = |time: &str| {
        let at: Timestamp = time.parse().unwrap();
        Ride { at: at.as_second() - before, ..RIDE }
    };
    let rides = ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"].map(ride);
    let october = Period::month("2026-10").unwrap();
    let mut biller = Biller::new(october, zone, "hour".parse().unwrap());
    add(&mut biller, &rides, october).unwrap();
    let bill = biller.finish();
    let hours: Vec<_> = bill.rows.iter().map(|line| line.keys[0].as_deref().unwrap()).collect();
    assert_eq!(hours, ["2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00"]);
}

#[test]
fn lines_go_by_time_then_by_cost_then_by_name() {
    let ride =
        |at, tenant, cost: Option<i64>| Ride { at, tenant, cost: cost.map(Decimal::from), ..RIDE };
    let rides = [
        ride(0, "zeta", Some(1)),
        ride(0, "acme", Some(1)),
        ride(0, "none", None),
        ride(0, "rich", Some(5)),
        ride(3600, "late", Some(9)),
    ];
    let order = |by| -> Vec<String> {
        let bill = bill_of(&rides, november(), by).unwrap();
        bill.rows.iter().map(|line| line.keys.iter().flatten().last().unwrap().clone()).collect()
    };
    assert_eq!(order("tenant"), ["late", "rich", "acme", "zeta", "none"]);
    assert_eq!(order("hour,tenant"), ["rich", "acme", "zeta", "none", "late"]);
}

#[test]
fn two_currencies_are_not_added() {
    let (labels, dollar, euro) =
        (BTreeMap::new(), cost("USD", Decimal::ONE), cost("EUR", Decimal::ONE));
    let mut biller = Biller::new(november(), Zone::UTC, Grouping::default());
    let mut add = |cost| {
        let row = BilledRequest {
            started_at: at(0),
            tenant: "acme",
            model: None,
            provider: "vllm",
            upstream: "local",
            operation: "chat",
            route: "/v1/chat/completions",
            key_id: None,
            labels: &labels,
            source: Source::Reported,
            input_tokens: Some(1),
            cache_read_input_tokens: None,
            output_tokens: Some(1),
            reasoning_output_tokens: None,
            cost: Some(cost),
            dimensions: None,
        };
        biller.add_hour(&HourKey::of(&row), &Hour::of(&row))
    };
    add(&dollar).unwrap();
    assert!(matches!(add(&euro), Err(BillError::Currencies { .. })));
}

#[test]
fn a_sum_that_would_lose_digits_or_wrap_is_an_error() {
    let tiny = decimal("0.0000000000000000000000000001");
    let costs = |costs: [Decimal; 2]| {
        bill_of(&costs.map(|cost| Ride { cost: Some(cost), ..RIDE }), november(), "tenant")
    };
    let overflow = Err(BillError::Overflow { tenant: "acme".to_owned() });
    assert_eq!(costs([tiny, Decimal::from(100)]), overflow);
    assert_eq!(costs([Decimal::MAX, Decimal::ONE]), overflow);
    assert_eq!(costs([tiny, Decimal::ONE]).unwrap().total.cost, Some(tiny + Decimal::ONE));
    let tokens = [u64::MAX, 1].map(|input| Ride { input: Some(input), ..RIDE });
    assert_eq!(bill_of(&tokens, november(), "tenant"), overflow);
}

#[test]
fn csv_has_a_stable_head_and_disarmed_names() {
    let rides = [
        Ride { model: Some("=cmd|'/C calc'!A0"), cost: Some(decimal("0.00012340")), ..RIDE },
        Ride { model: None, cost: None, source: Source::Unknown, input: None, ..RIDE },
    ];
    let bill = bill_of(&rides, november(), "tenant,model").unwrap();
    let expected = "period_start,period_end,tenant,model,requests,input_tokens,\
         cache_read_input_tokens,output_tokens,reasoning_output_tokens,cost,list_cost,currency,\
         unknown_cost_requests,counted_requests,unknown_usage_requests,charge_category,time_zone\r\n\
         2026-11-01T00:00:00Z,2026-12-01T00:00:00Z,acme,'=cmd|'/C calc'!A0,1,100,60,10,,\
         0.0001234,0.0001234,USD,0,0,0,Usage,UTC\r\n\
         2026-11-01T00:00:00Z,2026-12-01T00:00:00Z,acme,,1,,60,10,,,,,1,0,1,Usage,UTC\r\n";
    assert_eq!(csv(&bill), expected);
}

#[test]
fn credits_are_lines_of_their_own_and_taken_off_the_total() {
    let rides = [Ride { cost: Some(decimal("0.50")), ..RIDE }];
    let mut biller = biller_of(&rides, november(), "tenant,model").unwrap();
    let credit = Credit {
        tenant: "acme".to_owned(),
        month: jiff::civil::date(2026, 11, 1),
        covered: crate::credit::Covered::Money,
        tokens: None,
        amount: decimal("0.20"),
        currency: "USD".to_owned(),
    };
    biller.add_credit(credit.clone()).unwrap();
    let euros = Credit { currency: "EUR".to_owned(), ..credit };
    assert!(matches!(biller.add_credit(euros), Err(BillError::Currencies { .. })));
    let bill = biller.finish();
    assert_eq!(
        (bill.rows[0].sums.cost, bill.total.cost),
        (Some(decimal("0.5")), Some(decimal("0.3")))
    );
    let csv = csv(&bill);
    assert!(csv.ends_with(",acme,,0,0,0,0,0,-0.20,,USD,0,0,0,Credit,UTC\r\n"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&json(&bill)).unwrap();
    let expected = serde_json::json!([{
        "tenant": "acme", "month": "2026-11-01", "covered": "money", "amount": "0.20",
        "currency": "USD"
    }]);
    assert_eq!(json["credits"], expected);
}

#[test]
fn json_names_the_dimensions_and_keeps_names_as_they_are() {
    let rides = [Ride { model: Some("=evil"), cost: Some(decimal("0.10")), ..RIDE }];
    let bill = bill_of(&rides, november(), "model,label:team").unwrap();
    let expected = serde_json::json!({
        "period": {"from": "2026-11-01T00:00:00Z", "to": "2026-12-01T00:00:00Z", "zone": "UTC"},
        "currency": "USD",
        "by": ["model", "label:team"],
        "rows": [{
            "model": "=evil", "label:team": null,
            "requests": 1, "input_tokens": 100, "cache_read_input_tokens": 60,
            "output_tokens": 10, "reasoning_output_tokens": null, "cost": "0.1", "list_cost": "0.1",
            "unknown_cost_requests": 0, "counted_requests": 0, "unknown_usage_requests": 0
        }],
        "credits": [],
        "total": {
            "requests": 1, "input_tokens": 100, "cache_read_input_tokens": 60,
            "output_tokens": 10, "reasoning_output_tokens": null, "cost": "0.1", "list_cost": "0.1",
            "unknown_cost_requests": 0, "counted_requests": 0, "unknown_usage_requests": 0
        }
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json(&bill)).unwrap(), expected);
}
