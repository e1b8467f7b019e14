//! Tests which ledger a journal is, and that a copy is another one.

use taximeter_ledger::LedgerId;

use super::*;

/// A journal with entries of these requests, in many segments.
fn written(requests: std::ops::Range<u128>) -> Bench {
    let bench = Bench { segment_bytes: 400, ..Bench::new(Durability::Group) };
    let (journal, _) = bench.open();
    for request in requests {
        append(&journal, &void(request)).unwrap();
    }
    journal.close().unwrap();
    bench
}

/// Copies it as a backup does.
fn copied(of: &Bench) -> Bench {
    let copy = Bench { segment_bytes: 400, ..Bench::new(Durability::Group) };
    for path in of.segments() {
        fs::copy(&path, copy.dir.path().join(path.file_name().unwrap())).unwrap();
    }
    let text = fs::read_to_string(of.dir.path().join(LEDGER)).unwrap();
    fs::write(copy.dir.path().join(LEDGER), in_copy(&text)).unwrap();
    copy
}

fn go_on(bench: &Bench, requests: std::ops::Range<u128>) {
    let (journal, _) = bench.open();
    for request in requests {
        append(&journal, &void(request)).unwrap();
    }
    journal.close().unwrap();
}

fn known(bench: &Bench) -> Identity {
    identity(bench.dir.path()).unwrap().unwrap()
}

/// The ledgers of the segments, in order.
fn ledgers(bench: &Bench) -> Vec<LedgerId> {
    let header = |path: &PathBuf| files::header(path, &Kernel).unwrap().unwrap().ledger;
    let mut ledgers: Vec<_> = bench.segments().iter().map(header).collect();
    ledgers.dedup();
    ledgers
}

#[test]
fn an_identity_is_made_once_and_outlives_its_file() {
    let bench = written(1..3);
    let first = known(&bench);
    assert_eq!((first.copy_of.len(), ledgers(&bench)), (0, vec![first.id]));
    go_on(&bench, 3..4);
    assert_eq!(known(&bench), first);
    fs::remove_file(bench.dir.path().join(LEDGER)).unwrap();
    go_on(&bench, 4..5);
    assert_eq!(known(&bench), first);
    assert_ne!(known(&written(1..3)).id, first.id);
}

#[test]
fn a_copy_is_another_ledger_that_names_the_first_and_has_its_entries() {
    let original = written(1..8);
    let copy = copied(&original);
    assert_eq!(known(&copy).id, known(&original).id, "nobody has written to it");
    assert_eq!(copy.requests(), (1..8).collect::<Vec<_>>());
    go_on(&copy, 8..15);
    go_on(&copy, 15..20);
    let (first, second) = (known(&original), known(&copy));
    assert_ne!(second.id, first.id);
    assert_eq!(second.copy_of, [first.id]);
    assert_eq!(ledgers(&copy), [first.id, second.id]);
    assert_eq!(copy.requests(), (1..20).collect::<Vec<_>>());

    // So is the copy of the copy.
    let again = copied(&copy);
    go_on(&again, 20..22);
    let third = known(&again);
    assert_eq!(third.copy_of, [second.id, first.id]);
    assert_eq!(ledgers(&again), [first.id, second.id, third.id]);
    assert_eq!(again.requests(), (1..22).collect::<Vec<_>>());
    let examined = examine(again.dir.path(), |_, _| (), drop).unwrap();
    assert!(examined.faults.is_empty() && examined.altered.is_empty(), "{examined:?}");
    assert!(examined.unreadable.is_empty(), "{examined:?}");

    // The first one is as it was.
    go_on(&original, 8..9);
    assert_eq!((known(&original), ledgers(&original)), (first.clone(), vec![first.id]));
}

#[test]
fn damage_of_either_ledger_is_left_out_and_costs_its_entry_alone() {
    for goes_on in [false, true] {
        // A start reads all that follows the last checkpoint.
        let original = Bench::new(Durability::Group);
        go_on(&original, 1..8);
        let first = known(&original).id;
        for entry in 0..if goes_on { 12 } else { 6 } {
            let copy = Bench { segment_bytes: SEGMENT_BYTES, ..copied(&original) };
            if goes_on {
                go_on(&copy, 8..15);
            }
            let before = copy.requests();
            let entries: Vec<_> = copy.read(1).into_iter().filter(is_of_a_request).collect();
            let entry = &entries[entry];
            let path = copy.segment_of(entry.seq);
            let mut bytes = fs::read(&path).unwrap();
            bytes[usize::try_from(entry.offset).unwrap() + 17] ^= 1;
            fs::write(&path, bytes).unwrap();
            if goes_on && entry.seq <= 7 {
                // The copy has said in a checkpoint what these add up to.
                copy.try_open_as(OnDamage::Strict).unwrap();
                continue;
            }
            let error = copy.try_open_as(OnDamage::Strict).map(drop).unwrap_err();
            assert!(matches!(error, JournalError::Segment { .. }), "{error}");
            let (journal, recovery) = copy.open_as(OnDamage::Salvage);
            let lost: u64 = recovery.losses.iter().map(|loss| loss.entries).sum();
            assert_eq!(lost, 1, "{:?}", recovery.losses);
            append(&journal, &void(99)).unwrap();
            journal.close().unwrap();
            let read = copy.read(1);
            let left = read.iter().filter(|it| is_of_a_request(it)).map(number);
            let expected = before.iter().copied().filter(|it| *it != number(entry));
            assert!(left.eq(expected.chain([99])), "{entry:?}");
            assert_eq!(ledgers(&copy), [first, known(&copy).id]);
        }
    }
}

#[test]
fn a_file_that_a_power_cut_has_emptied_is_written_again() {
    let bench = written(1..3);
    let first = known(&bench);
    for text in ["", "\0\0\0\0", "copied\n"] {
        fs::write(bench.dir.path().join(LEDGER), text).unwrap();
        go_on(&bench, 3..4);
        assert_eq!(known(&bench), first, "{text:?}");
    }
}
