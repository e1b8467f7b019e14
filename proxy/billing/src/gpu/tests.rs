use proptest::collection::vec;
use proptest::prelude::*;
use taximeter_pricing::{Currency, Money, TokenWeights};

use super::*;
use crate::client_dimension::ClientDimension;
use crate::fixtures;
use crate::period::instant;

fn price(hourly: &str, count: u32) -> GpuPrice {
    GpuPrice {
        kind: "H100".to_owned(),
        count,
        hourly: Money { amount: hourly.parse().unwrap(), currency: Currency::USD },
        since: None,
        until: None,
        weights: TokenWeights { input: 1, output: 4 },
    }
}

fn at(text: &str) -> Timestamp {
    instant(&format!("2026-11-20T{text}Z")).unwrap()
}

fn key(tenant: &str) -> HourKey {
    HourKey { currency: None, ..fixtures::key(tenant, "2026-11-20") }
}

fn run(from: &str, to: &str, input: u64, output: u64) -> RequestRun {
    let (input_tokens, output_tokens) = (Some(input), Some(output));
    RequestRun { started_at: at(from), ended_at: at(to), input_tokens, output_tokens }
}

fn shares(
    price: GpuPrice,
    period: (&str, &str),
    runs: &[(&str, RequestRun)],
) -> Vec<(HourKey, Hour)> {
    let period = Period::new(at(period.0), at(period.1)).unwrap();
    let mut shares = GpuShares::new("local", "vllm", price, period, Zone::UTC);
    for (tenant, run) in runs {
        shares.add(&key(tenant), run);
    }
    shares.finish().unwrap()
}

/// Hour of the day, tenant and what is owed.
fn owed(shares: &[(HourKey, Hour)]) -> Vec<(String, String, String)> {
    let mut owed: Vec<_> = shares
        .iter()
        .map(|(key, hour)| {
            let cost = hour.sums.cost.unwrap().normalize().to_string();
            (key.hour.strftime("%H").to_string(), key.tenant.clone(), cost)
        })
        .collect();
    owed.sort();
    owed
}

fn line(hour: &str, tenant: &str, cost: &str) -> (String, String, String) {
    (hour.to_owned(), tenant.to_owned(), cost.to_owned())
}

#[test]
fn the_busy_time_is_shared_by_weighted_tokens_and_the_rest_is_idle() {
    // BusyHour for half an hour, in which two overlap: 100 + 4 × 50 and 100 tokens' weight.
    let runs = [
        ("acme", run("10:00:00", "10:20:00", 100, 50)),
        ("zeta", run("10:10:00", "10:30:00", 60, 10)),
    ];
    let shares = shares(price("2.40", 2), ("10:00:00", "11:00:00"), &runs);
    let expected =
        [line("10", "acme", "1.8"), line("10", "idle/local", "2.4"), line("10", "zeta", "0.6")];
    assert_eq!(owed(&shares), expected);
    let (key, idle) = shares.last().unwrap();
    assert_eq!((key.tenant.as_str(), idle.sums.input_tokens), ("idle/local", Some(0)));
}

#[test]
fn what_runs_over_the_end_of_an_hour_is_in_both() {
    let runs = [
        ("acme", run("10:45:00", "11:15:00", 100, 0)),
        ("zeta", run("11:00:00", "11:15:00", 50, 0)),
    ];
    let shares = shares(price("4", 1), ("10:00:00", "12:00:00"), &runs);
    assert_eq!(
        owed(&shares),
        [
            line("10", "acme", "1"),
            line("10", "idle/local", "3"),
            line("11", "acme", "0.5"),
            line("11", "idle/local", "3"),
            line("11", "zeta", "0.5"),
        ]
    );
}

#[test]
fn a_request_that_ended_before_it_began_is_in_the_hour_of_its_start_and_takes_no_time() {
    let runs = [
        ("acme", run("10:00:00", "10:30:00", 100, 0)),
        ("zeta", run("11:10:00", "10:10:00", 100, 0)),
    ];
    let owed = owed(&shares(price("2.40", 1), ("10:00:00", "12:00:00"), &runs));
    let hour = |of: &str| owed.iter().filter(|(hour, ..)| hour == of).cloned().collect::<Vec<_>>();
    assert_eq!(hour("10"), [line("10", "acme", "1.2"), line("10", "idle/local", "1.2")]);
    assert_eq!(hour("11"), [line("11", "idle/local", "2.4"), line("11", "zeta", "0")]);
}

#[test]
fn hours_in_which_nothing_ran_cost_too() {
    let shares = shares(price("2.50", 2), ("08:00:00", "10:30:00"), &[]);
    let idle = [("08", "5"), ("09", "5"), ("10", "2.5")];
    assert_eq!(owed(&shares), idle.map(|(hour, cost)| line(hour, "idle/local", cost)));
}

#[test]
fn gpus_cost_nothing_before_their_first_day() {
    let since = Some(jiff::civil::date(2026, 11, 21));
    let late = GpuPrice { since, ..price("2.50", 2) };
    assert_eq!(shares(late, ("08:00:00", "10:00:00"), &[]), []);
}

/// Two GPUs at 2.50 an hour until midnight, four at 2.25 behind it, and one request across it.
#[test]
fn what_gpus_cost_changes_at_midnight_to_the_last_digit() {
    let change = jiff::civil::date(2026, 11, 21);
    let before = GpuPrice { until: Some(change), ..price("2.50", 2) };
    let behind = GpuPrice { since: Some(change), ..price("2.25", 4) };
    let instant = |text: &str| instant(text).unwrap();
    // Where hours begin at half past those of UTC.
    for zone in [Zone::UTC, "Asia/Kolkata".parse().unwrap()] {
        let period = Period::new(instant("2026-11-20T22:00:00Z"), instant("2026-11-21T02:00:00Z"));
        let owed = |price: &GpuPrice| {
            let (price, period) = (price.clone(), period.clone().unwrap());
            let mut shares = GpuShares::new("local", "vllm", price, period, zone.clone());
            let run = RequestRun {
                started_at: instant("2026-11-20T23:15:00Z"),
                ended_at: instant("2026-11-21T00:15:00Z"),
                input_tokens: Some(7),
                output_tokens: Some(3),
            };
            shares.add(&key("acme"), &run);
            let of = |tenant: &str, all: &[(HourKey, Hour)]| -> Decimal {
                let theirs = all.iter().filter(|(key, _)| key.tenant == tenant);
                theirs.map(|(_, hour)| hour.sums.cost.unwrap()).sum()
            };
            let all = shares.finish().unwrap();
            [of("acme", &all), of("idle/local", &all)].map(|cost| cost.normalize().to_string())
        };
        // Three quarters of an hour at 5, and the rest of two hours; a quarter of one at 9.
        assert_eq!(owed(&before), ["3.75", "6.25"], "{zone}");
        assert_eq!(owed(&behind), ["2.25", "15.75"], "{zone}");
    }
}

#[test]
fn unknown_tokens_weigh_nothing_beside_known_ones() {
    let unknown =
        RequestRun { input_tokens: None, output_tokens: None, ..run("10:00:00", "10:30:00", 0, 0) };
    let known = run("10:00:00", "10:30:00", 1, 0);
    let both = [("acme", unknown), ("zeta", known)];
    let hour = ("10:00:00", "11:00:00");
    let expected =
        [line("10", "acme", "0"), line("10", "idle/local", "1"), line("10", "zeta", "1")];
    assert_eq!(owed(&shares(price("2", 1), hour, &both)), expected);
    let expected = [line("10", "acme", "1"), line("10", "idle/local", "1")];
    assert_eq!(owed(&shares(price("2", 1), hour, &both[..1])), expected);
}

#[test]
fn what_a_request_would_owe_by_the_token_is_left_out_and_its_tokens_stay() {
    let period = Period::new(at("00:00:00"), at("01:00:00")).unwrap();
    let shares = GpuShares::new("local", "vllm", price("2", 1), period, Zone::UTC);
    let sums = Sums {
        requests: 2,
        input_tokens: Some(7),
        cost: Some(Decimal::ONE),
        list_cost: Some(Decimal::ONE),
        unknown_cost_requests: 1,
        ..Sums::default()
    };
    let hour = Hour { sums, lines: BTreeMap::new() };
    let owing = HourKey { currency: Some("USD".to_owned()), ..key("acme") };
    let (left_key, left) = shares.without_token_cost(&owing, &hour).unwrap();
    assert_eq!(left_key, key("acme"));
    assert_eq!((left.sums.requests, left.sums.input_tokens), (2, Some(7)));
    assert_eq!((left.sums.cost, left.sums.unknown_cost_requests), (None, 0));
    let elsewhere = HourKey { upstream: "other".to_owned(), ..key("acme") };
    assert_eq!(shares.without_token_cost(&elsewhere, &hour), None);
}

/// Seconds of a day and of a length, and tokens, mostly few and sometimes absurd.
fn any_run() -> impl Strategy<Value = (usize, i64, i64, u64, u64)> {
    let tokens = prop_oneof![0..5000_u64, Just(0), Just(u64::MAX)];
    (0..3_usize, 0..30_000_000_000_i64, 0..9_000_000_000_i64, tokens.clone(), tokens)
}

fn runs_of(samples: &[(usize, i64, i64, u64, u64)]) -> Vec<(&'static str, RequestRun)> {
    let midnight = at("00:00:00").as_microsecond();
    let time = |after: i64| Timestamp::from_microsecond(midnight + after).unwrap();
    let run = |(tenant, from, length, input, output): &(usize, i64, i64, u64, u64)| {
        let run = RequestRun {
            started_at: time(*from),
            ended_at: time(from + length),
            input_tokens: Some(*input),
            output_tokens: Some(*output),
        };
        (["acme", "zeta", "omni"][*tenant], run)
    };
    samples.iter().map(run).collect()
}

fn sum(shares: &[(HourKey, Hour)]) -> Decimal {
    shares.iter().map(|(_, hour)| hour.sums.cost.unwrap()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn all_shares_and_the_idle_rest_are_what_the_gpus_cost(
        samples in vec(any_run(), 0..40),
        millicents in 0..100_000_000_u32,
        count in 1..9_u32,
    ) {
        let hourly = Decimal::new(millicents.into(), 5);
        let gpus = price(&hourly.to_string(), count);
        let shares = shares(gpus, ("02:00:00", "07:00:00"), &runs_of(&samples));
        prop_assert_eq!(sum(&shares), hourly * Decimal::from(5 * count));
        for (key, hour) in &shares {
            prop_assert!(hour.sums.cost.unwrap() >= Decimal::ZERO, "{key:?}");
            let lines: Decimal =
                hour.lines.iter().map(|(line, quantity)| line.unit_price * quantity).sum();
            prop_assert_eq!(Some(lines), hour.sums.cost);
        }
    }

    #[test]
    fn what_clients_say_changes_no_share_of_a_tenant(
        samples in vec(any_run(), 0..20),
        sessions in vec(0..3_u8, 20),
    ) {
        let (runs, day) = (runs_of(&samples), ("00:00:00", "12:00:00"));
        let whole = shares(price("3", 1), day, &runs);
        let period = Period::new(at(day.0), at(day.1)).unwrap();
        let mut split = GpuShares::new("local", "vllm", price("3", 1), period, Zone::UTC);
        for ((tenant, run), session) in runs.iter().zip(&sessions) {
            let dimensions = BTreeMap::from([(ClientDimension::Session, session.to_string())]);
            split.add(&HourKey { dimensions, ..key(tenant) }, run);
        }
        let mut added = BTreeMap::<HourKey, Hour>::new();
        for (key, hour) in split.finish().unwrap() {
            let key = HourKey { dimensions: BTreeMap::new(), ..key };
            added.entry(key).or_default().add(&hour).unwrap();
        }
        let added: Vec<_> = added.into_iter().collect();
        prop_assert_eq!(owed(&added), owed(&whole));
    }

    #[test]
    fn the_order_of_requests_does_not_matter(samples in vec(any_run(), 0..20)) {
        let runs = runs_of(&samples);
        let backwards: Vec<_> = runs.iter().rev().copied().collect();
        let day = ("00:00:00", "12:00:00");
        let (a, b) = (shares(price("3", 1), day, &runs), shares(price("3", 1), day, &backwards));
        prop_assert_eq!(owed(&a), owed(&b));
    }

    #[test]
    fn the_busy_time_is_that_of_all_requests_together(samples in vec(any_run(), 1..20)) {
        let runs = runs_of(&samples);
        let shares = shares(price("3600", 1), ("00:00:00", "12:00:00"), &runs);
        let idle: Decimal = shares
            .iter()
            .filter(|(key, _)| key.tenant == "idle/local")
            .map(|(_, hour)| hour.sums.cost.unwrap())
            .sum();
        // Second by second of the day, seen from the middle of each millisecond would be too slow:
        // the ends of all runs cut the day into pieces that are wholly busy or wholly idle.
        let mut cuts: Vec<_> = runs.iter().flat_map(|(_, r)| [r.started_at, r.ended_at]).collect();
        cuts.extend([at("00:00:00"), at("12:00:00")]);
        cuts.sort_unstable();
        let quiet: i64 = cuts
            .windows(2)
            .filter(|pair| !runs.iter().any(|(_, r)| r.started_at <= pair[0] && pair[1] <= r.ended_at))
            .filter(|pair| pair[1] <= at("12:00:00"))
            .map(|pair| pair[1].as_microsecond() - pair[0].as_microsecond())
            .sum();
        // One GPU-second costs one; each of twelve hours may be rounded by a billionth of an hour.
        let difference = (idle - Decimal::new(quiet, 6)).abs();
        prop_assert!(difference <= Decimal::new(12 * 3600, 9), "{idle} and {quiet}");
    }
}

#[test]
fn hours_are_those_of_the_zone_and_each_share_is_in_one() {
    let period = Period::new(at("10:00:00"), at("12:00:00")).unwrap();
    let kolkata = "Asia/Kolkata".parse().unwrap();
    let mut shares = GpuShares::new("local", "vllm", price("2", 1), period, kolkata);
    shares.add(&key("acme"), &run("10:15:00", "10:45:00", 1, 1));
    let shares = shares.finish().unwrap();
    let told: Vec<_> = shares
        .iter()
        .map(|(key, hour)| {
            let (start, cost) = (key.hour.strftime("%H:%M"), hour.sums.cost.unwrap().normalize());
            format!("{start} {} {cost}", key.tenant)
        })
        .collect();
    let expected = [
        "10:00 acme 0.5",
        "10:00 idle/local 0.5",
        "10:30 acme 0.5",
        "10:30 idle/local 1.5",
        "11:30 idle/local 1",
    ];
    assert_eq!(told, expected);
}
