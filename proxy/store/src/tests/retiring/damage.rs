//! Files that cannot be read: bills say so or are right, and what else is old goes.

use std::sync::Arc;

use taximeter_journal::disk_budget::DiskBudget;
use taximeter_journal::room::{Filler, RoomLimits};

use super::*;

/// A store of five days in a file each, and what it bills.
fn sealed(dir: &Path) -> (Store, Sealer, Bills) {
    let mut store = Store::open(dir).unwrap();
    History::in_order().feed_all(&mut store);
    let mut sealer = sealer(dir);
    seal(&mut sealer, 9);
    seal(&mut sealer, 9);
    let before = bills(&mut store);
    (store, sealer, before)
}

/// The same, and the files are opened anew later.
fn sealed_and_closed(dir: &Path) -> (Store, Bills) {
    let (store, _, before) = sealed(dir);
    (store, before)
}

fn damage(path: &Path) -> Vec<u8> {
    let whole = fs::read(path).unwrap();
    let mut bytes = whole.clone();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(path, bytes).unwrap();
    whole
}

/// The days that have files.
fn days(dir: &Path) -> Vec<String> {
    let names = files(dir, "days").into_iter();
    names.map(|name| name.trim_end_matches(".parquet").to_owned()).collect()
}

#[test]
fn whatever_byte_of_a_file_of_hours_is_flipped_bills_are_right_or_name_it() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut sealer, expected) = sealed(dir.path());
    seal(&mut sealer, 90);
    seal(&mut sealer, 90);
    let path = dir.path().join("hours/2026-11.parquet");
    let whole = fs::read(&path).unwrap();
    let mut told = 0;
    for at in (0..whole.len()).step_by(whole.len() / 40).chain(whole.len() - 3..whole.len()) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, bytes).unwrap();
        let mut store = Store::open(dir.path()).unwrap();
        let mut hours = BTreeMap::<HourKey, Hour>::new();
        let asked = store.hours(november(), None, |key, hour| {
            hours.entry(key.clone()).or_default().add(hour).unwrap();
            Ok::<_, StoreError>(())
        });
        match asked {
            Ok(()) => assert_eq!(hours, expected.hours, "byte {at}"),
            Err(error) => {
                assert!(error.to_string().contains("2026-11.parquet"), "byte {at}: {error}");
                told += 1;
            }
        }
        let report = verified(&dir, &mut store);
        assert!(report.contains("hours/2026-11.parquet, which has sums"), "byte {at}: {report}");
    }
    assert!(told > 20, "{told}");
}

#[test]
fn hours_of_another_gateway_in_place_of_those_that_were_written_are_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, mut sealer, _) = sealed(dir.path());
    seal(&mut sealer, 90);
    let other = tempfile::tempdir().unwrap();
    let mut others = Store::open(other.path()).unwrap();
    let dear =
        |number| Record { tenant: taximeter_ledger::TenantId("dear".into()), ..ride(number) };
    catch_up(&mut others, &journal((0..RIDES).map(dear)));
    let mut sealer = Sealer::open(other.path(), "another/0").unwrap().unwrap();
    for days in [9, 90, 90] {
        seal(&mut sealer, days);
    }
    let name = "hours/2026-11.parquet";
    fs::copy(other.path().join(name), dir.path().join(name)).unwrap();
    drop(store);
    store = Store::open(dir.path()).unwrap();
    let asked = store.hours(november(), None, |_, _| Ok::<_, StoreError>(()));
    assert!(asked.unwrap_err().to_string().contains(name));
    assert!(verified(&dir, &mut store).contains(name));
}

#[test]
fn an_old_day_that_cannot_be_read_stays_and_is_told_and_the_others_go() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, before) = sealed_and_closed(dir.path());
    let [path, hours] = ["days/2026-11-01.parquet", "hours"].map(|name| dir.path().join(name));
    let whole = damage(&path);
    let mut sealer = sealer(dir.path());
    let gone = sealer.remove_old_days(closed(3).closed_until, later(), &|| true).unwrap();
    let gone: Vec<_> = gone.iter().map(|day| day.day.to_string()).collect();
    assert_eq!(gone, ["2026-11-02", "2026-11-03"]);
    assert_eq!(days(dir.path()), ["2026-11-01", "2026-11-04", "2026-11-05"]);
    assert_eq!(bills(&mut store), before);
    for _ in 0..2 {
        let work = seal(&mut sealer, 9);
        assert!(work.fault().unwrap().contains("2026-11-01.parquet"), "{work:?}");
        assert_eq!(sealer.remove_old_days(later(), later(), &|| false).unwrap(), []);
        let gone = sealer.remove_old_days(closed(3).closed_until, later(), &|| true).unwrap();
        assert_eq!(gone, []);
    }
    fs::write(&path, whole).unwrap();
    seal(&mut sealer, 9);
    // Its hours are in a file before it goes, which the disk refuses once.
    fs::rename(&hours, dir.path().join("moved")).unwrap();
    fs::write(&hours, "").unwrap();
    assert!(sealer.remove_old_days(closed(3).closed_until, later(), &|| true).is_err());
    fs::remove_file(&hours).unwrap();
    fs::rename(dir.path().join("moved"), &hours).unwrap();
    assert_eq!(sealer.remove_old_days(closed(3).closed_until, later(), &|| true).unwrap().len(), 1);
    assert_eq!(seal(&mut sealer, 9).fault(), None);
    assert_eq!(bills(&mut store), before);
}

#[test]
fn room_is_made_of_the_oldest_days_that_can_be_read_and_of_no_more_than_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, before) = sealed_and_closed(dir.path());
    let budget = Arc::new(DiskBudget::default());
    let look = |bytes_max| {
        let limits = RoomLimits { bytes_max: Some(bytes_max), segment_bytes: 1, serves: false };
        budget.look(dir.path(), &limits).unwrap();
    };
    look(u64::MAX);
    damage(&dir.path().join("days/2026-11-01.parquet"));
    let mut sealer = sealer(dir.path());
    assert!(sealer.make_room(&budget, later(), &|| true).unwrap().is_none());
    // A little too much is used of it, and no segment of a journal may go.
    let used = budget.bytes().unwrap();
    look(used * 5 / 4 - 5);
    let made = taximeter_journal::make_room(dir.path(), (0, 0), &budget).unwrap();
    assert!(made.is_none() && budget.needs_days());
    let made = sealer.make_room(&budget, later(), &|| true).unwrap().unwrap();
    let gone: Vec<_> = made.days.iter().map(|day| day.day.to_string()).collect();
    assert_eq!((gone, made.filler), (vec!["2026-11-02".to_owned()], Filler::Own));
    assert!(!budget.needs_days());
    assert_eq!(days(dir.path()), ["2026-11-01", "2026-11-03", "2026-11-04", "2026-11-05"]);
    assert_eq!(bills(&mut store), before);
    // All that may go is not enough.
    look(used / 2);
    sealer.make_room(&budget, later(), &|| true).unwrap();
    assert_eq!(days(dir.path()), ["2026-11-01"]);
    assert!(sealer.make_room(&budget, later(), &|| true).unwrap().is_none());
    assert!(seal(&mut sealer, 9).fault().unwrap().contains("2026-11-01.parquet"));
    assert_eq!(bills(&mut store), before);
}
