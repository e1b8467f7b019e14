//! Damages a journal anywhere. Whole entries are kept, the rest is left out and reported, and
//! nothing is guessed.

use super::*;

/// Twelve requests in a few segments, one of them open.
pub(super) fn filled() -> Bench {
    let bench = Bench { segment_bytes: 300, ..Bench::new(Durability::Os) };
    let (journal, _) = bench.open();
    append(&journal, &reserve(99)).unwrap();
    for request in 0..12 {
        append(&journal, &reserve(request)).unwrap();
        append(&journal, &post(request)).unwrap();
    }
    drop(journal);
    // So a start reads all of it.
    carried::forget_carried(&bench);
    bench
}

fn seqs(bench: &Bench) -> Vec<u64> {
    bench.read(1).iter().map(|framed| framed.seq).collect()
}

/// Opens what is damaged: refused when strict; else what was lost.
fn salvaged(bench: &Bench) -> (Journal, Recovery) {
    let before: Vec<_> = bench.segments().iter().map(|path| fs::read(path).unwrap()).collect();
    let refused = bench.try_open().map(drop);
    assert!(matches!(refused, Err(JournalError::Segment { .. })), "{refused:?}");
    let after: Vec<_> = bench.segments().iter().map(|path| fs::read(path).unwrap()).collect();
    assert!(before == after, "a start that was refused has changed something");
    bench.open_as(OnDamage::Salvage)
}

#[test]
fn a_damaged_entry_is_left_out_and_all_others_are_kept() {
    let sample = filled();
    let segments = sample.segments().len();
    assert!(segments > 3);
    let last = sample.read(1).len() as u64;
    for framed in sample.read(1) {
        for at in [0, 3, 5, 9, 13, 16, 30] {
            let bench = filled();
            let (path, seq) = (bench.segment_of(framed.seq), framed.seq);
            let mut bytes = fs::read(&path).unwrap();
            bytes[usize::try_from(framed.offset).unwrap() + at] ^= 4;
            fs::write(&path, &bytes).unwrap();
            let (journal, recovery) = salvaged(&bench);
            let [loss] = &recovery.losses[..] else { panic!("{seq}+{at}: {:?}", recovery.losses) };
            assert_eq!((&loss.path, loss.first_seq), (&path, seq), "{loss:?}");
            assert_eq!(fs::read(&loss.kept).unwrap(), bytes);
            assert!(loss.entries == 1 || seq == last, "{seq}+{at}: {loss:?}");
            assert!(bench.events().contains(&"Salvaged".to_owned()));
            append(&journal, &reserve(7_000)).unwrap();
            drop(journal);
            let all = seqs(&sample).into_iter().filter(|it| *it != seq);
            let kept: Vec<_> = seqs(&bench).into_iter().filter(|it| *it <= last).collect();
            assert_eq!(kept, all.collect::<Vec<_>>(), "{seq}+{at}");
            // From now on it is whole.
            bench.open();
        }
    }
}

#[test]
fn whatever_is_cut_out_of_a_journal_the_rest_is_kept() {
    let sample = filled();
    let all = sample.read(1);
    for (index, path) in sample.segments().iter().enumerate() {
        let length = fs::metadata(path).unwrap().len();
        for (from, to) in [(0, 10), (0, 600), (500, 900), (530, length), (0, length)] {
            let bench = filled();
            let path = &bench.segments()[index];
            let mut bytes = fs::read(path).unwrap();
            let to = usize::try_from(to.min(length)).unwrap();
            bytes[from..to].fill(b'~');
            fs::write(path, &bytes).unwrap();
            let (journal, recovery) = salvaged(&bench);
            assert!(!recovery.losses.is_empty());
            drop(journal);
            let kept = seqs(&bench);
            let next = sample.segments().get(index + 1).map_or(u64::MAX, |path| first_of(path));
            let first = first_of(&sample.segments()[index]);
            let elsewhere =
                all.iter().map(|framed| framed.seq).filter(|seq| *seq < first || *seq >= next);
            for seq in elsewhere {
                assert!(kept.contains(&seq), "{index} {from}..{to}: {seq} of {kept:?}");
            }
            assert!(kept.is_sorted());
            bench.open();
        }
    }
}

fn first_of(path: &Path) -> u64 {
    let name = path.file_stem().unwrap().to_str().unwrap();
    name.strip_prefix("journal-").unwrap().parse().unwrap()
}

#[test]
fn a_segment_that_is_gone_is_told_and_the_others_are_kept() {
    let bench = filled();
    let all = seqs(&bench);
    let gone = bench.segments()[1].clone();
    let (first, next) = (first_of(&gone), first_of(&bench.segments()[2]));
    fs::remove_file(&gone).unwrap();
    let (journal, recovery) = salvaged(&bench);
    let [loss] = &recovery.losses[..] else { panic!("{:?}", recovery.losses) };
    assert_eq!((loss.first_seq, loss.entries), (first, next - first));
    drop(journal);
    let kept: Vec<_> = all.into_iter().filter(|seq| *seq < first || *seq >= next).collect();
    assert!(seqs(&bench).starts_with(&kept));
}

#[test]
fn two_damaged_places_are_left_out_one_by_one() {
    let bench = filled();
    let all = bench.read(1);
    for framed in [&all[4], &all[9]] {
        let path = bench.segment_of(framed.seq);
        let mut bytes = fs::read(&path).unwrap();
        bytes[usize::try_from(framed.offset).unwrap() + 30] ^= 1;
        fs::write(&path, &bytes).unwrap();
    }
    let (journal, recovery) = salvaged(&bench);
    let lost: Vec<_> = recovery.losses.iter().map(|loss| (loss.first_seq, loss.entries)).collect();
    assert_eq!(lost, [(5, 1), (10, 1)]);
    drop(journal);
    assert!(seqs(&bench).starts_with(&[1, 2, 3, 4, 6, 7, 8, 9, 11, 12]));
}

#[test]
fn a_segment_of_another_journal_is_not_taken_for_a_hole() {
    let (bench, other) = (filled(), Bench { segment_bytes: 300, ..Bench::new(Durability::Os) });
    let (journal, _) = other.open();
    for request in 0..30 {
        append(&journal, &reserve(request)).unwrap();
        append(&journal, &void(request)).unwrap();
    }
    drop(journal);
    let ours = &bench.segments()[2];
    let theirs = other.segments().into_iter().find(|path| first_of(path) >= first_of(ours));
    fs::copy(theirs.unwrap(), ours).unwrap();
    let opened = bench.try_open_as(OnDamage::Salvage).map(drop);
    assert!(matches!(opened, Ok(()) | Err(JournalError::Segment { .. })), "{opened:?}");
}
