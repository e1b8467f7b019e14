//! Files of samples into one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use taximeter_columnar::{ReadError, RowFilter, WriteError};
use taximeter_fleet::{At, Grid, SampleKey, roll, settle};

use super::file::{Runs, Samples, Writer};

/// Most files that are read at once: each takes one or two MiB.
pub(super) const FILES_AT_ONCE: usize = 12;

/// Why files cannot be merged.
pub(super) enum Fault {
    /// The file with this number.
    In(usize, ReadError),
    Out(WriteError),
    /// Somebody wants it to end.
    Stopped,
}

impl From<WriteError> for Fault {
    fn from(error: WriteError) -> Self {
        Self::Out(error)
    }
}

/// Writes all samples of `files`, which come in the order of their times, to `out`, and the hours that are
/// made from them to `hours`. Samples of one series and time become one.
pub(super) fn merge(
    files: &[Samples],
    out: &mut Writer,
    mut hours: Option<&mut Writer>,
    go_on: &dyn Fn() -> bool,
) -> Result<(), Fault> {
    let mut merged = Merged::of(files)?;
    while let Some((mut key, mut samples)) = merged.next()? {
        if !go_on() {
            return Err(Fault::Stopped);
        }
        settle(key.statistic, &mut samples);
        out.add(&key, &samples)?;
        if let Some(hours) = hours.as_deref_mut() {
            for to in key.statistic.becomes(Grid::Minute) {
                let of_hours = roll(*to, Grid::Hour, &samples);
                key.statistic = *to;
                hours.add(&key, &of_hours)?;
            }
        }
    }
    Ok(())
}

/// The series of several files, each once.
struct Merged<'a> {
    runs: Vec<(Runs<'a, std::fs::File>, Vec<At>)>,
    /// The next series of each file.
    next: BinaryHeap<Reverse<(SampleKey, usize)>>,
}

impl<'a> Merged<'a> {
    fn of(files: &'a [Samples]) -> Result<Self, Fault> {
        let all = |file: &'a Samples| (file.runs(RowFilter::default()), Vec::new());
        let runs = files.iter().map(all).collect();
        let mut merged = Self { runs, next: BinaryHeap::with_capacity(files.len()) };
        for at in 0..files.len() {
            merged.advance(at)?;
        }
        Ok(merged)
    }

    fn advance(&mut self, at: usize) -> Result<(), Fault> {
        let Some((runs, held)) = self.runs.get_mut(at) else { return Ok(()) };
        if let Some((key, samples)) = runs.next_run().map_err(|error| Fault::In(at, error))? {
            *held = samples;
            self.next.push(Reverse((key, at)));
        }
        Ok(())
    }

    /// The next series with the samples of all files, those of earlier files first.
    fn next(&mut self) -> Result<Option<(SampleKey, Vec<At>)>, Fault> {
        let Some(Reverse((key, mut at))) = self.next.pop() else { return Ok(None) };
        let mut samples = Vec::new();
        loop {
            if let Some((_, held)) = self.runs.get_mut(at) {
                samples.append(held);
            }
            self.advance(at)?;
            match self.next.peek() {
                Some(Reverse((other, _))) if *other == key => {}
                _ => return Ok(Some((key, samples))),
            }
            let Some(Reverse((_, next))) = self.next.pop() else { return Ok(Some((key, samples))) };
            at = next;
        }
    }
}
