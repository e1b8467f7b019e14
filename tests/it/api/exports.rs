//! `/api/v1/export`: whatever the command writes of a period, byte for byte.

use jiff::Timestamp;
use serde_json::Value;

use super::description::Description;
use super::{await_store, list, metered, metered_with, written};
use crate::gateway::{Gateway, taximeter};

/// Every format, and its media type.
const FORMATS: [(&str, &str); 11] = [
    ("table", "text/plain; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("json", "application/json"),
    ("focus", "text/csv; charset=utf-8"),
    ("focus-parquet", "application/vnd.apache.parquet"),
    ("parquet", "application/vnd.apache.parquet"),
    ("ndjson", "application/x-ndjson"),
    ("cloudevents", "application/x-ndjson"),
    ("stripe", "application/x-ndjson"),
    ("lago", "application/x-ndjson"),
    ("orb", "application/x-ndjson"),
];

/// When all requests had been admitted: what is over by then is the same whenever it is asked for.
fn end(gateway: &Gateway) -> String {
    await_store(gateway);
    let records = gateway.records();
    let ends = records.iter().map(|record| record["ended_at"].as_str().expect("a time"));
    ends.max().expect("a record").to_owned()
}

/// The export that the words of the command and of the question are about.
fn assert_same(gateway: &Gateway, words: &[(&str, &str)]) -> Vec<u8> {
    let query: Vec<_> = words.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let options: Vec<_> = words.iter().map(|(name, value)| format!("--{name}={value}")).collect();
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    let query = query.join("&").replace("focus-version", "focus_version");
    let answer = gateway.admin(&format!("/api/v1/export?{query}"));
    assert_eq!(answer.status(), 200, "{query}: {}", answer.text());
    assert!(answer.body == written(gateway, &options), "{query}: {}", answer.text());
    answer.body
}

#[test]
fn every_format_of_the_command_is_answered_with_its_bytes() {
    let (_engine, gateway) = metered();
    let end = end(&gateway);
    for (format, kind) in FORMATS {
        let span = [("format", format), ("from", "2026-01-01"), ("to", &end)];
        let bytes = assert_same(&gateway, &span);
        assert!(bytes.len() > 100, "{format}");
        let query = format!("/api/v1/export?format={format}&month=2024-02");
        assert_eq!(gateway.admin(&query).header("content-type"), Some(kind));
        assert_same(&gateway, &[("format", format), ("month", "2024-02")]);
        assert_same(&gateway, &[("tenant", "zeta"), span[0], span[1], span[2]]);
    }
}

#[test]
fn the_description_names_every_format() {
    let (_engine, gateway) = metered();
    let description = Description::of(&gateway);
    let answer = &description.document()["paths"]["/api/v1/export"]["get"];
    let format = list(&answer["parameters"]).iter().find(|one| one["name"] == "format");
    let names = list(&format.expect("a parameter")["schema"]["enum"]);
    assert_eq!(names, &FORMATS.map(|(name, _)| Value::from(name)));
    let kinds = answer["responses"]["200"]["content"].as_object().expect("kinds");
    for (_, kind) in FORMATS {
        let bare = kind.split(';').next().expect("a type");
        assert!(kinds.contains_key(bare), "{kind}");
    }
}

#[test]
fn a_bill_is_split_and_timed_as_the_command_does() {
    let (_engine, gateway) = metered_with("billing: {zone: Pacific/Kiritimati}");
    let end = end(&gateway);
    for format in ["table", "csv", "json"] {
        let span = [("format", format), ("from", "2026-01-01"), ("to", &end)];
        for by in ["tenant", "day,model", "hour", "key,label:team"] {
            let there = assert_same(&gateway, &[span[0], span[1], span[2], ("by", by)]);
            let here = [span[0], span[1], span[2], ("by", by), ("zone", "UTC")];
            assert!(assert_same(&gateway, &here) != there, "{format} {by}: no zone");
        }
    }
    let focus = [("format", "focus"), ("from", "2026-01-01"), ("to", &end)];
    let old = assert_same(&gateway, &focus);
    let new = assert_same(&gateway, &[focus[0], focus[1], focus[2], ("focus-version", "1.3")]);
    assert!(old != new);
    assert_same(&gateway, &[focus[0], focus[1], focus[2], ("issuer", "Ours"), ("zone", "UTC")]);
}

#[test]
fn a_bill_that_the_store_would_be_asked_too_often_for_is_refused() {
    let (_engine, gateway) = metered();
    let description = Description::of(&gateway);
    let query = "format=csv&from=1970-01-01&by=hour&zone=Asia/Kolkata";
    let answer = gateway.admin(&format!("/api/v1/export?{query}"));
    assert_eq!(answer.status(), 422);
    description.checked("/api/v1/export", &answer);
}

/// Seconds since 1970 of the oldest event of a span in Lago's format, among them credits, which have
/// the start of their month.
fn oldest(lago: &[u8]) -> f64 {
    let lines = std::str::from_utf8(lago).expect("UTF-8").lines();
    let batches = lines.map(|line| serde_json::from_str::<Value>(line).expect("a batch"));
    let times = batches.flat_map(|batch| {
        let times = list(&batch["events"]).iter().map(|event| event["timestamp"].clone());
        times.collect::<Vec<_>>()
    });
    times
        .map(|time| time.as_str().and_then(|time| time.parse().ok()).expect("seconds"))
        .fold(f64::INFINITY, f64::min)
}

#[test]
fn a_strict_export_is_the_same_or_nothing() {
    let (_engine, gateway) = metered();
    let description = Description::of(&gateway);
    let end = end(&gateway);
    for format in ["stripe", "lago", "orb", "cloudevents"] {
        let span = format!("/api/v1/export?format={format}&from=2026-01-01&to={end}");
        let loose = gateway.admin(&span);
        let strict = gateway.admin(&format!("{span}&strict=true&max_age=40d"));
        assert_eq!((strict.status(), &strict.body), (200, &loose.body), "{format}");
    }
    let span = format!("/api/v1/export?format=lago&from=2026-01-01&to={end}");
    let end: Timestamp = end.parse().expect("a time");
    let age = end.duration_since(Timestamp::UNIX_EPOCH).as_secs_f64()
        - oldest(&gateway.admin(&span).body);
    let strict = gateway.admin(&format!("{span}&strict=true&max_age=1h"));
    assert_eq!(strict.status() == 422, age > 3600.0, "{age}: {}", strict.text());
    description.checked("/api/v1/export", &strict);
    for query in [
        "format=stripe&strict=yes",
        "format=ndjson&strict=true",
        "format=csv&strict=true",
        "format=focus&max_age=3d",
        "format=orb&max_age=3",
    ] {
        let answer = gateway.admin(&format!("/api/v1/export?{query}"));
        assert_eq!(answer.status(), 400, "{query}: {}", answer.text());
        description.checked("/api/v1/export", &answer);
    }
}

#[test]
fn an_export_that_is_to_be_split_is_refused_by_command_and_address() {
    let (_engine, gateway) = metered();
    let description = Description::of(&gateway);
    let answer = gateway.admin("/api/v1/export?format=focus&by=tenant");
    assert_eq!(answer.status(), 400);
    description.checked("/api/v1/export", &answer);
    let data_dir = gateway.data_dir();
    let data_dir = data_dir.to_str().expect("UTF-8");
    let output = taximeter(["bill", "--data-dir", data_dir, "--format", "focus", "--by", "tenant"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("remove --by"), "{output:?}");
}
