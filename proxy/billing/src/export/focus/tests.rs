use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use taximeter_pricing::Source;

use super::*;
use crate::client_dimension::SplitBy;
use crate::credit::{Covered, Credit};
use crate::hours::{Hour, HourKey, LineKey};
use crate::period::Period;

fn key() -> HourKey {
    HourKey {
        hour: "2028-02-29T23:00:00Z".parse::<Timestamp>().unwrap(),
        tenant: "acme, Inc.".to_owned(),
        model: Some("gpt-x-2026".to_owned()),
        provider: "openai".to_owned(),
        upstream: "cloud".to_owned(),
        operation: "chat".to_owned(),
        route: "/v1/chat/completions".to_owned(),
        key_id: Some("prod".to_owned()),
        labels: BTreeMap::from([("team".to_owned(), "search".to_owned())]),
        currency: Some("USD".to_owned()),
        correction: false,
        late: false,
        dimensions: BTreeMap::new(),
    }
}

fn line(meter: &str, unit: &str, price: &str, list: &str) -> LineKey {
    LineKey {
        meter: meter.to_owned(),
        model: None,
        unit: unit.to_owned(),
        unit_price: price.parse().unwrap(),
        list_unit_price: list.parse().unwrap(),
        price_id: "builtin@2026-11-20#openai/gpt-x".to_owned(),
        source: Source::Reported,
    }
}

fn hour(lines: &[(LineKey, &str)]) -> Hour {
    let lines = lines.iter().map(|(line, count)| (line.clone(), count.parse().unwrap())).collect();
    Hour { lines, ..Hour::default() }
}

fn csv(key: &HourKey, hour: &Hour) -> Vec<BTreeMap<String, String>> {
    let mut writer =
        FocusWriter::csv(Vec::new(), FocusVersion::V1_2, "Ops", SplitBy::NONE).unwrap();
    for charge in charges(key, hour) {
        writer.add(&charge.unwrap()).unwrap();
    }
    read(writer)
}

fn read(writer: FocusWriter<Vec<u8>>) -> Vec<BTreeMap<String, String>> {
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    let mut lines = text.split_terminator("\r\n").map(cells);
    let names = lines.next().unwrap();
    lines.map(|cells| names.iter().cloned().zip(cells).collect()).collect()
}

/// Cells of a line without line ends in them.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            other => cells.last_mut().unwrap().push(other),
        }
    }
    cells
}

fn number(row: &BTreeMap<String, String>, column: &str) -> Decimal {
    row[column].parse().unwrap()
}

#[test]
fn charges_that_are_split_by_what_clients_say_have_a_column_for_each() {
    let names = ["tag:team", "session", "client", "tag:a", "end_user", "agent"];
    let by: SplitBy = names.iter().map(|name| name.parse().unwrap()).collect();
    let dimensions = ["session", "agent", "tag:team", "tag:a"];
    let dimensions =
        dimensions.map(|name| (name.parse().unwrap(), format!("\"{name}\", 1"))).into();
    let hour = hour(&[(line("input", "tokens", "0.000002", "0.000002"), "10")]);
    let mut writer = FocusWriter::csv(Vec::new(), FocusVersion::V1_2, "Ops", &by).unwrap();
    for key in [HourKey { dimensions, ..key() }, key()] {
        writer.add(&charges(&key, &hour).next().unwrap().unwrap()).unwrap();
    }
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    let (head, rows) = text.split_once("\r\n").unwrap();
    assert!(head.ends_with(",x_Upstream,x_Session,x_Client,x_EndUser,x_Agent,x_RequestTags"));
    let (split, whole) = rows.split_once("\r\n").unwrap();
    let tags = r#""{""a"":""\""tag:a\"", 1"",""team"":""\""tag:team\"", 1""}""#;
    let cells = format!(r#",cloud,"""session"", 1",,,"""agent"", 1",{tags}"#);
    assert!(split.ends_with(&cells), "{split}");
    assert!(whole.ends_with(",cloud,,,,,\r\n"), "{whole}");
}

#[test]
fn quantity_times_unit_price_is_the_cost_exactly() {
    let rows = csv(
        &key(),
        &hour(&[
            (line("input", "tokens", "0.000002125", "0.0000025"), "812345"),
            (line("audio", "seconds", "0.0001", "0.0001"), "12.75"),
        ]),
    );
    let input = &rows[1];
    assert_eq!(input["PricingUnit"], "1000000 Tokens");
    assert_eq!(number(input, "PricingQuantity"), "0.812345".parse().unwrap());
    assert_eq!(input["ListUnitPrice"], "2.5");
    assert_eq!(input["ContractedUnitPrice"], "2.125");
    assert_eq!(input["ListCost"], "2.0308625");
    assert_eq!(input["BilledCost"], "1.726233125");
    assert_eq!((&*input["ConsumedQuantity"], &*input["ConsumedUnit"]), ("812345", "Tokens"));
    for row in &rows {
        let product = |price| number(row, price) * number(row, "PricingQuantity");
        assert_eq!(product("ListUnitPrice"), number(row, "ListCost"));
        assert_eq!(product("ContractedUnitPrice"), number(row, "ContractedCost"));
        assert_eq!(row["ContractedCost"], row["BilledCost"]);
        assert_eq!(row["EffectiveCost"], row["BilledCost"]);
    }
    assert_eq!((&*rows[0]["PricingUnit"], &*rows[0]["SkuMeter"]), ("Seconds", "Audio Seconds"));
}

#[test]
fn prices_are_told_in_the_currency_of_their_list_too() {
    let euros = HourKey { currency: Some("EUR".to_owned()), ..key() };
    // 2.50 USD a million at 0.92 EUR, and ten percent less.
    let dollars = LineKey {
        price_id: "builtin@2026-11-20#openai/gpt-x;USD*0.92;acme, Inc.*0.9".to_owned(),
        ..line("input", "tokens", "0.00000207", "0.0000023")
    };
    let row = &csv(&euros, &hour(&[(dollars.clone(), "1000")]))[0];
    assert_eq!((&*row["BillingCurrency"], &*row["PricingCurrency"]), ("EUR", "USD"));
    assert_eq!((&*row["ListUnitPrice"], &*row["PricingCurrencyListUnitPrice"]), ("2.3", "2.5"));
    assert_eq!(row["ContractedUnitPrice"], "2.07");
    assert_eq!(row["PricingCurrencyContractedUnitPrice"], "2.25");
    assert_eq!(row["EffectiveCost"], "0.00207");
    assert_eq!(row["PricingCurrencyEffectiveCost"], "0.00225");
    // A further pass has a price of its own; where nothing was exchanged, both are the same.
    let pass = LineKey { model: Some("gpt-y".to_owned()), ..dollars };
    let same = line("input", "tokens", "0.00000207", "0.0000023");
    for line in [pass, same] {
        let row = &csv(&euros, &hour(&[(line, "1000")]))[0];
        assert_eq!(row["PricingCurrency"], "EUR");
        assert_eq!(row["PricingCurrencyListUnitPrice"], row["ListUnitPrice"]);
        assert_eq!(row["PricingCurrencyContractedUnitPrice"], row["ContractedUnitPrice"]);
        assert_eq!(row["PricingCurrencyEffectiveCost"], row["EffectiveCost"]);
    }
}

#[test]
fn a_row_lies_in_its_hour_and_in_its_month() {
    let rows = csv(&key(), &hour(&[(line("output", "tokens", "0.00001", "0.00001"), "1")]));
    let row = &rows[0];
    assert_eq!(row["ChargePeriodStart"], "2028-02-29T23:00:00Z");
    assert_eq!(row["ChargePeriodEnd"], "2028-03-01T00:00:00Z");
    assert_eq!(row["BillingPeriodStart"], "2028-02-01T00:00:00Z");
    assert_eq!(row["BillingPeriodEnd"], "2028-03-01T00:00:00Z");
    assert_eq!(row["SubAccountId"], "acme, Inc.");
    assert_eq!(row["Tags"], r#"{team:search}"#, "quotes are read off by this test");
    assert_eq!(row["SkuId"], "openai/gpt-x/output");
    assert_eq!(row["SkuPriceId"], "builtin@2026-11-20#openai/gpt-x/output@10");
    assert_eq!((&*row["ChargeClass"], &*row["InvoiceId"]), ("", ""));
}

#[test]
fn a_correction_says_so_and_leaves_out_what_did_not_change() {
    let key = HourKey { correction: true, late: true, ..key() };
    let rows = csv(
        &key,
        &hour(&[
            (line("input", "tokens", "0.000002", "0.000002"), "-100"),
            (line("output", "tokens", "0.00001", "0.00001"), "0"),
        ]),
    );
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["ChargeClass"], "Correction");
    assert_eq!(rows[0]["BilledCost"], "-0.0002");
}

#[test]
fn what_is_corrected_before_its_month_is_invoiced_is_no_correction_to_focus() {
    let key = HourKey { correction: true, ..key() };
    let rows = csv(&key, &hour(&[(line("input", "tokens", "0.000002", "0.000002"), "-100")]));
    assert_eq!((&*rows[0]["ChargeClass"], &*rows[0]["BilledCost"]), ("", "-0.0002"));
}

#[test]
fn a_credit_is_a_row_of_its_own_that_takes_off_and_has_no_quantity() {
    let credit = Credit {
        tenant: "acme, Inc.".to_owned(),
        month: jiff::civil::date(2028, 2, 1),
        covered: Covered::Meter("input".to_owned()),
        tokens: Some(Decimal::from(50)),
        amount: "0.00003".parse().unwrap(),
        currency: "USD".to_owned(),
    };
    let instant = |text: &str| text.parse::<Timestamp>().unwrap();
    let (from, to) = (instant("2028-02-10T00:30:00Z"), instant("2028-03-02T00:00:00Z"));
    let charge = Charge::of_credit(&credit, Period::new(from, to).unwrap());
    let mut writer =
        FocusWriter::csv(Vec::new(), FocusVersion::V1_2, "Ops", SplitBy::NONE).unwrap();
    writer.add(&charge).unwrap();
    let row = &read(writer)[0];
    assert_eq!((&*row["ChargeCategory"], &*row["ChargeClass"]), ("Credit", ""));
    let costs = ["BilledCost", "EffectiveCost", "ContractedCost", "ListCost"];
    for cost in costs.into_iter().chain(["PricingCurrencyEffectiveCost"]) {
        assert_eq!(row[cost], "-0.00003", "{cost}");
    }
    for null in ["ConsumedQuantity", "PricingQuantity", "ListUnitPrice", "SkuId", "SkuPriceId"] {
        assert_eq!(row[null], "", "{null}");
    }
    assert_eq!(row["ChargePeriodStart"], "2028-02-10T00:00:00Z");
    assert_eq!(row["ChargePeriodEnd"], "2028-03-01T00:00:00Z", "it is of one month");
    assert_eq!((&*row["PublisherName"], &*row["ChargeDescription"]), ("Ops", "free input tokens"));
}

#[test]
fn idle_gpus_are_a_row_that_says_so() {
    let key = HourKey { tenant: "idle/local".to_owned(), model: None, ..key() };
    let gpu = LineKey {
        price_id: "gpu#local/H100".to_owned(),
        ..line("gpu_idle", "gpu_hours", "2.5", "2.5")
    };
    let rows = csv(&key, &hour(&[(gpu, "1.999999999")]));
    let row = &rows[0];
    assert_eq!((&*row["SubAccountId"], &*row["SkuMeter"]), ("idle/local", "Idle GPU Hours"));
    assert_eq!((&*row["PricingUnit"], &*row["BilledCost"]), ("GPU-Hours", "4.9999999975"));
    assert_eq!(row["ChargeDescription"], "cloud Idle GPU Hours");
}

#[test]
fn what_costs_nothing_is_a_row_and_what_is_unknown_is_none() {
    let free = csv(&key(), &hour(&[(line("input", "tokens", "0", "0"), "5")]));
    assert_eq!((free.len(), &*free[0]["BilledCost"]), (1, "0"));
    let unknown = HourKey { currency: None, ..key() };
    assert!(csv(&unknown, &Hour::default()).is_empty());
}

#[test]
fn names_of_1_3_replace_those_that_it_retires() {
    let head = |version| {
        let writer = FocusWriter::csv(Vec::new(), version, "Ops", SplitBy::NONE).unwrap();
        String::from_utf8(writer.finish().unwrap()).unwrap()
    };
    let (old, new) = (head(FocusVersion::V1_2), head(FocusVersion::V1_3));
    assert!(old.contains(",ProviderName,PublisherName,") && !old.contains("HostProviderName"));
    assert!(new.contains(",ServiceProviderName,HostProviderName,"));
    assert_eq!(old.split(',').count(), new.split(',').count());
}

#[test]
fn a_cost_with_more_digits_than_a_decimal_keeps_is_an_error() {
    let line = line("input", "seconds", "0.1234567890123456789", "1");
    let (key, hour) = (key(), hour(&[(line, "1234567890.123456789")]));
    assert!(charges(&key, &hour).any(|charge| charge.is_err()));
}
