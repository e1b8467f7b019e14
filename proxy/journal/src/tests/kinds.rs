//! Reads only entries of some kinds, as the store does.

use super::*;

fn is_post(kind: Kind) -> bool {
    kind == Kind::Post
}

/// Number and kind of each entry that is read, and whether it has its payload.
fn posts(entries: &mut Entries) -> Vec<(u64, Kind, bool)> {
    let framed = entries.map(Result::unwrap);
    framed.map(|framed| (framed.seq, framed.kind, !framed.payload.is_empty())).collect()
}

#[test]
fn a_reader_of_some_kinds_gets_these_and_learns_how_far_the_journal_reaches() {
    let bench = Bench { segment_bytes: 2_000, ..Bench::new(Durability::Os) };
    let (journal, _) = bench.open();
    for request in 0..99 {
        append(&journal, &reserve(request)).unwrap();
        append(&journal, &post(request)).unwrap();
    }
    append(&journal, &reserve(100)).unwrap();
    let all = bench.read(1);
    assert!(bench.segments().len() > 3);
    for from in [0, 1, 2, 35, 36, all.len() as u64 - 1] {
        let mut expected: Vec<_> = all
            .iter()
            .filter(|framed| framed.seq > from && is_post(framed.kind))
            .map(|framed| (framed.seq, Kind::Post, true))
            .collect();
        if let Some(first) = all.iter().find(|framed| framed.seq == from) {
            expected.insert(0, (from, first.kind, true));
        }
        let last = all.last().unwrap();
        expected.push((last.seq, Kind::Reserve, false));
        assert_eq!(posts(&mut read(bench.dir.path(), from).only(is_post)), expected, "from {from}");
    }
    let last = all.last().unwrap().position();
    let mut entries = read(bench.dir.path(), 1).only(is_post);
    assert_eq!(entries.by_ref().last().unwrap().unwrap().position(), last);
    assert_eq!(posts(&mut entries), [], "nothing is new");
    let seq = append(&journal, &void(7)).unwrap();
    assert_eq!(posts(&mut entries), [(seq, Kind::Void, false)]);
    let seq = append(&journal, &post(100)).unwrap();
    assert_eq!(posts(&mut entries), [(seq, Kind::Post, true)]);
}
