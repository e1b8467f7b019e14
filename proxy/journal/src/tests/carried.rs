//! Tests of the requests that a segment carries over: a start needs no older segment for them.

use taximeter_ledger::{Digester, FramedEntry, HEADER_BYTES, Reader, SegmentHeader, frame_bytes};

use super::super::read::last_checkpoint;
use super::bench::progress;
use super::*;

/// The kinds of carried frames.
const KINDS: [u8; 2] = [0x83, 0x84];

/// The kind and the bytes of each frame of a segment.
fn frames(segment: &[u8]) -> Vec<(u8, &[u8])> {
    let (mut frames, mut rest) = (Vec::new(), &segment[HEADER_BYTES..]);
    while let Some(length) = frame_bytes(rest) {
        let (frame, behind) = rest.split_at(length);
        frames.push((frame[3], frame));
        rest = behind;
    }
    frames
}

/// The frames that a segment carries over.
pub(super) fn carried(segment: &[u8]) -> Vec<&[u8]> {
    let frames = frames(segment).into_iter();
    frames.filter(|(kind, _)| KINDS.contains(kind)).map(|(_, frame)| frame).collect()
}

/// Makes of a journal what a version writes that carries nothing over.
pub(super) fn forget_carried(bench: &Bench) {
    let mut follows = None;
    for path in bench.segments() {
        let bytes = fs::read(&path).unwrap();
        let header = files::header(&path, &Kernel).unwrap().unwrap();
        let mut kept = Vec::new();
        SegmentHeader { follows, ..header }.encode(&mut kept);
        for (kind, frame) in frames(&bytes) {
            if !KINDS.contains(&kind) {
                kept.extend_from_slice(frame);
            }
        }
        fs::write(&path, &kept).unwrap();
        let mut reader = Reader::new(None, u64::MAX).digesting();
        reader.feed(&kept);
        assert_eq!(reader.next_entry(), Ok(None));
        follows = reader.digester().and_then(Digester::digest);
    }
}

/// A journal of some segments in which requests 90 and 91 are open from the first one on.
fn filled(durability: Durability) -> Bench {
    let bench = Bench { segment_bytes: 400, ..Bench::new(durability) };
    let (journal, _) = bench.open();
    for entry in [reserve(90), progress(90, 5), reserve(91), progress(90, 9)] {
        append(&journal, &entry).unwrap();
    }
    for request in 0..20 {
        append(&journal, &reserve(request)).unwrap();
        append(&journal, &post(request)).unwrap();
    }
    drop(journal);
    assert!(bench.segments().len() > 5);
    bench
}

/// What died, and the tokens that it had generated.
fn died(recovery: &Recovery) -> Vec<(u128, Option<u64>)> {
    let died = |record: &Record| (record.id.0.as_u128(), record.usage.output_tokens);
    recovery.died.iter().map(died).collect()
}

#[test]
fn a_request_that_is_open_across_segments_is_posted_once_without_the_old_ones() {
    for durability in [Durability::Os, Durability::Group, Durability::Sync] {
        let bench = filled(durability);
        let mut segments = bench.segments();
        segments.pop();
        segments.iter().for_each(|path| fs::remove_file(path).unwrap());
        let (journal, recovery) = bench.open();
        assert_eq!(died(&recovery), [(90, Some(9)), (91, None)]);
        assert_eq!((recovery.posts, recovery.strays, recovery.losses.len()), (20, 0, 0));
        drop(journal);
        let (_, recovery) = bench.open();
        assert_eq!((died(&recovery), recovery.posts), (vec![], 22));
    }
}

#[test]
fn old_files_go_while_a_request_is_open_and_a_request_that_ends_is_carried_no_longer() {
    let bench = filled(Durability::Os);
    let later = jiff::Timestamp::from_second(1).unwrap();
    let removed = retain::retire(bench.dir.path(), later, u64::MAX).unwrap();
    assert!(removed.len() > 5 && bench.segments().len() == 1);
    let (journal, _) = bench.open();
    for request in 20..30 {
        append(&journal, &reserve(request)).unwrap();
        append(&journal, &post(request)).unwrap();
    }
    drop(journal);
    // A reservation may end a segment, and its post begin the next.
    let last = fs::read(bench.last_segment()).unwrap();
    assert!(carried(&last).len() <= 1);
    assert_eq!(bench.open().1.posts, 32);
}

#[test]
fn what_is_carried_over_is_no_entry_and_changes_no_digest_but_that_of_its_segment() {
    let bench = filled(Durability::Group);
    for path in &bench.segments()[3..] {
        assert!(carried(&fs::read(path).unwrap()).len() >= 3, "two requests and one progress");
    }
    let examined = examine(bench.dir.path(), |_, _| (), drop).unwrap();
    assert!(examined.faults.is_empty() && examined.altered.is_empty(), "{examined:?}");
    let whole = bench.read(1);
    forget_carried(&bench);
    let examined = examine(bench.dir.path(), |_, _| (), drop).unwrap();
    assert!(examined.faults.is_empty() && examined.altered.is_empty(), "{examined:?}");
    let entries = |framed: &[FramedEntry]| -> Vec<_> {
        framed.iter().map(|framed| (framed.position(), framed.payload.clone())).collect()
    };
    assert_eq!(entries(&bench.read(1)), entries(&whole));
}

#[test]
fn a_journal_that_carries_nothing_over_is_read_from_its_oldest_open_reservation() {
    let bench = filled(Durability::Os);
    forget_carried(&bench);
    let later = jiff::Timestamp::from_second(1).unwrap();
    assert_eq!(retain::retire(bench.dir.path(), later, u64::MAX).unwrap(), [] as [&Path; 0]);
    let (_, recovery) = bench.open();
    assert_eq!((recovery.from_seq, recovery.posts, recovery.strays), (1, 20, 0));
    assert_eq!(died(&recovery), [(90, Some(9)), (91, None)]);
}

#[test]
fn where_carried_frames_are_damaged_the_old_segments_have_their_entries() {
    let whole = fs::read(filled(Durability::Os).last_segment()).unwrap();
    let end = HEADER_BYTES + carried(&whole).iter().map(|frame| frame.len()).sum::<usize>();
    for at in HEADER_BYTES..end {
        let bench = filled(Durability::Os);
        let mut bytes = fs::read(bench.last_segment()).unwrap();
        bytes[at] ^= 1;
        fs::write(bench.last_segment(), &bytes).unwrap();
        let refused = bench.try_open().map(drop);
        assert!(matches!(refused, Err(JournalError::Segment { .. })), "{at}: {refused:?}");
        let (_, recovery) = bench.open_as(OnDamage::Salvage);
        let [loss] = &recovery.losses[..] else { panic!("{at}: {:?}", recovery.losses) };
        assert_eq!(loss.entries, 0, "{at}: {loss:?}");
        assert_eq!(recovery.from_seq, 1, "{at}");
        assert_eq!((recovery.posts, recovery.strays), (20, 0), "{at}");
        assert_eq!(died(&recovery), [(90, Some(9)), (91, None)], "{at}");
    }
}

#[test]
fn a_carried_frame_that_is_cut_out_is_noticed() {
    let sample = filled(Durability::Os);
    let disk: Arc<dyn Disk> = Arc::new(Kernel);
    let bytes = fs::read(sample.last_segment()).unwrap();
    let frames = carried(&bytes).len();
    let from = || last_checkpoint(&disk, sample.dir.path()).unwrap().unwrap().from;
    assert!(from() > 1);
    for left_out in 0..frames {
        let gone = carried(&bytes)[left_out];
        let at = gone.as_ptr() as usize - bytes.as_ptr() as usize;
        let rest = [&bytes[..at], &bytes[at + gone.len()..]].concat();
        fs::write(sample.last_segment(), rest).unwrap();
        assert_eq!(from(), 1, "{left_out}");
    }
}

#[test]
fn what_is_carried_over_is_written_again_after_a_sync_that_failed() {
    let bench = Bench { segment_bytes: 400, ..Bench::new(Durability::Group) };
    let (journal, _) = bench.open();
    for request in 0..30 {
        append(&journal, &reserve(request)).unwrap();
        append(&journal, &progress(request, 7)).unwrap();
        if request % 3 == 0 {
            bench.disk.set(|script| script.failing_syncs = 1);
        }
    }
    journal.close().unwrap();
    drop(journal);
    assert!(bench.events().contains(&"SyncFailed".to_owned()));
    let disk: Arc<dyn Disk> = Arc::new(Kernel);
    let from = last_checkpoint(&disk, bench.dir.path()).unwrap().unwrap().from;
    assert!(from > 1);
    for (first, path) in files::list(bench.dir.path(), &Kernel).unwrap() {
        if bench.segment_of(from) != path {
            assert!(first < from);
            fs::remove_file(path).unwrap();
        }
    }
    let (_, recovery) = bench.open();
    let all: Vec<_> = (0..30).map(|request| (request, Some(7))).collect();
    assert_eq!(died(&recovery), all);
}
