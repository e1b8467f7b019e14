//! `docs/reference/api.md` is what the gateway says of its own answers, for people.

use std::fmt::Write as _;

use serde_json::Value;
use taximeter_tests::generated::is_fresh;

use super::description::Description;
use crate::engine::Engine;
use crate::gateway::Gateway;

/// Where the page begins.
const HEAD: &str = "<!-- Made by tests/it/api/docs.rs from /openapi.json: change the code, then run
     INSTA_UPDATE=always cargo test -p taximeter-tests --test it api:: -->
# The admin address

";

#[test]
fn the_page_says_what_the_description_says() {
    let engine = Engine::start();
    let gateway = Gateway::before(&engine);
    let description = Description::of(&gateway);
    let page = page(description.document());
    assert_eq!(is_fresh("docs/reference/api.md", |_| page), Ok(()));
}

fn page(document: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().replace('\n', " ");
    let mut page = HEAD.to_owned();
    let _ = writeln!(page, "{}\n", text(&document["info"]["description"]));
    for (path, item) in document["paths"].as_object().expect("paths") {
        let get = &item["get"];
        let _ = writeln!(page, "## GET {path}\n\n{}\n", text(&get["summary"]));
        if get["description"].is_string() {
            let _ = writeln!(page, "{}\n", text(&get["description"]));
        }
        if let Some(parameters) = get["parameters"].as_array() {
            page.push_str("| parameter | is |\n|---|---|\n");
            for parameter in parameters {
                let (name, is) = (text(&parameter["name"]), text(&parameter["description"]));
                let words = one_of(&parameter["schema"]).map(|words| format!(". {words}"));
                let _ = writeln!(page, "| `{name}` | {is}{} |", words.unwrap_or_default());
            }
            page.push('\n');
        }
        let content = get["responses"]["200"]["content"].as_object().expect("a good answer");
        let kinds: Vec<_> = content.keys().map(|kind| format!("`{kind}`")).collect();
        let _ = write!(page, "Answers {}", kinds.join(", "));
        let schema = content.values().find_map(|content| content["schema"]["$ref"].as_str());
        if let Some(name) = schema.and_then(|schema| schema.rsplit('/').next()) {
            let _ = write!(page, ": `{name}`");
        }
        page.push_str(".\n\n");
    }
    page.push_str("# What is in answers\n\n");
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    for (name, schema) in schemas {
        let _ = writeln!(page, "## {name}\n\n{}\n", text(&schema["description"]));
        if let Some(members) = schema["properties"].as_object() {
            page.push_str("| member | is | |\n|---|---|---|\n");
            for (member, of) in members {
                let _ =
                    writeln!(page, "| `{member}` | {} | {} |", kind(of), text(&of["description"]));
            }
            page.push('\n');
        } else if let Some(words) = one_of(schema) {
            let _ = writeln!(page, "{words}.\n");
        }
    }
    page.truncate(page.trim_end().len());
    page + "\n"
}

/// The words that it may be, where there are only so many.
fn one_of(schema: &Value) -> Option<String> {
    let words = schema["enum"].as_array()?.iter().filter_map(Value::as_str);
    let words: Vec<_> = words.map(|word| format!("`{word}`")).collect();
    Some(format!("One of {}", words.join(", ")))
}

/// What a member is, in a few words.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|to| to.rsplit('/').next()) {
        return format!("`{name}`");
    }
    for either in ["oneOf", "anyOf"] {
        if let Some(kinds) = schema[either].as_array() {
            return kinds.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    let one = |word: &str| match word {
        "array" => format!("list of {}", kind(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("by name: {}", kind(&schema["additionalProperties"]))
        }
        _ => schema["format"].as_str().filter(|_| word == "string").unwrap_or(word).to_owned(),
    };
    match &schema["type"] {
        Value::Array(words) => {
            words.iter().filter_map(Value::as_str).map(one).collect::<Vec<_>>().join(" or ")
        }
        word => one(word.as_str().unwrap_or("anything")),
    }
}
