//! What `/api/v1/fleet` answers, for people.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::Value;
use taximeter_net::visible::is_visible;

/// Longest text of one cell, in characters.
const CELL_CHARS_MAX: usize = 60;

/// Sources, what serves each upstream, and what the sources tell, of one layer or of all.
pub(super) fn of(fleet: &Value, layer: Option<&str>) -> String {
    let sources = fleet["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
    if sources.is_empty() {
        return "no source is asked; the section `fleet` of the configuration turns it on\n"
            .to_owned();
    }
    let mut text = format!("{}\n", states(sources));
    let joins = list(fleet, "joins");
    if !joins.is_empty() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{}", served(joins));
    }
    for join in joins {
        for doubt in list(join, "doubts") {
            let _ = writeln!(text, "upstream {}: {}", word(&join["upstream"]), visible(doubt));
        }
    }
    let quantities = quantities(sources);
    match layer {
        _ if !quantities.is_empty() => {
            let _ = writeln!(text, "\n{quantities}");
        }
        Some(layer @ ("L7" | "L8")) => {
            let _ = writeln!(
                text,
                "\n{layer}: requests, their tokens and what they cost are no scraped quantities; see `taximeter \
                 top`, `taximeter records` and `taximeter bill`"
            );
        }
        Some(layer) => {
            let _ = writeln!(text, "\n{layer}: no source tells a quantity of this layer");
        }
        None => {}
    }
    let unknown: usize = sources.iter().map(|source| list(source, "unknown").len()).sum();
    let _ = writeln!(text, "\n{unknown} quantities are unknown; --json says why");
    if fleet["more"] == true {
        text.push_str("there are more quantities; --layer chooses\n");
    }
    text
}

fn states(sources: &[Value]) -> Table {
    let mut table = table(["source", "kind", "upstreams", "program", "state", "age", "why"]);
    for source in sources {
        let upstreams: Vec<_> = list(source, "upstreams").iter().map(word).collect();
        let programs = list(source, "programs").iter();
        let mut programs: Vec<_> = programs.map(|program| word(&program["title"])).collect();
        programs.extend(
            list(source, "versions")
                .iter()
                .map(|version| format!("{} {}", word(&version["of"]), word(&version["version"]))),
        );
        table.add_row([
            word(&source["name"]),
            word(&source["kind"]),
            upstreams.join(", "),
            programs.join(", "),
            word(&source["state"]),
            source["age"].as_f64().map_or_else(String::new, |age| format!("{age:.1} s")),
            word(&source["why"]),
        ]);
    }
    right(&mut table, &[5]);
    table
}

/// What serves each upstream, and what that rests on.
fn served(joins: &[Value]) -> Table {
    let mut table = table(["upstream", "engine", "pod", "GPUs", "host"]);
    for join in joins {
        let links = ["engines", "pods", "gpus", "hosts"].map(|kind| {
            let link = |link: &Value| format!("{} by {}", word(&link["to"]), word(&link["basis"]));
            let links: Vec<_> = list(&join[kind], "links").iter().map(link).collect();
            if links.is_empty() { "unknown".to_owned() } else { links.join(", ") }
        });
        table.add_row([word(&join["upstream"])].into_iter().chain(links));
    }
    table
}

fn quantities(sources: &[Value]) -> Table {
    let of_source = |source| list(source, "quantities").iter().map(move |one| (source, one));
    let mut table = table(["layer", "quantity", "labels", "value", "unit", "per second", "source"]);
    for (source, quantity) in sources.iter().flat_map(of_source) {
        table.add_row([
            word(&quantity["layer"]),
            word(&quantity["name"]),
            labels(quantity),
            value(quantity),
            word(&quantity["unit"]),
            quantity["rate"].as_f64().map_or_else(String::new, figure),
            word(&source["name"]),
        ]);
    }
    right(&mut table, &[3, 5]);
    table
}

fn table<const N: usize>(heads: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(heads);
    table
}

fn right(table: &mut Table, columns: &[usize]) {
    for column in columns {
        if let Some(column) = table.column_mut(*column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

fn list<'v>(of: &'v Value, name: &str) -> &'v [Value] {
    of[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A text that cannot move the cursor, and is short.
fn word(value: &Value) -> String {
    let text = visible(value);
    match text.chars().nth(CELL_CHARS_MAX) {
        Some(_) => text.chars().take(CELL_CHARS_MAX - 1).chain(['…']).collect(),
        None => text,
    }
}

/// A text that cannot move the cursor.
fn visible(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text.chars().map(|c| if is_visible(c) { c } else { '\u{fffd}' }).collect()
}

fn labels(quantity: &Value) -> String {
    let labels = quantity["labels"].as_object().into_iter().flatten();
    let labels: Vec<_> = labels
        .map(|(name, value)| format!("{}={}", word(&name.as_str().into()), word(value)))
        .collect();
    labels.join(" ")
}

fn value(quantity: &Value) -> String {
    let of = &quantity["distribution"];
    if let Some(number) = quantity["value"].as_f64() {
        return figure(number);
    }
    let percentile = |name: &str| {
        let is = &of[name];
        match (is["about"].as_f64(), is["above"].as_f64()) {
            (Some(about), _) => figure(about),
            (_, Some(above)) => format!("above {}", figure(above)),
            (None, None) => "unknown".to_owned(),
        }
    };
    let count = of["count"].as_f64().map_or_else(|| "unknown".to_owned(), figure);
    format!("count {count}, p50 {}, p95 {}", percentile("p50"), percentile("p95"))
}

/// A number with four digits that count; whole numbers have all of theirs.
fn figure(number: f64) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return number.to_string();
    }
    let rounded: f64 = format!("{number:.3e}").parse().unwrap_or(number);
    rounded.to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_source_and_each_quantity_has_a_line() {
        let fleet = json!({"more": true, "sources": [
            {
                "name": "http://e:8000/metrics", "kind": "engine", "upstreams": ["local"],
                "programs": [{"title": "vLLM"}], "versions": [{"of": "engine", "version": "0.33.0"}], "state": "up", "age": 0.25, "why": null,
                "quantities": [
                    {
                        "layer": "L6", "name": "taximeter.fleet.engine.kv_cache_usage", "unit": "1",
                        "value": 0.123_456, "rate": null, "labels": {"engine": "0", "m": "\u{1b}[2J"},
                    },
                    {
                        "layer": "L6", "name": "taximeter.fleet.engine.generation_tokens",
                        "unit": "{token}", "value": 1_234_567.0, "rate": 12.345_6, "labels": {},
                    },
                    {
                        "layer": "L6", "name": "gen_ai.server.time_to_first_token", "unit": "s",
                        "value": null, "rate": null, "labels": {},
                        "distribution": {"count": 2.0, "sum": 1.0, "p50": {"about": 0.1},
                            "p95": {"above": 0.5}},
                    },
                ],
                "unknown": [{}, {}],
            },
            {
                "name": "http://g:9400/metrics", "kind": "gpu", "upstreams": [], "programs": [],
                "state": "failing", "age": null, "why": "it answers 404 Not Found",
                "quantities": [], "unknown": [],
            },
        ], "joins": [{
            "upstream": "local",
            "engines": {"links": [{"to": "http://e:8000/metrics", "basis": "address"}]},
            "pods": {"links": [], "unknown": "nothing says it"},
            "gpus": {"links": [
                {"to": "GPU-1", "basis": "configuration"}, {"to": "GPU-2", "basis": "labels"},
            ]},
            "hosts": {"links": []},
            "doubts": ["GPU-2 is shared"],
        }]});
        let text = of(&fleet, None);
        let lines: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        for expected in [
            "http://e:8000/metrics engine local vLLM, engine 0.33.0 up 0.2 s",
            "http://g:9400/metrics gpu failing it answers 404 Not Found",
            "L6 taximeter.fleet.engine.kv_cache_usage engine=0 m=\u{fffd}[2J 0.1235 1 http://e:8000/metrics",
            "L6 taximeter.fleet.engine.generation_tokens 1234567 {token} 12.35 http://e:8000/metrics",
            "L6 gen_ai.server.time_to_first_token count 2, p50 0.1, p95 above 0.5 s http://e:8000/metrics",
            "local http://e:8000/metrics by address unknown GPU-1 by configuration, GPU-2 by labels unknown",
            "upstream local: GPU-2 is shared",
            "2 quantities are unknown; --json says why",
            "there are more quantities; --layer chooses",
        ] {
            assert!(lines.iter().any(|line| line == expected), "{expected}\n{text}");
        }
        assert!(of(&json!({"sources": []}), None).starts_with("no source is asked"));
    }

    #[test]
    fn a_layer_of_which_nobody_tells_says_so() {
        let fleet = json!({"sources": [{"name": "/proc", "kind": "host", "quantities": []}]});
        for (layer, says) in [("L2", "no source tells a quantity"), ("L8", "`taximeter bill`")] {
            let text = of(&fleet, Some(layer));
            assert!(text.contains(&format!("\n{layer}: ")) && text.contains(says), "{text}");
        }
    }
}
