//! `docs/reference/configuration.md`, made from the table of keys, and the tests that hold the
//! table against what the gateway does.

mod holds;
mod keys;

use std::fmt::Write as _;

use taximeter_tests::generated::is_fresh;
use taximeter_yaml as yaml;

use crate::json_schema::{Allowed, DefaultValue, Effect, Facts, Key, Schema, text};
use crate::running;
use keys::{Entry, entries, map};

const HEAD: &str = "\
<!-- Made by config/src/reference.rs from the tables of keys in config/src: change those, then run
     INSTA_UPDATE=always cargo test -p taximeter-config reference -->
# Configuration

This page lists every key of Taximeter's configuration file. The file is YAML. Only `upstreams` is required:

```yaml
listen: 0.0.0.0:8080
data_dir: /var/lib/taximeter
upstreams:
  - {name: local, url: \"http://127.0.0.1:8000\", dialect: vllm}
limits:
  drain_seconds: 60
```

Check a file before you use it. The command prints every mistake with its line and column, and exits with 64:

```console
$ taximeter check taximeter.yaml
```

Editors complete and explain the keys with the JSON Schema. Write it to a file, and name that file in the first line of your
configuration: `# yaml-language-server: $schema=taximeter.schema.json`.

```console
$ taximeter schema > taximeter.schema.json
```

- **Unknown keys** are mistakes. Each key may stand once.
- **References.** A value may hold `${env:NAME}`, the value of an environment variable, and `${file:PATH}`, the text of a
  file. Use them for secrets. The text is taken as it is, also in a URL: nothing in it needs to be escaped. In the tables,
  *text* is a value with any characters.
- **Paths** of files to read are relative to the folder of the configuration. `data_dir` is relative to the working directory.
- **Switches** are `on` and `off`; `true` and `false` mean the same.
- **Flags and variables.** `--listen`, `--admin`, `--data-dir` and `--upstream` of `taximeter serve`, and `TAXIMETER_LISTEN`,
  `TAXIMETER_ADMIN`, `TAXIMETER_DATA_DIR` and `TAXIMETER_UPSTREAM`, override the file.

## Reload and restart

Taximeter reads the file again on SIGHUP, and when the file or a file that it names changes. It takes the whole file or nothing
of it: a file with mistakes changes nothing, and the mistakes are in the log and in `/api/v1/status`. Running requests keep the
configuration that they began with.

The column *applies* says when a changed key takes effect:

- **reload**: when Taximeter reads the file again. Limits of connections apply to connections that are opened then.
- **restart**: at the next start. Until then `/api/v1/status` names the key in `config.waiting`.
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    section("", &crate::file::schema(), &mut page);
    page
}

/// A table of the keys of a map, then the sections of the maps below it.
fn section(path: &str, schema: &Schema, page: &mut String) {
    let Some((about, keys)) = map(schema) else { return };
    let title = if path.is_empty() { "The file".to_owned() } else { format!("`{path}`") };
    // Writing to a string cannot fail.
    let _ = writeln!(page, "\n## {title}\n\n{}\n", text(about));
    page.push_str("| key | meaning | values | default | applies | since | example |\n");
    page.push_str("|---|---|---|---|---|---|---|\n");
    let below: Vec<_> = keys.iter().map(|key| Entry::below(path, key)).collect();
    below.iter().for_each(|entry| page.push_str(&row(entry)));
    for entry in below {
        section(&entry.items(), &entry.key.schema, page);
    }
}

fn row(entry: &Entry<'_>) -> String {
    let Entry { path, key } = entry;
    let Key { about, facts: Facts { default, since, .. }, schema, .. } = key;
    let default = match default {
        DefaultValue::Value(value) => format!("`{value}`"),
        DefaultValue::Words(words) => (*words).to_owned(),
        DefaultValue::Required => "required".to_owned(),
    };
    let effect = running::effect(path);
    // Where the keys of a map differ, they say it.
    let differs = effect == Effect::Reload && matches!(schema, Schema::Map { .. });
    let applies = if differs { String::new() } else { effect.to_string() };
    let example = entry.example().map(|example| format!("`{}: {example}`", key.name));
    let cells = [
        format!("`{path}`"),
        text(about),
        values(entry, schema),
        default,
        applies,
        (*since).to_owned(),
        example.unwrap_or_default(),
    ];
    // A table has no other way to write it.
    format!("| {} |\n", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}

/// Which values a key may have.
fn values(entry: &Entry<'_>, schema: &Schema) -> String {
    match schema {
        Schema::Scalar { expected, allowed } => scalar(expected, allowed),
        Schema::List(items) => match map(items) {
            Some(_) => format!("a list of maps, see [`{0}`](#{1})", entry.items(), entry.anchor()),
            None => format!("a list; each item is {}", values(entry, items)),
        },
        Schema::Map { .. } => {
            format!("a map, see [`{}`](#{})", entry.items(), entry.anchor())
        }
        Schema::AnyOf(schemas) => {
            let see = format!("see [`{}`](#{})", entry.items(), entry.anchor());
            match (schemas.iter().find_map(one_scalar), map(schema)) {
                (Some(scalar), None) => format!("{scalar}, or a list of them"),
                (Some(scalar), Some(_)) => format!("{scalar}, or a list, {see}"),
                (None, _) => format!("a map, or a list of them, {see}"),
            }
        }
        Schema::Named { names, values: of } => {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("a map of {}; each is {}", names.join(", "), values(entry, of))
        }
        Schema::Table(of) => {
            format!("a map, you choose the names; each value is {}", values(entry, of))
        }
    }
}

/// The scalar that may stand in place of a list or a map.
fn one_scalar(schema: &Schema) -> Option<String> {
    match schema {
        Schema::Scalar { expected, allowed } => Some(scalar(expected, allowed)),
        Schema::AnyOf(schemas) => schemas.iter().find_map(one_scalar),
        _ => None,
    }
}

fn scalar(expected: &str, allowed: &Allowed) -> String {
    match allowed {
        Allowed::Words(words) => {
            // `on` and `true` are one value.
            let words = words.iter().filter(|word| !matches!(**word, "true" | "false"));
            words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        // The column of examples has one.
        _ => expected
            .split_once(" such as ")
            .or_else(|| expected.split_once(", best as "))
            .map_or(expected, |(before, _)| before.trim_end_matches(','))
            .to_owned(),
    }
}

#[test]
fn the_reference_of_the_configuration_is_fresh() {
    assert_eq!(is_fresh("docs/reference/configuration.md", |_| page()), Ok(()));
}

#[test]
fn every_key_says_what_it_means_and_has_an_example_or_keys_of_its_own() {
    for entry in entries(&crate::file::schema()) {
        assert!(!entry.key.about.is_empty(), "{}", entry.path);
        assert!(text(entry.key.about).ends_with('.'), "{} ends without a period", entry.path);
        let line = entry.example().map(|example| format!("{}: {example}", entry.key.name));
        assert!(line.as_ref().is_none_or(|line| yaml::parse(line).is_ok()), "{line:?}");
        assert!(line.is_some() || map(&entry.key.schema).is_some(), "{}", entry.path);
    }
}
