use std::fs;

use clap::Parser;
use taximeter_billing::instant;
use taximeter_store::samples::{feed, journal, record};
use tempfile::TempDir;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    bill: BillArgs,
}

fn args(dir: &TempDir, line: &[&str]) -> BillArgs {
    let dir = dir.path().to_str().unwrap();
    let line = ["bill", "--data-dir", dir].into_iter().chain(line.iter().copied());
    Line::try_parse_from(line).unwrap().bill
}

#[test]
fn json_is_a_format_and_stands_beside_no_other() {
    let bill = Line::try_parse_from(["bill", "--json"]).unwrap().bill;
    assert!(bill.json);
    assert_eq!(refused(&["--json", "--format", "csv"]).exit_code(), 2);
}

fn refused(line: &[&str]) -> clap::Error {
    Line::try_parse_from(["bill"].iter().chain(line)).unwrap_err()
}

fn now() -> Timestamp {
    instant("2026-11-20T16:00:00Z").unwrap()
}

fn bill_of(
    args: &BillArgs,
    feeds: &mut [Feed<'_>],
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    run(args, &args.ledger.find()?, now(), feeds, out)
}

fn bill(dir: &TempDir, line: &[&str], numbers: std::ops::Range<u32>) -> String {
    let entries = journal(numbers.map(record));
    let mut out = Vec::new();
    bill_of(&args(dir, line), &mut [feed(&entries)], &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn json_bill(dir: &TempDir, line: &[&str]) -> serde_json::Value {
    let line: Vec<_> = line.iter().copied().chain(["--format", "json"]).collect();
    serde_json::from_str(&bill(dir, &line, 0..100)).unwrap()
}

#[test]
fn an_invoice_of_the_current_month_is_the_default() {
    let dir = tempfile::tempdir().unwrap();
    let text = bill(&dir, &[], 0..100);
    let head = "Invoice for 2026-11 (UTC), provisional: up to 2026-11-20 16:00\n";
    assert!(text.starts_with(head), "{text}");
    assert!(text.contains("acme    m-2026  input     4,000    0.5 / 1M  0.002 USD"), "{text}");
    assert!(text.contains("\nForecast for the whole period: "), "{text}");
}

#[test]
fn a_grouping_makes_a_table_of_sums() {
    let dir = tempfile::tempdir().unwrap();
    let text = bill(&dir, &["--by", "tenant,model"], 0..2_000);
    assert!(
        text.starts_with("Bill for 2026-11 (UTC), provisional: up to 2026-11-20 16:00\n"),
        "{text}"
    );
    assert!(text.contains("acme    m-2026     2,000  200,000  120,000  20,000"), "{text}");
    assert!(text.contains("0.2468\n"), "{text}");
}

#[test]
fn a_month_or_a_span_picks_the_requests() {
    let dir = tempfile::tempdir().unwrap();
    let requests = |line: &[&str]| json_bill(&dir, line)["total"]["requests"].clone();
    assert_eq!(requests(&[]), 100);
    assert_eq!(requests(&["--month", "2026-10"]), 0);
    assert_eq!(requests(&["--from", "2026-11-01", "--to", "2026-11-01T00:00:10Z"]), 10);
    assert_eq!(requests(&["--from", "2026-11-01T00:01:00Z"]), 40);
    assert_eq!(requests(&["--tenant", "nobody"]), 0);
}

#[test]
fn a_period_that_has_not_begun_is_a_mistake() {
    let dir = tempfile::tempdir().unwrap();
    for line in [
        &["--month", "2026-12"][..],
        &["--day", "2026-11-21"],
        &["--from", "2026-11-20T16:00:01Z"],
        &["--from", "2026-12-01", "--to", "2026-12-02"],
        &["--month", "2027-01", "--format", "csv"],
        &["--month", "2027-01", "--format", "focus"],
    ] {
        let args = args(&dir, line);
        let failure = bill_of(&args, &mut [feed(&[])], &mut Vec::new()).unwrap_err();
        assert_eq!(failure.exit().code(), 2, "{line:?}");
        assert!(failure.to_string().contains("and it is 2026-11-20T16:00:00Z"), "{failure}");
    }
    assert!(
        bill(&dir, &["--day", "2026-11-20"], 0..1).contains("No request of this period is billed")
    );
    assert!(
        bill(&dir, &["--from", "2026-11-20", "--to", "2026-12-20"], 0..1).contains("No request")
    );
}

#[test]
fn a_bill_of_a_tenant_without_requests_names_those_who_have_some() {
    let dir = tempfile::tempdir().unwrap();
    let nobody =
        "No request of tenant nobody was admitted in this period. Tenants with requests: acme.\n";
    for by in [&[][..], &["--by", "tenant,model"], &["--by", "day"]] {
        let line: Vec<_> = ["--tenant", "nobody"].iter().chain(by).copied().collect();
        let text = bill(&dir, &line, 0..100);
        assert!(text.contains(nobody), "{text}");
    }
    let text = bill(&dir, &["--month", "2026-10", "--tenant", "acme"], 0..100);
    assert!(text.contains("No request of tenant acme was admitted in this period.\n"), "{text}");
    let text = bill(&dir, &["--month", "2026-10"], 0..100);
    assert!(text.contains("No request of this period is billed.\n"), "{text}");
}

#[test]
fn a_month_a_day_and_a_date_are_those_of_the_zone() {
    let dir = tempfile::tempdir().unwrap();
    let requests = |line: &[&str]| json_bill(&dir, line)["total"]["requests"].clone();
    // The first hundred seconds of November in UTC are of its first day in Berlin, and of October
    // in New York.
    assert_eq!(requests(&["--day", "2026-11-01", "--zone", "Europe/Berlin"]), 100);
    assert_eq!(requests(&["--month", "2026-10", "--zone", "America/New_York"]), 100);
    assert_eq!(requests(&["--zone", "America/New_York"]), 0);
    assert_eq!(requests(&["--from", "2026-11-01", "--zone", "America/New_York"]), 0);
    assert_eq!(requests(&["--from", "2026-11-01T00:00:00Z", "--zone", "America/New_York"]), 100);
    let zoned = json_bill(&dir, &["--zone", "asia/kolkata", "--by", "month,day,hour"]);
    let period = serde_json::json!({
        "from": "2026-10-31T18:30:00Z", "to": "2026-11-30T18:30:00Z", "zone": "Asia/Kolkata",
        "status": "provisional", "closes_at": "2026-11-30T19:30:00Z"
    });
    assert_eq!(zoned["period"], period);
    let row = &zoned["rows"][0];
    assert_eq!((&row["month"], &row["day"]), (&"2026-11".into(), &"2026-11-01".into()));
    assert_eq!(row["hour"], "2026-11-01T05:00+05:30");
    let csv = bill(&dir, &["--zone", "Asia/Kolkata", "--format", "csv"], 0..100);
    assert!(csv.contains("\r\n2026-10-31T18:30:00Z,2026-11-30T18:30:00Z,acme,"), "{csv}");
    assert!(csv.ends_with(",Usage,Asia/Kolkata\r\n"), "{csv}");
    let text = bill(&dir, &["--zone", "Europe/Berlin"], 0..100);
    let head = "Invoice for 2026-11 (Europe/Berlin: 2026-10-31T23:00:00Z to 2026-11-30T23:00:00Z), \
                provisional: up to 2026-11-20 17:00\n";
    assert!(text.starts_with(head), "{text}");
}

#[test]
fn an_invoice_has_what_a_cut_hour_has() {
    let dir = tempfile::tempdir().unwrap();
    let text = bill(&dir, &["--from", "2026-11-01T00:01:00Z"], 0..100);
    assert!(text.contains("\n40 requests.\n"), "{text}");
}

#[test]
fn the_zone_of_the_configuration_is_that_of_the_bill_unless_another_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("taximeter.yaml");
    let text =
        "upstreams: [{name: local, url: 'http://127.0.0.1:1'}]\nbilling: {zone: Asia/Tokyo}\n";
    fs::write(&config, text).unwrap();
    let zone = |line: &[&str]| {
        let line: Vec<_> =
            ["--config", config.to_str().unwrap()].iter().chain(line).copied().collect();
        json_bill(&dir, &line)["period"]["zone"].clone()
    };
    assert_eq!(zone(&[]), "Asia/Tokyo");
    assert_eq!(zone(&["--zone", "UTC"]), "UTC");
}

#[test]
fn exports_are_by_utc() {
    let dir = tempfile::tempdir().unwrap();
    let args = args(&dir, &["--format", "focus", "--zone", "Europe/Berlin"]);
    let failure = bill_of(&args, &mut [feed(&[])], &mut Vec::new()).unwrap_err();
    assert_eq!(failure.exit().code(), 2);
    assert!(failure.to_string().contains("Europe/Berlin"), "{failure}");
}

#[test]
fn money_is_exact_in_csv_and_json() {
    let dir = tempfile::tempdir().unwrap();
    let json = json_bill(&dir, &["--by", "label:team"]);
    assert_eq!(json["rows"][0]["label:team"], "search");
    assert_eq!(json["total"]["cost"], "0.01234");
    let csv = bill(&dir, &["--format", "csv"], 0..100);
    assert!(csv.contains(",0.01234,USD,"), "{csv}");
}

#[test]
fn a_bill_can_go_to_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bill.csv");
    let line = ["--format", "csv", "-o", path.to_str().unwrap()];
    assert_eq!(bill(&dir, &line, 0..1), "");
    assert!(fs::read_to_string(&path).unwrap().starts_with("period_start,"));
}

#[test]
fn an_empty_ledger_says_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let text = bill(&dir, &[], 0..0);
    assert!(text.contains("is empty") && text.contains("--data-dir"), "{text}");
    assert_eq!(bill(&dir, &["--format", "csv"], 0..0).lines().count(), 1);
}

#[test]
fn a_missing_data_directory_is_exit_69() {
    let dir = tempfile::tempdir().unwrap();
    let mut args = args(&dir, &[]);
    args.ledger.data_dir = Some(dir.path().join("nowhere"));
    let failure = bill_of(&args, &mut [feed(&[])], &mut Vec::new()).unwrap_err();
    assert_eq!(failure.exit().code(), 69);
}

#[test]
fn a_span_that_ends_before_it_starts_is_exit_2() {
    let dir = tempfile::tempdir().unwrap();
    let args = args(&dir, &["--from", "2026-11-02", "--to", "2026-11-01"]);
    let failure = bill_of(&args, &mut [feed(&[])], &mut Vec::new()).unwrap_err();
    assert_eq!(failure.exit().code(), 2);
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    struct Gone;
    impl Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let dir = tempfile::tempdir().unwrap();
    bill_of(&args(&dir, &[]), &mut [feed(&[])], &mut Gone).unwrap();
}

#[test]
fn arguments_that_do_not_fit_are_refused_with_the_reason() {
    assert!(refused(&["--month", "2026-13"]).to_string().contains("write it like 2026-11"));
    assert!(refused(&["--from", "yesterday"]).to_string().contains("2026-11-20T16:00:00Z"));
    assert!(refused(&["--zone", "Mars/Phobos"]).to_string().contains("Europe/Berlin"));
    assert_eq!(refused(&["--day", "2026-11-02", "--month", "2026-11"]).exit_code(), 2);
    assert!(refused(&["--by", "cost"]).to_string().contains("label:NAME"));
    assert_eq!(refused(&["--month", "2026-11", "--from", "2026-11-02"]).exit_code(), 2);
    assert_eq!(refused(&["--to", "2026-11-02"]).exit_code(), 2);
}

/// An export of 100 requests of the first minutes of November, made at `now`.
fn exported(dir: &TempDir, line: &[&str], now: &str) -> (Result<(), Failure>, String) {
    let entries = journal((0..100).map(record));
    let args = args(dir, line);
    let (mut out, now) = (Vec::new(), instant(now).unwrap());
    let ledger = args.ledger.find().unwrap();
    let outcome = run(&args, &ledger, now, &mut [feed(&entries)], &mut out);
    (outcome, String::from_utf8(out).unwrap())
}

#[test]
fn a_strict_export_of_events_that_are_too_old_writes_nothing_and_is_exit_65() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("out/");
    let out = folder.to_str().unwrap();
    let month = ["--month", "2026-11", "--strict", "--format"];
    for (format, now) in [
        (&["stripe"][..], "2026-12-06T00:01:00Z"),
        (&["orb"], "2026-11-01T12:01:00Z"),
        (&["lago", "--max-age", "3d"], "2026-11-04T00:01:00Z"),
        (&["cloudevents", "--max-age", "34d"], "2026-12-05T00:01:00Z"),
    ] {
        for to in [&[][..], &["-o", out]] {
            let line: Vec<_> = month.iter().chain(format).chain(to).copied().collect();
            let (outcome, written) = exported(&dir, &line, now);
            let failure = outcome.unwrap_err();
            assert_eq!((failure.exit().code(), &*written), (65, ""), "{line:?}");
            let text = failure.to_string();
            assert!(text.contains("2026-11-01T00:00:00Z"), "it says from when: {text}");
            assert!(text.starts_with("nothing is written: "), "{text}");
        }
    }
    let left = fs::read_dir(&folder).map_or(0, Iterator::count);
    assert_eq!(left, 0, "not even a draft is left");
}

#[test]
fn a_strict_export_of_events_that_are_taken_is_the_whole_export() {
    let dir = tempfile::tempdir().unwrap();
    let month = ["--month", "2026-11", "--format"];
    for (format, now) in [
        (&["stripe"][..], "2026-12-05T23:59:00Z"),
        (&["orb"], "2026-11-01T11:59:00Z"),
        (&["orb", "--max-age", "60d"], "2026-12-20T00:00:00Z"),
        (&["lago"], "2027-12-20T00:00:00Z"),
        (&["cloudevents"], "2027-12-20T00:00:00Z"),
    ] {
        let line: Vec<_> = month.iter().chain(format).copied().collect();
        let (outcome, loose) = exported(&dir, &line, now);
        outcome.unwrap();
        assert!(!loose.is_empty(), "{line:?}");
        let line: Vec<_> = line.iter().copied().chain(["--strict"]).collect();
        let (outcome, strict) = exported(&dir, &line, now);
        outcome.unwrap();
        assert_eq!(strict, loose, "{line:?}");
    }
}

#[test]
fn the_manifest_counts_events_that_are_too_old_and_the_events_stay_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.ndjson");
    let line = ["--month", "2026-11", "--format", "stripe", "-o", path.to_str().unwrap()];
    let written = |now| {
        exported(&dir, &line, now).0.unwrap();
        let manifest = fs::read(dir.path().join("events.ndjson.manifest.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
        (fs::read_to_string(&path).unwrap(), manifest)
    };
    let (soon, manifest) = written("2026-12-01T00:00:00Z");
    assert!(manifest.get("outside_window").is_none(), "{manifest:#}");
    // The first minute is too old then, and the rest is not.
    let (late, manifest) = written("2026-12-06T00:01:00Z");
    assert_eq!(late, soon);
    let per_request = manifest["rows"].as_u64().unwrap() / 100;
    assert_eq!(
        manifest["outside_window"],
        serde_json::json!({
            "receiver": "Stripe", "takes_from": "2026-11-01T00:01:00Z",
            "takes_to": "2026-12-06T00:06:00Z", "older": {
                "events": 60 * per_request, "first": "2026-11-01T00:00:00Z",
                "last": "2026-11-01T00:00:59Z"},
        })
    );
}

#[test]
fn only_events_have_an_age() {
    let dir = tempfile::tempdir().unwrap();
    for format in ["table", "csv", "json", "focus", "parquet", "ndjson"] {
        for window in [&["--strict"][..], &["--max-age", "34d"]] {
            let line: Vec<_> = ["--format", format].iter().chain(window).copied().collect();
            let failure = bill_of(&args(&dir, &line), &mut [feed(&[])], &mut Vec::new());
            assert_eq!(failure.unwrap_err().exit().code(), 2, "{line:?}");
        }
    }
    for age in ["", "34", "0d", "1.5d", "d", "70000d", "34 d", "+-1h", "1w"] {
        assert!(refused(&["--max-age", age]).to_string().contains("35d or 12h"), "{age}");
    }
}
