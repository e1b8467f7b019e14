//! The process ends at any step of sealing and merging, and volumes fill up.

use std::cell::Cell;

use super::*;

/// All that a store says.
fn all(store: &mut Store) -> (Vec<Record>, Bill) {
    (records(store, &Filter::default(), None), bill(store, "tenant,model,hour"))
}

#[test]
fn wherever_the_process_ends_each_request_is_there_once() {
    let entries = journal((0..16).map(ride));
    let (mut twin, mut ended) = (None, 0);
    for steps in 0_u32.. {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(dir.path()).unwrap();
        catch_up(&mut store, &entries);
        let expected = twin.get_or_insert_with(|| all(&mut store));
        // It ends after so many steps of each run, and goes on with the next one.
        for run in 0..3 {
            let mut sealer = sealer(dir.path()).with_rows_max(3);
            let (left, newest) = (Cell::new(steps), sealer.newest().unwrap());
            let go_on = || left.replace(left.get().saturating_sub(1)) > 0;
            sealer.work(&closed(1), newest, &go_on).unwrap();
            ended += i32::from(left.get() == 0);
            drop(sealer);
            assert_eq!(&all(&mut store), expected, "{steps} steps, run {run}");
            let mut anew = Store::open(dir.path()).unwrap();
            assert_eq!(&all(&mut anew), expected, "{steps} steps, run {run}, opened anew");
            assert_eq!(catch_up(&mut anew, &entries).records, 0);
            if left.get() > 0 && run == 0 {
                assert!(ended > 20, "{ended}");
                assert_eq!(requests_in_tables(&dir), 8);
                return;
            }
        }
        seal(&mut sealer(dir.path()), &closed(1));
        seal(&mut sealer(dir.path()), &closed(1));
        assert_eq!(&all(&mut store), expected, "{steps} steps, in the end");
        assert_eq!(files(dir.path()).len(), 1, "{steps} steps: {:?}", files(dir.path()));
        assert!(files(dir.path()).iter().all(|name| name.len() == 18), "{steps} steps");
    }
}

#[test]
fn a_file_that_cannot_be_written_leaves_all_requests_where_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    catch_up(&mut store, &journal((0..20).map(ride)));
    let before = all(&mut store);
    let mut sealer = sealer(dir.path());
    // A folder in its place, as root writes read-only folders too.
    let name = "days/2026-11-01.part-0001.parquet";
    fs::create_dir(dir.path().join(format!("{name}.tmp"))).unwrap();
    let newest = sealer.newest().unwrap();
    let error = sealer.work(&closed(9), newest, &|| true).unwrap_err().to_string();
    assert!(error.contains(name) || error.contains("days"), "{error}");
    assert_eq!(all(&mut store), before);
    fs::remove_dir(dir.path().join(format!("{name}.tmp"))).unwrap();
    assert_eq!(seal(&mut sealer, &closed(9)).sealed, 20);
    assert_eq!(all(&mut store), before);
}

#[test]
fn a_store_that_is_built_anew_while_a_file_is_written_keeps_all_requests() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let entries = journal((0..20).map(ride));
    catch_up(&mut store, &entries);
    let before = all(&mut store);
    let mut sealer = sealer(dir.path());
    let (newest, looks) = (sealer.newest().unwrap(), Cell::new(0));
    let go_on = || {
        looks.set(looks.get() + 1);
        if looks.get() == 4 {
            let mut other = Store::open(dir.path()).unwrap();
            other.rebuild(&mut [feed(&entries[5..])]).unwrap();
        }
        true
    };
    let error = sealer.work(&closed(9), newest, &go_on).unwrap_err().to_string();
    assert!(error.contains("built anew"), "{error}");
    assert_eq!(all(&mut store), before);
    seal(&mut sealer, &closed(9));
    assert_eq!(all(&mut store), before);
}

#[test]
fn a_file_that_nobody_names_stays_if_its_requests_are_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    catch_up(&mut store, &journal((0..20).map(ride)));
    let mut sealer = sealer(dir.path());
    seal(&mut sealer, &closed(9));
    seal(&mut sealer, &closed(9));
    let name = "2026-11-02.parquet";
    connect(&dir).execute("DELETE FROM days WHERE name = ?1", [name]).unwrap();
    assert_eq!(seal(&mut sealer, &closed(9)).unknown, [name]);
    assert!(files(dir.path()).contains(&name.to_owned()));
}

#[test]
fn a_reader_that_holds_a_moment_reads_files_that_were_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(dir.path()).unwrap();
    let entries = journal((0..40).map(ride));
    catch_up(&mut store, &entries[..38]);
    let before = records(&mut store, &Filter::default(), None);
    let mut sealer = sealer(dir.path()).with_rows_max(3);
    // Parts alone: it ends before they are merged.
    let (left, newest) = (Cell::new(7), sealer.newest().unwrap());
    sealer.work(&closed(9), newest, &|| left.replace(left.get().max(1) - 1) > 1).unwrap();
    let live = files(dir.path());
    assert!(live.iter().any(|name| name.contains("part")), "{live:?}");
    let held = store.at_one_moment(|store| {
        let newest = store.newest()?;
        for _ in 0..3 {
            seal(&mut sealer, &closed(9));
        }
        let now = files(dir.path());
        assert!(now.iter().all(|name| !name.contains("part")), "{now:?}");
        let mut held = Vec::new();
        store.records(&Filter::default(), newest, None, |record| {
            held.push(record.clone());
            Ok::<_, StoreError>(())
        })?;
        Ok::<_, StoreError>(held)
    });
    assert_eq!(held.unwrap(), before);
    assert_eq!(records(&mut store, &Filter::default(), None), before);
}
