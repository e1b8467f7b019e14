//! After damage, readers go on at an entry that is surely as it was written.

use super::*;

/// A segment, where its frames begin, and the position of the frame before each.
fn frames(entries: &[Entry]) -> (Vec<u8>, Vec<usize>, Vec<Position>) {
    let (bytes, ends, _) = segment(entries, Position { seq: 40, chain: 7 });
    let (framed, end) = read_whole(&bytes);
    assert_eq!(end, Ok(()));
    let befores = [begin(&bytes)].into_iter();
    let befores = befores.chain(framed.iter().map(FramedEntry::position)).collect();
    (bytes, ends, befores)
}

proptest! {
    #[test]
    fn a_flipped_bit_costs_one_entry(entries in entries(), byte: Index, bit in 0..8u8) {
        let (mut bytes, ends, befores) = frames(&entries);
        let byte = ends[0] + byte.index(bytes.len() - ends[0]);
        let damaged = ends.iter().rposition(|end| *end <= byte).unwrap();
        bytes[byte] ^= 1 << bit;
        let found = find_resume_point(&bytes, LEDGER, ends[damaged] as u64, Some(befores[damaged]));
        let next = damaged + 1;
        let expected = (next < entries.len())
            .then(|| ResumePoint { offset: ends[next] as u64, before: befores[next] });
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn whatever_is_overwritten_nothing_is_made_up(
        entries in entries(), from: Index, length in 1..2_000usize, noise: u8,
    ) {
        let (mut bytes, ends, befores) = frames(&entries);
        let from = ends[0] + from.index(bytes.len() - ends[0]);
        let to = (from + length).min(bytes.len());
        bytes[from..to].fill(noise);
        let damaged = ends.iter().rposition(|end| *end <= from).unwrap();
        // The noise may equal the bytes that it replaces. Then the search still finds the next entry.
        let found = find_resume_point(&bytes, LEDGER, ends[damaged] as u64, Some(befores[damaged]));
        if let Some(ResumePoint { offset, before }) = found {
            let index = ends.iter().position(|end| *end as u64 == offset).unwrap();
            prop_assert!(index > damaged && before == befores[index]);
        }
        // Two whole frames after the damage are enough.
        let whole = ends.iter().filter(|end| **end >= to && **end < bytes.len()).count();
        prop_assert!(found.is_some() || whole < 2, "{} whole frames", whole);
    }

    #[test]
    fn a_damaged_header_costs_no_entry(entries in entries(), byte in 0..512usize) {
        let (mut bytes, ends, befores) = frames(&entries);
        bytes[byte] ^= 1;
        // The frame with which strings begin is found, or else the entry behind it.
        let last = Position { seq: 40, chain: 7 };
        let known = find_resume_point(&bytes, LEDGER, 0, Some(last));
        let header = HEADER_BYTES as u64;
        prop_assert_eq!(known, Some(ResumePoint { offset: header, before: last }));
        let unknown = find_resume_point(&bytes, LEDGER, 0, None);
        let first = ResumePoint { offset: ends[0] as u64, before: befores[0] };
        prop_assert_eq!(unknown, Some(first));
    }

    #[test]
    fn any_bytes_are_searched(bytes in vec(any::<u8>(), 0..3_000), offset in 0..4_000u64) {
        prop_assert_eq!(find_resume_point(&bytes, LEDGER, offset, Some(Position { seq: 9, chain: 1 })), None);
    }
}

#[test]
fn a_text_that_looks_like_an_entry_is_none() {
    // A client sends the frames of another journal as its id.
    let (other, ends, _) = frames(&[void(1), void(2), void(3)]);
    let text = String::from_utf8_lossy(&other[ends[0]..]).into_owned();
    let mut entry = reserve(5, None);
    entry.request_id = text;
    let (mut bytes, ends, befores) = frames(&[Entry::Reserve(Box::new(entry)), void(5)]);
    bytes[ends[0]] ^= 1;
    let found = find_resume_point(&bytes, LEDGER, ends[0] as u64, Some(befores[0]));
    assert_eq!(found, Some(ResumePoint { offset: ends[1] as u64, before: befores[1] }));
}
