use proptest::collection::vec;
use proptest::prelude::*;
use taximeter_pricing::{Currency, MeterName, Money, Source};

use super::*;
use crate::fixtures::{cost, key, line};
use crate::period::instant;

fn of_acme(allowance: Allowance) -> BTreeMap<String, Dated<Allowance>> {
    BTreeMap::from([("acme".to_owned(), Dated::always(allowance))])
}

/// Input tokens at a price each; fewer than none are taken back.
fn hour(quantity: i64, price: &str) -> Hour {
    let cost = cost(vec![line("input", quantity.unsigned_abs(), price)]);
    let sign = if quantity < 0 { Decimal::NEGATIVE_ONE } else { Decimal::ONE };
    Hour::corrected(Some(&cost), sign, Source::Reported)
}

fn money(amount: i64) -> Allowance {
    let money = Money { amount: amount.into(), currency: Currency::USD };
    Allowance { money: Some(money), tokens: BTreeMap::new() }
}

fn tokens(count: u64) -> Allowance {
    Allowance { money: None, tokens: BTreeMap::from([(MeterName::Input, count)]) }
}

fn november(allowance: Allowance) -> Allowances {
    let period = Period::month("2026-11").unwrap();
    Allowances::new(period, Zone::UTC, of_acme(allowance))
}

/// Tenant, month, what is covered, tokens, money.
fn told(allowances: Allowances) -> Vec<String> {
    let told = |credit: Credit| {
        let tokens = credit.tokens.map_or(String::new(), |tokens| format!(" {tokens}"));
        let Credit { tenant, month, covered, amount, currency, .. } = credit;
        let month = month.strftime("%Y-%m");
        format!("{tenant} {month} {covered:?}{tokens}: {} {currency}", amount.normalize())
    };
    allowances.credits().unwrap().into_iter().map(told).collect()
}

#[test]
fn money_covers_what_is_owed_until_it_is_used_up() {
    let mut allowances = november(money(5));
    allowances.add(&key("acme", "2026-11-02T08:00:00Z"), &hour(3, "1")).unwrap();
    assert_eq!(allowances.before(), None);
    allowances.add(&key("acme", "2026-11-03T08:00:00Z"), &hour(4, "1")).unwrap();
    allowances.add(&key("zeta", "2026-11-03T08:00:00Z"), &hour(4, "1")).unwrap();
    assert_eq!(told(allowances), ["acme 2026-11 Money: 5 USD"]);
    let mut unused = november(money(5));
    unused.add(&key("acme", "2026-11-02T08:00:00Z"), &hour(3, "1")).unwrap();
    assert_eq!(told(unused), ["acme 2026-11 Money: 3 USD"]);
}

#[test]
fn tokens_are_free_at_the_price_that_they_have_when_they_are_used() {
    let mut allowances = november(tokens(10));
    // Added last, used first.
    allowances.add(&key("acme", "2026-11-03T08:00:00Z"), &hour(9, "2")).unwrap();
    allowances.add(&key("acme", "2026-11-02T08:00:00Z"), &hour(4, "1")).unwrap();
    assert_eq!(told(allowances), ["acme 2026-11 Meter(\"input\") 10: 16 USD"]);
}

#[test]
fn of_the_hour_in_which_tokens_run_out_the_dearest_are_free() {
    let mut allowances = november(tokens(3));
    for price in ["1", "3", "2"] {
        allowances.add(&key("acme", "2026-11-02T08:00:00Z"), &hour(2, price)).unwrap();
    }
    assert_eq!(told(allowances), ["acme 2026-11 Meter(\"input\") 3: 8 USD"]);
}

#[test]
fn each_month_has_its_own() {
    let period =
        Period::new(instant("2026-10-31").unwrap(), instant("2026-11-02").unwrap()).unwrap();
    let mut allowances = Allowances::new(period, Zone::UTC, of_acme(money(5)));
    for at in ["2026-10-31T23:00:00Z", "2026-11-01T00:00:00Z"] {
        allowances.add(&key("acme", at), &hour(9, "1")).unwrap();
    }
    let expected = ["acme 2026-10 Money: 5 USD", "acme 2026-11 Money: 5 USD"];
    assert_eq!(told(allowances), expected);
}

#[test]
fn a_month_has_the_allowance_of_its_first_day_where_bills_are() {
    let (november, december) = (jiff::civil::date(2026, 11, 1), jiff::civil::date(2026, 12, 1));
    let versions = vec![(Some(november), money(5)), (Some(december), money(7))];
    let period = Period::new(instant("2026-10-01").unwrap(), instant("2027-01-01").unwrap());
    let of = BTreeMap::from([("acme".to_owned(), Dated::new(versions))]);
    // An hour before midnight of UTC, in which Berlin has begun its month.
    let hours = ["2026-10-31T23:00:00Z", "2026-11-30T23:00:00Z"];
    let told_in = |zone: Zone| {
        let mut allowances = Allowances::new(period.clone().unwrap(), zone, of.clone());
        for at in hours {
            allowances.add(&key("acme", at), &hour(9, "1")).unwrap();
        }
        told(allowances)
    };
    assert_eq!(told_in(Zone::UTC), ["acme 2026-11 Money: 5 USD"]);
    let expected = ["acme 2026-11 Money: 5 USD", "acme 2026-12 Money: 7 USD"];
    assert_eq!(told_in("Europe/Berlin".parse().unwrap()), expected);
}

#[test]
fn what_was_used_up_before_the_period_is_gone() {
    let cut = instant("2026-11-02T08:30:00Z").unwrap();
    let period = Period::new(cut, instant("2026-11-03").unwrap()).unwrap();
    let mut allowances = Allowances::new(period, Zone::UTC, of_acme(money(5)));
    let before = allowances.before().unwrap();
    assert_eq!((before.from(), before.to()), (instant("2026-11-01").unwrap(), cut));
    // Two parts of one hour.
    allowances.add(&key("acme", "2026-11-02T08:00:00Z"), &hour(9, "1")).unwrap();
    allowances.add_before(&key("acme", "2026-11-02T08:00:00Z"), &hour(3, "1")).unwrap();
    assert_eq!(told(allowances), ["acme 2026-11 Money: 2 USD"]);
}

#[test]
fn a_correction_changes_what_is_covered() {
    let mut allowances = november(tokens(10));
    let at = "2026-11-02T08:00:00Z";
    let corrected = HourKey { correction: true, ..key("acme", at) };
    allowances.add(&key("acme", at), &hour(4, "2")).unwrap();
    allowances.add(&corrected, &hour(-4, "2")).unwrap();
    allowances.add(&corrected, &hour(4, "3")).unwrap();
    assert_eq!(told(allowances), ["acme 2026-11 Meter(\"input\") 4: 12 USD"]);
}

#[test]
fn other_currencies_and_unknown_costs_are_not_covered() {
    let mut allowances = november(money(5));
    let at = "2026-11-02T08:00:00Z";
    for currency in [Some("EUR".to_owned()), None] {
        let key = HourKey { currency, ..key("acme", at) };
        allowances.add(&key, &hour(4, "2")).unwrap();
    }
    assert_eq!(told(allowances), [""; 0]);
}

proptest! {
    #[test]
    fn credits_are_what_is_owed_or_what_is_allowed_whichever_is_less(
        uses in vec((0..700_i64, 0..50_i64, 0..3_i64), 0..30),
        most in 0..200_i64,
        most_tokens in 0..200_u64,
    ) {
        let both = Allowance { tokens: tokens(most_tokens).tokens, ..money(most) };
        let mut allowances = november(both);
        let (mut owed, mut used) = (Decimal::ZERO, Decimal::ZERO);
        for (hours, quantity, price) in uses {
            let start = instant("2026-11-01").unwrap();
            let at = start + jiff::SignedDuration::from_hours(hours);
            let hour = hour(quantity, &price.to_string());
            owed += hour.sums.cost.unwrap();
            used += Decimal::from(if price > 0 { quantity } else { 0 });
            allowances.add(&HourKey { hour: at, ..key("acme", "2026-11-01") }, &hour).unwrap();
        }
        let credits = allowances.credits().unwrap();
        let free: Decimal = credits.iter().map(|credit| credit.amount).sum();
        let in_money = credits.iter().find(|credit| credit.covered == Covered::Money);
        let in_money = in_money.map(|credit| credit.amount).unwrap_or_default();
        let free_tokens: Decimal = credits.iter().filter_map(|credit| credit.tokens).sum();
        prop_assert!(free <= owed);
        prop_assert_eq!(free_tokens, used.min(most_tokens.into()));
        prop_assert_eq!(in_money, (owed - (free - in_money)).min(most.into()));
        prop_assert!(credits.iter().all(|credit| credit.amount > Decimal::ZERO));
    }
}
