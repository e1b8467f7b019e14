//! The digest identifies a segment, and each segment contains the digest of the one before.

use super::*;
use crate::{Digest, Digester};

/// The result of reading a segment in two pieces.
fn digest(bytes: &[u8], split: usize) -> Option<Digest> {
    let mut reader = Reader::new(None, 1).digesting();
    for piece in [&bytes[..split], &bytes[split..]] {
        reader.feed(piece);
        while reader.next_entry().is_ok_and(|entry| entry.is_some()) {}
    }
    reader.digester().and_then(Digester::digest)
}

#[test]
fn what_is_read_has_the_digest_of_what_was_written_wherever_reads_split() {
    let (bytes, ends, _) = segment(&[void(1), void(2)], Position::START);
    let header = SegmentHeader { follows: None, ..header_of(&bytes) };
    let mut digester = header.digester(&bytes[..HEADER_BYTES]);
    assert_eq!(digester.digest(), None, "without an entry it is the one before that counts");
    digester.add(&bytes[HEADER_BYTES..ends[0]]);
    let mut written = Vec::new();
    for entry in ends.windows(2) {
        digester.add(&bytes[entry[0]..entry[1]]);
        written.push(digester.digest().unwrap());
    }
    assert_ne!(written[0], written[1]);
    for split in 0..=bytes.len() {
        assert_eq!(digest(&bytes, split), Some(written[1]), "split at byte {split}");
    }
    assert_eq!(digest(&bytes[..ends[2] - 1], 0), Some(written[0]), "half an entry is none");
}

#[test]
fn marks_change_no_digest_and_every_other_byte_does() {
    let (bytes, ends, _) = segment(&[void(1), void(2)], Position::START);
    let whole = digest(&bytes, 0).unwrap();
    let mut with_marks = bytes[..ends[1]].to_vec();
    SyncMark { synced: 1 }.append(LEDGER, &mut with_marks);
    with_marks.extend_from_slice(&bytes[ends[1]..]);
    SyncMark { synced: 2 }.append(LEDGER, &mut with_marks);
    assert_eq!(digest(&with_marks, 0), Some(whole));
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert_ne!(digest(&changed, 0), Some(whole), "byte {at}");
    }
}

#[test]
fn a_header_says_what_it_follows_and_speaks_for_it_until_it_has_entries() {
    let (before, _, position) = segment(&[void(1)], Position::START);
    let follows = digest(&before, 0);
    let (bytes, ..) = segment(&[], position);
    let header = SegmentHeader { follows, ..header_of(&bytes) };
    let mut bytes = Vec::new();
    header.encode(&mut bytes);
    assert_eq!(header_of(&bytes), header);
    assert_eq!(digest(&bytes, 0), follows);
    let lost = SegmentHeader { lost: 3, ..header };
    assert_eq!(lost.digester(&[]).digest(), None, "what it has taken the place of is not known");
}

fn header_of(bytes: &[u8]) -> SegmentHeader {
    let mut reader = Reader::new(None, 1);
    reader.feed(bytes);
    let _ = reader.next_entry();
    reader.header().unwrap().clone()
}
