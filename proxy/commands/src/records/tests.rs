use clap::Parser;
use taximeter_ledger::Record;
use taximeter_store::samples::{feed, journal, record};
use tempfile::TempDir;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    records: RecordsArgs,
}

fn args(dir: &TempDir, line: &[&str]) -> RecordsArgs {
    let dir = dir.path().to_str().unwrap();
    let line = ["records", "--data-dir", dir].into_iter().chain(line.iter().copied());
    Line::try_parse_from(line).unwrap().records
}

fn ids(out: &[u8]) -> Vec<String> {
    let lines = std::str::from_utf8(out).unwrap().lines();
    lines.map(|line| serde_json::from_str::<Record>(line).unwrap().request_id).collect()
}

#[test]
fn each_request_is_one_line_of_json() {
    let dir = tempfile::tempdir().unwrap();
    let entries = journal((1..=3).map(record));
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let args = args(&dir, &["--limit", "2"]);
    run(&args, &args.ledger.find().unwrap(), &mut [feed(&entries)], &mut out, &mut notes).unwrap();
    assert_eq!(ids(&out), ["client-2", "client-3"]);
    assert_eq!(notes, b"");
    let last = std::str::from_utf8(&out).unwrap().lines().last().unwrap();
    let last: serde_json::Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["seq"], 3);
    assert_eq!(last["started_at"], "2026-11-01T00:00:03Z");
    assert_eq!(last["cost"]["amount"], "0.00012340");
}

#[test]
fn a_record_is_shown_with_all_its_members_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut bare = record(1);
    (bare.cost, bare.key_id, bare.status) = (None, None, None);
    bare.labels.clear();
    bare.finish_reasons.clear();
    let entries = journal([bare.clone()]);
    let mut out = Vec::new();
    let args = args(&dir, &[]);
    run(&args, &args.ledger.find().unwrap(), &mut [feed(&entries)], &mut out, &mut Vec::new())
        .unwrap();
    bare.seq = 1;
    assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&bare).unwrap() + "\n");
    let shown = serde_json::to_value(&bare).unwrap();
    assert!(shown["cost"].is_null() && shown.get("cost").is_some());
}

#[test]
fn an_empty_ledger_is_noted_beside_the_output() {
    let dir = tempfile::tempdir().unwrap();
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let args = args(&dir, &[]);
    run(&args, &args.ledger.find().unwrap(), &mut [feed(&[])], &mut out, &mut notes).unwrap();
    assert_eq!(out, b"");
    assert!(String::from_utf8(notes).unwrap().contains("is empty"));
}

/// A record of a session.
fn record_of(number: u32, session: &str) -> Record {
    let session = Some(session.to_owned());
    let dimensions = taximeter_ledger::Dimensions { session, ..Default::default() };
    Record { dimensions: dimensions.if_any(), ..record(number) }
}

#[test]
fn following_shows_each_record_once_as_it_comes_and_of_a_session_its_own_alone() {
    for (session, expected) in [
        (None, &["client-1", "client-5", "client-9", "client-7"][..]),
        (Some("s"), &["client-5", "client-7"]),
        (Some("t"), &["client-9"]),
    ] {
        assert_eq!(followed(session), expected, "{session:?}");
    }
}

fn followed(session: Option<&str>) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let all = journal([record_of(5, "s"), record(1), record_of(9, "t"), record_of(7, "s")]);
    let mut store = Store::open(dir.path()).unwrap();
    store.catch_up(&mut [feed(&all[..2])]).unwrap();
    let mut later = 3..=all.len();
    let again = |store: &mut Store, fault: Option<Failure>| {
        assert!(fault.is_none());
        let next = later.next();
        store.catch_up(&mut [feed(&all[..next.unwrap_or(all.len())])])?;
        Ok(next.is_some())
    };
    let mut out = Vec::new();
    let asked = dimensions::Asked { session: session.map(str::to_owned), ..Default::default() };
    let wanted = dimensions::Filter::new(asked, None);
    show(&args(&dir, &["--follow"]), &wanted, &mut store, &mut out, again).unwrap();
    ids(&out)
}
