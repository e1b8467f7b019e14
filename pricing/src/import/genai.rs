//! Reads `data.json` and `data_slim.json` of genai-prices: a list of providers, each with its
//! models.

use std::collections::BTreeMap;

use jiff::civil::Date;
use rust_decimal::Decimal;
use taximeter_json::Value;

use super::importer::{Importer, row};
use super::json::{Members, amount};
use crate::meter::MeterName;
use crate::off_peak::{Day, Hours, OffPeak, Window};
use crate::rates::Rates;
use crate::row::{LongContext, RateCard, Row, Threshold};

const NOT_TOLD: &str = "no answer reports it separately";
const PATTERN: &str =
    "patterns of names are not imported: a name finds its row by the rules of the book";
const CONDITION: &str = "holds under an unknown condition";

/// Reads every model. Returns false if this is another kind of file.
pub(super) fn read(root: Value<'_>, importer: &mut Importer<'_>) -> bool {
    let Some(providers) = root.elements() else { return false };
    if !providers.is_empty() && !providers.iter().any(|provider| models(*provider).is_some()) {
        return false;
    }
    for value in providers {
        let id = Members::of(value).and_then(|members| Some(members.text("id")?.into_owned()));
        let id = id.unwrap_or_default();
        let Some(models) = models(value) else {
            importer.models += 1;
            importer.leave_out_model(value, &id, "expected a provider with a list of models");
            continue;
        };
        for value in models {
            importer.models += 1;
            model(value, provider(&id), importer);
        }
    }
    true
}

/// The models of a provider.
fn models(provider: Value<'_>) -> Option<Vec<Value<'_>>> {
    Members::of(provider)?.get("models")?.elements()
}

/// `gen_ai.provider.name` of a provider in genai-prices.
pub(super) fn provider(id: &str) -> &str {
    match id {
        "aws" => "aws.bedrock",
        "azure" => "azure.ai.openai",
        "fireworks" => "fireworks_ai",
        "google" => "gcp.gemini",
        "mistral" => "mistral_ai",
        "moonshotai" => "moonshot_ai",
        "together" => "together_ai",
        "voyageai" => "voyage",
        "x-ai" => "x_ai",
        other => other,
    }
}

fn model(value: Value<'_>, provider: &str, importer: &mut Importer<'_>) {
    let members = Members::of(value);
    let Some((members, id)) = members.and_then(|members| {
        let id = members.text("id")?.into_owned();
        Some((members, id))
    }) else {
        return importer.leave_out_model(value, provider, "expected a model with an `id`");
    };
    let called = format!("{provider}/{id}");
    let Some(prices) = members.get("prices") else {
        return importer.take(value, &called, Vec::new());
    };
    let mut base = row(provider, &id);
    if let Some(matches) = members.get("match") {
        let mut has_patterns = false;
        names(matches, &mut base.aliases, &mut has_patterns);
        base.aliases.retain(|name| *name != id);
        taximeter_collections::sort(&mut base.aliases);
        base.aliases.dedup();
        if has_patterns {
            importer.leave_out(matches, &called, "match", PATTERN);
        }
    }
    let rows = match prices.elements() {
        Some(conditional) => dated(&base, &conditional, &called, importer),
        None => vec![priced(base, prices, &called, importer)],
    };
    let (rows, empty): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| !row.card.rates.is_empty());
    if !rows.is_empty() && !empty.is_empty() {
        // Without it, the prices before that day would go on.
        importer.mistake(prices, "prices", "has no prices from some day on");
    }
    importer.take(value, &called, rows);
}

/// The exact names in the `match` expression of a model.
fn names(expression: Value<'_>, names_of: &mut Vec<String>, has_patterns: &mut bool) {
    let Some(clauses) = Members::of(expression) else { return };
    for (clause, value) in clauses.each() {
        match clause {
            "equals" => names_of.extend(value.text().map(|name| name.into_owned())),
            "or" => {
                for clause in value.elements().unwrap_or_default() {
                    names(clause, names_of, has_patterns);
                }
            }
            _ => *has_patterns = true,
        }
    }
}

/// One row for each start date, with the hours of the day within it. Of several that hold, the last
/// one counts.
fn dated(base: &Row, list: &[Value<'_>], called: &str, importer: &mut Importer<'_>) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for value in list.iter().copied() {
        let members = Members::of(value);
        let Some((members, prices)) = members.and_then(|members| {
            let prices = members.get("prices")?;
            Some((members, prices))
        }) else {
            importer.mistake(value, "prices", "expected {constraint, prices}");
            continue;
        };
        let constraint = members.get("constraint").and_then(Members::of);
        let start = constraint.as_ref().and_then(|members| members.text("start_date"));
        let hours = constraint
            .as_ref()
            .and_then(|members| Some((members.text("start_time")?, members.text("end_time")?)));
        match (constraint.is_some(), start, hours) {
            (false, ..) => rows.push(priced(base.clone(), prices, called, importer)),
            (true, Some(start), None) => match start.parse::<Date>() {
                Ok(from) => {
                    let base = Row { from: Some(from), ..base.clone() };
                    rows.push(priced(base, prices, called, importer));
                }
                Err(_) => importer.mistake(value, "start_date", "expected YYYY-MM-DD"),
            },
            (true, None, Some((from, until))) => {
                let rates = priced(base.clone(), prices, called, importer).card.rates;
                match (hours_of(&from, &until), rows.last_mut()) {
                    (Some(hours), Some(row)) if row.off_peak.is_none() => {
                        let windows = vec![Window { days: Day::ALL.to_vec(), hours }];
                        row.off_peak = Some(OffPeak { rates, windows });
                    }
                    _ => importer.mistake(value, "constraint", CONDITION),
                }
            }
            _ => importer.mistake(value, "constraint", CONDITION),
        }
    }
    rows
}

/// `00:30:00Z` to `16:30:00Z`, on one day or over midnight.
fn hours_of(from: &str, until: &str) -> Option<Vec<Hours>> {
    const DAY: u16 = 24 * 60;
    let minute = |text: &str| {
        let mut parts = text.strip_suffix('Z')?.split(':').map(|part| part.parse::<u16>().ok());
        let (hour, minute) = (parts.next()??, parts.next()??);
        (hour < 24 && minute < 60).then_some(hour * 60 + minute)
    };
    let (from, until) = (minute(from)?, minute(until)?);
    let hours = |from, until| Hours { from, until };
    Some(match until {
        0 => vec![hours(from, DAY)],
        until if from < until => vec![hours(from, until)],
        until => vec![hours(from, DAY), hours(0, until)],
    })
}

/// `row` with one set of prices.
fn priced(mut row: Row, prices: Value<'_>, called: &str, importer: &mut Importer<'_>) -> Row {
    let Some(members) = Members::of(prices) else {
        importer.mistake(prices, "prices", "expected an object of prices");
        return row;
    };
    let mut standard = Vec::new();
    let mut long: BTreeMap<u64, Vec<(MeterName, Decimal)>> = BTreeMap::new();
    for (field, value) in members.each() {
        let Some((meter, for_how_many)) = meter(field) else {
            importer.leave_out(value, called, field, NOT_TOLD);
            continue;
        };
        let rate = |value: Value<'_>, importer: &mut Importer<'_>| {
            let mut price = importer.amount(value, field)?;
            let scale = price.scale().checked_add(for_how_many)?;
            price.set_scale(scale).ok()?;
            Some(price.normalize())
        };
        let Some(tiered) = Members::of(value) else {
            standard.extend(rate(value, importer).map(|rate| (meter, rate)));
            continue;
        };
        let base = tiered.get("base").and_then(|base| rate(base, importer));
        standard.extend(base.map(|rate| (meter, rate)));
        for tier in tiered.get("tiers").and_then(Value::elements).unwrap_or_default() {
            let members = Members::of(tier);
            let start = members
                .as_ref()
                .and_then(|members| u64::try_from(amount(members.get("start")?)?).ok());
            let price = members.as_ref().and_then(|members| members.get("price"));
            match (start, price.and_then(|price| rate(price, importer))) {
                (Some(start), Some(rate)) => long.entry(start).or_default().push((meter, rate)),
                _ => importer.mistake(tier, field, "expected {start, price}"),
            }
        }
    }
    row.card.rates = standard.into_iter().collect();
    let has = |of: fn(MeterName) -> bool| row.card.rates.iter().any(|(meter, _)| of(meter));
    row.input_only = !has(MeterName::is_output) && has(MeterName::counts_tokens);
    row.long_context = long
        .into_iter()
        .map(|(start, rates)| LongContext {
            threshold: Threshold::Over(start),
            card: RateCard { rates: rates.into_iter().collect::<Rates>(), ..RateCard::default() },
        })
        .collect();
    row
}

/// The meter of a price field. The price is for this number of units, as a power of ten.
fn meter(field: &str) -> Option<(MeterName, u32)> {
    const MILLION: u32 = 6;
    const THOUSAND: u32 = 3;
    let tokens = match field {
        "input_mtok" | "input_text_mtok" => MeterName::Input,
        "input_audio_mtok" => MeterName::InputAudio,
        "input_image_mtok" => MeterName::InputImage,
        "input_video_mtok" => MeterName::InputVideo,
        "cache_read_mtok" | "cache_text_read_mtok" => MeterName::CacheRead,
        "cache_audio_read_mtok" => MeterName::CacheReadAudio,
        "cache_image_read_mtok" => MeterName::CacheReadImage,
        "cache_write_mtok" | "cache_write_5m_mtok" => MeterName::CacheWrite,
        "cache_write_1h_mtok" => MeterName::CacheWriteLong,
        "output_mtok" | "output_text_mtok" => MeterName::Output,
        "output_audio_mtok" => MeterName::OutputAudio,
        "output_image_mtok" => MeterName::OutputImage,
        "output_video_mtok" => MeterName::OutputVideo,
        "output_reasoning_mtok" => MeterName::Reasoning,
        "requests_kcount" => return Some((MeterName::Requests, THOUSAND)),
        "web_searches_kcount" => return Some((MeterName::WebSearchRequests, THOUSAND)),
        _ => return None,
    };
    Some((tokens, MILLION))
}
