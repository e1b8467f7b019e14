//! Files that are not what was written: nobody gets a wrong answer, and what needs no such file goes on.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use taximeter_database::behind::Behind;
use taximeter_ledger::LedgerId;

use super::*;
use crate::verify::{Findings, verify};
use crate::{Order, Pages};

const RIDES: u32 = 60;
const DAMAGED: &str = "2026-11-03.parquet";

/// What is answered without that file.
const NOT_OF_FILE: [&str; 1] = ["hours"];

/// What a question finds: the answer, or what is wrong.
type Answer = Result<String, String>;

fn entries() -> Vec<FramedEntry> {
    journal((0..RIDES).map(ride))
}

/// A store of which the first days are in a file each.
fn sealed(dir: &Path) {
    let mut store = Store::open(dir).unwrap();
    let changed_ride = Record { seq: 18, ..ride(17) };
    let changes = [correction(1, &changed_ride, changed_ride.cost.as_ref(), 3)];
    store.catch_up(&mut [feed(&entries()), changed(&correction_entries(&changes))]).unwrap();
    for _ in 0..2 {
        seal(&mut sealer(dir), &closed(5));
    }
}

/// What a store says that was opened anew, to each question.
fn answers(dir: &Path) -> Vec<(&'static str, Answer)> {
    let mut asked: Vec<(&'static str, Answer)> = Vec::new();
    let mut ask = |name, question: &dyn Fn(&mut Store) -> Result<String, StoreError>| {
        let mut store = Store::open(dir).unwrap();
        asked.push((name, question(&mut store).map_err(|error| error.to_string())));
    };
    let of_day = || Filter {
        tenant: Some("blue".to_owned()),
        from: Some(ride(16).started_at),
        to: Some(ride(24).started_at),
    };
    ask("all records", &|store| listed(store, &Filter::default(), None));
    ask("the last records", &|store| listed(store, &Filter::default(), Some(RIDES - 2)));
    ask("records of a day and a tenant", &|store| listed(store, &of_day(), None));
    ask("pages", &|store| {
        let mut pages = String::new();
        store.pages(&Filter::default(), i64::MAX, |page| {
            page.iter().for_each(|row| pages.push_str(&format!("{row:?}")));
            Ok::<_, StoreError>(page)
        })?;
        Ok(pages)
    });
    for (name, order) in [("oldest", Order::OldestFirst), ("newest", Order::NewestFirst)] {
        ask(name, &|store| {
            let pages = Pages { records_max: 55, looked_at_max: 100 };
            let page = store.page(&Filter::default(), (order, None), pages, |_| true, || false)?;
            Ok(format!("{:?}", page.records))
        });
    }
    ask("corrections", &|store| {
        let mut found = String::new();
        store.corrections(november(), None, |row, correction| {
            found.push_str(&format!("{row:?} {correction:?}"));
            Ok::<_, StoreError>(())
        })?;
        Ok(found)
    });
    ask("runs", &|store| {
        let mut runs = String::new();
        store.runs(november(), |row, at| runs.push_str(&format!("{row:?} {at}")))?;
        Ok(runs)
    });
    ask("entries", &|store| Ok(format!("{:?}", store.entries(november(), None)?)));
    ask("tenants", &|store| Ok(format!("{:?}", store.tenants(november(), Some("dock"))?)));
    ask("all tenants", &|store| Ok(format!("{:?}", store.tenants(november(), None)?)));
    ask("what a receiver lacks", &|store| {
        let (ledger, journal) = (LedgerId::default(), "journal");
        let asked = Behind { journal, ledger, after: 10, until: u64::from(RIDES) };
        Ok(format!("{:?} {:?}", store.behind(&asked, 100)?, store.lacked(ledger, 20)?))
    });
    ask("hours", &|store| Ok(format!("{:?}", bill(store, "tenant,model,hour"))));
    ask("a part of an hour", &|store| {
        let second = jiff::SignedDuration::from_secs(1);
        let cut = Period::new(ride(18).started_at - second, ride(30).started_at).unwrap();
        let mut hours = String::new();
        store.hours(cut, None, |key, hour| {
            hours.push_str(&format!("{key:?} {hour:?}"));
            Ok::<_, StoreError>(())
        })?;
        Ok(hours)
    });
    ask("feeding again", &|store| {
        static JOURNALS: AtomicUsize = AtomicUsize::new(0);
        let other = format!("journal {}", JOURNALS.fetch_add(1, Relaxed));
        Ok(format!("{:?}", store.catch_up(&mut [feed_as(&other, &entries())])?.records))
    });
    asked
}

fn listed(store: &mut Store, filter: &Filter, limit: Option<u32>) -> Result<String, StoreError> {
    let mut records = String::new();
    let newest = store.newest()?;
    store.records(filter, newest, limit, |record| {
        records.push_str(&format!("{record:?}\n"));
        Ok::<_, StoreError>(())
    })?;
    Ok(records)
}

fn verified(dir: &Path) -> String {
    let mut findings = Findings::default();
    verify(dir, &mut Store::open(dir).unwrap(), &mut |_| {}, &mut findings).unwrap();
    let mut report = Vec::new();
    findings.write(&mut report).unwrap();
    String::from_utf8(report).unwrap()
}

/// A file of the same day, with as many requests, of which some have other members.
fn of_another(gateway: &str, other: impl Fn(Record) -> Record) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    catch_up(&mut store, &journal((16..24).map(|number| other(ride(number)))));
    let mut sealer = Sealer::open(dir.path(), gateway).unwrap().unwrap();
    seal(&mut sealer, &closed(5));
    fs::read(dir.path().join("days").join(DAMAGED)).unwrap()
}

/// Each question is answered as ever, or the file is named; and `verify` names it.
fn told(dir: &Path, sound: &[(&'static str, Answer)], what: &str) -> Vec<&'static str> {
    let mut told = Vec::new();
    for ((name, found), (_, expected)) in answers(dir).into_iter().zip(sound) {
        match found {
            Ok(found) => assert_eq!(&Ok(found), expected, "{name}, {what}"),
            Err(error) => {
                assert!(error.contains(DAMAGED), "{name}, {what}: {error}");
                told.push(name);
            }
        }
    }
    let report = verified(dir);
    let line = report.lines().find(|line| line.contains(DAMAGED)).unwrap_or_default();
    assert!(line.contains("requests of 2026-11-03: "), "{what}: {report}");
    told
}

#[test]
fn whatever_byte_is_flipped_each_answer_is_right_or_names_the_file() {
    let dir = tempfile::tempdir().unwrap();
    sealed(dir.path());
    let sound = answers(dir.path());
    assert!(sound.iter().all(|(_, answer)| answer.is_ok()), "{sound:?}");
    let path = dir.path().join("days").join(DAMAGED);
    let whole = fs::read(&path).unwrap();
    let mut count = 0;
    for at in (0..whole.len()).step_by(whole.len() / 23).chain(whole.len() - 3..whole.len()) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, bytes).unwrap();
        count += told(dir.path(), &sound, &format!("byte {at} of {}", whole.len())).len();
    }
    assert!(count > 100, "{count}");
    fs::write(&path, &whole).unwrap();
    assert_eq!(answers(dir.path()), sound);
}

#[test]
fn a_file_that_is_cut_or_gone_or_another_one_answers_nothing() {
    let dir = tempfile::tempdir().unwrap();
    sealed(dir.path());
    let sound = answers(dir.path());
    let path = dir.path().join("days").join(DAMAGED);
    let whole = fs::read(&path).unwrap();
    let later = |ride: Record| {
        let hour = jiff::SignedDuration::from_secs(1);
        Record { started_at: ride.started_at + hour, ended_at: ride.ended_at + hour, ..ride }
    };
    let cases = [
        ("nothing", Vec::new()),
        ("half of it", whole[..whole.len() / 2].to_vec()),
        ("all but a byte", whole[..whole.len() - 1].to_vec()),
        ("a byte more", [&*whole, b"1"].concat()),
        ("another day", fs::read(path.with_file_name("2026-11-02.parquet")).unwrap()),
        ("another gateway's", of_another("another/0", later)),
        ("as many other requests", of_another("pod-7f9c/0", later)),
    ];
    let others = |told: Vec<&str>| -> Vec<_> {
        let names = sound.iter().map(|(name, _)| *name);
        names.filter(|name| !told.contains(name)).collect()
    };
    for (what, bytes) in cases {
        fs::write(&path, bytes).unwrap();
        assert_eq!(others(told(dir.path(), &sound, what)), NOT_OF_FILE, "{what}");
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(others(told(dir.path(), &sound, "gone")), NOT_OF_FILE);
    fs::write(&path, &whole).unwrap();
    assert_eq!(answers(dir.path()), sound);
}

#[test]
fn a_day_with_a_damaged_part_waits_until_it_is_restored_and_others_are_sealed() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    catch_up(&mut store, &entries());
    let before = records(&mut store, &Filter::default(), None);
    let mut sealer = sealer(dir.path()).with_rows_max(3);
    // The first day has parts when the work ends, and some of its requests are in the tables.
    let left = std::cell::Cell::new(9);
    let go_on = || left.replace(left.get() - 1) > 1;
    let newest = sealer.newest().unwrap();
    sealer.work(&closed(1), newest, &go_on).unwrap();
    let part = dir.path().join("days/2026-11-01.part-0001.parquet");
    let whole = fs::read(&part).unwrap();
    let mut other = whole.clone();
    *other.last_mut().unwrap() ^= 1;
    // Another one in its place that can be read is not merged either.
    let twin = of_another("pod-7f9c/0", |ride| ride);
    for bytes in [Some(other), Some(twin), None] {
        match bytes {
            Some(bytes) => fs::write(&part, bytes).unwrap(),
            None => fs::remove_file(&part).unwrap(),
        }
        let work = seal(&mut sealer, &closed(5));
        assert!(work.fault().unwrap().contains("2026-11-01.part-0001.parquet"), "{work:?}");
        assert_eq!(requests_in_tables(&dir), i64::from(RIDES) - 5 * 8);
        let finals = files(dir.path()).iter().filter(|name| name.len() == 18).count();
        assert_eq!(finals, 4, "{:?}", files(dir.path()));
    }
    fs::write(&part, &whole).unwrap();
    assert_eq!(seal(&mut sealer, &closed(5)).fault(), None);
    seal(&mut sealer, &closed(5));
    assert_eq!(files(dir.path()).len(), 5, "{:?}", files(dir.path()));
    assert_eq!(records(&mut store, &Filter::default(), None), before);
}
