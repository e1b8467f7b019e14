//! Alerts and recording rules: what they ask for is told by the gateway, and each alert has a page
//! that says what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

const RULES: &str = "deploy/prometheus/taximeter.rules.yaml";
const BUILD: &str = "deploy/kustomize/components/rules/build";
const RUNBOOKS: &str = "deploy/prometheus/runbooks";
/// What Prometheus adds to each sample, and what the rules add themselves.
const ADDED: [&str; 4] = ["job", "instance", "le", "slo"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// What the script prints that wraps the rules for Kustomize.
fn built(words: &[&str]) -> String {
    let output = Command::new(root().join(BUILD)).args(words).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The names of the alerts in rules, each with the value that its annotation `key` has.
fn annotations(rules: &str, key: &str) -> BTreeMap<String, String> {
    let (mut found, mut alert) = (BTreeMap::new(), "");
    for line in rules.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix("- alert: ") {
            alert = name;
        } else if let Some(value) = line.strip_prefix(key).and_then(|rest| rest.strip_prefix(": "))
        {
            found.insert(alert.to_owned(), value.trim_matches('"').to_owned());
        }
    }
    found
}

fn alerts(rules: &str) -> BTreeSet<&str> {
    rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect()
}

/// The words of a text that can be names of metrics or labels.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':')
}

/// What stands for an expression in the rules, without its comments and annotations.
fn expressions(rules: &str) -> String {
    let mut text = String::new();
    let mut is_expression = false;
    for line in rules.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with('#') {
            continue;
        }
        if let Some(rest) = trimmed.strip_prefix("expr:") {
            is_expression = true;
            text.push_str(rest);
        } else if is_expression && line.starts_with("          ") {
            text.push_str(trimmed);
        } else {
            is_expression = false;
        }
        text.push('\n');
    }
    text
}

/// The queries of the example for KEDA.
fn queries_of_keda() -> String {
    let example = read("deploy/examples/kubernetes/keda.yaml");
    let from = example.split("query:").skip(1);
    let queries = from.map(|rest| rest.split("threshold:").next().unwrap_or_default());
    queries.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_rule_asks_for_metrics_and_labels_that_the_gateway_tells() {
    let reference = read("docs/reference/metrics.md");
    let cell = |row: &str, nth: usize| {
        row.split('|').nth(nth).map(|cell| cell.trim().trim_matches('`').to_owned())
    };
    let rows = reference.lines().filter(|line| line.starts_with("| `"));
    let metrics: BTreeSet<_> = rows.clone().filter_map(|row| cell(row, 6)).collect();
    let keys: BTreeSet<_> =
        rows.filter_map(|row| cell(row, 1)).map(|key| key.replace('.', "_")).collect();
    let expressions = expressions(&read(RULES)) + &queries_of_keda();
    let mut asked = BTreeSet::new();
    for word in words(&expressions) {
        let is_ours = ["taximeter_", "gen_ai_", "http_"].iter().any(|it| word.starts_with(it));
        if !is_ours || keys.contains(word) && !metrics.contains(word) {
            continue;
        }
        let parts = ["_bucket", "_count", "_sum"];
        let family = parts.iter().find_map(|part| word.strip_suffix(part));
        let is_told = metrics.contains(word) || family.is_some_and(|it| metrics.contains(it));
        assert!(is_told, "nothing tells {word}");
        asked.insert(word);
    }
    assert!(asked.len() > 30, "{asked:?}");
    assert!(asked.contains("taximeter_first_token_wait_seconds_bucket"), "{asked:?}");
    let mut labels = 0;
    for selector in expressions.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
        for matcher in selector.split(',').filter(|matcher| matcher.contains('"')) {
            let key = matcher.trim().split(['=', '!']).next().unwrap_or_default();
            let is_kubernetes = ["namespace", "pod"].contains(&key);
            assert!(ADDED.contains(&key) || is_kubernetes || keys.contains(key), "{matcher}");
            labels += 1;
        }
    }
    assert!(labels > 30, "{labels}");
}

#[test]
fn every_alert_has_a_page_that_opens_and_says_what_to_do() {
    let rules = read(RULES);
    let pages = annotations(&rules, "runbook");
    assert_eq!(pages.keys().map(String::as_str).collect::<BTreeSet<_>>(), alerts(&rules));
    let mut known = BTreeSet::new();
    for (alert, page) in &pages {
        let text = read(page);
        let heading = text.lines().next().unwrap_or_default();
        let names = heading.strip_prefix("# ").unwrap_or_default().split(", ");
        assert!(names.clone().any(|name| name == alert), "{page} is not about {alert}: {heading}");
        for part in ["**Means.**", "**Look.**", "**Do.**"] {
            assert!(text.contains(part), "{page} has no part {part}");
        }
        known.insert(page.clone());
    }
    let folder = std::fs::read_dir(root().join(RUNBOOKS)).expect("the pages");
    let there = folder.map(|file| file.expect("a page").file_name().to_string_lossy().into_owned());
    let there: BTreeSet<_> = there.map(|name| format!("{RUNBOOKS}/{name}")).collect();
    assert_eq!(there, known);
    // Where the pages can be opened is said once, and each alert has the address of its page.
    let made = built(&["-", "https://runbooks.example/"]);
    let addresses = annotations(&made, "runbook_url");
    assert_eq!(addresses.len(), pages.len());
    for (alert, address) in addresses {
        let name = address.strip_prefix("https://runbooks.example/").expect("the address");
        assert_eq!(pages[&alert], format!("{RUNBOOKS}/{name}"), "{alert}");
    }
}

#[test]
fn no_text_of_an_alert_has_a_fraction_of_a_thing_and_kustomize_has_the_same_rules() {
    let rules = read(RULES);
    for (alert, summary) in annotations(&rules, "summary") {
        // `humanize` writes 4.16 of what comes in whole numbers.
        let is_rounded = summary.replace("humanizePercentage", "").replace("humanizeDuration", "");
        assert!(!is_rounded.contains("humanize"), "{alert}: {summary}");
    }
    let made = built(&["-"]);
    let kept = read("deploy/kustomize/components/rules/prometheusrule.yaml");
    assert_eq!(made, kept, "run {BUILD}");
}
