//! Tests the conversion of a journal of format 4: what it keeps, and what damage and a death do.

use std::collections::BTreeSet;

use taximeter_ledger::{FORMAT_VERSION, Position, SegmentHeader, format4};

use super::super::convert::{Conversion, Converted, Damage, Follow};
use super::super::error::Loss;
use super::super::files;
use super::super::read::Entries;
use super::bench::progress;
use super::format4::{OldWriter, created, each_kind, header, kind};
use super::memory::{Cut, Fault as Planned, Kind as Fails, Memory};
use super::random::Random;
use super::*;

const DIR: &str = "/data";
/// An entry, or why it cannot be read.
type Numbered = (u64, Result<Entry, Fault>);

/// Length of a sync mark.
const MARK_BYTES: usize = 23;

#[derive(Default)]
struct Watch {
    seqs: Vec<u64>,
    moved: std::cell::RefCell<Vec<(Position, Position)>>,
}

impl Follow for Watch {
    fn watched(&self, journal: &str) -> Vec<u64> {
        if journal == REQUESTS { self.seqs.clone() } else { Vec::new() }
    }

    fn moved(&self, _: &str, from: Position, to: Position) -> std::io::Result<()> {
        self.moved.borrow_mut().push((from, to));
        Ok(())
    }

    fn entry(&mut self, _: &'static str) {}
}

fn begin(disk: &Memory) -> Result<Conversion, JournalError> {
    Conversion::begin_on(Path::new(DIR), disk.mount())
}

fn examine(disk: &Memory) -> Result<Damage, JournalError> {
    begin(disk)?.examine(&mut Watch::default())
}

fn convert(disk: &Memory) -> Result<Converted, JournalError> {
    begin(disk)?.run(created(0), &mut Watch::default())
}

/// What is in the journal by now: number and entry, or why it cannot be read.
fn entries(disk: &Memory) -> Vec<Numbered> {
    let read = Entries::new(disk.look(), Path::new(DIR), 1).map(Result::unwrap);
    read.map(|framed| (framed.seq, framed.entry())).collect()
}

fn forms(disk: &Memory) -> Vec<Option<u16>> {
    let disk = disk.look();
    let listed = files::list(Path::new(DIR), &*disk).unwrap();
    let bytes = listed.iter().map(|(_, path)| files::read(path, &*disk, 512).unwrap());
    bytes.map(|bytes| SegmentHeader::format(&bytes)).collect()
}

/// Three segments; between the first two, three entries are lost.
fn written() -> (Memory, Vec<Numbered>) {
    let disk = Memory::default();
    let mut old = OldWriter::new(Path::new(DIR), disk.look());
    let mut expected = Vec::new();
    let mut add = |old: &mut OldWriter, entry: Entry| {
        old.entry(&entry);
        expected.push((old.last.seq, Ok(entry)));
    };
    old.begin(0, "pod/0");
    for entry in each_kind() {
        add(&mut old, entry);
        old.mark();
    }
    old.begin(3, "pod/1");
    for request in 20..24 {
        add(&mut old, void(request));
    }
    old.mark();
    old.begin(0, "pod/1");
    for request in 30..34 {
        add(&mut old, void(request));
        old.mark();
    }
    old.end();
    (disk, expected)
}

#[test]
fn every_kind_of_entry_keeps_its_number_and_its_members() {
    let (disk, expected) = written();
    let kinds: BTreeSet<_> =
        expected.iter().map(|(_, entry)| kind(entry.as_ref().unwrap())).collect();
    assert_eq!(kinds.len(), 7);
    assert!(examine(&disk).unwrap().is_none());
    let mut watch = Watch { seqs: vec![5, 14, 999], ..Watch::default() };
    let converted = begin(&disk).unwrap().run(created(0), &mut watch).unwrap();
    assert_eq!((converted.segments, converted.entries), (3, 16));
    assert!(converted.bytes < converted.bytes_before, "{converted:?}");
    assert_eq!(entries(&disk), expected);
    let headers: Vec<_> = files::list(Path::new(DIR), &*disk.look())
        .unwrap()
        .iter()
        .map(|(first, path)| {
            let header = header(path, &*disk.look());
            assert_eq!((header.first_seq(), header.created), (*first, created(*first)));
            (header.gateway, header.lost, header.follows.is_some())
        })
        .collect();
    let said = [("pod/0", 0, false), ("pod/1", 3, true), ("pod/1", 0, true)];
    assert_eq!(headers, said.map(|(gateway, lost, is)| (gateway.to_owned(), lost, is)));
    // Who keeps the position of an entry is told the new one.
    let moved = watch.moved.into_inner();
    assert_eq!(
        moved.iter().map(|(from, to)| (from.seq, to.seq)).collect::<Vec<_>>(),
        [(5, 5), (14, 14)]
    );
    for (_, to) in moved {
        let mut read = Entries::new(disk.look(), Path::new(DIR), to.seq);
        assert_eq!(read.next().unwrap().unwrap().position(), to);
    }
    // Each segment is what the next one says, and there is nothing more to do.
    let mut digests = Entries::new(disk.look(), Path::new(DIR), 1).digesting();
    assert!(digests.by_ref().all(|entry| entry.is_ok()));
    assert_eq!(digests.take_altered(), []);
    assert!(!begin(&disk).unwrap().is_needed());
}

#[test]
fn a_start_goes_on_with_a_converted_journal() {
    let bench = Bench::new(Durability::Group);
    let mut old = OldWriter::new(bench.dir.path(), Arc::new(Kernel));
    old.begin(0, "pod/0");
    for entry in [reserve(1), reserve(2), progress(1, 5), post(2)] {
        old.entry(&entry);
    }
    old.end();
    let error = bench.try_open().map(drop).unwrap_err().to_string();
    let command = format!("run `taximeter convert --data-dir {}`", bench.dir.path().display());
    assert!(error.contains(&command), "{error}");
    let error = read(bench.dir.path(), 1).next().unwrap().unwrap_err().to_string();
    assert!(error.contains(&command), "{error}");
    assert_eq!(fs::read_dir(bench.dir.path()).unwrap().count(), 2, "only the lock is new");

    Conversion::begin(bench.dir.path()).unwrap().run(created(0), &mut Watch::default()).unwrap();
    let (journal, recovery) = bench.open();
    assert_eq!((recovery.entries, recovery.posts, recovery.strays), (4, 1, 0));
    let [died] = &recovery.died[..] else { panic!("{:?}", recovery.died) };
    assert_eq!((died.seq, died.usage.output_tokens), (5, Some(5)));
    append(&journal, &void(9)).unwrap();
    journal.close().unwrap();
    assert_eq!(bench.requests(), [1, 2, 1, 2, 1, 9]);
}

#[test]
fn a_conversion_that_is_killed_anywhere_goes_on_and_nobody_opens_half_a_journal() {
    let mut random = Random::new(4, 0);
    for cut in [None, Some(Cut::Lost), Some(Cut::Shuffled), Some(Cut::Zeros)] {
        for at in 0.. {
            let (disk, expected) = written();
            disk.plan(Some(Planned { at, kind: Fails::Death, is_permanent: false }));
            let is_done = convert(&disk).is_ok();
            if let Some(cut) = cut {
                disk.cut(cut, &mut random);
            }
            disk.die();
            disk.plan(None);
            let forms = forms(&disk);
            if forms.contains(&Some(FORMAT_VERSION)) && forms.contains(&Some(format4::VERSION)) {
                assert_eq!(forms.last(), Some(&Some(format4::CONVERTING)), "{at} {cut:?}");
            }
            if forms.contains(&Some(format4::CONVERTING)) {
                let error = Entries::new(disk.look(), Path::new(DIR), 1).next().unwrap();
                let error = error.unwrap_err().to_string();
                assert!(error.contains("taximeter convert --data-dir /data` again"), "{error}");
            }
            convert(&disk).unwrap();
            assert_eq!(entries(&disk), expected, "{at} {cut:?}");
            assert!(!begin(&disk).unwrap().is_needed());
            let left = disk.look().list(Path::new(DIR)).unwrap();
            assert_eq!(left.len(), 5, "{left:?}");
            if is_done {
                assert!(at > 50, "{at}");
                break;
            }
        }
    }
}

#[test]
fn a_conversion_that_leaves_out_damage_goes_on_where_it_was_killed() {
    for at in 0.. {
        let (disk, expected) = written();
        let path = files::path(Path::new(DIR), 1);
        disk.with_file(&path, |bytes| {
            // The fourth entry is a void.
            let reason = b"\"not_sent\"";
            let found = bytes.windows(reason.len()).position(|window| window == reason);
            bytes[found.unwrap()] ^= 1;
        });
        let damage = examine(&disk).unwrap();
        assert_eq!(damage.losses.iter().map(|loss| loss.first_seq).collect::<Vec<_>>(), [4]);
        disk.plan(Some(Planned { at, kind: Fails::Death, is_permanent: false }));
        let is_done = convert(&disk).is_ok();
        disk.die();
        disk.plan(None);
        convert(&disk).unwrap();
        assert_eq!(lost(&disk, &damage, &expected), [4], "{at}");
        assert_eq!(entries(&disk).len(), expected.len() - 1, "{at}");
        let kept = path.with_extension("tlj.damaged-0");
        disk.with_file(&kept, |bytes| assert!(!bytes.is_empty()));
        if is_done {
            break;
        }
    }
}

#[test]
fn a_disk_that_refuses_any_operation_loses_nothing() {
    for at in 0.. {
        let (disk, expected) = written();
        disk.plan(Some(Planned { at, kind: Fails::Error(28), is_permanent: true }));
        let is_done = convert(&disk).is_ok();
        disk.plan(None);
        disk.die();
        convert(&disk).unwrap();
        assert_eq!(entries(&disk), expected, "{at}");
        if is_done {
            break;
        }
    }
}

#[test]
fn a_directory_with_corrections_alone_is_converted_and_nobody_starts_in_it_meanwhile() {
    let bench = Bench::new(Durability::Os);
    let dir = bench.dir.path().join(CORRECTIONS);
    let mut old = OldWriter::new(&dir, Arc::new(Kernel));
    old.begin(0, "pod/0/corrections");
    let corrections = each_kind().into_iter().filter(|entry| kind(entry) == 5);
    corrections.for_each(|entry| old.entry(&entry));
    old.end();
    let error = read(&dir, 1).next().unwrap().unwrap_err().to_string();
    assert!(error.ends_with("which converts the ledger of an older taximeter"), "{error}");
    assert!(error.contains(&format!("--data-dir {}`", bench.dir.path().display())), "{error}");
    let conversion = Conversion::begin(bench.dir.path()).unwrap();
    assert!(matches!(bench.try_open().map(drop), Err(JournalError::InUse { .. })));
    conversion.run(created(0), &mut Watch::default()).unwrap();
    let entries: Vec<_> = read(&dir, 1).map(|it| it.unwrap().entry().unwrap()).collect();
    assert_eq!(entries.len(), 1);
    assert!(each_kind().contains(&entries[0]));
    bench.open();
}

#[test]
fn a_second_process_is_refused() {
    let bench = Bench::new(Durability::Os);
    let (journal, _) = bench.open();
    let refused = Conversion::begin(bench.dir.path()).map(drop);
    assert!(matches!(refused, Err(JournalError::InUse { .. })), "{refused:?}");
    drop(journal);
    assert!(!Conversion::begin(bench.dir.path()).unwrap().is_needed());
}

/// Numbers of lost entries, by the report and by the journal.
fn lost(disk: &Memory, damage: &Damage, expected: &[Numbered]) -> Vec<u64> {
    let named: Vec<u64> = damage
        .losses
        .iter()
        .flat_map(|Loss { first_seq, entries, .. }| *first_seq..*first_seq + entries)
        .collect();
    let found = entries(disk);
    let missing = expected.iter().filter(|it| !found.contains(it));
    for (seq, _) in missing {
        assert!(named.contains(seq), "entry {seq} is gone: {damage:?}");
    }
    assert!(found.iter().all(|it| expected.contains(it)), "{found:?}");
    assert!(found.is_sorted_by_key(|(seq, _)| *seq));
    named
}

#[test]
fn any_byte_that_flips_is_told_and_costs_no_more_than_its_entry() {
    let (whole, expected) = written();
    let segments = files::list(Path::new(DIR), &*whole.look()).unwrap();
    for (index, (_, path)) in segments.iter().enumerate() {
        let length = whole.with_file(path, |bytes| bytes.len());
        // The bytes of a header are checked as one.
        let header = (0..32).chain((32..508).step_by(59)).chain(508..512);
        for at in header.chain((512..length).step_by(3)) {
            let (disk, _) = written();
            disk.with_file(path, |bytes| bytes[at] ^= 1 << (at % 8));
            let what = format!("byte {at} of {}", path.display());
            let damage = match examine(&disk) {
                Ok(damage) => damage,
                // It is of another format, or of another journal.
                Err(error) => {
                    assert!(matches!(error, JournalError::Segment { .. }) && at < 512, "{error}");
                    continue;
                }
            };
            let is_last = index + 1 == segments.len();
            if !is_last && at >= length - MARK_BYTES {
                // Nobody needs the last mark of a segment that another one follows.
                assert!(damage.losses.is_empty(), "{what}: {damage:?}");
                continue;
            }
            assert!(!damage.losses.is_empty(), "{what}");
            assert!(is_last || !damage.is_none(), "{what}: {damage:?}");

            convert(&disk).unwrap();
            let mut named = lost(&disk, &damage, &expected);
            // Some were lost before.
            named.retain(|seq| !(9..=11).contains(seq));
            assert!(is_last || named.len() <= 1, "{what}: {damage:?}");
            if !damage.is_none() {
                let kept = path.with_extension("tlj.damaged-0");
                disk.with_file(&kept, |bytes| assert_eq!(bytes.len(), length, "{what}"));
            }
        }
    }
}

#[test]
fn an_end_that_was_cut_off_is_left_out_as_a_start_does_it() {
    let (whole, expected) = written();
    let (_, path) = files::list(Path::new(DIR), &*whole.look()).unwrap().pop().unwrap();
    let length = whole.with_file(&path, |bytes| bytes.len());
    for (end, zeros) in (0..length).flat_map(|end| [(end, 0), (end, 99)]) {
        let (disk, _) = written();
        disk.with_file(&path, |bytes| {
            bytes.truncate(end);
            bytes.resize(end + zeros, 0);
        });
        let damage = examine(&disk).unwrap();
        assert!(damage.is_none(), "{end} {zeros}: {damage:?}");
        convert(&disk).unwrap();
        let found = entries(&disk);
        assert_eq!(found, expected[..found.len()], "{end} {zeros}");
        assert!(found.len() >= 12);
    }
}

#[test]
fn an_entry_that_nobody_understands_keeps_its_number_and_stays_one() {
    let disk = Memory::default();
    let mut old = OldWriter::new(Path::new(DIR), disk.look());
    old.begin(0, "pod/0");
    old.entry(&void(1));
    for kind in 1..=7 {
        old.frame(kind, br#"{"of":"another time"}"#);
    }
    old.entry(&void(2));
    old.end();
    let damage = examine(&disk).unwrap();
    assert!(damage.is_none());
    assert_eq!(damage.unreadable.len(), 7);
    convert(&disk).unwrap();
    let found = entries(&disk);
    assert_eq!(found.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), (1..=9).collect::<Vec<_>>());
    for (seq, entry) in &found {
        let is_unreadable = matches!(entry, Err(Fault::Unreadable { .. }));
        assert_eq!(is_unreadable, (2..=8).contains(seq), "{entry:?}");
    }
    let mut read = Entries::new(disk.look(), Path::new(DIR), 2);
    let payload = read.next().unwrap().unwrap().payload;
    assert!(String::from_utf8_lossy(&payload.to_vec()).contains(r#"{"of":"another time"}"#));
}

#[test]
fn a_segment_that_was_altered_is_told_and_kept() {
    let (disk, expected) = written();
    let (_, path) = &files::list(Path::new(DIR), &*disk.look()).unwrap()[1];
    // Somebody has written the segment again, with right checks.
    let bytes = disk.with_file(path, |bytes| bytes.clone());
    disk.look().remove(path).unwrap();
    let mut old = OldWriter::new(Path::new(DIR), disk.look());
    old.last = Position { seq: 8, chain: u32::from_le_bytes(bytes[20..24].try_into().unwrap()) };
    old.begin(3, "pod/2");
    for request in 20..24 {
        old.entry(&void(request));
    }
    old.end();
    let damage = examine(&disk).unwrap();
    assert!(!damage.is_none());
    let [altered] = &damage.altered[..] else { panic!("{damage:?}") };
    assert_eq!((&altered.path, altered.last), (path, 15));
    convert(&disk).unwrap();
    assert_eq!(entries(&disk), expected);
}

#[test]
fn a_segment_of_another_journal_stops_the_conversion() {
    let (disk, _) = written();
    let (_, path) = &files::list(Path::new(DIR), &*disk.look()).unwrap()[2];
    disk.look().remove(path).unwrap();
    let mut old = OldWriter::new(Path::new(DIR), disk.look());
    old.last = Position { seq: 15, chain: 77 };
    old.begin(0, "pod/0");
    old.entry(&void(40));
    old.end();
    let error = examine(&disk).unwrap_err().to_string();
    assert!(error.contains("joining chain"), "{error}");
}
