//! Compresses closed segments while they are read, removed and damaged, and on disks that fail.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use taximeter_ledger::FramedEntry;

use super::super::compress::closed;
use super::super::compressed::PIECE_BYTES;
use super::super::disk::{Disk, How, Kernel};
use super::super::lock::Lock;
use super::super::salvage::leave_out;
use super::super::write::JournalDir;
use super::super::{compress, examine, extent, files};
use super::memory::{Cut, Fault, Kind as Failure};
use super::model::{DIR, Model};
use super::random::{Random, seed};
use super::*;

/// Requests in some segments of so many bytes.
fn filled(requests: u128, segment_bytes: u64) -> Bench {
    let bench = Bench { segment_bytes, ..Bench::new(Durability::Os) };
    let (journal, _) = bench.open();
    for request in 0..requests {
        append(&journal, &reserve(request)).unwrap();
        append(&journal, &post(request)).unwrap();
    }
    drop(journal);
    bench
}

fn compressed(bench: &Bench) -> Vec<PathBuf> {
    bench.segments().into_iter().filter(|path| files::is_compressed(path)).collect()
}

fn compress_on(disk: &dyn Disk) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    closed(Path::new(DIR), u64::MAX, disk, &mut || true)
}

#[test]
fn a_compressed_journal_reads_as_the_plain_one_from_every_entry_on() {
    let bench = filled(2_000, 60_000);
    let before = bench.read(1);
    let plain: Vec<_> = bench.segments().iter().map(|path| fs::read(path).unwrap()).collect();
    let last = before.last().unwrap().seq;
    let extents = || [1, last / 2, last].map(|seq| extent(bench.dir.path(), seq).unwrap());
    let extents_before = extents();
    let done = compress(bench.dir.path()).unwrap();
    assert!(done.len() > 1);
    assert_eq!(done.len() + 1, plain.len(), "the last one is open");
    assert_eq!(bench.segments()[..done.len()], done);
    for (path, plain) in done.iter().zip(&plain) {
        let bytes = fs::read(path).unwrap();
        assert!(bytes.len() < plain.len() * 2 / 3, "{} of {}", bytes.len(), plain.len());
        assert_eq!(zstd::decode_all(bytes.as_slice()).unwrap(), *plain);
        let head = files::read(path, &Kernel, 512).unwrap();
        assert_eq!(head, plain[..512]);
    }
    assert_eq!(fs::read_dir(bench.dir.path()).unwrap().count(), plain.len() + 2, "no other file");
    for from in (1..=last + 1).step_by(397) {
        assert_eq!(bench.read(from), before[usize::try_from(from).unwrap() - 1..]);
    }
    assert_eq!(extents(), extents_before);
    let found = examine(bench.dir.path(), |_, _| (), drop).unwrap();
    assert_eq!((found.entries, found.faults.len(), found.altered.len()), (last, 0, 0));
    assert_eq!(found.bytes, bench.open().0.segments().unwrap().bytes);
    assert_eq!(compress(bench.dir.path()).unwrap(), Vec::<PathBuf>::new());
}

#[test]
fn a_segment_is_read_in_pieces_of_whole_frames_and_of_a_bounded_length() {
    let bench = filled(3_000, 150_000);
    compress(bench.dir.path()).unwrap();
    for path in compressed(&bench) {
        let plain = zstd::decode_all(fs::read(&path).unwrap().as_slice()).unwrap();
        let (mut file, _) = files::SegmentFile::open(&path, &Kernel).unwrap();
        let (mut at, mut pieces) = (0, 0);
        let mut bytes = vec![0; 2 * PIECE_BYTES];
        loop {
            let read = file.read_at(&mut bytes, at as u64).unwrap();
            if read == 0 {
                break;
            }
            assert!(read <= PIECE_BYTES);
            assert_eq!(bytes[..read], plain[at..at + read]);
            (at, pieces) = (at + read, pieces + 1);
        }
        assert_eq!(at, plain.len());
        assert!(pieces >= plain.len().div_ceil(PIECE_BYTES));
    }
}

#[test]
fn the_plain_file_is_read_where_both_are_there_and_is_compressed_again() {
    let bench = filled(200, 20_000);
    let before = bench.read(1);
    let first = bench.segments()[0].clone();
    let plain = fs::read(&first).unwrap();
    compress(bench.dir.path()).unwrap();
    // As if the process had been killed before it removed the plain file, or in the middle.
    fs::write(&first, &plain).unwrap();
    fs::write(files::compressed(&first), b"something else").unwrap();
    fs::write(files::unnamed(&files::compressed(&first)), b"half").unwrap();
    assert_eq!(bench.read(1), before);
    assert_eq!(bench.segments()[0], first);
    let (journal, _) = bench.open();
    assert_eq!(journal.segments().unwrap().count, bench.segments().len() as u64);
    drop(journal);
    assert_eq!(compress(bench.dir.path()).unwrap(), [files::compressed(&first)]);
    assert!(!first.exists());
    assert_eq!(bench.read(1)[..before.len()], before);
}

#[test]
fn a_journal_whose_last_segment_is_compressed_goes_on_in_a_new_one() {
    let bench = filled(200, 20_000);
    let before = bench.read(1);
    compress(bench.dir.path()).unwrap();
    fs::remove_file(bench.last_segment()).unwrap();
    let left = bench.read(1);
    assert!(left.len() < before.len());
    let (journal, recovery) = bench.open();
    assert_eq!(recovery.next_seq, left.len() as u64 + 1 + 1, "a checkpoint");
    append(&journal, &void(7_000)).unwrap();
    drop(journal);
    assert_eq!(bench.read(1)[..left.len()], left);
    bench.open();
    assert_eq!(compress(bench.dir.path()).unwrap(), Vec::<PathBuf>::new());
}

#[test]
fn who_reads_while_segments_are_compressed_misses_nothing() {
    let bench = filled(400, 2_000);
    let before: Vec<_> = bench.read(1).iter().map(|framed| (framed.seq, framed.chain)).collect();
    let plain: Vec<_> =
        bench.segments().into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reading: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    while !is_over.load(Relaxed) {
                        let read = bench.read(1);
                        let read = read.iter().map(|framed| (framed.seq, framed.chain));
                        assert!(read.eq(before.iter().copied()));
                        let found = examine(bench.dir.path(), |_, _| (), drop).unwrap();
                        assert_eq!(found.entries, before.len() as u64);
                    }
                })
            })
            .collect();
        for _ in 0..5 {
            compress(bench.dir.path()).unwrap();
            for (path, bytes) in &plain[..plain.len() - 1] {
                // As before, in one step.
                fs::write(path.with_extension("new"), bytes).unwrap();
                fs::rename(path.with_extension("new"), path).unwrap();
            }
        }
        is_over.store(true, Relaxed);
        reading.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

#[test]
fn a_segment_that_is_removed_while_it_is_compressed_is_gone() {
    let sample = filled(200, 20_000);
    let pieces = {
        let mut pieces = 0;
        let mut count = || {
            pieces += 1;
            true
        };
        closed(sample.dir.path(), u64::MAX, &Kernel, &mut count).unwrap();
        pieces
    };
    for at in 0..pieces {
        let bench = filled(200, 20_000);
        let before = bench.segments();
        let (mut piece, mut removed) = (0, 0);
        let mut remove_one = || {
            if piece == at {
                let first = bench.segments()[0].clone();
                removed = files::first_seq(&first).unwrap();
                files::remove(&first, &Kernel).unwrap();
            }
            piece += 1;
            true
        };
        closed(bench.dir.path(), u64::MAX, &Kernel, &mut remove_one).unwrap();
        let left: Vec<_> =
            bench.segments().iter().map(|path| files::first_seq(path).unwrap()).collect();
        let all = before.iter().map(|path| files::first_seq(path).unwrap());
        assert_eq!(left, all.filter(|first| *first != removed).collect::<Vec<_>>(), "at {at}");
    }
}

#[test]
fn a_disk_that_is_full_leaves_the_plain_file_and_the_next_attempt_has_it() {
    for room in [0, 10, 600, 3_000] {
        let bench = filled(200, 20_000);
        let before = bench.read(1);
        let paths = bench.segments();
        bench.disk.set(|script| script.full_after = Some(room));
        let (path, error) = closed(bench.dir.path(), u64::MAX, &bench.scripted(), &mut || true)
            .expect_err("the disk is full");
        assert_eq!((&path, error.kind()), (&paths[0], io::ErrorKind::StorageFull));
        assert_eq!(bench.segments(), paths);
        assert_eq!(fs::read_dir(bench.dir.path()).unwrap().count(), paths.len() + 2);
        bench.disk.set(|script| script.full_after = None);
        let done = closed(bench.dir.path(), u64::MAX, &bench.scripted(), &mut || true).unwrap();
        assert_eq!(done.len(), paths.len() - 1);
        assert_eq!(bench.read(1), before);
    }
}

#[test]
fn a_segment_that_cannot_be_compressed_keeps_no_other_from_it() {
    let bench = filled(200, 6_000);
    let before = bench.read(1);
    let paths = bench.segments();
    // A folder is where the file would be written.
    let obstacle = files::unnamed(&files::compressed(&paths[0]));
    fs::create_dir(&obstacle).unwrap();
    let (path, _) = closed(bench.dir.path(), u64::MAX, &Kernel, &mut || true).unwrap_err();
    assert_eq!(path, paths[0]);
    assert_eq!(compressed(&bench).len(), paths.len() - 2);
    assert_eq!(bench.read(1), before);
    fs::remove_dir(obstacle).unwrap();
    assert_eq!(compress(bench.dir.path()).unwrap(), [files::compressed(&paths[0])]);
    assert_eq!(bench.read(1), before);
}

#[test]
fn only_what_the_writer_has_closed_is_compressed() {
    let bench = Bench { segment_bytes: 2_000, ..Bench::new(Durability::Group) };
    let (journal, _) = bench.open();
    let mut compressed_so_far = 0;
    for request in 0..100 {
        append(&journal, &reserve(request)).unwrap();
        append(&journal, &post(request)).unwrap();
        let open = journal.0.queue.open_segment();
        assert_eq!(Some(open), files::first_seq(&bench.last_segment()));
        let done = closed(bench.dir.path(), open, &bench.scripted(), &mut || true).unwrap();
        compressed_so_far += done.len();
        assert_eq!(bench.segments().len(), compressed_so_far + 1);
    }
    assert!(compressed_so_far > 5);
    let open = files::first_seq(&compressed(&bench)[1]).unwrap();
    assert!(bench.events().is_empty(), "{:?}", bench.events());
    drop(journal);
    assert_eq!(bench.requests().len(), 200);
    let (_, recovery) = bench.open();
    assert_eq!((recovery.posts, recovery.died.len()), (100, 0));
    assert_eq!(closed(bench.dir.path(), open, &Kernel, &mut || true).unwrap().len(), 0);
}

/// Lets each operation fail or the process die there, and once the power.
#[test]
fn wherever_compression_is_ended_every_entry_is_there_once_and_the_work_goes_on() {
    let failures = [Failure::Error(28), Failure::Error(5), Failure::Short, Failure::Death];
    let seed = seed();
    for failure in failures {
        for cut in [None, Some(Cut::Lost), Some(Cut::Begun), Some(Cut::Shuffled)] {
            for at in 0.. {
                let mut random = Random::new(seed, at as u64);
                let mut model = Model::new(Durability::Group, 900);
                let journal = model.reopen(0).unwrap();
                model.work(&journal, 30, &mut random);
                journal.close().unwrap();
                model.acknowledged = model.taken();
                // Marks behind the last sync are not promised.
                let disk = model.memory.mount();
                for (_, path) in files::list(Path::new(DIR), &*disk).unwrap() {
                    disk.open(&path, How::Read).unwrap().sync().unwrap();
                }
                let is_permanent = random.one_in(2);
                model.memory.plan(Some(Fault { at, kind: failure, is_permanent }));
                let result = compress_on(&*model.memory.mount());
                let is_reached = model.memory.operations() > at;
                assert!(is_reached || result.is_ok(), "{result:?}");
                match cut {
                    Some(cut) => model.memory.cut(cut, &mut random),
                    None => model.memory.die(),
                }
                model.memory.plan(None);
                let journal = model.reopen(model.acknowledged).unwrap();
                model.work(&journal, 2, &mut random);
                journal.close().unwrap();
                model.assert_whole();
                compress_on(&*model.memory.mount()).unwrap();
                model.assert_whole();
                let segments = files::list(Path::new(DIR), &*model.memory.look()).unwrap();
                let plain = segments.iter().filter(|(_, path)| !files::is_compressed(path)).count();
                assert_eq!((plain, segments.len() > 2), (1, true));
                let journal = model.reopen(model.taken()).unwrap();
                drop(journal);
                if !is_reached {
                    break;
                }
            }
        }
    }
}

fn entries_or_fault(bench: &Bench) -> (Vec<FramedEntry>, Option<JournalError>) {
    let mut entries = Vec::new();
    for framed in read(bench.dir.path(), 1) {
        match framed {
            Ok(framed) => entries.push(framed),
            Err(fault) => return (entries, Some(fault)),
        }
    }
    (entries, None)
}

#[test]
fn a_changed_byte_of_a_compressed_file_is_told_and_costs_one_piece() {
    let bench = filled(2_500, 150_000);
    let before = bench.read(1);
    let paths = compress(bench.dir.path()).unwrap();
    let path = &paths[0];
    let whole = fs::read(path).unwrap();
    let per_piece = u64::try_from(PIECE_BYTES).unwrap() / 60;
    let mut random = Random::new(seed(), 0);
    let mut told = 0;
    for round in 0..150 {
        let mut bytes = whole.clone();
        let at = match round {
            // The header, the table and its end.
            0 => 3,
            1 => bytes.len() - 1,
            2 => bytes.len() - 8,
            3 => bytes.len() - 20,
            4 => bytes.len() - 24,
            _ => random.index(bytes.len()),
        };
        bytes[at] ^= 1 << random.index(8);
        fs::write(path, &bytes).unwrap();
        let (read, fault) = entries_or_fault(&bench);
        assert_eq!(read[..], before[..read.len()], "{at}");
        let Some(fault) = fault else {
            assert_eq!(read.len(), before.len(), "{at}");
            continue;
        };
        told += 1;
        assert!(fault.to_string().contains(path.to_str().unwrap()), "{fault}");
        if round % 10 == 5 || round < 5 {
            let fewest = u64::from(!is_of_header(&fault));
            salvage_a_copy(&bench, &before, fewest..=per_piece);
        }
    }
    assert!(told > 100, "{told}");
    for length in [0, 5, 200, 700, whole.len() / 2, whole.len() - 4, whole.len() - 1] {
        fs::write(path, &whole[..length]).unwrap();
        let (read, _) = entries_or_fault(&bench);
        assert_eq!(read[..], before[..read.len()], "{length}");
    }
}

/// Whether the first piece is damaged, which has the header and no entry.
fn is_of_header(fault: &JournalError) -> bool {
    use taximeter_ledger::Fault::Damaged;
    matches!(fault, JournalError::Segment { fault: Damaged { offset: 0, .. }, .. })
}

#[test]
fn a_damaged_header_of_a_compressed_file_costs_no_entry() {
    let bench = filled(2_500, 150_000);
    let before = bench.read(1);
    let path = &compress(bench.dir.path()).unwrap()[0];
    let whole = fs::read(path).unwrap();
    // Behind what says how long the piece is.
    for at in [20, 40, 60] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(path, &bytes).unwrap();
        let fault = entries_or_fault(&bench).1.unwrap();
        assert!(is_of_header(&fault), "{fault}");
        salvage_a_copy(&bench, &before, 0..=0);
    }
}

/// Leaves out what is damaged in a copy: everything else is there.
fn salvage_a_copy(bench: &Bench, before: &[FramedEntry], entries: RangeInclusive<u64>) {
    let copy = Bench::new(Durability::Os);
    for path in bench.segments() {
        fs::copy(&path, copy.dir.path().join(path.file_name().unwrap())).unwrap();
    }
    fs::copy(bench.dir.path().join("ledger.id"), copy.dir.path().join("ledger.id")).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(Kernel);
    let dir = copy.dir.path().to_owned();
    let lock = Arc::new(Lock::take(&dir, &*disk).unwrap());
    let named = Arc::new(super::super::identity::own(&dir, &*disk, true).unwrap());
    let journal_dir = JournalDir { dir, disk, ledger: named.identity.id, named, lock };
    let Some(JournalError::Segment { path, fault }) = entries_or_fault(&copy).1 else {
        panic!("it is not damaged")
    };
    let options = copy.options(OnDamage::Salvage);
    let loss = leave_out(&journal_dir, &options, &path, fault, false).unwrap();
    assert!(entries.contains(&loss.entries), "{loss:?}");
    let left: Vec<_> = copy.read(1).iter().map(|framed| framed.seq).collect();
    let lost = loss.first_seq..loss.first_seq + loss.entries;
    let all = before.iter().map(|framed| framed.seq).filter(|seq| !lost.contains(seq));
    assert_eq!(left, all.collect::<Vec<_>>());
    assert!(loss.kept.exists());
}
