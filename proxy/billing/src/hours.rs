//! Requests by the hour. All bills and exports are made from them.
//!
//! An hour keeps the quantities of one combination of tenant, model, key and so on, with one line
//! for each meter and price. So quantity × unit price is exactly the amount, also after further
//! additions.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::{Timestamp, TimestampRound, Unit};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use taximeter_ledger::{Completion, Correction, RecordCost, RecordLine};
use taximeter_pricing::Source;

use crate::billed_request::BilledRequest;
use crate::client_dimension::{ClientDimension, SplitBy};
use crate::sums::{Sums, add_exactly};
use crate::zone::Zone;

/// The requests that are added up together: they agree in all of these members.
///
/// Its JSON has no hour, because the same combination of the other members occurs in every hour.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HourKey {
    /// First instant of the hour of admission, UTC. If a period cuts the hour, the first instant
    /// inside the period.
    #[serde(skip)]
    pub hour: Timestamp,
    /// The tenant that pays.
    pub tenant: String,
    /// The model of the answer, or of the request if there was no answer.
    pub model: Option<String>,
    /// `gen_ai.provider.name`.
    pub provider: String,
    /// Name of the upstream.
    pub upstream: String,
    /// `gen_ai.operation.name`.
    pub operation: String,
    /// Route template.
    pub route: String,
    /// The API key.
    pub key_id: Option<String>,
    /// Labels of the key.
    pub labels: BTreeMap<String, String>,
    /// ISO 4217. `None` if nothing of the cost is known.
    pub currency: Option<String>,
    /// Whether this is a later correction of requests of that hour.
    pub correction: bool,
    /// Whether the correction was made after the calendar month of the requests (UTC, as in FOCUS).
    /// Then it corrects an invoiced charge.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
    /// What clients say of the requests. Empty unless sums are split by that.
    #[serde(skip_deserializing, skip_serializing_if = "BTreeMap::is_empty")]
    pub dimensions: BTreeMap<ClientDimension, String>,
}

/// The sums of an hour.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hour {
    /// Requests, tokens and money. A correction adds money only, and tokens if it completes a
    /// request.
    pub sums: Sums,
    /// Quantities by meter and price.
    pub lines: BTreeMap<LineKey, Decimal>,
}

/// One meter at one price.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LineKey {
    /// `input`, `cache_read`, `output` and so on.
    pub meter: String,
    /// Model of a further model run. `None` for the request's own.
    pub model: Option<String>,
    /// What is counted: `tokens`, `seconds`, `calls` and so on.
    pub unit: String,
    /// Contracted price of one.
    pub unit_price: Decimal,
    /// List price of one.
    pub list_unit_price: Decimal,
    /// Version and row of the price book.
    pub price_id: String,
    /// Source of the quantity.
    pub source: Source,
}

/// A sum has more digits than can be kept exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sums of an hour are too large to be kept exactly")]
pub struct TooLarge;

impl HourKey {
    /// The key of a request.
    #[must_use]
    pub fn of(row: &BilledRequest<'_>) -> Self {
        Self {
            hour: hour_of(row.started_at),
            tenant: row.tenant.to_owned(),
            model: row.model.map(str::to_owned),
            provider: row.provider.to_owned(),
            upstream: row.upstream.to_owned(),
            operation: row.operation.to_owned(),
            route: row.route.to_owned(),
            key_id: row.key_id.map(str::to_owned),
            labels: row.labels.clone(),
            currency: row.cost.map(|cost| cost.currency.clone()),
            correction: false,
            late: false,
            dimensions: BTreeMap::new(),
        }
    }

    /// The key of `row`, where sums are split by what clients say as well.
    #[must_use]
    pub fn split(row: &BilledRequest<'_>, by: &SplitBy) -> Self {
        Self { dimensions: by.values(row.dimensions), ..Self::of(row) }
    }
}

impl Hour {
    /// An hour with one request.
    #[must_use]
    pub fn of(row: &BilledRequest<'_>) -> Self {
        let mut hour = Self { sums: Sums::of(row), lines: BTreeMap::new() };
        if let Some(cost) = row.cost {
            hour.add_lines(cost, row.source, Decimal::ONE);
        }
        hour
    }

    /// The cost that a correction takes back (`before`, with the `sign` −1) or charges (`after`,
    /// with 1).
    #[must_use]
    pub fn corrected(cost: Option<&RecordCost>, sign: Decimal, source: Source) -> Self {
        let mut hour = Self { sums: Sums::corrected(cost, sign), lines: BTreeMap::new() };
        if let Some(cost) = cost {
            hour.add_lines(cost, source, sign);
        }
        hour
    }

    /// What a correction takes back that completes the request `row`.
    fn taken_back(row: &BilledRequest<'_>) -> Self {
        let before = Self::corrected(row.cost, Decimal::NEGATIVE_ONE, row.source);
        Self { sums: Sums::taken_back(row), ..before }
    }

    /// Adds `other`, which has the same key.
    ///
    /// # Errors
    /// [`TooLarge`]. Then nothing was added.
    pub fn add(&mut self, other: &Self) -> Result<(), TooLarge> {
        for (key, quantity) in &other.lines {
            let sum = self.lines.get(key).copied().unwrap_or_default();
            add_exactly(sum, *quantity).ok_or(TooLarge)?;
        }
        self.sums.add(&other.sums).ok_or(TooLarge)?;
        for (key, quantity) in &other.lines {
            match self.lines.get_mut(key) {
                Some(sum) => *sum += quantity,
                None => drop(self.lines.insert(key.clone(), *quantity)),
            }
        }
        Ok(())
    }

    fn add_lines(&mut self, cost: &RecordCost, source: Source, sign: Decimal) {
        for line in &cost.lines {
            let quantity = self.lines.entry(LineKey::of(cost, line, source)).or_default();
            *quantity += line.count() * sign;
        }
    }
}

impl LineKey {
    pub(crate) fn of(cost: &RecordCost, line: &RecordLine, source: Source) -> Self {
        Self {
            meter: line.meter.clone(),
            model: line.model.clone(),
            unit: line.counted_in().to_owned(),
            unit_price: line.unit_price.normalize(),
            list_unit_price: line.list_price().normalize(),
            price_id: cost.price_id.clone(),
            source,
        }
    }
}

/// The changes of a correction to the hour of its request: it takes back the cost before, and
/// charges the cost after. If it completes the request, it adds the usage as well.
#[must_use]
pub fn corrected(row: &BilledRequest<'_>, correction: &Correction) -> [(HourKey, Hour); 2] {
    let late = month_of(row.started_at) < month_of(correction.made_at);
    let key = |row: &BilledRequest<'_>| HourKey { correction: true, late, ..HourKey::of(row) };
    let (before, after) = (correction.before.as_ref(), correction.after.as_ref());
    if let Some(completion) = &correction.completion {
        let before = BilledRequest { cost: before, ..*row };
        let after = BilledRequest { cost: after, ..completed(row, completion) };
        return [
            (key(&before), Hour::taken_back(&before)),
            (key(&after), Hour { sums: Sums::completed(&after), ..Hour::of(&after) }),
        ];
    }
    let completed = correction.completed.as_ref();
    let model = completed.and_then(|completed| completed.response_model.as_deref());
    let model = model.or(row.model);
    let source = completed.map_or(row.source, |completed| completed.source);
    [(before, Decimal::NEGATIVE_ONE), (after, Decimal::ONE)].map(|(cost, sign)| {
        (key(&BilledRequest { cost, model, ..*row }), Hour::corrected(cost, sign, source))
    })
}

/// A request with what completes it.
fn completed<'a>(row: &BilledRequest<'a>, completion: &'a Completion) -> BilledRequest<'a> {
    let usage = &completion.usage;
    BilledRequest {
        model: completion.response_model.as_deref().or(row.model),
        source: usage.source,
        input_tokens: usage.input_tokens,
        cache_read_input_tokens: usage.cache_read_input_tokens,
        output_tokens: usage.output_tokens,
        reasoning_output_tokens: usage.reasoning_output_tokens,
        ..*row
    }
}

/// The hour of `at`, UTC.
#[must_use]
pub fn hour_of(at: Timestamp) -> Timestamp {
    let floor = TimestampRound::new().smallest(Unit::Hour).mode(jiff::RoundMode::Floor);
    at.round(floor).unwrap_or(at)
}

/// First day of the calendar month of `at`, UTC.
fn month_of(at: Timestamp) -> Date {
    Zone::UTC.date_of(at).first_of_month()
}

#[cfg(test)]
mod tests {
    use taximeter_ledger::{Charge, Record, RecordUsage, Reserve, gateway_died_record};

    use super::*;
    use crate::fixtures::{cost, line};

    fn record() -> Record {
        let reserve: Reserve = serde_json::from_value(serde_json::json!({
            "id": "0193e9a0-0000-7000-8000-000000000001", "request_id": "r",
            "started_at": "2026-11-20T16:59:59.999999Z", "tenant": "acme", "key_id": null,
            "identity": "unknown", "operation": "chat", "route": "/v1/chat/completions",
            "stream": false, "upstream": "local", "provider": "vllm", "request_model": "m",
            "amount": null
        }))
        .unwrap();
        gateway_died_record(&reserve, None, reserve.started_at, "pod/0")
    }

    /// Σ quantity × price of all lines, at contracted prices and at list prices.
    fn priced(hour: &Hour) -> (Decimal, Decimal) {
        let sum = |price: fn(&LineKey) -> Decimal| {
            hour.lines.iter().map(|(key, quantity)| price(key) * quantity).sum()
        };
        (sum(|key| key.unit_price), sum(|key| key.list_unit_price))
    }

    #[test]
    fn an_hour_begins_with_its_first_instant() {
        let key = HourKey::of(&BilledRequest::from(&record()));
        assert_eq!(key.hour.to_string(), "2026-11-20T16:00:00Z");
        assert_eq!((key.currency, key.correction), (None, false));
        let before: Timestamp = "1969-12-31T23:30:00Z".parse().unwrap();
        assert_eq!(hour_of(before).to_string(), "1969-12-31T23:00:00Z");
    }

    #[test]
    fn the_lines_of_an_hour_multiply_to_its_sums() {
        let mut whole = Hour::default();
        for tokens in 1..50 {
            let mut record = record();
            let list_unit_price = Some("0.00000060".parse().unwrap());
            let input = RecordLine { list_unit_price, ..line("input", tokens, "0.0000005") };
            record.cost = Some(cost(vec![input, line("output", 3, "0.0000015")]));
            whole.add(&Hour::of(&BilledRequest::from(&record))).unwrap();
        }
        assert_eq!(whole.lines.len(), 2);
        assert_eq!((whole.sums.requests, whole.sums.unknown_cost_requests), (49, 0));
        let sums = (whole.sums.cost.unwrap(), whole.sums.list_cost.unwrap());
        assert_eq!(priced(&whole), sums);
    }

    #[test]
    fn a_correction_takes_back_what_was_owed_and_charges_the_rest() {
        let mut record = record();
        let (before, after) =
            (cost(vec![line("input", 10, "0.5")]), cost(vec![line("input", 10, "0.4")]));
        record.cost = Some(before.clone());
        let mut hour = Hour::of(&BilledRequest::from(&record));
        hour.add(&Hour::corrected(Some(&before), Decimal::NEGATIVE_ONE, Source::Reported)).unwrap();
        hour.add(&Hour::corrected(Some(&after), Decimal::ONE, Source::Reported)).unwrap();
        assert_eq!(hour.sums.cost, Some(Decimal::from(4)));
        assert_eq!(priced(&hour).0, Decimal::from(4));
        assert_eq!(hour.sums.requests, 1);
    }

    #[test]
    fn a_correction_is_late_once_the_month_of_its_request_is_over() {
        let record = record();
        let late = |made_at: &str| {
            let correction: Correction = serde_json::from_value(serde_json::json!({
                "id": "0193e9a0-0000-7000-8000-000000000002", "corrects": record.id,
                "started_at": record.started_at, "tenant": "acme", "made_at": made_at,
                "reason": "typo"
            }))
            .unwrap();
            corrected(&BilledRequest::from(&record), &correction).map(|(key, _)| key.late)
        };
        assert_eq!(late("2026-11-30T23:59:59.999999Z"), [false, false]);
        assert_eq!(late("2026-12-01T00:00:00Z"), [true, true]);
        let key = HourKey { late: true, ..HourKey::of(&BilledRequest::from(&record)) };
        let json = serde_json::to_string(&key).unwrap();
        assert_eq!(serde_json::from_str::<HourKey>(&json).unwrap().late, key.late);
        let before = json.replace(",\"late\":true", "");
        assert!(!serde_json::from_str::<HourKey>(&before).unwrap().late, "{before}");
    }

    #[test]
    fn a_cost_that_becomes_known_is_no_longer_unknown() {
        let mut hour = Hour::of(&BilledRequest::from(&record()));
        let after = cost(vec![line("input", 10, "0.4")]);
        hour.add(&Hour::corrected(None, Decimal::NEGATIVE_ONE, Source::Unknown)).unwrap();
        hour.add(&Hour::corrected(Some(&after), Decimal::ONE, Source::Unknown)).unwrap();
        assert_eq!((hour.sums.unknown_cost_requests, hour.sums.cost), (0, Some(after.amount)));
    }

    #[test]
    fn what_completes_a_request_adds_its_tokens_and_its_cost_and_no_request() {
        let mut record = record();
        record.usage = RecordUsage::counted(Some(9), None, &[]);
        record.usage.go_on();
        let row = BilledRequest::from(&record);
        let mut whole = Hour::of(&row);
        let before = &whole.sums;
        assert_eq!((before.input_tokens, before.output_tokens, before.cost), (None, None, None));
        assert_eq!((before.unknown_usages(), before.unknown_costs()), (1, 1));
        let after = cost(vec![line("input", 10, "0.5"), line("output", 3, "2")]);
        let usage = RecordUsage {
            source: Source::Reported,
            ..RecordUsage::counted(Some(10), Some(3), &[])
        };
        let correction = serde_json::from_value::<Correction>(serde_json::json!({
            "id": "0193e9a0-0000-8000-8000-000000000001", "corrects": record.id,
            "started_at": record.started_at, "tenant": "acme", "made_at": record.started_at,
            "reason": "seen", "after": after,
            "completion": {"response_id": "resp_1", "response_model": "m-1", "usage": usage},
        }));
        let correction = correction.unwrap();
        let [taken, completed] = corrected(&row, &correction);
        assert_eq!(
            (taken.0.model.as_deref(), completed.0.model.as_deref()),
            (Some("m"), Some("m-1"))
        );
        for (_, hour) in [&taken, &completed] {
            whole.add(hour).unwrap();
        }
        let sums = &whole.sums;
        assert_eq!((sums.requests, sums.input_tokens, sums.output_tokens), (1, Some(10), Some(3)));
        assert_eq!((sums.cost, sums.reported_requests()), (Some(after.amount), 1));
        assert_eq!((sums.unknown_usage_requests, sums.unknown_cost_requests), (0, 0));
        assert_eq!(priced(&whole).0, after.amount);
        // A later price takes back what it charged: the same lines, of the same model.
        let later = Correction {
            before: Some(after),
            after: None,
            completed: correction.completion.as_deref().map(taximeter_ledger::Completed::of),
            completion: None,
            ..correction
        };
        let [taken, _] = corrected(&row, &later);
        assert_eq!(taken.0, completed.0);
        whole.add(&taken.1).unwrap();
        assert!(whole.lines.values().all(Decimal::is_zero), "{:?}", whole.lines);
        let alone = completed.1.sums.or_of_no_request();
        assert_eq!((alone.requests, alone.input_tokens), (0, Some(10)));
    }

    #[test]
    fn the_known_part_of_a_cost_is_charged_and_a_correction_makes_it_whole() {
        let mut record = record();
        let part = cost(vec![line("input", 10, "0.5")]);
        record.charge(Charge::unknown(Some(part.clone()), []));
        let row = BilledRequest::from(&record);
        let (key, mut hour) = (HourKey::of(&row), Hour::of(&row));
        assert_eq!(key.currency.as_deref(), Some("USD"));
        assert_eq!((hour.sums.cost, hour.sums.unknown_costs()), (Some(part.amount), 1));
        assert!(hour.sums.is_at_least());
        let after = cost(vec![line("input", 10, "0.5"), line("output", 3, "2")]);
        let correction: Correction = serde_json::from_value(serde_json::json!({
            "id": "0193e9a0-0000-7000-8000-000000000002", "corrects": record.id,
            "started_at": record.started_at, "tenant": "acme", "made_at": record.started_at,
            "reason": "a price came", "before": record.owed(), "after": after,
        }))
        .unwrap();
        for (corrected, change) in corrected(&row, &correction) {
            assert_eq!(corrected.currency, key.currency);
            hour.add(&change).unwrap();
        }
        assert_eq!((hour.sums.cost, hour.sums.unknown_cost_requests), (Some(after.amount), 0));
        assert_eq!(priced(&hour).0, after.amount);
        assert!(!hour.sums.is_at_least());
    }

    #[test]
    fn sums_that_cannot_be_kept_are_an_error() {
        let huge = cost(vec![line("input", 1, &Decimal::MAX.to_string())]);
        let mut hour = Hour::corrected(Some(&huge), Decimal::ONE, Source::Reported);
        let before = hour.clone();
        assert_eq!((hour.add(&before), &hour), (Err(TooLarge), &before));
    }
}
