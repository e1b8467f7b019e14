//! Readers find sync marks anywhere, read entries past them, and mistake nothing else for one.

use super::*;

const BEFORE: Position = Position { seq: 40, chain: 7 };

/// A segment with a sync mark after every entry, where its marks begin, and the position of the
/// frame before each.
fn with_marks(entries: &[Entry]) -> (Vec<u8>, Vec<usize>, Vec<Position>) {
    let (mut bytes, _, _) = segment(&[], BEFORE);
    let (mut framer, mut marks, mut befores) =
        (Framer::new(LEDGER, BEFORE), Vec::new(), Vec::new());
    for entry in entries {
        let mut payload = Vec::new();
        let entry = EncodedEntry::new(entry, &mut payload).unwrap();
        let position = framer.append(&entry, &mut bytes);
        marks.push(bytes.len());
        befores.push(position);
        SyncMark { synced: position.seq }.append(LEDGER, &mut bytes);
    }
    (bytes, marks, befores)
}

proptest! {
    #[test]
    fn entries_are_read_past_marks(entries in entries(), split in any::<Index>()) {
        let (bytes, _, befores) = with_marks(&entries);
        let (head, tail) = bytes.split_at(split.index(bytes.len()));
        let (framed, end) = read(Reader::new(None, 1), &[head, tail]);
        prop_assert_eq!((plain(framed), end), (numbered(&entries, 41), Ok(())));
        prop_assert_eq!(SyncMark::last_in(&bytes, LEDGER), befores.last().map(|last| last.seq));
    }

    #[test]
    fn a_mark_that_was_cut_off_is_a_torn_end(entries in entries(), left in 1..25usize) {
        let (bytes, marks, _) = with_marks(&entries);
        let last = *marks.last().unwrap();
        let (framed, end) = read_whole(&bytes[..last + left]);
        prop_assert_eq!(plain(framed), numbered(&entries, 41));
        prop_assert_eq!(end, Err(Fault::Torn { offset: last as u64, bytes: left as u64 }));
    }

    #[test]
    fn a_bit_that_turns_over_in_a_mark_is_found_and_costs_no_entry(
        entries in entries(), which: Index, bit in 0..25 * 8usize,
    ) {
        let (mut bytes, marks, befores) = with_marks(&entries);
        let which = which.index(marks.len());
        bytes[marks[which] + bit / 8] ^= 1 << (bit % 8);
        let (framed, end) = read_whole(&bytes);
        prop_assert_eq!(plain(framed), numbered(&entries[..=which], 41));
        let offset = marks[which] as u64;
        let is_found = matches!(end, Err(Fault::Damaged { offset: at, .. }) if at == offset);
        prop_assert!(is_found, "{:?}", end);
        let found = find_resume_point(&bytes, LEDGER, offset, Some(befores[which]));
        let next = (which + 1 < entries.len())
            .then(|| ResumePoint { offset: offset + 25, before: befores[which] });
        prop_assert_eq!(found, next);
    }

    #[test]
    fn an_entry_that_is_lost_before_a_mark_costs_only_itself(entries in entries(), which: Index) {
        let (mut bytes, marks, befores) = with_marks(&entries);
        let which = which.index(entries.len());
        let begins = if which == 0 { BEGIN_BYTES } else { marks[which - 1] + 25 };
        bytes[begins + 14] ^= 1;
        let before = if which == 0 { begin(&bytes) } else { befores[which - 1] };
        let found = find_resume_point(&bytes, LEDGER, begins as u64, Some(before));
        let next = (which + 1 < entries.len())
            .then(|| ResumePoint { offset: marks[which] as u64 + 25, before: befores[which] });
        prop_assert_eq!(found, next);
        // The marks after the damaged entry say that it was synced.
        prop_assert_eq!(SyncMark::last_in(&bytes[begins..], LEDGER), Some(40 + entries.len() as u64));
    }
}

#[test]
fn a_text_that_looks_like_a_mark_is_none() {
    let mut mark = Vec::new();
    SyncMark { synced: 99 }.append(LedgerId::default(), &mut mark);
    let text = String::from_utf8_lossy(&mark).into_owned();
    let entry = Reserve { request_id: text, ..reserve(5, None) };
    let (bytes, ..) = segment(&[Entry::Reserve(Box::new(entry))], BEFORE);
    assert_eq!(SyncMark::last_in(&bytes, LEDGER), None);
}

#[test]
fn a_mark_of_what_is_not_there_is_damage() {
    let (mut bytes, _, position) = segment(&[void(1)], BEFORE);
    let offset = bytes.len() as u64;
    SyncMark { synced: position.seq + 1 }.append(LEDGER, &mut bytes);
    let (_, end) = read_whole(&bytes);
    assert!(matches!(end, Err(Fault::Damaged { offset: at, .. }) if at == offset), "{end:?}");
}
