//! Sums of sessions, also more than memory has room for: the rest of them is in a temporary file, in runs
//! that are each in order.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BinaryHeap, btree_map};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt as _;

use taximeter_sessions::{DaySum, DueSum};

/// Bytes of a run that are read at once: a day with millions of sessions has thousands of runs.
const READ_BYTES: usize = 4 << 10;

/// A session of a tenant on a day, in the order in which stores show them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) tenant: String,
    pub(super) session: String,
    /// First instant of the day, in microseconds since 1970.
    pub(super) day: i64,
}

/// Sums in order.
pub(super) type Sums = BTreeMap<Key, DueSum>;

/// Adds a sum to the others.
pub(super) fn add(sums: &mut Sums, key: Key, due: DueSum) {
    match sums.get_mut(&key) {
        Some(known) => known.add(&due),
        None => drop(sums.insert(key, due)),
    }
}

/// A temporary file of sums. It has no name and goes with this process.
#[derive(Debug)]
pub(super) struct Runs {
    file: File,
    /// Where each run ends.
    ends: Vec<u64>,
}

impl Runs {
    /// An empty file.
    ///
    /// Errors: none can be made.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile()?, ends: Vec::new() })
    }

    /// Writes one more run.
    ///
    /// Errors: the file cannot be written.
    pub(super) fn add(&mut self, sums: Sums) -> io::Result<()> {
        let mut end = self.ends.last().copied().unwrap_or_default();
        let mut out = BufWriter::new(&self.file);
        for (key, due) in sums {
            let sum = due.sum.encode();
            out.write_all(&key.day.to_le_bytes())?;
            out.write_all(&[due.is_exact.into()])?;
            end += 9;
            for part in [key.tenant.as_bytes(), key.session.as_bytes(), &sum] {
                let length = u32::try_from(part.len()).map_err(io::Error::other)?;
                out.write_all(&length.to_le_bytes())?;
                out.write_all(part)?;
                end += 4 + u64::from(length);
            }
        }
        out.flush()?;
        self.ends.push(end);
        Ok(())
    }
}

/// Sums of all runs and of memory, in order, and those of one key in one.
pub(super) struct Merged<'a> {
    sources: Vec<Source<'a>>,
    next: BinaryHeap<Next>,
}

/// Sums in order.
enum Source<'a> {
    Run(BufReader<Part<'a>>),
    Memory(btree_map::IntoIter<Key, DueSum>),
}

/// A part of a file that is not read yet.
struct Part<'a> {
    file: &'a File,
    at: u64,
    end: u64,
}

/// The next sum of a source.
struct Next {
    key: Key,
    source: usize,
    due: DueSum,
}

impl<'a> Merged<'a> {
    /// Errors: the file cannot be read.
    pub(super) fn new(runs: Option<&'a Runs>, memory: Sums) -> io::Result<Self> {
        let mut sources = Vec::new();
        if let Some(Runs { file, ends }) = runs {
            let mut at = 0;
            for end in ends {
                let part = Part { file, at, end: *end };
                sources.push(Source::Run(BufReader::with_capacity(READ_BYTES, part)));
                at = *end;
            }
        }
        sources.push(Source::Memory(memory.into_iter()));
        let mut merged = Self { sources, next: BinaryHeap::new() };
        for source in 0..merged.sources.len() {
            merged.read(source)?;
        }
        Ok(merged)
    }

    /// The next key and its sum.
    ///
    /// Errors: the file cannot be read.
    pub(super) fn next_sum(&mut self) -> io::Result<Option<(Key, DueSum)>> {
        let Some(Next { key, source, mut due }) = self.next.pop() else { return Ok(None) };
        self.read(source)?;
        while let Some(other) = self.next.peek().filter(|other| other.key == key) {
            due.add(&other.due);
            let source = other.source;
            self.next.pop();
            self.read(source)?;
        }
        Ok(Some((key, due)))
    }

    fn read(&mut self, source: usize) -> io::Result<()> {
        let next = match self.sources.get_mut(source) {
            Some(Source::Run(run)) => read(run)?,
            Some(Source::Memory(sums)) => sums.next(),
            None => None,
        };
        self.next.extend(next.map(|(key, due)| Next { key, source, due }));
        Ok(())
    }
}

fn read(from: &mut BufReader<Part<'_>>) -> io::Result<Option<(Key, DueSum)>> {
    let Part { at, end, .. } = from.get_ref();
    if at == end && from.buffer().is_empty() {
        return Ok(None);
    }
    let (mut day, mut is_exact) = ([0; 8], [0]);
    from.read_exact(&mut day)?;
    from.read_exact(&mut is_exact)?;
    let [tenant, session] = [read_part(from)?, read_part(from)?];
    let [tenant, session] = [tenant, session].map(String::from_utf8);
    let sum = DaySum::decode(&read_part(from)?).map_err(io::Error::other)?;
    let key = Key {
        tenant: tenant.map_err(io::Error::other)?,
        session: session.map_err(io::Error::other)?,
        day: i64::from_le_bytes(day),
    };
    Ok(Some((key, DueSum { sum, is_exact: is_exact != [0] })))
}

fn read_part(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    let mut part = Vec::new();
    from.take(length.into()).read_to_end(&mut part)?;
    Ok(part)
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let length = left.min(buffer.len());
        let read = self.file.read_at(buffer.get_mut(..length).unwrap_or_default(), self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The one that comes first is the greatest; of one key that of the older run.
impl Ord for Next {
    fn cmp(&self, other: &Self) -> Ordering {
        (&other.key, other.source).cmp(&(&self.key, self.source))
    }
}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Next {}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;
    use taximeter_database::sessions::session_of;
    use taximeter_ledger::{Dimensions, Place};

    use super::*;
    use crate::Post;
    use crate::samples::{journal, record};

    /// The sum of one request.
    fn due(number: u32) -> DueSum {
        let mut record = record(number);
        let session = Some("s".to_owned());
        record.dimensions = Dimensions { session, ..Dimensions::default() }.if_any();
        record.started_at = Timestamp::from_second(number.into()).unwrap();
        let framed = journal([record]).remove(0);
        let payload = framed.payload.to_vec();
        let post = Post::read(Place { ledger: framed.ledger, seq: 1 }, &payload).unwrap();
        DueSum::of(DaySum::of(&session_of(&post).unwrap().1))
    }

    fn any_key() -> impl Strategy<Value = Key> {
        ("[a-c]?", "[a-c]{0,2}", -2..2_i64).prop_map(|(tenant, session, day)| Key {
            tenant,
            session,
            day,
        })
    }

    proptest! {
        #[test]
        fn sums_are_the_same_and_in_order_however_many_of_them_memory_holds(
            keys in prop::collection::vec(any_key(), 0..60),
            held in 1..20_usize,
        ) {
            let (mut all, mut memory, mut runs) = (Sums::new(), Sums::new(), Runs::new().unwrap());
            for (number, key) in (0..).zip(keys) {
                add(&mut all, key.clone(), due(number));
                add(&mut memory, key, due(number));
                if memory.len() == held {
                    runs.add(std::mem::take(&mut memory)).unwrap();
                }
            }
            let mut merged = Merged::new(Some(&runs), memory).unwrap();
            let merged: Vec<_> = std::iter::from_fn(|| merged.next_sum().unwrap()).collect();
            prop_assert_eq!(merged, Vec::from_iter(all));
        }
    }
}
