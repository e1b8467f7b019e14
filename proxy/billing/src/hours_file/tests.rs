//! Files of hours, written and read.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use jiff::SignedDuration;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use rust_decimal::Decimal;
use taximeter_columnar::Part;
use taximeter_pricing::Source;

use super::*;
use crate::fixtures::key;
use crate::hours::{Hour, HourKey, LineKey};
use crate::period::Period;
use crate::sums::Sums;

type Row = (HourKey, Hour);

fn sealed(rows: &[Row]) -> SealedHours<Vec<u8>> {
    let mut writer = HoursWriter::new(Vec::new(), "gw/0", Vec::new(), Vec::new()).unwrap();
    for (key, hour) in rows {
        writer.add(key, hour).unwrap();
    }
    writer.finish().unwrap()
}

fn read(bytes: Vec<u8>, period: Option<Period>, tenant: Option<&str>) -> Vec<Row> {
    let file = HoursFile::open(Arc::new(bytes)).unwrap();
    let mut rows = Vec::new();
    file.scan(period, tenant, &mut |key, hour| {
        rows.push((key, hour));
        ControlFlow::Continue(())
    })
    .unwrap();
    rows
}

fn line(meter: &str, price: i64) -> LineKey {
    LineKey {
        meter: meter.to_owned(),
        model: None,
        unit: "tokens".to_owned(),
        unit_price: Decimal::new(price, 8),
        list_unit_price: Decimal::new(price, 8),
        price_id: "builtin@2026-11-20#m".to_owned(),
        source: Source::Reported,
    }
}

/// Some hours of 300 combinations of 100 tenants and three models.
fn rows(hours: i64) -> Vec<Row> {
    let mut random = 7_u64;
    let mut below = |limit: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % limit
    };
    let mut rows = Vec::new();
    for hour in 0..hours {
        for combination in 0..300_i64 {
            let tenant = format!("tenant-{:03}", combination / 3);
            let mut key = key(&tenant, "2026-11-20T00:00:00Z");
            key.hour += SignedDuration::from_hours(hour);
            key.model = Some(format!("model-{}", combination % 3));
            key.key_id = Some(format!("{tenant}-key"));
            let requests = 1 + below(3000);
            let (input, output) = (requests * (500 + below(3000)), requests * (50 + below(500)));
            let price = 20 + combination % 3 * 5;
            let lines = BTreeMap::from([
                (line("input", price), Decimal::from(input)),
                (line("output", price * 4), Decimal::from(output)),
            ]);
            let cost = lines.iter().map(|(line, quantity)| line.unit_price * quantity).sum();
            let sums = Sums {
                requests,
                input_tokens: Some(input),
                output_tokens: Some(output),
                cost: Some(cost),
                list_cost: Some(cost),
                ..Sums::default()
            };
            rows.push((key, Hour { sums, lines }));
        }
    }
    rows
}

#[test]
fn an_hour_of_one_tenant_and_model_takes_at_most_30_bytes() {
    let rows = rows(48);
    let sealed = sealed(&rows);
    let each = sealed.file.bytes / rows.len() as u64;
    assert!(each <= 30, "{each} bytes a row");
    assert!(read(sealed.file.out, None, None) == rows);
}

#[test]
fn hours_are_selected_by_period_and_tenant() {
    let rows = rows(30);
    let bytes = sealed(&rows).file.out;
    let from = rows[0].0.hour + SignedDuration::from_hours(7);
    let period = Period::new(from, from + SignedDuration::from_hours(5)).unwrap();
    for (period, tenant) in
        [(Some(period), None), (None, Some("tenant-042")), (Some(period), Some("tenant-042"))]
    {
        let is_asked = |(key, _): &&Row| {
            period.is_none_or(|period| period.contains(key.hour))
                && tenant.is_none_or(|tenant| key.tenant == tenant)
        };
        let expected: Vec<_> = rows.iter().filter(is_asked).cloned().collect();
        assert!(!expected.is_empty() && read(bytes.clone(), period, tenant) == expected);
    }
}

#[test]
fn the_footer_has_the_sums_of_the_rows() {
    let rows = rows(3);
    let footer = sealed(&rows).footer;
    let cost: Decimal = rows.iter().filter_map(|(_, hour)| hour.sums.cost).sum();
    assert_eq!((footer.rows, footer.costs.get("USD")), (900, Some(&cost)));
    assert_eq!((footer.first, footer.last), (Some(rows[0].0.hour), Some(rows[899].0.hour)));
}

#[test]
fn an_hour_before_the_last_one_is_refused() {
    let rows = rows(2);
    let mut writer = HoursWriter::new(Vec::new(), "gw/0", Vec::new(), Vec::new()).unwrap();
    writer.add(&rows[5].0, &rows[5].1).unwrap();
    writer.add(&rows[5].0, &rows[5].1).unwrap();
    assert!(writer.add(&rows[4].0, &rows[4].1).is_err());
    assert_eq!(writer.finish().unwrap().footer.rows, 2);
}

#[test]
fn each_damage_is_found() {
    let whole = sealed(&rows(2)).file.out;
    assert_eq!(check_hours(Arc::new(whole.clone())).unwrap(), []);
    for at in (0..whole.len()).step_by(11).chain(whole.len() - 100..whole.len()) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(!check_hours(Arc::new(bytes)).unwrap().is_empty(), "byte {at}");
    }
    for length in (0..whole.len()).step_by(997) {
        let findings = check_hours(Arc::new(whole[..length].to_vec())).unwrap();
        assert_eq!(findings[0].part, Part::Footer);
    }
}

fn counts() -> impl Strategy<Value = Option<u64>> {
    option::of(prop_oneof![9 => 0..1_000_000_u64, 1 => Just(u64::MAX)])
}

fn amounts() -> impl Strategy<Value = Option<Decimal>> {
    option::of(prop_oneof![
        (any::<i64>(), 0..20_u32).prop_map(|(digits, scale)| Decimal::new(digits, scale)),
        Just(Decimal::MAX),
        Just(Decimal::MIN),
    ])
}

fn any_hour() -> impl Strategy<Value = Hour> {
    let tokens = (counts(), counts(), counts(), counts());
    let others = (counts(), any::<i64>(), any::<i64>(), counts());
    let lines = vec((0..99_i64, any::<i64>(), 0..9_u32), 0..4);
    (tokens, (amounts(), amounts()), others, lines).prop_map(|(tokens, costs, others, lines)| {
        Hour {
            sums: Sums {
                requests: others.0.unwrap_or_default(),
                input_tokens: tokens.0,
                cache_read_input_tokens: tokens.1,
                output_tokens: tokens.2,
                reasoning_output_tokens: tokens.3,
                cost: costs.0,
                list_cost: costs.1,
                unknown_cost_requests: others.1,
                counted_requests: others.3.unwrap_or_default(),
                unknown_usage_requests: others.2,
            },
            lines: lines
                .into_iter()
                .map(|(price, digits, scale)| (line("input", price), Decimal::new(digits, scale)))
                .collect(),
        }
    })
}

proptest! {
    #[test]
    fn any_hour_is_read_back_as_it_was(hours in vec(any_hour(), 1..5), is_bare in any::<bool>()) {
        let mut key = key("a", "2026-11-20T00:00:00Z");
        if is_bare {
            (key.model, key.currency) = (None, None);
            key.labels = BTreeMap::from([("é\"".to_owned(), String::new())]);
            (key.correction, key.late) = (true, true);
        }
        let rows: Vec<_> = hours.into_iter().map(|hour| (key.clone(), hour)).collect();
        let bytes = sealed(&rows).file.out;
        prop_assert_eq!(check_hours(Arc::new(bytes.clone())).unwrap(), []);
        prop_assert_eq!(read(bytes, None, None), rows);
    }
}
