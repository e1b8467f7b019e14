use serde_json::Value;

use super::*;
use crate::json::Reader;
use crate::usage::{Reading, Report};

/// Members that are not read, each with the reason.
const IGNORED: [(&str, &str); 10] = [
    ("accepted_prediction_tokens", "part of the output"),
    ("rejected_prediction_tokens", "part of the output"),
    ("tool_output_tokens", "part of the output"),
    ("prompt_cache_miss_tokens", "the input without the cache reads"),
    ("input_tokens_per_turn", "adds up to the input"),
    ("output_tokens_per_turn", "adds up to the output"),
    ("cached_tokens_per_turn", "adds up to the cache reads"),
    ("draft_n", "drafts are no output until they are accepted"),
    ("draft_n_accepted", "part of the output"),
    ("spec_tokens_details", "drafts are no output until they are accepted"),
];

/// The paths to usage members that price registries know, as `genai-prices` writes them.
const REGISTERED: &str = r#"[{"extractors":[
    {"root":"usage","mappings":[{"path":"prompt_tokens"},{"path":"cacheReadInputTokens"},
        {"path":["prompt_tokens_details","cache_write_tokens"]},
        {"path":["cache_creation","ephemeral_1h_input_tokens"]}]},
    {"root":["response","usage"],"mappings":[
        {"path":["input_token_details","cached_tokens_details","audio_tokens"]}]},
    {"root":"usageMetadata","mappings":[{"path":"thoughtsTokenCount"},
        {"path":["promptTokensDetails",{"type":"array-match"},"tokenCount"]}]},
    {"root":["meta","billed_units"],"mappings":[{"path":"input_tokens"}]}]}]"#;

/// Names, one after another: a text, or a list of texts and of choices in a list.
fn names(path: &Value) -> Vec<&str> {
    match path {
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        name => name.as_str().into_iter().collect(),
    }
}

/// Whether the table knows the member at the end of `path`.
fn is_known(path: &[&str]) -> bool {
    let mut place = Place::Usage;
    for name in path {
        place = match (*name, meaning(place, name.as_bytes())) {
            ("response" | "usage" | "meta", _) => Place::Usage,
            ("usageMetadata", _) => Place::UsageMetadata,
            (_, Some(Meaning::Object(place))) => place,
            (_, meaning) => return meaning.is_some(),
        };
    }
    false
}

/// Which of the paths in a registry the table does not know.
fn unknown(registry: &str) -> Vec<String> {
    let providers: Value = serde_json::from_str(registry).unwrap();
    let list = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let mut unknown = Vec::new();
    let mut paths = 0;
    for extractor in providers.as_array().unwrap().iter().flat_map(|p| list(p, "extractors")) {
        for mapping in list(&extractor, "mappings") {
            let path = [names(&extractor["root"]), names(&mapping["path"])].concat();
            paths += 1;
            if !is_known(&path) {
                unknown.push(path.join("."));
            }
        }
    }
    assert!(paths > 5, "nothing was read");
    unknown
}

#[test]
fn the_table_knows_every_member_that_price_registries_know() {
    let none: Vec<String> = Vec::new();
    assert_eq!(unknown(REGISTERED), none);
    let other = REGISTERED.replace("thoughtsTokenCount", "otherTokenCount");
    assert_eq!(unknown(&other), ["usageMetadata.otherTokenCount"]);
    let path = "../../../shared/data/prices/genai-prices-v2-data_slim.json";
    if let Ok(registry) = std::fs::read_to_string(path) {
        assert_eq!(unknown(&registry), none);
    }
}

#[test]
fn what_the_table_leaves_out_is_left_out_on_purpose() {
    for (name, _) in IGNORED {
        assert!(TABLE.iter().all(|(_, names, _)| !names.contains(&name.as_bytes())), "{name}");
    }
    let Ok(facts) = std::fs::read_to_string("../../../shared/facts/openai-wire.md") else { return };
    // From the first table of a usage object to the last of extracted ones, without requests.
    let usage_rows = facts.lines().filter(|line| line.starts_with('|')).filter(|line| {
        ["| Usage", "tokens_details.", "usageMetadata:", "| Responses | usage", "| deepseek"]
            .iter()
            .any(|mark| line.contains(mark))
    });
    let is_name = |word: &&str| word.ends_with("_tokens") || word.ends_with("TokenCount");
    for line in usage_rows {
        let words = line.split(|byte: char| !byte.is_ascii_alphanumeric() && byte != '_');
        for word in words.filter(is_name) {
            let is_ignored = IGNORED.iter().any(|(name, _)| *name == word);
            let is_read = TABLE.iter().any(|(_, names, _)| names.contains(&word.as_bytes()));
            assert!(is_ignored || is_read, "{word} in {line}");
        }
    }
}

fn in_words(meaning: Meaning) -> String {
    match meaning {
        Meaning::Tokens(tokens) => tokens.words().trim().trim_end_matches('.').to_owned(),
        Meaning::Modality(side, modality) => {
            format!("{modality:?} tokens, part of the {}", side_in_words(side))
        }
        Meaning::Unit(name) | Meaning::Quantity(name) => format!("`units.{name}`"),
        Meaning::Condition(condition) => format!("`conditions.{}`", condition.as_str()),
        Meaning::ServiceTier => "`service_tier`".to_owned(),
        Meaning::Tool(unit) => format!("`units.{unit}`, if there were any"),
        Meaning::ToolCalls => {
            "`units.server_side_tool_calls`, if nothing tells of which tools".to_owned()
        }
        Meaning::Sources => {
            "`units.search_sources`, if no tool is counted. Reasoning is counted beside the output"
                .to_owned()
        }
        Meaning::NoTool => "Not read: the same calls again".to_owned(),
        Meaning::Cost => {
            "`reported_cost`: a number, a number as text, or an object with `total_cost`".to_owned()
        }
        Meaning::CostTicks => "`reported_cost`, in 0.0000000001 dollars".to_owned(),
        Meaning::EstimatedCost => "`reported_cost`, if nothing else tells it".to_owned(),
        Meaning::UpstreamCost => {
            "Part of `reported_cost`, if the client has a key of its own there".to_owned()
        }
        Meaning::OwnKey => {
            "Whether the client has a key of its own at the provider behind this one".to_owned()
        }
        Meaning::Iterations => "`passes`".to_owned(),
        Meaning::Object(place) => {
            let heading = format!("{place:?}");
            format!("An object: [{heading}](#{})", heading.to_lowercase())
        }
        Meaning::Modalities(side) => {
            format!("A list of modalities, parts of the {}", side_in_words(side))
        }
        Meaning::Lifetimes => "A list of cache writes, by their time to live".to_owned(),
        Meaning::Sequences => {
            "A list of answers that were not chosen, with their output".to_owned()
        }
    }
}

const fn side_in_words(side: Side) -> &'static str {
    match side {
        Side::Input => "input",
        Side::Output => "output",
        Side::CacheRead => "cache reads",
    }
}

/// The page's tables: one for each place, and one of what is not read.
fn tables() -> String {
    let mut tables = String::new();
    let mut last = None;
    for (place, names, meaning) in TABLE {
        if last.replace(*place) != Some(*place) {
            let words = place.words().trim();
            tables += &format!("\n### {place:?}\n\n{words}\n\n| member | meaning |\n|---|---|\n");
        }
        let names = names.iter().map(|name| format!("`{}`", str::from_utf8(name).unwrap()));
        let names: Vec<_> = names.collect();
        tables += &format!("| {} | {} |\n", names.join(", "), in_words(*meaning));
    }
    tables += "\n## Members that are not read\n\n| member | reason |\n|---|---|\n";
    for (name, reason) in IGNORED {
        tables += &format!("| `{name}` | {reason} |\n");
    }
    tables
}

#[test]
fn the_page_of_usage_members_shows_the_table() {
    let with_tables = |stands: &str| {
        let mark = "\n## Members by place\n";
        let text = stands.split_once(mark).map_or(stands, |(text, _)| text);
        format!("{text}{mark}{}", tables())
    };
    let path = "docs/reference/usage.md";
    assert_eq!(taximeter_tests::generated::is_fresh(path, with_tables), Ok(()));
}

/// The ways to write an object with `member` at `place`, so that a report has it.
fn written(place: Place, member: &str) -> Vec<String> {
    if matches!(place, Place::Usage | Place::UsageMetadata | Place::Timings) {
        return vec![format!("{{{member}}}")];
    }
    let around = TABLE.iter().filter(|(_, _, meaning)| *meaning == Meaning::Object(place));
    let nested = around.flat_map(|(outer, names, _)| {
        names.iter().flat_map(|name| {
            let name = str::from_utf8(name).unwrap();
            written(*outer, &format!(r#""{name}":{{{member}}}"#))
        })
    });
    nested.collect()
}

fn read(place: Place, report: &str) -> Report {
    let mut value = Reader::new(report.as_bytes());
    let report = match place {
        Place::UsageMetadata => Report::read_google(&mut value),
        Place::Timings => Report::read_timings(&mut value),
        _ => Report::read(&mut value),
    };
    *report.unwrap().unwrap()
}

/// Each row of the table that is a number of tokens.
fn token_rows() -> impl Iterator<Item = (Place, Vec<&'static str>, Tokens)> {
    TABLE.iter().filter_map(|(place, names, meaning)| match meaning {
        Meaning::Tokens(tokens) => {
            let names = names.iter().map(|name| str::from_utf8(name).unwrap()).collect();
            Some((*place, names, *tokens))
        }
        _ => None,
    })
}

#[test]
fn every_name_tells_its_number_in_every_object_where_it_may_stand() {
    for (place, names, tokens) in token_rows() {
        for name in names {
            for (literal, reading, invalid) in [
                ("7", Reading::Number(7), 0),
                ("7.0", Reading::Number(7), 0),
                ("0.7e1", Reading::Number(7), 0),
                ("null", Reading::Absent, 0),
                ("\"7\"", Reading::Unreadable, 1),
                ("-7", Reading::Unreadable, 1),
                ("7.5", Reading::Unreadable, 1),
            ] {
                let reports = written(place, &format!(r#""{name}":{literal}"#));
                assert!(!reports.is_empty(), "{place:?}");
                for text in reports {
                    let report = read(place, &text);
                    assert_eq!(report.readings.get(tokens), reading, "{text}");
                    assert_eq!(report.invalid, invalid, "{text}");
                }
            }
        }
    }
}

#[test]
fn of_two_names_in_one_object_the_one_that_is_no_zero_counts() {
    for (place, names, tokens) in token_rows() {
        for (one, other) in names.iter().flat_map(|one| names.iter().map(move |other| (one, other)))
        {
            for first in ["0", "null", "\"7\"", "7"] {
                let members = format!(r#""{one}":{first},"{other}":7"#);
                let reversed = format!(r#""{other}":7,"{one}":{first}"#);
                for text in [members, reversed].iter().flat_map(|all| written(place, all)) {
                    let reading = read(place, &text).readings.get(tokens);
                    assert_eq!(reading, Reading::Number(7), "{text}");
                }
            }
        }
    }
}
