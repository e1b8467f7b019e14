//! Tests of statements that are issued: a final one never changes.

use taximeter_billing::{Covered, Credit, SplitBy, Statement, Unit};

use super::closing::{at, october, post_at, says};
use super::*;
use crate::signing::SigningKey;
use crate::statements::{Signed, StatementError, issue, later, recorded};
use crate::terms::{Scope, Terms};

on_postgres! {
    what_was_stated_stays_and_what_comes_later_is_the_next_one,
    a_period_that_is_not_closed_has_no_number,
    two_that_issue_at_the_same_time_give_out_the_same,
}

const CLOSED: &str = "2026-11-02T10:00:00Z";

fn key(dir: &TempDir) -> SigningKey {
    let path = dir.path().join("signing.pem");
    if path.exists() {
        SigningKey::read(&path).unwrap()
    } else {
        SigningKey::create(&path).unwrap()
    }
}

fn scope(now: &str) -> Scope<'static> {
    static UTC: Zone = Zone::UTC;
    let tenant = Some("acme");
    Scope {
        period: october(),
        zone: &UTC,
        unit: Unit::Month,
        tenant,
        now: at(now),
        split_by: SplitBy::NONE,
    }
}

/// The text of the statement that is given out at this time, and what is said beside it.
fn state(store: &mut Store, dir: &TempDir, now: &str) -> (String, Option<String>) {
    let (terms, key) = (Terms::default(), key(dir));
    let journals = || Ok::<_, StatementError>(Vec::new());
    let made = issue(store, "acme", &terms, scope(now), &key, journals).unwrap();
    assert_eq!(Signed::parse(&made.text).unwrap().faults(&key.public()), [""; 0]);
    (made.text, made.note)
}

fn read(text: &str) -> Statement {
    Signed::parse(text).unwrap().statement
}

fn notes(store: &mut Store, text: &str, now: &str) -> Vec<String> {
    let later = later(store, &read(text), &Terms::default(), at(now)).unwrap();
    assert_eq!(later.wrong, [""; 0]);
    later.notes
}

/// What a verification says.
fn verified(store: &mut Store, dir: &TempDir) -> String {
    let (mut findings, mut out) = (verify::Findings::default(), Vec::new());
    verify::verify(dir.path(), store, &mut |_| {}, &mut findings).unwrap();
    findings.write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Three requests at the end of October; the gateway has written past its end.
fn closed() -> Vec<Entry> {
    let times = ["2026-10-31T22:00:00Z", "2026-10-31T23:00:00Z", "2026-10-31T23:59:00Z"];
    let mut entries: Vec<_> =
        (1..).zip(times).map(|(number, time)| post_at(number, time)).collect();
    entries.push(says(CLOSED, CLOSED));
    entries
}

#[test]
fn what_was_stated_stays_and_what_comes_later_is_the_next_one() {
    let (dir, mut store) = open();
    let mut entries = closed();
    catch_up(&mut store, &segment(1, entries.clone()));
    let (first, note) = state(&mut store, &dir, CLOSED);
    assert_eq!(note, None);
    let stated = read(&first);
    assert_eq!((stated.number, stated.provisional, stated.requests), (Some(1), false, 3));
    assert_eq!(stated.totals["USD"], "0.00006".parse().unwrap());
    assert_eq!(state(&mut store, &dir, "2026-11-05T00:00:00Z"), (first.clone(), None));
    assert_eq!(notes(&mut store, &first, CLOSED), [""; 0]);

    // A gateway that was down, or a crash, brings two requests of October.
    for number in [4, 5] {
        entries.push(post_at(number, "2026-10-31T23:58:00Z"));
    }
    entries.push(says("2026-11-06T00:00:00Z", "2026-11-06T00:00:00Z"));
    catch_up(&mut store, &segment(1, entries.clone()));
    let now = "2026-11-06T01:00:00Z";
    let due =
        "Statement no. 2 is due, with a difference of 0.00004 USD and 2 requests; it is final.";
    assert_eq!(notes(&mut store, &first, now), [due]);
    let (second, note) = state(&mut store, &dir, now);
    assert_eq!(note.unwrap(), "This is statement no. 2: the difference to no. 1.");
    let difference = read(&second);
    assert_eq!((difference.number, difference.requests), (Some(2), 2));
    assert_eq!(difference.totals["USD"], "0.00004".parse().unwrap());
    let before = difference.follows.as_ref().unwrap();
    assert_eq!((before.number, &before.sha256), (1, &stated.sha256()));
    assert_eq!(state(&mut store, &dir, now), (second.clone(), None));
    let came = "Statement no. 2 came later, with a difference of 0.00004 USD and 2 requests.";
    assert_eq!(notes(&mut store, &first, now), [came]);
    assert_eq!(notes(&mut store, &second, now), [""; 0]);

    // The first one is still there, and the third one follows the second.
    let again = recorded(&mut store, "acme", scope(now), 1, &key(&dir)).unwrap();
    assert_eq!((again.text, again.note), (first, None));
    entries.push(post_at(6, "2026-10-31T23:57:00Z"));
    catch_up(&mut store, &segment(1, entries));
    let third = read(&state(&mut store, &dir, now).0);
    assert_eq!((third.number, third.requests), (Some(3), 1));
    assert_eq!(third.follows.unwrap().sha256, difference.sha256());
    let missing = recorded(&mut store, "acme", scope(now), 4, &key(&dir)).unwrap_err().to_string();
    assert_eq!(missing, "there is no statement no. 4 of this period; 3 were issued");
}

#[test]
fn a_period_that_is_not_closed_has_no_number() {
    let (dir, mut store) = open();
    let mut entries = closed();
    entries.pop();
    // Three streams are open over the end of the month.
    entries.push(says("2026-11-01T00:00:20Z", "2026-10-31T23:59:30Z"));
    catch_up(&mut store, &segment(1, entries.clone()));
    for (now, said) in [
        ("2026-10-31T23:59:59Z", "provisional: up to 2026-10-31 23:59"),
        ("2026-11-01T00:00:20Z", "provisional: closes at 2026-11-01 02:00"),
    ] {
        let (text, note) = state(&mut store, &dir, now);
        assert_eq!(note.unwrap(), format!("The statement is {said}."));
        let stated = read(&text);
        assert_eq!((stated.number, stated.provisional, stated.requests), (None, true, 3));
        assert!(stated.status_words().starts_with("provisional: closes at "));
        assert_eq!(notes(&mut store, &text, now), [""; 0]);
    }
    let (text, _) = state(&mut store, &dir, "2026-11-01T03:00:00Z");
    let words = read(&text).status_words();
    assert!(words.ends_with("which has requests open since 2026-10-31 23:59"), "{words}");

    // The gateway is killed. Its start settles the three, which belong to October.
    entries.extend((4..7).map(|number| post_at(number, "2026-10-31T23:59:30Z")));
    entries.push(says("2026-11-01T03:10:00Z", "2026-11-01T03:10:00Z"));
    catch_up(&mut store, &segment(1, entries));
    let stated = read(&state(&mut store, &dir, "2026-11-01T04:00:00Z").0);
    assert_eq!((stated.number, stated.requests), (Some(1), 6));
}

#[test]
fn a_difference_that_is_not_final_yet_waits_and_the_last_statement_is_given_out() {
    let (dir, mut store) = open();
    let mut entries = closed();
    catch_up(&mut store, &segment(1, entries.clone()));
    let (first, _) = state(&mut store, &dir, CLOSED);
    // A clock that was ahead is set back: it has not written past the end any more.
    entries.push(post_at(4, "2026-10-31T23:58:00Z"));
    entries.push(says("2026-10-31T23:59:00Z", "2026-10-31T23:59:00Z"));
    catch_up(&mut store, &segment(1, entries));
    let (again, note) = state(&mut store, &dir, "2026-11-01T03:00:00Z");
    assert_eq!(again, first);
    let note = note.unwrap();
    assert!(note.starts_with("Statement no. 2 is due, with a difference of 0.00002 USD"), "{note}");
    assert!(note.contains("it is provisional: waits for"), "{note}");
}

#[test]
fn two_that_issue_at_the_same_time_give_out_the_same() {
    let (dir, mut store) = open();
    catch_up(&mut store, &segment(1, closed()));
    let (first, _) = state(&mut store, &dir, CLOSED);
    // The other one had asked before the first one was recorded.
    assert!(!store.database.issue("acme", october(), 1, "another text").unwrap());
    assert_eq!(state(&mut store, &dir, CLOSED).0, first);
}

#[test]
fn a_statement_that_cannot_be_recorded_is_not_final() {
    let (dir, mut store) = open();
    catch_up(&mut store, &segment(1, closed()));
    let in_the_way = dir.path().join("statements");
    fs::write(&in_the_way, "a file").unwrap();
    let made = issue(&mut store, "acme", &Terms::default(), scope(CLOSED), &key(&dir), || {
        Ok::<_, StatementError>(Vec::new())
    });
    let fault = made.unwrap_err().to_string();
    assert!(fault.contains("statements"), "{fault}");
    fs::remove_file(&in_the_way).unwrap();
    // A link to nowhere is a folder that cannot be written.
    std::os::unix::fs::symlink("nowhere", &in_the_way).unwrap();
    let (text, note) = state(&mut store, &dir, CLOSED);
    let stated = read(&text);
    assert_eq!((stated.number, stated.provisional, stated.unrecorded), (None, true, true));
    assert!(note.unwrap().contains("because it cannot be recorded"));
    assert_eq!(stated.status_words(), "provisional: it could not be recorded");
    fs::remove_file(&in_the_way).unwrap();
    assert_eq!(read(&state(&mut store, &dir, CLOSED).0).number, Some(1));
}

#[test]
fn a_recorded_statement_that_was_changed_is_named() {
    let (dir, mut store) = open();
    catch_up(&mut store, &segment(1, closed()));
    let (first, _) = state(&mut store, &dir, CLOSED);
    let folder = dir.path().join("statements");
    let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    assert!(file.to_string_lossy().ends_with(".1.json"), "{file:?}");
    for (from, to) in [("\"number\": 1", "\"number\": 2"), ("0.00006", "0.00007"), ("{", "")] {
        fs::write(file, first.replacen(from, to, 1)).unwrap();
        let made = issue(&mut store, "acme", &Terms::default(), scope(CLOSED), &key(&dir), || {
            Ok::<_, StatementError>(Vec::new())
        });
        let fault = made.unwrap_err().to_string();
        assert!(fault.contains("statements of \"acme\" were changed"), "{fault}");
        let told = verified(&mut store, &dir);
        assert!(told.contains("wrong: ") && told.contains("statement"), "{told}");
    }
    // One that is missing is not made anew.
    let second =
        file.with_file_name(file.file_name().unwrap().to_str().unwrap().replace(".1.", ".2."));
    fs::rename(file, &second).unwrap();
    let made = recorded(&mut store, "acme", scope(CLOSED), 1, &key(&dir)).unwrap_err().to_string();
    assert!(made.contains("were changed"), "{made}");
    fs::rename(&second, file).unwrap();
    fs::write(file, &first).unwrap();
    assert!(verified(&mut store, &dir).contains("statements: 1 recorded\n"));
    // A rebuilt store, or another one, has the same statements.
    store.rebuild(&mut [feed(&segment(1, closed()))]).unwrap();
    assert_eq!(state(&mut store, &dir, CLOSED).0, first);
    fs::remove_file(dir.path().join("store.sqlite")).unwrap();
    let mut anew = Store::open(dir.path()).unwrap();
    catch_up(&mut anew, &segment(1, closed()));
    assert_eq!(state(&mut anew, &dir, CLOSED).0, first);
}

#[test]
fn a_correction_after_the_first_statement_is_in_the_second_one() {
    let (dir, mut store) = open();
    let entries = segment(1, closed());
    catch_up(&mut store, &entries);
    let (first, _) = state(&mut store, &dir, CLOSED);
    let Entry::Post(corrected) = post_at(2, "2026-10-31T23:00:00Z") else { panic!("no post") };
    let correction = hours::correction(0, &corrected, corrected.cost.as_ref(), 1);
    store.catch_up(&mut [feed(&entries), hours::changed(&hours::entries(&[correction]))]).unwrap();
    let (second, _) = state(&mut store, &dir, CLOSED);
    let difference = read(&second);
    assert_eq!((difference.number, difference.requests), (Some(2), 0));
    assert!(difference.lines.iter().all(|line| line.correction), "{:?}", difference.lines);
    // It takes back 40 tokens at the old price and charges them at the new one.
    let amounts: Vec<_> = difference.lines.iter().map(|line| line.amount.to_string()).collect();
    assert_eq!(difference.totals["USD"], "0.39998".parse().unwrap(), "{amounts:?}");
    assert_eq!(state(&mut store, &dir, CLOSED).0, second);
    assert_ne!(first, second);
}

#[test]
fn a_command_without_the_configuration_of_the_first_statement_is_refused() {
    let (dir, mut store) = open();
    catch_up(&mut store, &segment(1, closed()));
    let key = key(&dir);
    let mut first = read(&state(&mut store, &dir, CLOSED).0);
    let credit = Credit {
        tenant: "acme".to_owned(),
        month: jiff::civil::date(2026, 10, 1),
        covered: Covered::Meter("input".to_owned()),
        tokens: Some("20".parse().unwrap()),
        amount: "0.00001".parse().unwrap(),
        currency: "USD".to_owned(),
    };
    first.credits.push(credit);
    first.totals.insert("USD".to_owned(), "0.00005".parse().unwrap());
    let folder = dir.path().join("statements");
    fs::remove_dir_all(&folder).unwrap();
    let text = Signed::new(first.clone(), &key).text().unwrap();
    assert!(store.database.issue("acme", october(), 1, &text).unwrap());
    let journals = || Ok::<_, StatementError>(Vec::new());
    let made = issue(&mut store, "acme", &Terms::default(), scope(CLOSED), &key, journals);
    assert!(matches!(made, Err(StatementError::NoTerms)), "{made:?}");
    let asked = later(&mut store, &first, &Terms::default(), at(CLOSED));
    assert!(matches!(asked, Err(StatementError::NoTerms)), "{asked:?}");
}
