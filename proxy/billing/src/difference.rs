//! The result of re-rating: cost before and after, by tenant, model and currency.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::Serialize;
use taximeter_ledger::{Record, RecordCost};

use crate::bill::BillError;
use crate::sums::add_exactly;

/// Costs of the same requests, before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    rows: BTreeMap<(String, Option<String>, String), BeforeAfter>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct BeforeAfter {
    requests: u64,
    before: Decimal,
    after: Decimal,
}

/// One tenant, model and currency. A request whose currency changes is in the rows of both
/// currencies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference<'a> {
    /// The tenant that pays.
    pub tenant: &'a str,
    /// The model of the answer, or of the request if there was no answer.
    pub model: Option<&'a str>,
    /// ISO 4217.
    pub currency: &'a str,
    /// Number of requests whose cost changes.
    pub requests: u64,
    /// Their cost before. Requests with an unknown cost add the known part.
    pub before: Decimal,
    /// Their cost after. Requests with an unknown cost add the known part.
    pub after: Decimal,
    /// `after` − `before`.
    pub difference: Decimal,
}

/// Whether two costs differ in money, or in whether they are whole. Costs that differ only in the name of the price are equal.
#[must_use]
pub fn costs_differ(before: Option<&RecordCost>, after: Option<&RecordCost>) -> bool {
    let money = |cost: &RecordCost| {
        let line = |line: &taximeter_ledger::RecordLine| {
            let (meter, model) = (line.meter.clone(), line.model.clone());
            (meter, model, line.count(), line.unit_price, line.list_price())
        };
        let lines: Vec<_> = cost.lines.iter().map(line).collect();
        (cost.currency.clone(), cost.at_least, cost.amount, cost.list_amount, lines)
    };
    before.map(money) != after.map(money)
}

/// Whether two costs differ in money, whatever their lines say.
#[must_use]
pub fn amounts_differ(before: Option<&RecordCost>, after: Option<&RecordCost>) -> bool {
    let money =
        |cost: &RecordCost| (cost.currency.clone(), cost.at_least, cost.amount, cost.list_amount);
    before.map(money) != after.map(money)
}

impl Differences {
    /// Adds a request whose cost changes.
    /// # Errors
    /// `Overflow` if a sum cannot be kept exactly.
    pub fn add(
        &mut self,
        record: &Record,
        before: Option<&RecordCost>,
        after: Option<&RecordCost>,
    ) -> Result<(), BillError> {
        let tenant = &record.tenant.0;
        let model = record.response_model.as_ref().or(record.request_model.as_ref());
        let overflow = || BillError::Overflow { tenant: tenant.to_string() };
        let currencies = [after, before].map(|cost| cost.map(|cost| cost.currency.as_str()));
        let [first, second] = currencies;
        let second = second.filter(|second| first != Some(second));
        for currency in [first, second].into_iter().flatten() {
            let key = (tenant.to_string(), model.cloned(), currency.to_owned());
            let costs = self.rows.entry(key).or_default();
            let amount = |cost: Option<&RecordCost>| {
                let cost = cost.filter(|cost| cost.currency == currency);
                cost.map(|cost| cost.amount).unwrap_or_default()
            };
            costs.requests += 1;
            costs.before = add_exactly(costs.before, amount(before)).ok_or_else(overflow)?;
            costs.after = add_exactly(costs.after, amount(after)).ok_or_else(overflow)?;
        }
        Ok(())
    }

    /// By tenant, model and currency.
    pub fn rows(&self) -> impl Iterator<Item = Difference<'_>> {
        self.rows.iter().map(|((tenant, model, currency), costs)| Difference {
            tenant,
            model: model.as_deref(),
            currency,
            requests: costs.requests,
            before: costs.before.normalize(),
            after: costs.after.normalize(),
            difference: (costs.after - costs.before).normalize(),
        })
    }
}

#[cfg(test)]
mod tests {
    use taximeter_ledger::{Reserve, gateway_died_record};

    use super::*;

    fn record(tenant: &str) -> Record {
        let reserve: Reserve = serde_json::from_value(serde_json::json!({
            "id": "0193e9a0-0000-7000-8000-000000000001", "request_id": "r",
            "started_at": "2026-11-20T16:59:59Z", "tenant": tenant, "key_id": null,
            "identity": "unknown", "operation": "chat", "route": "/v1/chat/completions",
            "stream": false, "upstream": "local", "provider": "vllm", "request_model": "m",
            "amount": null
        }))
        .unwrap();
        gateway_died_record(&reserve, None, reserve.started_at, "pod/0")
    }

    fn cost(currency: &str, amount: i64) -> RecordCost {
        let amount = Decimal::new(amount, 2);
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

    fn told(differences: &Differences) -> Vec<String> {
        let told = |row: Difference<'_>| {
            let Difference { tenant, currency, requests, before, after, difference, .. } = row;
            format!("{tenant} {requests}: {before} → {after} = {difference} {currency}")
        };
        differences.rows().map(told).collect()
    }

    #[test]
    fn what_was_and_what_is_owed_are_added_apart() {
        let mut differences = Differences::default();
        let mut add = |tenant, before: Option<&RecordCost>, after: Option<&RecordCost>| {
            differences.add(&record(tenant), before, after).unwrap();
        };
        add("acme", Some(&cost("USD", 150)), Some(&cost("USD", 100)));
        add("acme", None, Some(&cost("USD", 25)));
        add("zeta", Some(&cost("USD", 10)), None);
        let expected = ["acme 2: 1.5 → 1.25 = -0.25 USD", "zeta 1: 0.1 → 0 = -0.1 USD"];
        assert_eq!(told(&differences), expected);
    }

    #[test]
    fn a_request_whose_currency_changes_is_in_both() {
        let mut differences = Differences::default();
        let (before, after) = (cost("USD", 100), cost("EUR", 92));
        differences.add(&record("acme"), Some(&before), Some(&after)).unwrap();
        let expected = ["acme 1: 0 → 0.92 = 0.92 EUR", "acme 1: 1 → 0 = -1 USD"];
        assert_eq!(told(&differences), expected);
    }

    #[test]
    fn the_name_of_a_price_makes_no_difference_and_its_money_does() {
        let renamed = RecordCost {
            price_id: "b@2#m".to_owned(),
            price_match: Some("date".into()),
            ..cost("USD", 100)
        };
        let padded = RecordCost { amount: Decimal::new(1000, 3), ..renamed.clone() };
        assert!(!costs_differ(Some(&cost("USD", 100)), Some(&padded)));
        let listed = RecordCost { list_amount: Decimal::TWO, ..renamed };
        assert!(costs_differ(Some(&cost("USD", 100)), Some(&listed)));
        assert!(costs_differ(Some(&cost("USD", 100)), Some(&cost("EUR", 100))));
        let part = RecordCost { at_least: true, ..cost("USD", 100) };
        assert!(costs_differ(Some(&part), Some(&cost("USD", 100))));
        assert!(costs_differ(None, Some(&cost("USD", 0))));
        assert!(!costs_differ(None, None));
    }
}
