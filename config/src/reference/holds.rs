//! The table of keys against the gateway: defaults, examples, ranges and when a change applies.

use std::io;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::keys::{Entry, around, entries, map, value, with};
use crate::json_schema::{Allowed, DefaultValue, Effect, Schema};
use crate::{Config, Mistakes, running};

fn load(file: &Json) -> Result<Config, Mistakes> {
    let env = |name: &str| Some(format!("value-of-{name}-0123456789"));
    let read_file = |_: &Path| -> io::Result<String> { Ok("models: []\n".to_owned()) };
    Config::from_yaml(&file.to_string(), "/etc/taximeter.yaml", &env, &read_file)
}

fn good(file: &Json) -> Config {
    load(file).unwrap_or_else(|mistakes| panic!("{file}\n{mistakes}"))
}

/// A file in which the key may stand: with the keys that it needs beside it.
fn without(schema: &Schema, entry: &Entry<'_>) -> Json {
    let beside = match &*entry.path {
        "telemetry.otlp.cert" => Some(("telemetry.otlp.key", json!("otlp.key"))),
        "telemetry.otlp.key" => Some(("telemetry.otlp.cert", json!("otlp.crt"))),
        "limits.bodies_total_bytes_max" => Some(("limits.body_bytes_max", json!(1))),
        _ => None,
    };
    let file = around(schema, &entry.path);
    match beside {
        Some((path, value)) => with(schema, file, path, &value),
        None => file,
    }
}

/// Keys with values of their own, with a file around each.
fn leaves(schema: &Schema) -> Vec<(Entry<'_>, Json)> {
    let leaves = entries(schema).into_iter().filter(|entry| map(&entry.key.schema).is_none());
    leaves
        .map(|entry| (without(schema, &entry), entry))
        .map(|(file, entry)| (entry, file))
        .collect()
}

#[test]
fn the_example_on_the_page_is_a_good_file() {
    let text = super::HEAD.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next());
    let none = |_: &Path| Err(io::ErrorKind::NotFound.into());
    let config = Config::from_yaml(text.expect("an example"), "t.yaml", &|_| None, &none);
    assert_eq!(config.unwrap_or_else(|mistakes| panic!("{mistakes}")).limits.drain.as_secs(), 60);
}

#[test]
fn a_default_is_what_the_gateway_takes_where_the_key_is_not_there() {
    let schema = crate::file::schema();
    let mut defaults = 0;
    for (entry, file) in leaves(&schema) {
        let DefaultValue::Value(default) = &entry.key.facts.default else { continue };
        let written = with(&schema, file.clone(), &entry.path, &value(default));
        assert_eq!(good(&written), good(&file), "{}", entry.path);
        defaults += 1;
    }
    assert!(defaults >= 60, "{defaults}");
}

/// The example, or another value where that is the default.
fn changed(entry: &Entry<'_>) -> Json {
    let example = value(&entry.example().expect("an example"));
    match (entry.key.facts.example, example.as_u64()) {
        (None, Some(number)) => json!(number + 1),
        _ => example,
    }
}

/// Keys that the smallest file has with the value of their example, and one that has no other
/// value.
const ONE_VALUE: [&str; 3] = ["upstreams[].name", "upstreams[].url", "prices.book"];

#[test]
fn an_example_is_read_and_a_change_applies_when_the_table_says() {
    let schema = crate::file::schema();
    let (mut reloads, mut restarts) = (0, 0);
    for (entry, file) in leaves(&schema) {
        if ONE_VALUE.contains(&&*entry.path) {
            continue;
        }
        // Where the map around it cannot do without it, the change is that there is such a map.
        let is_needed = matches!(entry.key.facts.default, DefaultValue::Required)
            || matches!(&*entry.path, "telemetry.otlp.cert" | "telemetry.otlp.key");
        let before = if is_needed { around(&schema, "upstreams") } else { file.clone() };
        let running = good(&before);
        let next = good(&with(&schema, file, &entry.path, &changed(&entry)));
        assert_ne!(next, running, "{} changes nothing", entry.path);
        let (now, waiting) = next.clone().while_running(&running);
        match running::effect(&entry.path) {
            Effect::Reload => {
                assert_eq!((now, waiting), (next, vec![]), "{}", entry.path);
                reloads += 1;
            }
            Effect::Restart => {
                assert_eq!((now, waiting.len()), (running, 1), "{}", entry.path);
                assert!(entry.path.starts_with(waiting[0]), "{}: {waiting:?}", entry.path);
                restarts += 1;
            }
        }
    }
    assert!(reloads >= 60 && restarts >= 30, "{reloads} {restarts}");
}

#[test]
fn a_range_ends_where_the_schema_says_for_the_reader_and_for_editors() {
    let schema = crate::file::schema();
    let validator = jsonschema::validator_for(&Config::json_schema()).unwrap();
    for (entry, file) in leaves(&schema) {
        let Schema::Scalar { allowed, .. } = &entry.key.schema else { continue };
        let (good, bad): (Vec<Json>, Vec<Json>) = match allowed {
            Allowed::Text => continue,
            Allowed::Words(words) => {
                (words.iter().map(|word| json!(word)).collect(), vec![json!("perhaps")])
            }
            Allowed::Whole { min, max } => {
                let below = min.checked_sub(1).map(|number| json!(number));
                let above = max.map(|number| json!(number + 1));
                let good = [Some(json!(min)), max.map(|number| json!(number))];
                (good.into_iter().flatten().collect(), below.into_iter().chain(above).collect())
            }
            Allowed::Number { zero, max } => {
                let none = [json!(0)];
                let (mut good, mut bad) = (vec![json!(max)], vec![json!(max + 0.5), json!(-1)]);
                if *zero {
                    good.extend(none)
                } else {
                    bad.extend(none)
                }
                (good, bad)
            }
        };
        for (values, is_good) in [(good, true), (bad, false)] {
            for value in values {
                let written = with(&schema, file.clone(), &entry.path, &value);
                let said = format!("{}: {value}", entry.path);
                assert_eq!(load(&written).is_ok(), is_good, "{said}: {:?}", load(&written));
                assert_eq!(validator.is_valid(&written), is_good, "{said} in an editor");
            }
        }
    }
}
