//! Tests with foreign files in the directory, and with files of a later version.

use taximeter_ledger::{FORMAT_VERSION, HEADER_BYTES};

use super::*;

fn filled() -> Bench {
    let bench = Bench { segment_bytes: 200, ..Bench::new(Durability::Os) };
    let (journal, _) = bench.open();
    for request in 0..16 {
        append(&journal, &void(request)).unwrap();
    }
    drop(journal);
    assert!(bench.segments().len() > 2);
    bench
}

/// Why a start is refused that may leave out whatever is damaged; nothing is changed by it.
fn refused(bench: &Bench) -> String {
    let contents = || bench.segments().iter().map(|path| fs::read(path).unwrap()).collect();
    let before: Vec<_> = contents();
    let refused = bench.try_open_as(OnDamage::Salvage).map(drop).unwrap_err().to_string();
    let after: Vec<_> = contents();
    assert!(before == after, "{refused}");
    refused
}

#[test]
fn a_journal_of_another_version_is_left_alone_and_both_versions_are_named() {
    for (found, advice) in [
        (FORMAT_VERSION + 1, "use the newer taximeter that wrote it"),
        (FORMAT_VERSION - 1, "run `taximeter convert --data-dir "),
        (FORMAT_VERSION - 2, "use the older taximeter that wrote it, or another data_dir"),
    ] {
        let bench = filled();
        let path = bench.last_segment();
        let mut bytes = fs::read(&path).unwrap();
        bytes[8..10].copy_from_slice(&found.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..HEADER_BYTES - 4]);
        bytes[HEADER_BYTES - 4..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        fs::write(&path, bytes).unwrap();
        let said = refused(&bench);
        let versions =
            format!("format {found} is not {FORMAT_VERSION}, the one that this version reads");
        assert!(said.contains(&versions) && said.contains(advice), "{said}");
    }
}

#[test]
fn what_others_have_in_the_directory_is_no_part_of_the_journal_and_stays() {
    let bench = filled();
    let requests = bench.requests();
    let names = ["notes.txt", "journal-x.tlj", "journal-00000000000000000002.tlj.bak", "store"];
    let files = names.map(|name| bench.dir.path().join(name));
    for file in &files {
        fs::write(file, "somebody else's").unwrap();
    }
    let (journal, recovery) = bench.open();
    assert!(recovery.losses.is_empty() && recovery.torn_bytes == 0, "{recovery:?}");
    append(&journal, &void(99)).unwrap();
    drop(journal);
    assert_eq!(bench.requests(), [&requests[..], &[99]].concat());
    assert!(files.iter().all(|file| fs::read(file).unwrap() == b"somebody else's"));
}

#[test]
fn a_file_that_only_has_the_name_of_a_segment_stops_the_start() {
    let bench = filled();
    fs::write(bench.last_segment(), "somebody else's, longer than a header".repeat(20)).unwrap();
    let error = bench.try_open().map(drop).unwrap_err().to_string();
    assert!(error.contains("damaged at byte 0: magic is 0x"), "{error}");
}
