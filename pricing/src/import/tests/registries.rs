//! Every name in the registries of other projects: the row that it finds, or why it finds none.
//!
//! The registries are not part of this repository. Without them beside it these tests do nothing.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use serde_json::Value;

use super::*;
use crate::import::{genai, litellm};
use crate::{Found, NoRow, PriceMatch, Row, Rule};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/prices");

/// Fewest names for which the tests say something.
const NAMES_MIN: usize = 2000;

/// A name in a registry.
struct Listed {
    /// `gen_ai.provider.name`.
    provider: String,
    /// As the registry spells it.
    name: String,
    /// The name of its row after the import.
    row: String,
    /// What an input token and an output token cost, where the registry says so in its simplest way.
    rates: [Option<Decimal>; 2],
}

/// A registry and the book that it becomes.
struct Registry {
    names: Vec<Listed>,
    book: PriceBook,
    /// Names of models that were left out.
    left_out: BTreeMap<String, String>,
}

fn file(end: &str) -> Option<String> {
    let mut files =
        std::fs::read_dir(FOLDER).ok()?.filter_map(Result::ok).map(|entry| entry.path());
    let path = files.find(|path| path.to_string_lossy().ends_with(end))?;
    std::fs::read_to_string(path).ok()
}

fn number(value: &Value) -> Option<Decimal> {
    let text = value.as_number()?.to_string();
    Decimal::from_scientific(&text).or_else(|_| text.parse()).ok()
}

fn registry(text: &str, names: Vec<Listed>) -> Registry {
    let imported = imported(text);
    let whole = imported.left_out.iter().filter(|one| one.field.is_none());
    let left_out = whole.map(|one| (one.model.clone(), one.why.to_string())).collect();
    let book = PriceBook::empty().with_overrides(&imported.text, "registry.yaml").unwrap();
    Registry { names, book, left_out }
}

fn of_litellm() -> Option<Registry> {
    let text = file("model_prices_and_context_window.json")?;
    let models: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
    let listed = |(key, value): (&String, &Value)| {
        let slug = value.get("litellm_provider")?.as_str()?;
        let rate = |field: &str| number(value.get(field)?).map(|rate| rate.normalize());
        Some(Listed {
            provider: litellm::provider(slug).to_owned(),
            name: key.clone(),
            row: litellm::name(key, slug).to_owned(),
            rates: [rate("input_cost_per_token"), rate("output_cost_per_token")],
        })
    };
    let is_model = |key: &str| key != "sample_spec" && key != "fallback_generalizations";
    let names = models.iter().filter(|(key, _)| is_model(key)).filter_map(listed).collect();
    Some(registry(&text, names))
}

fn of_genai_prices() -> Option<Registry> {
    let text = file("data_slim.json")?;
    let providers: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut names = Vec::new();
    for provider in &providers {
        let own = genai::provider(provider["id"].as_str().unwrap());
        for model in provider["models"].as_array().unwrap() {
            let id = model["id"].as_str().unwrap();
            let rate = |field: &str| {
                let rate = number(model["prices"].get(field)?)?;
                Some((rate / Decimal::from(1_000_000)).normalize())
            };
            let rates = [rate("input_mtok"), rate("output_mtok")];
            let row = id.to_owned();
            names.push(Listed { provider: own.to_owned(), name: id.to_owned(), row, rates });
        }
    }
    Some(registry(&text, names))
}

fn query<'a>(provider: &'a str, name: &'a str) -> Query<'a> {
    Query {
        provider: Some(provider),
        response_model: Some(name),
        request_model: None,
        service_tier: None,
        at: "2026-11-20T12:00:00Z".parse().unwrap(),
    }
}

fn shown(found: &Result<Found<'_>, NoRow<'_>>) -> String {
    match found {
        Ok(found) => {
            let region = found.region.as_ref().map_or(String::new(), |word| format!(" in {word}"));
            format!("{} by {}{region}", found.row.price_id, found.how)
        }
        Err(NoRow::Region { region, price_id, .. }) => {
            format!("unknown: {price_id} does not say what region {region} costs")
        }
        Err(missing) => format!("unknown: {missing}"),
    }
}

/// Standard rates of text, where most models have some.
fn rates(row: &Row) -> [Option<Decimal>; 4] {
    [MeterName::Input, MeterName::Output, MeterName::CacheRead, MeterName::CacheWrite]
        .map(|meter| row.card.rates.rate(meter))
}

#[test]
fn registries_names_find_a_row_of_their_own_platform_in_the_built_in_book_or_none() {
    let Some(theirs) = of_litellm() else { return println!("no registries in {FOLDER}") };
    let genai = of_genai_prices().unwrap();
    let book = PriceBook::builtin().unwrap();
    let mut found = BTreeMap::new();
    let mut names = 0;
    for Listed { provider, name, .. } in theirs.names.iter().chain(&genai.names) {
        names += 1;
        let got = book.lookup(&query(provider, name));
        println!("{provider:20} {name:70} {}", shown(&got));
        let Ok(got) = got else {
            *found.entry("none".to_owned()).or_insert(0) += 1;
            continue;
        };
        *found.entry(got.how.to_string()).or_insert(0) += 1;
        assert_eq!(got.row.provider.as_deref(), Some(provider.as_str()), "{name}");
        // The shorter name has the price of the longer one, if the registry has the book's price of
        // the shorter one.
        let of_row = theirs.book.find(&query(provider, &got.row.model));
        let of_name = theirs.book.find(&query(provider, name));
        if let Some((of_row, of_name)) = of_row.zip(of_name)
            && rates(of_row) == rates(got.row)
        {
            assert_eq!(rates(of_name), rates(got.row), "{provider} {name} {}", got.how);
        }
    }
    println!("{names} names: {found:?}");
    assert!(names > NAMES_MIN, "{names}");
    assert!(found.len() > 4, "{found:?}");
}

#[test]
fn registries_names_find_their_own_rows_in_the_book_that_a_registry_becomes() {
    let (Some(litellm), Some(genai)) = (of_litellm(), of_genai_prices()) else {
        return println!("no registries in {FOLDER}");
    };
    for Registry { names, book, left_out } in [litellm, genai] {
        let mut found = BTreeMap::new();
        for Listed { provider, name, row, rates } in &names {
            let why = left_out.get(name).or_else(|| left_out.get(&format!("{provider}/{name}")));
            let got = book.lookup(&query(provider, name));
            let Ok(got) = got else {
                // LiteLLM's name for `sonar` is Perplexity's name for another model.
                let is_ambiguous =
                    provider == "perplexity" && name.strip_prefix("perplexity/") == Some(row);
                let ambiguous = is_ambiguous.then_some("can be Perplexity's name of another model");
                let why = why.map(String::as_str).or(ambiguous);
                assert!(why.is_some(), "{provider} {name}: {}", shown(&got));
                *found.entry(format!("left out: {}", why.unwrap())).or_insert(0) += 1;
                continue;
            };
            *found.entry(got.how.to_string()).or_insert(0) += 1;
            // A key can be the platform's name of another model: `perplexity/sonar`.
            let is_name_of_other = names.iter().any(|other| {
                &other.provider == provider && &other.row == name && &other.name != name
            });
            if why.is_some() || is_name_of_other {
                continue;
            }
            assert_eq!(&got.row.model, row, "{provider} {name} by {}", got.how);
            assert_eq!(got.row.provider.as_deref(), Some(provider.as_str()), "{name}");
            let has_other_rules = |rule| ![Rule::Provider, Rule::Path].contains(&rule);
            assert!(!got.how.rules().any(has_other_rules), "{provider} {name} by {}", got.how);
            for (rate, meter) in rates.iter().zip([MeterName::Input, MeterName::Output]) {
                let ours = got.row.card.rates.rate(meter).map(|rate| rate.normalize());
                // Tokens of zero stand for something else that is charged.
                let is_same = ours == *rate || rate.is_none_or(|rate| rate.is_zero());
                assert!(is_same, "{provider} {name}: {meter} {ours:?}, {rate:?}");
            }
            for other in [name.to_ascii_uppercase(), name.to_ascii_lowercase()] {
                let again = book.lookup(&query(provider, &other)).unwrap();
                assert_eq!(again.row.price_id, got.row.price_id, "{other} by {}", again.how);
            }
        }
        println!("{} names: {found:#?}", names.len());
    }
}

/// Global profiles of Bedrock for which the registry has the plain name with the price of a single
/// region, at which Mantle serves it. The registry has rows for both.
const DEARER_IN_REGION: [&str; 10] = [
    "global.moonshotai.kimi-k3",
    "global.openai.gpt-5.4",
    "global.openai.gpt-5.5",
    "global.openai.gpt-5.6-luna",
    "global.openai.gpt-5.6-sol",
    "global.openai.gpt-5.6-terra",
    "global.openai.gpt-6-astra",
    "global.openai.gpt-6.1-sol",
    "global.openai.gpt-6.1-terra",
    "global.xai.grok-4.6",
];

#[test]
fn registries_names_without_their_own_row_find_one_of_the_same_price_or_none() {
    let (Some(litellm), Some(genai)) = (of_litellm(), of_genai_prices()) else {
        return println!("no registries in {FOLDER}");
    };
    assert_eq!(other_prices(&litellm), BTreeSet::from(DEARER_IN_REGION));
    assert_eq!(other_prices(&genai), BTreeSet::new());
}

/// The names for which a shorter form finds a row of another price than their own row has.
fn other_prices(registry: &Registry) -> BTreeSet<&str> {
    let Registry { names, book, .. } = registry;
    let day = day();
    let (mut found, mut other_prices) = (BTreeMap::new(), BTreeSet::new());
    for Listed { provider, row: own, .. } in names {
        let Some(row) = book.find(&query(provider, own)) else { continue };
        let got = book.formed(own, provider, day, |row| &row.model != own);
        println!("{provider:20} {own:70} {}", shown(&got));
        let Ok(got) = got else { continue };
        assert_eq!(got.row.provider, row.provider);
        *found.entry(got.how.to_string()).or_insert(0) += 1;
        // The registry does not have every rate of both.
        let mut both = rates(got.row).into_iter().zip(rates(row));
        if both.any(|(one, other)| one.zip(other).is_some_and(|(one, other)| one != other)) {
            other_prices.insert(own.as_str());
        }
    }
    println!("{found:#?}");
    other_prices
}

/// A name in another spelling, and the rule that undoes it. `None` means that it must not be undone.
type Respelled = (String, Option<Rule>);

/// The same model as its platform spells it elsewhere, and others that are like it.
fn respelled(provider: &str, name: &str) -> Vec<Respelled> {
    let is_plain = !name.contains(['/', ':', '@', '#']);
    // What stands behind a fine-tuned model is a customer's word.
    if name.starts_with("ft:") || name.contains(".ft-") {
        return Vec::new();
    }
    let mut all = vec![(format!("{name}:free"), None), (format!("{name}-fast"), None)];
    if is_plain {
        all.push((format!("ft:{name}:acme::9x"), None));
    }
    match provider {
        "aws.bedrock" if is_of_one_vendor(name) => {
            let arn = |kind: &str, id: &str| format!("arn:aws:bedrock:us-east-1:1:{kind}/{id}");
            all.push((arn("foundation-model", name), Some(Rule::Path)));
            all.push((arn("inference-profile", &format!("global.{name}")), Some(Rule::Path)));
            all.push((arn("application-inference-profile", name), None));
            all.push((arn("provisioned-model", name), None));
            all.push((format!("global.{name}"), Some(Rule::Region)));
            for region in ["us", "eu", "apac", "jp", "au", "sa", "us-gov", "newland"] {
                all.push((format!("{region}.{name}"), None));
            }
        }
        "gcp.vertex_ai" if !name.contains('/') => {
            let resource = format!("publishers/anyone/models/{name}");
            all.push((resource.clone(), Some(Rule::Path)));
            all.push((format!("projects/p/locations/global/{resource}"), Some(Rule::Path)));
            all.push((format!("projects/p/locations/us-east5/{resource}"), None));
        }
        "gcp.gemini" => all.push((format!("models/{name}"), Some(Rule::Path))),
        "azure.ai.openai" if is_plain => {
            all.push((format!("global/{name}"), Some(Rule::Region)));
            all.push((format!("eu/{name}"), None));
        }
        "openai" | "anthropic" if is_plain => {
            all.push((format!("{name}-2026-11-01"), Some(Rule::Date)));
            all.push((format!("{name}-20261101"), Some(Rule::Date)));
            all.push((format!("{provider}/{name}"), Some(Rule::Provider)));
        }
        "dashscope" => all.push((format!("{name}-2026-11-01"), None)),
        _ => {}
    }
    all
}

/// Whether a Bedrock name begins with a vendor and not with a region.
fn is_of_one_vendor(name: &str) -> bool {
    let vendor = name.split('.').next().unwrap_or_default();
    let is_vendor = vendor.len() > 2 && !["apac", "global", "us-gov", "regional"].contains(&vendor);
    is_vendor && name.contains('.') && !name.contains(['/', '@'])
}

/// Whether a name is that of a row or an alias, in whatever letters.
fn is_listed(how: PriceMatch) -> bool {
    how.rules().all(|rule| [Rule::Case, Rule::Alias].contains(&rule))
}

/// Whether a row has the region that stands before a plain name, or is of that name in some region.
fn is_of_region(row: &str, name: &str, plain: &str) -> bool {
    let region = name.strip_suffix(plain).filter(|region| !region.is_empty());
    region.is_some_and(|region| row.starts_with(region) || row.ends_with(plain))
}

#[test]
fn registries_names_in_other_spellings_find_the_same_row_or_none() {
    let (Some(litellm), Some(genai)) = (of_litellm(), of_genai_prices()) else {
        return println!("no registries in {FOLDER}");
    };
    let (mut same, mut none) = (0, 0);
    for Registry { names, book, .. } in [litellm, genai] {
        for Listed { provider, row: own, .. } in &names {
            let Some(row) = book.find(&query(provider, own)) else { continue };
            for (name, undone) in respelled(provider, own) {
                let got = book.lookup(&query(provider, &name));
                match (&got, undone) {
                    // The registry has that name too.
                    (Ok(found), _) if is_listed(found.how) => {}
                    (Ok(found), None)
                        if name.starts_with(own) && name.ends_with(&found.row.model) => {}
                    // A fine-tuned model has a row of its own.
                    (Ok(found), None) if found.row.model == format!("ft:{own}") => {}
                    (Ok(found), Some(rule)) if found.row.model == row.model => {
                        assert!(found.how.has(rule), "{provider} {name} by {}", found.how);
                        same += 1;
                    }
                    // A row of the region comes before the row of the plain name.
                    (Ok(found), _) if is_of_region(&found.row.model, &name, own) => {
                        assert!(!found.how.has(Rule::Region), "{provider} {name}: {}", shown(&got));
                    }
                    (Err(_), None) => none += 1,
                    _ => panic!("{provider} {name}: {}", shown(&got)),
                }
            }
        }
    }
    println!("{same} spellings find the same row, {none} find none");
    assert!(same > NAMES_MIN && none > NAMES_MIN);
}
