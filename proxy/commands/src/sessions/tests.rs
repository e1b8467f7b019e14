use clap::Parser;
use taximeter_ledger::{Dimensions, Record, TenantId};
use taximeter_store::samples::{feed, journal, record};
use tempfile::TempDir;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    sessions: SessionsArgs,
}

/// What the command says of these requests.
fn said(dir: &TempDir, records: &[Record], line: &[&str]) -> Result<String, Failure> {
    let folder = dir.path().to_str().unwrap();
    let line = ["sessions", "--data-dir", folder].into_iter().chain(line.iter().copied());
    let args = Line::try_parse_from(line).unwrap().sessions;
    let now = "2026-11-02T00:00:00Z".parse().unwrap();
    let (entries, mut out) = (journal(records.iter().cloned()), Vec::new());
    run(&args, &args.ledger.find().unwrap(), now, &mut [feed(&entries)], &mut out)?;
    Ok(String::from_utf8(out).unwrap())
}

fn of(number: u32, session: &str, agent: Option<&str>) -> Record {
    let (session, agent) = (Some(session.to_owned()), agent.map(str::to_owned));
    let dimensions = Dimensions { session, agent, ..Dimensions::default() }.if_any();
    Record { dimensions, ..record(number) }
}

/// Two sessions of one tenant, one with the same name of another tenant, and a request of none.
fn records() -> Vec<Record> {
    let mut other = of(5, "one", None);
    other.tenant = TenantId("blue".into());
    let two = || of(2, "two", Some("root"));
    vec![of(1, "one", None), two(), of(3, "two", Some("sub")), record(4), other]
}

fn names(json: &str) -> Vec<(String, String)> {
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    let sessions = json["sessions"].as_array().unwrap().iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    sessions.map(|it| (text(&it["tenant"]), text(&it["session"]))).collect()
}

#[test]
fn the_dearest_or_latest_sessions_come_first() {
    let dir = tempfile::tempdir().unwrap();
    let pair = |tenant: &str, session: &str| (tenant.to_owned(), session.to_owned());
    let listed = |line: &[&str]| names(&said(&dir, &records(), line).unwrap());
    let [two, blue, one] = [pair("acme", "two"), pair("blue", "one"), pair("acme", "one")];
    assert_eq!(listed(&["--json"]), [two.clone(), blue.clone(), one.clone()]);
    assert_eq!(listed(&["--json", "--top", "latest", "--limit", "1"]), [blue]);
    assert_eq!(listed(&["--json", "--tenant", "acme"]), [two.clone(), one]);
    let days = ["--json", "--from", "2026-10-30", "--to", "2026-11-01"];
    assert_eq!(listed(&days), []);
    let text = said(&dir, &records(), &["--limit", "1"]).unwrap();
    assert!(
        text.starts_with("3 sessions, 2026-10-04 to 2026-11-01 (UTC days): the 1 dearest\n"),
        "{text}"
    );
    assert!(text.contains("two      acme "), "{text}");
}

#[test]
fn one_session_shows_its_agents_and_costs_what_its_requests_cost() {
    let dir = tempfile::tempdir().unwrap();
    let text = said(&dir, &records(), &["two"]).unwrap();
    assert!(
        text.starts_with("Session two of acme: 0.000247 USD for 2 requests in 2 s\n"),
        "{text}"
    );
    let json = said(&dir, &records(), &["two", "--json"]).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json[0]["cost"], json.as_array().unwrap().len()), (&"0.0002468".into(), 1));
    assert_eq!(json[0]["agents"][1]["agent"], "sub");
    assert_eq!(json[0]["turns"].as_array().unwrap().len(), 2);
}

#[test]
fn one_name_of_two_tenants_is_two_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let shown = |line: &[&str]| said(&dir, &records(), line).unwrap();
    let both = shown(&["one"]);
    assert!(both.starts_with("Session one of acme: "), "{both}");
    assert!(both.contains("\nSession one of blue: "), "{both}");
    let blue = shown(&["one", "--tenant", "blue"]);
    assert!(blue.starts_with("Session one of blue: ") && !blue.contains("acme"), "{blue}");
}

#[test]
fn a_session_that_nobody_names_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let fault = said(&dir, &records(), &["three"]).unwrap_err();
    let text = "there is no session \"three\"; `taximeter sessions` lists those that there are";
    assert_eq!(fault.to_string(), text);
    let empty = tempfile::tempdir().unwrap();
    assert!(said(&empty, &[], &[]).unwrap().contains("empty"));
    assert_eq!(names(&said(&empty, &[], &["--json"]).unwrap()), []);
}
