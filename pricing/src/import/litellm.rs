//! Reads LiteLLM's `model_prices_and_context_window.json`: an object of models, each a flat object.

mod field;
mod hours;

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use taximeter_json::Value;

use super::importer::{Importer, row};
use super::json::{Members, amount};
use crate::meter::{MeterKind, MeterName};
use crate::row::{Effect, LongContext, RateCard, Row, ServiceTier, Threshold, Tiers};
use crate::usage::Condition;
use field::{FieldMeaning, Mode};

/// Keys that are not models.
const NOT_MODELS: [&str; 2] = ["sample_spec", "fallback_generalizations"];

/// Bedrock's endpoint for the formats of OpenAI and Anthropic, in LiteLLM.
const MANTLE: &str = "bedrock_mantle";

const NO_PROVIDER: &str = "names no provider";
const SIZED: &str = "its name contains a size, and no answer has such a name";
const BY_RESULTS: &str = "depends on the number of results, which no answer reports";
const NOT_KNOWN: &str = "is an unknown field";
const DUPLICATE: &str = "another field has the same price, and was imported";

/// Reads every model. Returns false if this is another kind of file.
pub(super) fn read(root: Value<'_>, importer: &mut Importer<'_>) -> bool {
    let Some(root) = Members::of(root) else { return false };
    let provider = |model: Value<'_>| Members::of(model)?.text("litellm_provider").map(drop);
    if !root.is_empty() && !root.each().any(|(_, model)| provider(model).is_some()) {
        return false;
    }
    let mut models = Vec::new();
    for (key, value) in root.each().filter(|(key, _)| !NOT_MODELS.contains(key)) {
        importer.models += 1;
        let Some(members) = Members::of(value) else {
            importer.leave_out_model(value, key, "expected an object of prices");
            continue;
        };
        let provider_name = members.text("litellm_provider").unwrap_or_default().into_owned();
        let name = name(key, &provider_name);
        models.push((key, value, members, provider_name, name));
    }
    // A key that begins with its provider surely belongs to that provider. Bedrock's names come before
    // the same names at Mantle, its endpoint in one region, where they cost more.
    taximeter_collections::sort_by_key(&mut models, |(key, .., provider_name, name)| {
        (provider_name == MANTLE, key.len() == name.len())
    });
    for (key, value, members, provider_name, name) in models {
        let never_found = [(provider_name.is_empty(), NO_PROVIDER), (name.contains("-x-"), SIZED)];
        if let Some((_, why)) = never_found.into_iter().find(|(is_so, _)| *is_so) {
            importer.leave_out_model(value, key, why);
            continue;
        }
        let reading = Model {
            key,
            members: &members,
            mode: Mode::of(&members),
            provider_name: &provider_name,
        };
        let row = reading.row(name, importer);
        importer.take(value, key, row.into_iter().collect());
    }
    true
}

/// The key without its provider.
pub(super) fn name<'a>(key: &'a str, provider_name: &str) -> &'a str {
    let family = provider_name.split(['-', '_']).next().unwrap_or(provider_name);
    let dashless = provider_name.split('-').next().unwrap_or(provider_name);
    [provider_name, dashless, family]
        .into_iter()
        .find_map(|before| key.strip_prefix(before)?.strip_prefix('/'))
        .filter(|name| !name.is_empty())
        .unwrap_or(key)
}

/// `gen_ai.provider.name` of a provider in LiteLLM.
pub(super) fn provider(provider_name: &str) -> &str {
    match provider_name {
        "gemini" => "gcp.gemini",
        "azure" | "azure_text" => "azure.ai.openai",
        "azure_ai" => "azure.ai.inference",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        "cohere_chat" => "cohere",
        "moonshot" => "moonshot_ai",
        "watsonx" => "ibm.watsonx.ai",
        "text-completion-openai" => "openai",
        _ if provider_name.starts_with("vertex_ai") => "gcp.vertex_ai",
        _ if provider_name.starts_with("bedrock") => "aws.bedrock",
        _ if provider_name.starts_with("fireworks_ai") => "fireworks_ai",
        _ => provider_name,
    }
}

/// One model of the file.
struct Model<'a> {
    key: &'a str,
    members: &'a Members<'a>,
    mode: Mode,
    provider_name: &'a str,
}

/// The rates of a model by tier. `None` is the standard tier.
#[derive(Default)]
struct RatesByTier(Vec<(Option<ServiceTier>, MeterName, Decimal)>);

impl Model<'_> {
    /// The row of the model. `None` if it has no prices.
    fn row(&self, name: &str, importer: &mut Importer<'_>) -> Option<Row> {
        let mut row = row(provider(self.provider_name), name);
        let mut standard = RatesByTier::default();
        let mut long: BTreeMap<u64, RatesByTier> = BTreeMap::new();
        for (field, value) in self.members.each() {
            match field {
                "search_context_cost_per_query" => {
                    self.search(value, &mut standard, &mut row, importer);
                }
                "provider_specific_entry" => self.factors(value, &mut row, importer),
                "off_peak_pricing" => row.off_peak = self.off_peak(value, importer),
                "tiered_pricing" => self.steps(value, &mut standard, &mut long, importer),
                "regional_processing_uplift_multiplier_eu" => {
                    self.factor(value, field, (Condition::Region, "eu"), &mut row, importer);
                }
                "regional_processing_uplift_multiplier_us" => {
                    self.factor(value, field, (Condition::Region, "us"), &mut row, importer);
                }
                _ => match field::meaning(field, self.mode, self.members) {
                    Ok(None) => {}
                    Ok(Some(FieldMeaning { meter, above, tier })) => {
                        let Some(rate) = importer.amount(value, field) else { continue };
                        let is_of_thousand = field == field::PER_THOUSAND_FILE_SEARCHES;
                        let rate = if is_of_thousand { rate / Decimal::ONE_THOUSAND } else { rate };
                        let rates = match above {
                            None => &mut standard,
                            Some(tokens) => long.entry(tokens).or_default(),
                        };
                        if !rates.put(tier, meter, rate) {
                            importer.leave_out(value, self.key, field, DUPLICATE);
                        }
                    }
                    Err(why) => importer.leave_out(value, self.key, field, why),
                },
            }
        }
        let mut all: Vec<_> = std::iter::once(&mut standard).chain(long.values_mut()).collect();
        all.iter_mut().for_each(|rates| self.tidy(rates));
        // Reasoning at the price of output counts as output, and images as input: in every tier and
        // context, or else in none.
        for (part, whole) in
            [(MeterName::Reasoning, MeterName::Output), (MeterName::InputImage, MeterName::Input)]
        {
            if all.iter().all(|rates| rates.are_alike(part, whole)) {
                all.iter_mut().for_each(|rates| rates.drop(part));
            }
        }
        row.input_only = self.mode.is_input_only()
            || (self.mode == Mode::Transcription && !standard.has(MeterName::is_output));
        row.card = standard.card();
        if row.card.rates.is_empty() {
            return None;
        }
        let is_from_threshold_on =
            self.provider_name == "xai" || self.members.get("tiered_pricing").is_some();
        let threshold = if is_from_threshold_on { Threshold::AtLeast } else { Threshold::Over };
        row.long_context = long
            .into_iter()
            .map(|(tokens, rates)| LongContext { threshold: threshold(tokens), card: rates.card() })
            .collect();
        Some(row)
    }

    /// Drops rates that equal another rate or would be wrong in our format.
    fn tidy(&self, rates: &mut RatesByTier) {
        if self.mode.is_input_only() {
            rates.0.retain(|(_, meter, rate)| !meter.is_output() || !rate.is_zero());
        }
        // LiteLLM sets the rates of tokens to zero if something else is charged instead.
        let is_free =
            rates.0.iter().all(|(_, meter, rate)| !meter.counts_tokens() || rate.is_zero());
        if is_free && rates.has(|meter| meter.kind() == MeterKind::InPlaceOfTokens) {
            rates.0.retain(|(_, meter, _)| !meter.counts_tokens());
        }
    }

    /// Web searches are charged by the call, by the query, or by the request with the amount of
    /// text that they read.
    fn search(
        &self,
        value: Value<'_>,
        rates: &mut RatesByTier,
        row: &mut Row,
        importer: &mut Importer<'_>,
    ) {
        const FIELD: &str = "search_context_cost_per_query";
        let Some(sizes) = Members::of(value) else {
            return importer.mistake(value, FIELD, "expected an object of prices by size");
        };
        let mut price = |size: &str| {
            let value = sizes.get(&format!("search_context_size_{size}"))?;
            importer.amount(value, FIELD)
        };
        let (low, medium, high) = (price("low"), price("medium"), price("high"));
        let Some(usual) = medium.or(low).or(high) else { return };
        let by_size = [("low", low), ("high", high)];
        let differs = by_size.iter().any(|(_, price)| price.is_some_and(|price| price != usual));
        let by_query =
            self.members.text("web_search_billing_unit").is_some_and(|w| w == "per_query");
        let meter = match self.provider_name {
            "perplexity" if differs => MeterName::Requests,
            "perplexity" => MeterName::SearchQueries,
            _ if by_query => MeterName::SearchQueries,
            _ => MeterName::WebSearchRequests,
        };
        rates.put(None, meter, usual);
        if meter == MeterName::Requests {
            // The price of the request includes them.
            rates.put(None, MeterName::SearchQueries, Decimal::ZERO);
        }
        for (size, price) in by_size {
            if let Some(price) = price.filter(|price| *price != usual) {
                let words = row.when.entry(Condition::SearchContextSize).or_default();
                let effect = Effect { times: None, rates: [(meter, price)].into_iter().collect() };
                words.insert(size.to_owned(), effect);
            }
        }
    }

    /// Anthropic's factors. The other members are not prices.
    fn factors(&self, value: Value<'_>, row: &mut Row, importer: &mut Importer<'_>) {
        let Some(members) = Members::of(value) else { return };
        for (word, condition) in [("us", Condition::InferenceGeo), ("fast", Condition::Speed)] {
            if let Some(value) = members.get(word) {
                let field = format!("provider_specific_entry.{word}");
                self.factor(value, &field, (condition, word), row, importer);
            }
        }
    }

    fn factor(
        &self,
        value: Value<'_>,
        field: &str,
        (condition, word): (Condition, &str),
        row: &mut Row,
        importer: &mut Importer<'_>,
    ) {
        match amount(value).filter(|factor| !factor.is_zero()) {
            Some(times) => {
                let effect = Effect { times: Some(times), ..Effect::default() };
                row.when.entry(condition).or_default().insert(word.to_owned(), effect);
            }
            None => importer.mistake(value, field, "expected a factor above 0"),
        }
    }

    /// `tiered_pricing`: each step is for the whole request, from a number of input tokens on.
    fn steps(
        &self,
        value: Value<'_>,
        standard: &mut RatesByTier,
        long: &mut BTreeMap<u64, RatesByTier>,
        importer: &mut Importer<'_>,
    ) {
        const FIELD: &str = "tiered_pricing";
        let wrong = "expected a list of {range: [from, to), prices}";
        let Some(steps) = value.elements() else {
            return importer.mistake(value, FIELD, wrong);
        };
        for step in steps {
            let Some(members) = Members::of(step) else {
                return importer.mistake(step, FIELD, wrong);
            };
            if members.get("max_results_range").is_some() {
                return importer.leave_out(step, self.key, FIELD, BY_RESULTS);
            }
            let from = members
                .get("range")
                .and_then(Value::elements)
                .and_then(|range| u64::try_from(amount(*range.first()?)?.normalize()).ok());
            let Some(from) = from else { return importer.mistake(step, FIELD, wrong) };
            let rates = match from {
                0 => &mut *standard,
                from => long.entry(from).or_default(),
            };
            for (field, value) in members.each().filter(|(field, _)| *field != "range") {
                match field::meaning(field, self.mode, self.members) {
                    Ok(Some(FieldMeaning { meter, above: None, tier: None })) => {
                        let rate = importer.amount(value, field);
                        rate.map(|rate| rates.put(None, meter, rate));
                    }
                    _ => importer.leave_out(value, self.key, field, NOT_KNOWN),
                }
            }
        }
    }

    fn off_peak(
        &self,
        value: Value<'_>,
        importer: &mut Importer<'_>,
    ) -> Option<crate::off_peak::OffPeak> {
        const FIELD: &str = "off_peak_pricing";
        let wrong = "expected an object of prices with `hours_utc` or `windows`";
        let Some(members) = Members::of(value) else {
            importer.mistake(value, FIELD, wrong);
            return None;
        };
        let mut rates = Vec::new();
        for (field, value) in members.each() {
            if let Ok(Some(FieldMeaning { meter, above: None, tier: None })) =
                field::meaning(field, self.mode, self.members)
            {
                rates.push((meter, importer.amount(value, field)?));
            }
        }
        match hours::windows(&members) {
            Ok(windows) => {
                Some(crate::off_peak::OffPeak { rates: rates.into_iter().collect(), windows })
            }
            Err(hours::Fault::Wrong) => {
                importer.mistake(value, FIELD, wrong);
                None
            }
            Err(hours::Fault::Zone) => {
                importer.mistake(value, FIELD, "has weekdays of an unknown time zone");
                None
            }
        }
    }
}

impl RatesByTier {
    /// Adds a rate. Returns false if the meter has a different rate already.
    fn put(&mut self, tier: Option<ServiceTier>, meter: MeterName, rate: Decimal) -> bool {
        let known = self.0.iter().find(|(of, what, _)| (*of, *what) == (tier, meter));
        match known {
            Some((.., known)) => *known == rate,
            None => {
                self.0.push((tier, meter, rate));
                true
            }
        }
    }

    /// Whether `part` costs the same as `whole` in every tier that has a price of it.
    fn are_alike(&self, part: MeterName, whole: MeterName) -> bool {
        let is_alike = |(tier, _, rate): &(Option<ServiceTier>, MeterName, Decimal)| {
            self.0.contains(&(*tier, whole, *rate))
        };
        self.0.iter().filter(|(_, meter, _)| *meter == part).all(is_alike)
    }

    fn drop(&mut self, part: MeterName) {
        self.0.retain(|(_, meter, _)| *meter != part);
    }

    fn has(&self, of: impl Fn(MeterName) -> bool) -> bool {
        self.0.iter().any(|(tier, meter, _)| tier.is_none() && of(*meter))
    }

    fn card(&self) -> RateCard {
        let rates = |tier: Option<ServiceTier>| {
            let of_tier = self.0.iter().filter(|(of, ..)| *of == tier);
            of_tier.map(|(_, meter, rate)| (*meter, *rate)).collect::<crate::rates::Rates>()
        };
        let tier = |tier| Some(rates(Some(tier))).filter(|rates| !rates.is_empty());
        RateCard {
            rates: rates(None),
            tiers: Tiers {
                batch: tier(ServiceTier::Batch),
                flex: tier(ServiceTier::Flex),
                priority: tier(ServiceTier::Priority),
                ultrafast: tier(ServiceTier::Ultrafast),
            },
        }
    }
}
