//! Tests that open a journal on a volume without room.

use super::super::identity::LEDGER;
use super::super::lock::LOCK;
use super::*;

/// Bytes that there is room for; `None` if no file can be made.
const ROOMS: [Option<usize>; 9] =
    [None, Some(0), Some(1), Some(30), Some(60), Some(200), Some(400), Some(900), Some(2_000)];

impl Bench {
    fn set_room(&self, room: Option<usize>) {
        self.disk.set(|script| {
            script.full_after = room;
            script.has_no_inodes = room.is_none();
        });
    }

    fn make_room(&self) {
        self.disk.set(|script| (script.full_after, script.has_no_inodes) = (None, false));
    }

    /// Another one with the same files.
    fn copy(&self) -> Self {
        let copy = Self { segment_bytes: self.segment_bytes, ..Self::new(self.durability) };
        for entry in fs::read_dir(self.dir.path()).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, copy.dir.path().join(path.file_name().unwrap())).unwrap();
        }
        copy
    }
}

fn of_requests(bench: &Bench) -> Vec<(u64, Vec<u8>)> {
    let framed = bench.read(1).into_iter().filter(is_of_a_request);
    framed.map(|framed| (framed.seq, framed.payload.to_vec())).collect()
}

#[test]
fn a_new_journal_opens_without_room_and_is_made_when_there_is_room() {
    for durability in [Durability::Os, Durability::Group, Durability::Sync] {
        for room in ROOMS {
            let bench = Bench { unavailable: OnUnavailable::Serve, ..Bench::new(durability) };
            bench.set_room(room);
            let (journal, recovery) = bench.open();
            assert_eq!(journal.is_healthy(), room.is_some_and(|room| room >= 900), "{room:?}");
            assert!(journal.is_open(), "it is to serve");
            for request in 0..5 {
                journal.append_detached(&reserve(request));
                journal.append_detached(&post(request));
            }
            // Whatever there is room for, nobody else writes it.
            assert!(is_written(bench.dir.path()));
            let other = bench.try_open().map(drop);
            assert!(matches!(other, Err(JournalError::InUse { .. })), "{room:?}: {other:?}");
            bench.make_room();
            wait_for(&journal, recovery.next_seq + 9);
            assert!(bench.dir.path().join(LOCK).exists() && bench.dir.path().join(LEDGER).exists());
            assert_eq!(identity(bench.dir.path()).unwrap().unwrap(), recovery.identity);
            assert!(matches!(bench.try_open().map(drop), Err(JournalError::InUse { .. })));
            journal.close().unwrap();
            assert_eq!(bench.requests(), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4], "{room:?}");
            assert!(!is_written(bench.dir.path()));
            assert_eq!(bench.open().1.identity, recovery.identity);
        }
    }
}

#[test]
fn a_copy_that_starts_without_room_is_one_ledger_from_then_on() {
    for room in [None, Some(0)] {
        let bench = Bench::new(Durability::Os);
        let (journal, first) = bench.open();
        append(&journal, &reserve(1)).unwrap();
        journal.close().unwrap();
        let file = bench.dir.path().join(LEDGER);
        fs::write(&file, in_copy(&fs::read_to_string(&file).unwrap())).unwrap();
        bench.set_room(room);
        let (journal, recovery) = bench.open();
        assert_eq!(recovery.identity.copy_of, [first.identity.id]);
        bench.make_room();
        wait_for(&journal, recovery.next_seq - 1);
        journal.close().unwrap();
        assert_eq!(bench.open().1.identity, recovery.identity, "{room:?}");
    }
}

/// Damages a byte of entry `seq`.
fn damage(bench: &Bench, seq: u64) {
    let framed = bench.read(seq).remove(0);
    let path = bench.segment_of(seq);
    let mut bytes = fs::read(&path).unwrap();
    bytes[usize::try_from(framed.offset).unwrap() + 30] ^= 4;
    fs::write(&path, &bytes).unwrap();
}

#[test]
fn damage_is_left_out_in_memory_without_room_and_on_the_disk_later() {
    let sample = salvage::filled();
    let count = sample.read(1).len() as u64;
    let mut held = 0;
    for seq in (1..=count).step_by(6) {
        let damaged = sample.copy();
        damage(&damaged, seq);
        for (durability, failing_syncs) in [(Durability::Os, 0), (Durability::Group, 2)] {
            let again = || Bench { durability, recovery: OnDamage::Salvage, ..damaged.copy() };
            let expected = again();
            let (journal, salvaged) = expected.open();
            journal.close().unwrap();
            for room in ROOMS.into_iter().step_by(2) {
                let bench = again();
                bench.set_room(room);
                let (journal, recovery) = bench.open();
                let lost = |recovery: &Recovery| {
                    let loss = |loss: &Loss| (loss.first_seq, loss.entries, loss.torn_bytes);
                    recovery.losses.iter().map(loss).collect::<Vec<_>>()
                };
                assert_eq!(lost(&recovery), lost(&salvaged), "{seq} {room:?}");
                if journal.is_healthy() {
                    continue;
                }
                held += 1;
                assert_eq!(append(&journal, &reserve(500)), Err(AppendError::Unavailable));
                bench.disk.set(|script| script.failing_syncs = failing_syncs);
                bench.make_room();
                wait_for(&journal, recovery.next_seq - 1);
                bench.disk.set(|script| script.failing_syncs = 0);
                journal.close().unwrap();
                assert!(recovery.losses.iter().all(|loss| loss.kept.exists()), "{recovery:?}");
                assert_eq!(of_requests(&bench), of_requests(&expected), "{seq} {room:?}");
                // From now on it is whole.
                let recovery = bench.open_as(OnDamage::Strict).1;
                assert!(recovery.losses.is_empty(), "{recovery:?}");
            }
        }
    }
    assert!(held > 30, "{held}");
}
