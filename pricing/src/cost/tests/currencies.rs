//! Other currencies than the built-in book's.

use super::*;
use crate::ExchangeRate;

fn euros(exchange: &[(&str, Option<&str>)]) -> PriceBook {
    let exchange = exchange.iter().map(|(rate, since)| ExchangeRate {
        from: Currency::USD,
        rate: rate.parse().unwrap(),
        since: since.map(|since| since.parse().unwrap()),
    });
    let book = with("currency: EUR\nmodels: [{model: m, rates: {input: 2, output: 3}}]");
    book.in_currency(Currency::new("EUR").unwrap(), exchange.collect())
}

#[test]
fn prices_in_the_currency_of_the_bills_are_taken_as_they_are() {
    let cost = euros(&[]).cost(&query("vllm", "m"), &usage(1, 1)).unwrap();
    assert_eq!((cost.amount.to_string().as_str(), cost.currency.as_str()), ("0.000005", "EUR"));
    assert_eq!(cost.price_id, "overrides@undated#m");
}

#[test]
fn prices_in_another_currency_need_the_exchange_rate_of_the_admission() {
    let book = euros(&[("0.95", Some("2026-12-01")), ("0.92", Some("2026-11-01"))]);
    let cost = |at: &str| {
        let query = Query { at: at.parse().unwrap(), ..query("openai", "gpt-5.4") };
        book.cost(&query, &usage(1000, 0))
    };
    let in_november = cost("2026-11-30T23:59:59Z").unwrap();
    assert_eq!(lines(&in_november), ["input 1000 × 0.0000023 = 0.0023"]);
    assert_eq!(in_november.price_id, "builtin@2026-11-25#openai/gpt-5.4;USD*0.92");
    assert_eq!(cost("2026-12-01T00:00:00Z").unwrap().amount.to_string(), "0.002375");
    let error = cost("2026-10-31T23:59:59Z").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the price book has no price in EUR for model \"gpt-5.4\"; add it to the overrides"
    );
}

#[test]
fn a_worst_case_is_in_the_currency_of_the_bills_too() {
    let query = query("openai", "text-embedding-3-small");
    assert_eq!(builtin().upper_bound(&query, 1000, 0).unwrap().to_string(), "0.00002");
    let bound = euros(&[("0.92", None)]).upper_bound(&query, 1000, 0);
    assert_eq!(bound.unwrap().to_string(), "0.0000184");
    assert_eq!(euros(&[]).upper_bound(&query, 1000, 0), None);
}

#[test]
fn what_cannot_be_exchanged_is_told() {
    let at = NOON.parse().unwrap();
    assert_eq!(euros(&[]).without_exchange(at), [Currency::USD].into());
    assert!(euros(&[("0.92", None)]).without_exchange(at).is_empty());
    assert!(builtin().without_exchange(at).is_empty());
}
