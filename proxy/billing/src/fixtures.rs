//! Hours for tests: chats with one model on an engine with prices per token.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use taximeter_ledger::{RecordCost, RecordLine};
use taximeter_pricing::Source;

use crate::hours::{Hour, HourKey};
use crate::period::instant;

/// Chats of `tenant` in the hour that begins at `hour`, billed in USD.
pub(crate) fn key(tenant: &str, hour: &str) -> HourKey {
    HourKey {
        hour: instant(hour).unwrap(),
        tenant: tenant.to_owned(),
        model: Some("m".to_owned()),
        provider: "vllm".to_owned(),
        upstream: "local".to_owned(),
        operation: "chat".to_owned(),
        route: "/v1/chat/completions".to_owned(),
        key_id: None,
        labels: BTreeMap::new(),
        currency: Some("USD".to_owned()),
        correction: false,
        late: false,
        dimensions: BTreeMap::new(),
    }
}

/// This number of tokens at a price, which is also the list price.
pub(crate) fn line(meter: &str, tokens: u64, price: &str) -> RecordLine {
    let unit_price = Decimal::from_str_exact(price).unwrap();
    RecordLine {
        meter: meter.to_owned(),
        model: None,
        price_match: None,
        tokens: Some(tokens),
        quantity: None,
        unit: None,
        unit_price,
        list_unit_price: None,
        amount: unit_price * Decimal::from(tokens),
    }
}

/// The sum of the lines.
pub(crate) fn cost(lines: Vec<RecordLine>) -> RecordCost {
    RecordCost {
        at_least: false,
        currency: "USD".to_owned(),
        amount: lines.iter().map(|line| line.amount).sum(),
        list_amount: lines.iter().map(|line| line.count() * line.list_price()).sum(),
        price_id: "b@1#m".to_owned(),
        price_match: Some("exact".into()),
        lines,
    }
}

/// An hour with one request of these lines.
pub(crate) fn hour(source: Source, lines: Vec<RecordLine>) -> Hour {
    let mut hour = Hour::corrected(Some(&cost(lines)), Decimal::ONE, source);
    hour.sums.requests = 1;
    hour
}
