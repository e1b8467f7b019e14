//! Tests with entries that were altered by somebody who knows how checks and chains are made.

use taximeter_ledger::{
    Digester, EncodedEntry, Framer, HEADER_BYTES, Position, Reader, SegmentHeader, TenantId,
};

use super::super::read::Altered;
use super::*;

/// Some segments of posts.
fn filled(durability: Durability) -> Bench {
    let bench = Bench { segment_bytes: 300, ..Bench::new(durability) };
    let (journal, _) = bench.open();
    for request in 0..12 {
        append(&journal, &reserve(request)).unwrap();
        append(&journal, &post(request)).unwrap();
    }
    journal.close().unwrap();
    assert!(bench.segments().len() > 3);
    bench
}

/// Writes all segments anew, with another tenant in the post `seq`: every check and every link of the
/// chain is right again.
fn forge(bench: &Bench, seq: u64) {
    let mut last = Position::START;
    for path in bench.segments() {
        let bytes = fs::read(&path).unwrap();
        let mut reader = Reader::new(None, 1);
        reader.feed(&bytes);
        let (mut forged, mut payload) = (Vec::new(), Vec::new());
        let header = files::header(&path, &Kernel).unwrap().unwrap();
        let mut framer = Framer::new(header.ledger, last);
        SegmentHeader { before: last, ..header }.encode(&mut forged);
        forged.extend(carried::carried(&bytes).concat());
        while let Some(framed) = reader.next_entry().unwrap() {
            let mut entry = framed.entry().unwrap();
            if framed.seq == seq {
                let Entry::Post(record) = &mut entry else { panic!("{entry:?}") };
                record.tenant = TenantId::new("beta").unwrap();
            }
            let entry = EncodedEntry::new(&entry, &mut payload).unwrap();
            last = framer.append(&entry, &mut forged);
        }
        fs::write(&path, forged).unwrap();
    }
}

/// The first post.
fn first_post(bench: &Bench) -> u64 {
    bench.read(1).iter().find(|framed| framed.kind == Kind::Post).unwrap().seq
}

fn altered(bench: &Bench) -> Vec<Altered> {
    let examination = examine(bench.dir.path(), |_, _| {}, drop).unwrap();
    assert!(examination.faults.is_empty(), "{:?}", examination.faults);
    examination.altered
}

#[test]
fn an_entry_that_is_altered_with_all_its_checks_is_found_in_its_segment() {
    let sample = filled(Durability::Os);
    let [.., open] = &sample.segments()[..] else { panic!("no segment") };
    let posts = sample.read(1).into_iter().filter(|framed| framed.kind == Kind::Post);
    for framed in posts.filter(|framed| sample.segment_of(framed.seq) != *open) {
        let bench = filled(Durability::Os);
        assert_eq!(altered(&bench), []);
        forge(&bench, framed.seq);
        let found = altered(&bench);
        let first = &found[0];
        assert_eq!(first.path, bench.segment_of(framed.seq), "{found:?}");
        assert!(first.last >= framed.seq);
        assert_eq!(first.behind, bench.segment_of(first.last + 1));
        assert_ne!(first.digest, first.said);
    }
}

#[test]
fn a_gateway_goes_on_behind_what_was_altered_and_it_is_found_later_too() {
    let bench = filled(Durability::Os);
    forge(&bench, first_post(&bench));
    let (journal, _) = bench.open();
    for request in 20..40 {
        append(&journal, &void(request)).unwrap();
    }
    journal.close().unwrap();
    assert_eq!(altered(&bench)[0].path, bench.segment_of(first_post(&bench)));
}

#[test]
fn every_segment_says_what_it_follows_across_starts_and_ways_of_writing() {
    let mut bench = Bench { segment_bytes: 300, ..Bench::new(Durability::Os) };
    let ways = [Durability::Os, Durability::Group, Durability::Sync, Durability::Os];
    for (request, durability) in (0..40).zip(ways.into_iter().cycle()) {
        bench.durability = durability;
        let (journal, _) = bench.open();
        append(&journal, &reserve(request)).unwrap();
        append(&journal, &post(request)).unwrap();
        drop(journal);
    }
    let headers = bench.segments().into_iter().map(|path| files::header(&path, &Kernel).unwrap());
    let says: Vec<_> = headers.map(|header| header.unwrap().follows.is_some()).collect();
    assert!(says.len() > 20 && !says[0] && says[1..].iter().all(|says| *says), "{says:?}");
    assert_eq!(altered(&bench), []);
}

#[test]
fn who_writes_all_digests_anew_is_found_by_who_was_told_the_last_one() {
    let bench = filled(Durability::Group);
    let last = bench.read(1).len() as u64;
    let before = extent(bench.dir.path(), u64::MAX).unwrap().unwrap();
    assert_eq!((before.last, before.gateway.as_str()), (last, "pod/0"));
    let (journal, _) = bench.open();
    append(&journal, &reserve(50)).unwrap();
    append(&journal, &void(50)).unwrap();
    drop(journal);
    assert_eq!(extent(bench.dir.path(), last).unwrap(), Some(before.clone()), "it only grows");

    forge(&bench, first_post(&bench));
    let mut follows = None;
    for path in bench.segments() {
        let mut bytes = fs::read(&path).unwrap();
        let header = files::header(&path, &Kernel).unwrap().unwrap();
        let mut forged = Vec::new();
        SegmentHeader { follows, ..header }.encode(&mut forged);
        bytes[..HEADER_BYTES].copy_from_slice(&forged);
        fs::write(&path, &bytes).unwrap();
        let mut reader = Reader::new(None, u64::MAX).digesting();
        reader.feed(&bytes);
        assert_eq!(reader.next_entry(), Ok(None));
        follows = reader.digester().and_then(Digester::digest);
    }
    assert_eq!(altered(&bench), [], "it is a journal like any other");
    assert_ne!(extent(bench.dir.path(), last).unwrap(), Some(before));
}
