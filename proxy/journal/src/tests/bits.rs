//! Flips every bit of a journal, one after the other.

use std::path::{Path, PathBuf};

use taximeter_config::Durability;
use taximeter_ledger::{Fault, FramedEntry, SyncMark, frame_bytes};

use super::super::JournalError;
use super::super::files;
use super::super::promise::is_behind_all_synced;
use super::super::read::Entries;
use super::model::{DIR, Model};
use super::random::Random;

const BITS: usize = 8;
/// Length of a mark.
const MARK_BYTES: usize = 25;
/// Length of the head of a frame.
const HEAD_BYTES: usize = 16;

/// What is read, up to a fault.
fn read(model: &Model) -> (Vec<FramedEntry>, Option<JournalError>) {
    let mut entries = Entries::new(model.memory.look(), Path::new(DIR), 1);
    let mut fault = None;
    let found = std::iter::from_fn(|| entries.next()?.map_err(|error| fault = Some(error)).ok());
    (found.collect(), fault)
}

/// A journal of some segments.
fn written(durability: Durability) -> (Model, Vec<PathBuf>) {
    let mut model = Model::new(durability, 250);
    let journal = model.reopen(0).unwrap();
    model.work(&journal, 8, &mut Random::new(1, 1));
    journal.close().unwrap();
    let disk = model.memory.look();
    let segments = files::list(Path::new(DIR), &*disk).unwrap();
    assert!(segments.len() > 1);
    (model, segments.into_iter().map(|(_, path)| path).collect())
}

/// Turns each bit over, looks what is read, and turns it back.
fn turn_each(
    model: &Model,
    path: &Path,
    look: impl Fn(usize, Vec<FramedEntry>, Option<JournalError>),
) {
    for bit in 0..model.memory.with_file(path, |bytes| bytes.len() * BITS) {
        let turn = || model.memory.with_file(path, |bytes| bytes[bit / BITS] ^= 1 << (bit % BITS));
        turn();
        let (found, fault) = read(model);
        look(bit / BITS, found, fault);
        turn();
    }
}

#[test]
fn a_bit_that_turns_over_is_found_with_its_place() {
    let (model, segments) = written(Durability::Os);
    let (whole, fault) = read(&model);
    assert!(fault.is_none() && whole.len() >= 8);
    for path in &segments {
        let bytes = model.memory.with_file(path, |bytes| bytes.clone());
        turn_each(&model, path, |byte, found, fault| {
            assert!(whole.starts_with(&found), "byte {byte}: another record");
            let Some(JournalError::Segment { path: named, fault }) = fault else {
                panic!("byte {byte} of {path:?}: {fault:?}");
            };
            assert_eq!(named, *path, "byte {byte}: {fault}");
            match fault {
                Fault::Damaged { offset: 0, .. } => assert!(byte < 512),
                Fault::Damaged { offset, .. } => {
                    let offset = usize::try_from(offset).unwrap();
                    let end = offset + frame_bytes(&bytes[offset..]).unwrap();
                    assert!((offset..end).contains(&byte), "byte {byte}: {fault}");
                }
                Fault::Format { .. } => assert!((8..10).contains(&byte)),
                other => panic!("byte {byte}: {other}"),
            }
        });
    }
}

#[test]
fn a_bit_that_turns_over_in_a_torn_end_makes_no_record() {
    let (model, segments) = written(Durability::Os);
    let (whole, _) = read(&model);
    let last = segments.last().unwrap();
    let begins = usize::try_from(whole.last().unwrap().offset).unwrap();
    let bytes = model.memory.with_file(last, |bytes| bytes.clone());
    let length = bytes.len();
    for left in [
        begins + 1,
        begins + HEAD_BYTES - 1,
        begins + HEAD_BYTES,
        usize::midpoint(begins, length),
        length - 1,
    ] {
        model.memory.with_file(last, |file| *file = bytes[..left].to_vec());
        turn_each(&model, last, |byte, found, fault| {
            assert!(whole.starts_with(&found), "byte {byte}: another record");
            assert!(found.len() < whole.len());
            assert!(byte >= begins || fault.is_some(), "byte {byte} is not noticed");
        });
    }
}

#[test]
fn a_bit_that_turns_over_in_what_was_synced_is_taken_for_no_torn_end() {
    for durability in [Durability::Group, Durability::Sync] {
        let (model, segments) = written(durability);
        let (whole, _) = read(&model);
        let disk = model.memory.look();
        for path in &segments {
            let is_last = segments.last() == Some(path);
            // The last that is said there was itself not synced, and nothing is behind it.
            let ledger = files::header(path, &*disk).unwrap().unwrap().ledger;
            let last_word = model.memory.with_file(path, |bytes| {
                let begins = bytes.len() - MARK_BYTES;
                SyncMark::last_in(&bytes[begins..], ledger).map_or(bytes.len(), |_| begins)
            });
            turn_each(&model, path, |byte, found, fault| {
                if byte >= last_word {
                    return assert!(found == whole && fault.is_some() == is_last);
                }
                let Some(JournalError::Segment { path: named, fault }) = fault else {
                    panic!("byte {byte} of {path:?} with {durability:?}: {fault:?}");
                };
                assert_eq!(named, *path);
                let cut = is_behind_all_synced(&*disk, Path::new(DIR), path, &fault).unwrap();
                assert!(!cut, "byte {byte} of {path:?} with {durability:?}: {fault}");
            });
        }
    }
}
