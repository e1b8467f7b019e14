//! Readers accept one format, and read each kind of entry.

use super::*;

#[test]
fn another_format_is_named_with_both_versions() {
    for version in [0, 1, 2, 3, 5] {
        let (mut bytes, _, _) = segment(&[void(1)], Position::START);
        bytes[8] = version;
        let crc = crc32c::crc32c(&bytes[..508]);
        bytes[508..512].copy_from_slice(&crc.to_le_bytes());
        let (entries, end) = read_whole(&bytes);
        assert!(entries.is_empty());
        let fault = Fault::Format { found: version.into(), known: 4 };
        assert_eq!(end, Err(fault.clone()));
        let told = format!("format {version} is not 4, the one that this version reads");
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
        ..Checkpoint::default()
    };
    let entries = [
        progress(1, 5),
        correction(9, 1, None, Some(2)),
        completion::completing(3, Some(2)),
        Entry::Checkpoint(Box::new(checkpoint)),
    ];
    let (mut bytes, mut payload, mut last) = (Vec::new(), Vec::new(), Position::START);
    let header = SegmentHeader {
        gateway: "g".to_owned(),
        before: last,
        lost: 0,
        has_sync_marks: true,
        follows: None,
        created: at(0),
    };
    header.encode(&mut bytes);
    for entry in &entries {
        last = EncodedEntry::new(entry, &mut payload).unwrap().append(last, &mut bytes);
    }
    let mut reader = Reader::new(None, 1);
    reader.feed(&bytes);
    for entry in &entries {
        assert_eq!(&reader.next_entry().unwrap().unwrap().entry().unwrap(), entry);
    }
}
