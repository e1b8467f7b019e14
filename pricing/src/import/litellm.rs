//! LiteLLM's `model_prices_and_context_window.json`: an object of models, each a flat object.

mod field;
mod hours;

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use taximeter_json::Value;

use super::json::{Members, amount};
use super::taker::{Taker, row};
use crate::meter::{Kind, MeterName};
use crate::row::{Card, Effect, LongContext, Row, ServiceTier, Threshold, Tiers};
use crate::usage::Condition;
use field::{Mode, Place};

/// Keys that are no models.
const NO_MODELS: [&str; 2] = ["sample_spec", "fallback_generalizations"];

const NO_PROVIDER: &str = "names no provider";
const NO_PRICE: &str = "has no prices";
const SIZED: &str = "its name holds a size, and no answer is called so";
const BY_RESULTS: &str = "goes by the number of results, which no answer tells";
const NOT_KNOWN: &str = "is not known to us";
const TAKEN: &str = "another field says the same, and was taken";

/// Takes every model; false when it is another file.
pub(super) fn read(root: Value<'_>, taker: &mut Taker<'_>) -> bool {
    let Some(root) = Members::of(root) else { return false };
    let provider = |model: Value<'_>| Members::of(model)?.text("litellm_provider").map(drop);
    if !root.is_empty() && !root.each().any(|(_, model)| provider(model).is_some()) {
        return false;
    }
    let mut models = Vec::new();
    for (key, value) in root.each().filter(|(key, _)| !NO_MODELS.contains(key)) {
        taker.models += 1;
        let Some(members) = Members::of(value) else {
            taker.mistake(value, key, "", "expected an object of prices");
            continue;
        };
        let slug = members.text("litellm_provider").unwrap_or_default().into_owned();
        let name = name(key, &slug);
        models.push((key, value, members, slug, name));
    }
    // A key with the provider before it is surely that provider's.
    models.sort_by_key(|(key, .., name)| key.len() == name.len());
    for (key, value, members, slug, name) in models {
        let never_found = [(slug.is_empty(), NO_PROVIDER), (name.contains("-x-"), SIZED)];
        if let Some((_, why)) = never_found.into_iter().find(|(is_so, _)| *is_so) {
            taker.leave_out(value, key, None, why);
            continue;
        }
        let reading = Model { key, members: &members, mode: Mode::of(&members), slug: &slug };
        if let Some(row) = reading.row(name, taker) {
            taker.take(value, key, vec![row]);
        } else {
            taker.leave_out(value, key, None, NO_PRICE);
        }
    }
    true
}

/// The key without the provider before it.
pub(super) fn name<'a>(key: &'a str, slug: &str) -> &'a str {
    let family = slug.split(['-', '_']).next().unwrap_or(slug);
    let dashless = slug.split('-').next().unwrap_or(slug);
    [slug, dashless, family]
        .into_iter()
        .find_map(|before| key.strip_prefix(before)?.strip_prefix('/'))
        .filter(|name| !name.is_empty())
        .unwrap_or(key)
}

/// `gen_ai.provider.name` of a provider of theirs.
pub(super) fn provider(slug: &str) -> &str {
    match slug {
        "gemini" => "gcp.gemini",
        "azure" | "azure_text" => "azure.ai.openai",
        "azure_ai" => "azure.ai.inference",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        "cohere_chat" => "cohere",
        "moonshot" => "moonshot_ai",
        "watsonx" => "ibm.watsonx.ai",
        "text-completion-openai" => "openai",
        _ if slug.starts_with("vertex_ai") => "gcp.vertex_ai",
        _ if slug.starts_with("bedrock") => "aws.bedrock",
        _ => slug,
    }
}

/// One model while it is read.
struct Model<'a> {
    key: &'a str,
    members: &'a Members<'a>,
    mode: Mode,
    slug: &'a str,
}

/// Rates by tier while they are read; the standard ones go by `None`.
#[derive(Default)]
struct Draft(Vec<(Option<ServiceTier>, MeterName, Decimal)>);

impl Model<'_> {
    /// Its row; `None` when it has no prices at all.
    fn row(&self, name: &str, taker: &mut Taker<'_>) -> Option<Row> {
        let mut row = row(provider(self.slug), name);
        let mut standard = Draft::default();
        let mut long: BTreeMap<u64, Draft> = BTreeMap::new();
        for (field, value) in self.members.each() {
            match field {
                "search_context_cost_per_query" => {
                    self.search(value, &mut standard, &mut row, taker);
                }
                "provider_specific_entry" => self.factors(value, &mut row, taker),
                "off_peak_pricing" => row.off_peak = self.off_peak(value, taker),
                "tiered_pricing" => self.steps(value, &mut standard, &mut long, &mut row, taker),
                "regional_processing_uplift_multiplier_eu" => {
                    self.factor(value, field, (Condition::Region, "eu"), &mut row, taker);
                }
                "regional_processing_uplift_multiplier_us" => {
                    self.factor(value, field, (Condition::Region, "us"), &mut row, taker);
                }
                _ => match field::place(field, self.mode, self.members) {
                    Ok(None) => {}
                    Ok(Some(Place { meter, above, tier })) => {
                        let Some(rate) = taker.amount(value, self.key, field) else { continue };
                        let is_of_thousand = field == field::PER_THOUSAND_FILE_SEARCHES;
                        let rate = if is_of_thousand { rate / Decimal::ONE_THOUSAND } else { rate };
                        let draft = match above {
                            None => &mut standard,
                            Some(tokens) => long.entry(tokens).or_default(),
                        };
                        if !draft.put(tier, meter, rate) {
                            taker.leave_out(value, self.key, Some(field), TAKEN);
                        }
                    }
                    Err(why) => taker.leave_out(value, self.key, Some(field), why),
                },
            }
        }
        self.tidy(&mut standard);
        // Pictures at the price of input are input, in a long context too.
        let has_own = |meter| long.values().any(|draft| draft.has(|what| what == meter));
        if !has_own(MeterName::InputImage) {
            standard.fold(MeterName::InputImage, MeterName::Input);
        }
        row.input_only = self.mode.is_input_only()
            || (self.mode == Mode::Transcription && !standard.has(MeterName::is_output));
        row.card = standard.card();
        if row.card.rates.is_empty() {
            return None;
        }
        if row.long_context.is_empty() {
            row.long_context = long
                .into_iter()
                .map(|(tokens, draft)| LongContext {
                    threshold: match self.slug {
                        "xai" => Threshold::AtLeast(tokens),
                        _ => Threshold::Over(tokens),
                    },
                    card: draft.card(),
                })
                .collect();
        }
        Some(row)
    }

    /// Drops rates that say nothing of their own, or something that would be wrong here.
    fn tidy(&self, draft: &mut Draft) {
        // Reasoning at the price of output is output, in every tier.
        if draft.standard(MeterName::Reasoning) == draft.standard(MeterName::Output) {
            draft.0.retain(|(_, meter, _)| *meter != MeterName::Reasoning);
        }
        if self.mode.is_input_only() {
            draft.0.retain(|(_, meter, rate)| !meter.is_output() || !rate.is_zero());
        }
        // Tokens are at zero where something else is charged in their place.
        let is_free =
            draft.0.iter().all(|(_, meter, rate)| !meter.counts_tokens() || rate.is_zero());
        if is_free && draft.has(|meter| meter.kind() == Kind::InPlaceOfTokens) {
            draft.0.retain(|(_, meter, _)| !meter.counts_tokens());
        }
    }

    /// Web searches: by the call, by the query, or by the request, by how much they read.
    fn search(&self, value: Value<'_>, draft: &mut Draft, row: &mut Row, taker: &mut Taker<'_>) {
        const FIELD: &str = "search_context_cost_per_query";
        let Some(sizes) = Members::of(value) else {
            return taker.mistake(value, self.key, FIELD, "expected an object of prices by size");
        };
        let mut price = |size: &str| {
            let value = sizes.get(&format!("search_context_size_{size}"))?;
            taker.amount(value, self.key, FIELD)
        };
        let (low, medium, high) = (price("low"), price("medium"), price("high"));
        let Some(usual) = medium.or(low).or(high) else { return };
        let by_size = [("low", low), ("high", high)];
        let differs = by_size.iter().any(|(_, price)| price.is_some_and(|price| price != usual));
        let by_query =
            self.members.text("web_search_billing_unit").is_some_and(|w| w == "per_query");
        let meter = match self.slug {
            "perplexity" if differs => MeterName::Requests,
            "perplexity" => MeterName::SearchQueries,
            _ if by_query => MeterName::SearchQueries,
            _ => MeterName::WebSearchRequests,
        };
        draft.put(None, meter, usual);
        if meter == MeterName::Requests {
            // They are in the price of the request.
            draft.put(None, MeterName::SearchQueries, Decimal::ZERO);
        }
        for (size, price) in by_size {
            if let Some(price) = price.filter(|price| *price != usual) {
                let words = row.when.entry(Condition::SearchContextSize).or_default();
                let effect = Effect { times: None, rates: [(meter, price)].into_iter().collect() };
                words.insert(size.to_owned(), effect);
            }
        }
    }

    /// Anthropic's factors. What else is in there is no price.
    fn factors(&self, value: Value<'_>, row: &mut Row, taker: &mut Taker<'_>) {
        let Some(members) = Members::of(value) else { return };
        for (word, condition) in [("us", Condition::InferenceGeo), ("fast", Condition::Speed)] {
            if let Some(value) = members.get(word) {
                let field = format!("provider_specific_entry.{word}");
                self.factor(value, &field, (condition, word), row, taker);
            }
        }
    }

    fn factor(
        &self,
        value: Value<'_>,
        field: &str,
        (condition, word): (Condition, &str),
        row: &mut Row,
        taker: &mut Taker<'_>,
    ) {
        match amount(value).filter(|factor| !factor.is_zero()) {
            Some(times) => {
                let effect = Effect { times: Some(times), ..Effect::default() };
                row.when.entry(condition).or_default().insert(word.to_owned(), effect);
            }
            None => taker.mistake(value, self.key, field, "expected a factor above 0"),
        }
    }

    /// `tiered_pricing`: each step for the whole request, from its number of input tokens on.
    fn steps(
        &self,
        value: Value<'_>,
        standard: &mut Draft,
        long: &mut BTreeMap<u64, Draft>,
        row: &mut Row,
        taker: &mut Taker<'_>,
    ) {
        const FIELD: &str = "tiered_pricing";
        let wrong = "expected a list of {range: [from, to), prices}";
        let Some(steps) = value.elements() else {
            return taker.mistake(value, self.key, FIELD, wrong);
        };
        for step in steps {
            let Some(members) = Members::of(step) else {
                return taker.mistake(step, self.key, FIELD, wrong);
            };
            if members.get("max_results_range").is_some() {
                return taker.leave_out(step, self.key, Some(FIELD), BY_RESULTS);
            }
            let from = members
                .get("range")
                .and_then(Value::elements)
                .and_then(|range| u64::try_from(amount(*range.first()?)?.normalize()).ok());
            let Some(from) = from else { return taker.mistake(step, self.key, FIELD, wrong) };
            let draft = match from {
                0 => &mut *standard,
                from => long.entry(from).or_default(),
            };
            for (field, value) in members.each().filter(|(field, _)| *field != "range") {
                match field::place(field, self.mode, self.members) {
                    Ok(Some(Place { meter, above: None, tier: None })) => {
                        let rate = taker.amount(value, self.key, field);
                        rate.map(|rate| draft.put(None, meter, rate));
                    }
                    _ => taker.leave_out(value, self.key, Some(field), NOT_KNOWN),
                }
            }
        }
        row.long_context = std::mem::take(long)
            .into_iter()
            .map(|(tokens, mut draft)| {
                self.tidy(&mut draft);
                LongContext { threshold: Threshold::AtLeast(tokens), card: draft.card() }
            })
            .collect();
    }

    fn off_peak(
        &self,
        value: Value<'_>,
        taker: &mut Taker<'_>,
    ) -> Option<crate::off_peak::OffPeak> {
        const FIELD: &str = "off_peak_pricing";
        let wrong = "expected an object of prices with `hours_utc` or `windows`";
        let Some(members) = Members::of(value) else {
            taker.mistake(value, self.key, FIELD, wrong);
            return None;
        };
        let mut rates = Vec::new();
        for (field, value) in members.each() {
            if let Ok(Some(Place { meter, above: None, tier: None })) =
                field::place(field, self.mode, self.members)
            {
                rates.push((meter, taker.amount(value, self.key, field)?));
            }
        }
        match hours::windows(&members) {
            Ok(windows) => {
                Some(crate::off_peak::OffPeak { rates: rates.into_iter().collect(), windows })
            }
            Err(hours::Fault::Wrong) => {
                taker.mistake(value, self.key, FIELD, wrong);
                None
            }
            Err(hours::Fault::Zone) => {
                taker.leave_out(value, self.key, Some(FIELD), "has days of an unknown time zone");
                None
            }
        }
    }
}

impl Draft {
    /// False when the meter has another rate already.
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

    fn standard(&self, meter: MeterName) -> Option<Decimal> {
        let of_standard = self.0.iter().find(|(tier, what, _)| tier.is_none() && *what == meter);
        of_standard.map(|(.., rate)| *rate)
    }

    /// Drops a meter that costs what `whole` does, in every tier that has it.
    fn fold(&mut self, meter: MeterName, whole: MeterName) {
        let whole: Vec<_> = self.0.iter().filter(|(_, what, _)| *what == whole).copied().collect();
        let is_alike = |(tier, _, rate): &(Option<ServiceTier>, MeterName, Decimal)| {
            whole.iter().any(|(of, _, whole)| of == tier && whole == rate)
        };
        if self.0.iter().filter(|(_, what, _)| *what == meter).all(is_alike) {
            self.0.retain(|(_, what, _)| *what != meter);
        }
    }

    fn has(&self, of: impl Fn(MeterName) -> bool) -> bool {
        self.0.iter().any(|(tier, meter, _)| tier.is_none() && of(*meter))
    }

    fn card(&self) -> Card {
        let rates = |tier: Option<ServiceTier>| {
            let of_tier = self.0.iter().filter(|(of, ..)| *of == tier);
            of_tier.map(|(_, meter, rate)| (*meter, *rate)).collect::<crate::rates::Rates>()
        };
        let tier = |tier| Some(rates(Some(tier))).filter(|rates| !rates.is_empty());
        Card {
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
