//! Every bit of a journal turns over, one after the other.

use std::path::{Path, PathBuf};

use taximeter_config::Durability;
use taximeter_ledger::{Fault, Framed};

use super::super::JournalError;
use super::super::files;
use super::super::read::Entries;
use super::model::{DIR, Model};
use super::random::Random;

const BITS: usize = 8;

/// What is read, up to a fault.
fn read(model: &Model) -> (Vec<Framed>, Option<JournalError>) {
    let mut entries = Entries::new(model.memory.look(), Path::new(DIR), 1);
    let mut fault = None;
    let found = std::iter::from_fn(|| entries.next()?.map_err(|error| fault = Some(error)).ok());
    (found.collect(), fault)
}

/// A journal of some segments.
fn written() -> (Model, Vec<PathBuf>) {
    let mut model = Model::new(Durability::Os, 1_000);
    let journal = model.reopen(0).unwrap();
    model.work(&journal, 8, &mut Random::new(1, 1));
    journal.close().unwrap();
    let disk = model.memory.look();
    let segments = files::list(Path::new(DIR), &*disk).unwrap();
    assert!(segments.len() > 1);
    (model, segments.into_iter().map(|(_, path)| path).collect())
}

/// Turns each bit over, looks what is read, and turns it back.
fn turn_each(model: &Model, path: &Path, look: impl Fn(usize, Vec<Framed>, Option<JournalError>)) {
    for bit in 0..model.memory.with_file(path, |bytes| bytes.len() * BITS) {
        let turn = || model.memory.with_file(path, |bytes| bytes[bit / BITS] ^= 1 << (bit % BITS));
        turn();
        let (found, fault) = read(model);
        turn();
        look(bit / BITS, found, fault);
    }
}

#[test]
fn a_bit_that_turns_over_is_found_with_its_place() {
    let (model, segments) = written();
    let (whole, fault) = read(&model);
    assert!(fault.is_none() && whole.len() >= 8);
    for path in &segments {
        turn_each(&model, path, |byte, found, fault| {
            assert!(whole.starts_with(&found), "byte {byte}: another record");
            let Some(JournalError::Segment { path: named, fault }) = fault else {
                panic!("byte {byte} of {path:?}: {fault:?}");
            };
            assert_eq!(named, *path, "byte {byte}: {fault}");
            let next = &whole[found.len()];
            match fault {
                Fault::Damaged { offset: 0, .. } => assert!(byte < 512),
                Fault::Damaged { offset, .. } => {
                    let offset = usize::try_from(offset).unwrap();
                    let end = offset + 21 + next.payload.len();
                    assert!((offset..end).contains(&byte), "byte {byte}: {fault}");
                }
                Fault::Newer { .. } => assert!((8..10).contains(&byte)),
                other => panic!("byte {byte}: {other}"),
            }
        });
    }
}

#[test]
fn a_bit_that_turns_over_in_a_torn_end_makes_no_record() {
    let (model, segments) = written();
    let (whole, _) = read(&model);
    let last = segments.last().unwrap();
    let begins = usize::try_from(whole.last().unwrap().offset).unwrap();
    let bytes = model.memory.with_file(last, |bytes| bytes.clone());
    let length = bytes.len();
    for left in [begins + 1, begins + 20, begins + 21, usize::midpoint(begins, length), length - 1]
    {
        model.memory.with_file(last, |file| *file = bytes[..left].to_vec());
        turn_each(&model, last, |byte, found, fault| {
            assert!(whole.starts_with(&found), "byte {byte}: another record");
            assert!(found.len() < whole.len());
            assert!(byte >= begins || fault.is_some(), "byte {byte} is not noticed");
        });
    }
}
