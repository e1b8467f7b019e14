//! Tests with entries that are intact but cannot be understood. They are set aside and do not stop
//! a start.

use taximeter_ledger::FramedEntry;

use super::bench::progress;
use super::*;

/// Four requests behind a checkpoint, of which the first and the last are open, in one segment.
fn filled() -> Bench {
    let bench = Bench::new(Durability::Os);
    let (journal, _) = bench.open();
    for entry in [reserve(1), post(1)] {
        append(&journal, &entry).unwrap();
    }
    drop(journal);
    let (journal, _) = bench.open();
    let settled = [reserve(2), void(2), reserve(3), post(3)];
    for entry in [reserve(4), progress(4, 7)].into_iter().chain(settled).chain([reserve(5)]) {
        append(&journal, &entry).unwrap();
    }
    drop(journal);
    bench
}

/// Writes a whole frame behind one with the chain `before`. Its own chain.
fn frame(
    bytes: &mut Vec<u8>,
    (seed, before): (u32, u32),
    seq: u64,
    kind: Kind,
    payload: &[u8],
) -> u32 {
    let mut head = u32::try_from(payload.len()).unwrap().to_le_bytes().to_vec();
    head[3] = kind as u8;
    head.extend(u32::try_from(seq).unwrap().to_le_bytes());
    head.extend(crc32c::crc32c_append(seed, payload).to_le_bytes());
    let chain = crc32c::crc32c_append(before, &head);
    bytes.extend([&head, &chain.to_le_bytes()[..], payload].concat());
    chain
}

/// What the checks of a segment are seeded with.
fn seed(path: &Path) -> u32 {
    let ledger = files::header(path, &Kernel).unwrap().unwrap().ledger;
    crc32c::crc32c(ledger.0.as_bytes())
}

/// What is missing in an entry.
#[derive(Debug, Clone, Copy)]
enum Lacks {
    /// Its last byte.
    End,
    Strings,
    Members,
}

/// Length of the id at the start of a payload.
const ID_BYTES: usize = 16;

/// Where the members of a payload begin. No number in it takes more than a byte but those of times.
fn members_at(payload: &[u8]) -> usize {
    let mut at = ID_BYTES;
    while payload[at] != 0 {
        // Key, number, length, bytes.
        at += 3 + usize::from(payload[at + 2]);
    }
    at + 1
}

fn without(payload: &[u8], lacks: Lacks) -> Vec<u8> {
    let (id, members) = (&payload[..ID_BYTES], members_at(payload));
    match lacks {
        Lacks::End => payload[..payload.len() - 1].to_vec(),
        Lacks::Strings => [id, &[0], &payload[members..]].concat(),
        Lacks::Members => [&payload[..members], b"."].concat(),
    }
}

/// Takes something out of the last entry of a kind; all frames are whole. Its sequence number.
fn rewrite(bench: &Bench, kind: Kind, lacks: Lacks) -> u64 {
    let [path] = &bench.segments()[..] else { panic!("one segment") };
    let framed = bench.read(1);
    let index = framed.iter().rposition(|framed| framed.kind == kind).unwrap();
    let mut bytes = fs::read(path).unwrap();
    bytes.truncate(usize::try_from(framed[index].offset).unwrap());
    let mut chain = framed[index - 1].chain;
    for (at, FramedEntry { seq, kind, payload, .. }) in framed.iter().enumerate().skip(index) {
        let payload = payload.to_vec();
        let payload = if at == index { without(&payload, lacks) } else { payload };
        chain = frame(&mut bytes, (seed(path), chain), *seq, *kind, &payload);
    }
    fs::write(path, bytes).unwrap();
    framed[index].seq
}

#[test]
fn an_entry_that_cannot_be_read_is_set_aside_and_changes_nothing_else() {
    let all = filled().read(1).len() as u64;
    // Which requests have died then, and with which output.
    let (four, five) = ((4, Some(7)), (5, None));
    let cases = [
        (Kind::Reserve, Lacks::End, vec![four]),
        (Kind::Reserve, Lacks::Strings, vec![four]),
        (Kind::Reserve, Lacks::Members, vec![four]),
        (Kind::Progress, Lacks::End, vec![(4, None), five]),
        (Kind::Progress, Lacks::Members, vec![(4, None), five]),
        (Kind::Void, Lacks::Members, vec![four, (2, None), five]),
        // It is on no ledger then, so it is as if it had died.
        (Kind::Post, Lacks::Members, vec![four, (3, None), five]),
        (Kind::Checkpoint, Lacks::Members, vec![four, five]),
    ];
    for (kind, lacks, died) in cases {
        for recovery in [OnDamage::Strict, OnDamage::Salvage] {
            let bench = filled();
            let seq = rewrite(&bench, kind, lacks);
            let (journal, recovery) = bench.open_as(recovery);
            let rejected: Vec<_> = recovery.rejected.iter().map(|(framed, _)| framed.seq).collect();
            assert_eq!(rejected, [seq], "{kind:?} {lacks:?}");
            assert!(recovery.losses.is_empty(), "{:?}", recovery.losses);
            let found: Vec<_> = recovery
                .died
                .iter()
                .map(|record| (record.id.0.as_u128(), record.usage.output_tokens))
                .collect();
            assert_eq!(found, died, "{kind:?} {lacks:?}");
            append(&journal, &reserve(6)).unwrap();
            drop(journal);
            // It is where it was, and so are all others.
            let seqs: Vec<_> = bench.read(1).iter().map(|framed| framed.seq).collect();
            assert!(seqs.iter().copied().eq(1..=seqs.len() as u64) && seqs.len() as u64 > all);
            let (_, recovery) = bench.open();
            assert_eq!(recovery.died.len(), 1, "only the one that came last");
        }
    }
}

#[test]
fn what_nobody_can_read_at_all_is_no_ledger() {
    let bench = Bench::new(Durability::Os);
    drop(bench.open());
    let [path] = &bench.segments()[..] else { panic!("one segment") };
    let (header, seed) = (fs::read(path).unwrap(), seed(path));
    assert!(bench.read(1).is_empty());
    for count in [1_000, 1_001] {
        let (mut bytes, mut chain) = (header.clone(), 0);
        for seq in 1..=count {
            chain = frame(&mut bytes, (seed, chain), seq, Kind::Void, b"?");
        }
        fs::write(path, &bytes).unwrap();
        assert_eq!(bench.try_open().is_ok(), count == 1_000, "{count}");
    }
}
