//! What a customer pays instead of the list.

use jiff::civil::date;

use super::*;
use crate::Dated;

const FIXED: &str = "
version: 2026-11-01
models:
- {model: gpt-4o, provider: openai, rates: {input: 2, output: 8, reasoning: 9}}
- {model: ours, rates: {input: 1, output: 2}}
";

fn always(factor: &str) -> Dated<Decimal> {
    Dated::always(factor.parse().unwrap())
}

fn factor(factor: &str) -> Contract {
    Contract::new("acme", always(factor), None)
}

fn fixed(discount: &str) -> Contract {
    let fixed = PriceBook::fixed("acme", FIXED, "acme.yaml").unwrap();
    Contract::new("acme", always(discount), Some(fixed))
}

/// `meter quantity × unit price of list price`, one line each.
fn both_prices(cost: &Cost) -> Vec<String> {
    let million = Decimal::from(1_000_000);
    let line = |line: &CostLine| {
        let price = |price: Decimal| (price * million).normalize();
        let (unit_price, list) = (price(line.unit_price), price(line.list_unit_price));
        format!("{} {} × {unit_price} of {list}", line.meter, line.quantity)
    };
    cost.lines.iter().map(line).collect()
}

#[test]
fn a_factor_is_on_every_price_and_the_list_stays_beside_it() {
    let query = query("openai", "gpt-4o");
    let cost = builtin().contracted(&factor("0.9"), &query, &usage(1000, 100)).unwrap();
    assert_eq!(both_prices(&cost), ["input 1000 × 2.25 of 2.5", "output 100 × 9 of 10"]);
    assert_eq!(
        (cost.amount.to_string(), cost.list_amount.to_string()),
        ("0.00315".into(), "0.0035".into())
    );
    assert!(cost.price_id.ends_with("#openai/gpt-4o;acme*0.9"), "{}", cost.price_id);
}

#[test]
fn a_factor_holds_for_what_is_admitted_from_its_day_on() {
    let versions = [(None, "0.9"), (Some(date(2026, 12, 1)), "0.8"), (Some(date(2027, 1, 1)), "1")];
    let versions = versions.map(|(since, factor)| (since, factor.parse().unwrap()));
    let contract = Contract::new("acme", Dated::new(versions.into()), None);
    for (at, amount, mark) in [
        ("2026-11-30T23:59:59.999999Z", "0.018", "text-embedding-3-small;acme*0.9"),
        ("2026-12-01T00:00:00Z", "0.016", "text-embedding-3-small;acme*0.8"),
        ("2027-01-01T00:00:00Z", "0.02", "text-embedding-3-small"),
    ] {
        let query = Query { at: at.parse().unwrap(), ..query("openai", "text-embedding-3-small") };
        let cost = builtin().contracted(&contract, &query, &usage(1_000_000, 0)).unwrap();
        assert_eq!(cost.amount.normalize().to_string(), amount, "{at}");
        assert!(cost.price_id.ends_with(mark), "{}", cost.price_id);
        let most = builtin().contracted_upper_bound(&contract, &query, 1_000_000, 0).unwrap();
        assert_eq!(most, cost.amount, "{at}");
    }
}

#[test]
fn a_fixed_price_is_paid_as_it_is_beside_the_list_price_of_the_same_tokens() {
    let thinking = Usage { reasoning_output_tokens: Some(40), ..usage(1000, 100) };
    let query = query("openai", "gpt-4o");
    let cost = builtin().contracted(&fixed("0.5"), &query, &thinking).unwrap();
    // The book does not tell reasoning apart, and so has it at the price of output.
    let expected = ["input 1000 × 2 of 2.5", "output 60 × 8 of 10", "reasoning 40 × 9 of 10"];
    assert_eq!(both_prices(&cost), expected);
    assert_eq!(cost.price_id, "acme@2026-11-01#openai/gpt-4o");
    assert_eq!(cost.list_amount, builtin().cost(&query, &thinking).unwrap().amount);
}

#[test]
fn a_model_that_only_the_contract_prices_has_its_price_as_list_price() {
    let query = query("vllm", "ours");
    let cost = builtin().contracted(&fixed("0.5"), &query, &usage(10, 1)).unwrap();
    assert_eq!(both_prices(&cost), ["input 10 × 1 of 1", "output 1 × 2 of 2"]);
    assert!(fixed("1").finds(builtin(), &query) && !factor("0.9").finds(builtin(), &query));
}

#[test]
fn models_without_a_fixed_price_pay_the_factor_in_further_passes_too() {
    let pass = |model: &str| Pass { model: Some(model.to_owned()), usage: usage(10, 0) };
    let passes = vec![pass("gpt-4o"), pass("gpt-4o-mini")];
    let query = query("openai", "gpt-4o-mini");
    let cost =
        builtin().contracted(&fixed("0.5"), &query, &Usage { passes, ..usage(10, 0) }).unwrap();
    let expected = ["input 10 × 0.075 of 0.15", "input 10 × 2 of 2.5", "input 10 × 0.075 of 0.15"];
    assert_eq!(both_prices(&cost), expected);
}

#[test]
fn fixed_prices_may_be_in_another_currency() {
    let euro = Currency::new("EUR").unwrap();
    let exchange =
        |from, rate: &str| crate::ExchangeRate { from, rate: rate.parse().unwrap(), since: None };
    let text = FIXED.replace("models:", "currency: CHF\nmodels:");
    let fixed = PriceBook::fixed("acme", &text, "acme.yaml").unwrap();
    let rates =
        vec![exchange(Currency::USD, "0.8"), exchange(Currency::new("CHF").unwrap(), "1.1")];
    let fixed = fixed.in_currency(euro, rates.clone());
    let contract = Contract::new("acme", always("1"), Some(fixed));
    let book = builtin().clone().in_currency(euro, rates);
    let cost = book.contracted(&contract, &query("openai", "gpt-4o"), &usage(10, 1)).unwrap();
    assert_eq!(cost.currency, euro);
    assert_eq!(both_prices(&cost), ["input 10 × 2.2 of 2", "output 1 × 8.8 of 8"]);
    assert_eq!(cost.price_id, "acme@2026-11-01#openai/gpt-4o;CHF*1.1");
}

#[test]
fn the_upper_bound_is_that_of_the_contract() {
    let most = |contract: &Contract, model| {
        let query = query("openai", model);
        builtin().contracted_upper_bound(contract, &query, 1_000_000, 0).unwrap().to_string()
    };
    assert_eq!(most(&fixed("0.5"), "gpt-4o"), "2");
    assert_eq!(most(&factor("1.2"), "text-embedding-3-small"), "0.024");
}

#[test]
fn a_mistake_in_fixed_prices_is_told_with_its_place() {
    let fault = PriceBook::fixed("acme", "models:\n- {model: a}\n", "acme.yaml").unwrap_err();
    assert!(fault.to_string().starts_with("acme.yaml:2:3: "), "{fault}");
}

proptest! {
    #[test]
    fn a_factor_multiplies_the_cost_exactly(usage in any_usage(5_000_000), percent in 0..300_u32) {
        let query = query("openai", "gpt-5.4");
        let factor = Decimal::new(percent.into(), 2);
        let contract = Contract::new("acme", Dated::always(factor), None);
        let list = builtin().cost(&query, &usage);
        let paid = builtin().contracted(&contract, &query, &usage);
        prop_assert_eq!(list.is_ok(), paid.is_ok());
        let (Ok(list), Ok(paid)) = (list, paid) else { return Ok(()) };
        prop_assert_eq!(paid.amount, list.amount * factor);
        prop_assert_eq!(paid.list_amount, list.amount);
        let sum: Decimal = paid.lines.iter().map(|line| line.amount).sum();
        prop_assert_eq!(sum, paid.amount);
    }
}
