use super::*;
use crate::closing::closing;
use crate::credit::Covered;
use crate::fixtures;

fn decimal(text: &str) -> Decimal {
    Decimal::from_str_exact(text).unwrap()
}

fn key(tenant: &str, hour: &str, currency: &str) -> HourKey {
    HourKey { currency: Some(currency.to_owned()), ..fixtures::key(tenant, hour) }
}

fn hour(meter: &str, tokens: u64, price: &str) -> Hour {
    fixtures::hour(Source::Reported, vec![fixtures::line(meter, tokens, price)])
}

fn is_final() -> PeriodStatus {
    let now = crate::instant("2026-12-01T01:00:00Z").unwrap();
    let november = Period::month("2026-11").unwrap();
    PeriodStatus::new(november, closing(november.to(), &[], now), now)
}

fn statement() -> Statement {
    let november = Period::month("2026-11").unwrap();
    let hours = [
        (key("acme", "2026-11-01T00:00:00Z", "USD"), hour("input", 100, "0.0000005")),
        (key("acme", "2026-11-30T23:00:00Z", "USD"), hour("input", 11, "0.0000005")),
        (key("acme", "2026-11-30T23:00:00Z", "USD"), hour("output", 3, "0.0000015")),
        (key("acme", "2026-11-02T00:00:00Z", "EUR"), hour("input", 7, "2")),
        (key("beta", "2026-11-02T00:00:00Z", "USD"), hour("input", 9, "1")),
        (key("acme", "2026-12-01T00:00:00Z", "USD"), hour("input", 9, "1")),
    ];
    let hours = hours.iter().map(|(key, hour)| (key, hour));
    Statement::new("acme", november, &Zone::UTC, is_final(), hours, Vec::new()).unwrap()
}

fn free(tenant: &str, amount: &str) -> Credit {
    Credit {
        tenant: tenant.to_owned(),
        month: jiff::civil::date(2026, 11, 1),
        covered: Covered::Meter("input".to_owned()),
        tokens: Some(decimal("10")),
        amount: decimal(amount),
        currency: "USD".to_owned(),
    }
}

#[test]
fn what_is_free_is_taken_off_and_can_be_checked() {
    let mut with = statement();
    with.credits.push(free("acme", "0.000005"));
    let fault = with.check().unwrap_err().to_string();
    assert_eq!(fault, "the total in USD is 0.00006, but its lines add up to 0.000055");
    with.totals.insert("USD".to_owned(), decimal("0.000055"));
    assert_eq!(with.check(), Ok(()));
    let read: Statement = serde_json::from_str(&with.canonical()).unwrap();
    assert_eq!(read, with);
    with.credits.push(free("zeta", "0.000005"));
    assert!(matches!(with.check(), Err(StatementFault::Credit { number: 2, .. })));
    assert!(!statement().canonical().contains("credits"), "as before where nothing is free");
}

#[test]
fn it_has_one_line_a_price_and_nothing_of_others() {
    let statement = statement();
    let lines: Vec<_> = statement
        .lines
        .iter()
        .map(|line| (line.meter.as_str(), line.quantity.to_string(), line.amount.to_string()))
        .collect();
    let [eur, usd, output] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(*eur, ("input", "7".to_owned(), "14".to_owned()));
    assert_eq!(*usd, ("input", "111".to_owned(), "0.0000555".to_owned()));
    assert_eq!(*output, ("output", "3".to_owned(), "0.0000045".to_owned()));
    assert_eq!(statement.totals["USD"], decimal("0.00006"));
    assert_eq!(statement.totals["EUR"], decimal("14"));
    assert_eq!(statement.check(), Ok(()));
}

#[test]
fn a_changed_amount_or_total_shows() {
    let mut changed = statement();
    changed.lines[1].quantity += Decimal::ONE;
    assert!(matches!(changed.check(), Err(StatementFault::Amount { number: 2, .. })));
    let mut changed = statement();
    changed.totals.insert("USD".to_owned(), decimal("0.00005"));
    let fault = changed.check().unwrap_err().to_string();
    assert_eq!(fault, "the total in USD is 0.00005, but its lines add up to 0.00006");
    let mut changed = statement();
    changed.totals.insert("GBP".to_owned(), decimal("1"));
    assert!(matches!(changed.check(), Err(StatementFault::Total { .. })));
    let mut changed = statement();
    changed.version = 3;
    assert_eq!(changed.check(), Err(StatementFault::Version { found: 3 }));
}

#[test]
fn its_canonical_form_is_the_same_whatever_it_was_read_from() {
    let statement = statement();
    let pretty = serde_json::to_string_pretty(&statement).unwrap();
    let read: Statement = serde_json::from_str(&pretty).unwrap();
    assert_eq!(read.canonical(), statement.canonical());
    assert!(statement.canonical().starts_with(r#"{"from":"2026-11-01T00:00:00Z","lines":[{"#));
    assert!(!statement.canonical().contains(": "));
}
