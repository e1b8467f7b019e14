//! Readers accept one format, and read each kind of entry.

use super::*;

#[test]
fn another_format_is_named_with_both_versions() {
    for version in [0, 1, 2, 3, 4, 6] {
        let (mut bytes, _, _) = segment(&[void(1)], Position::START);
        bytes[8] = version;
        let crc = crc32c::crc32c(&bytes[..508]);
        bytes[508..512].copy_from_slice(&crc.to_le_bytes());
        let (entries, end) = read_whole(&bytes);
        assert!(entries.is_empty());
        let fault = Fault::Format { found: version.into(), known: 5 };
        assert_eq!(end, Err(fault.clone()));
        let told = format!("format {version} is not 5, the one that this version reads");
        assert_eq!(fault.to_string(), told);
    }
}

#[test]
fn every_kind_of_entry_reads_back_as_it_was() {
    let checkpoint = Checkpoint {
        at: at(4),
        posts: 3,
        costs: BTreeMap::from([("USD".to_owned(), Decimal::new(12, 1))]),
        oldest_open: Some(2),
        pending: vec![completion::pending(3)],
        settled: Some(Settled { at: at(4), until: at(3), request_seconds_max: 86_400 }),
        ..Checkpoint::default()
    };
    let entries = [
        progress(1, 5),
        correction(9, 1, None, Some(2)),
        completion::completing(3, Some(2)),
        Entry::Checkpoint(Box::new(checkpoint)),
    ];
    let (bytes, ..) = segment(&entries, Position::START);
    let (framed, end) = read_whole(&bytes);
    assert_eq!(end, Ok(()));
    let read: Vec<_> = framed.iter().map(|framed| framed.entry().unwrap()).collect();
    assert_eq!(read, entries);
}
