//! Samples that wait, in few bytes each: a fleet has a million of them each minute.

use crate::memory::statistic::Statistic;

/// Kinds of statistics.
const STATISTICS: u64 = Statistic::ALL.len() as u64;

/// A sample that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    /// The number of its series.
    pub line: u16,
    pub statistic: Statistic,
    pub second: i64,
    pub value: i64,
}

/// Samples in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    seconds: Vec<OfSecond>,
}

/// Samples of one second that came one after the other.
#[derive(Debug, Clone, Copy)]
struct OfSecond {
    second: i64,
    samples: usize,
    /// Where their bytes end.
    end: usize,
    /// The series of the last one.
    line: u16,
}

impl Packed {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.seconds.iter().map(|of| of.samples).sum()
    }

    /// Whether there are none.
    pub(super) const fn is_empty(&self) -> bool {
        self.seconds.is_empty()
    }

    /// The first second that one is of.
    pub(super) fn earliest(&self) -> Option<i64> {
        self.seconds.iter().map(|of| of.second).min()
    }

    /// Adds one.
    pub(super) fn push(&mut self, one: Waiting) {
        let bytes = &mut self.bytes;
        let before = self.seconds.last_mut().filter(|of| of.second == one.second);
        let line = before.as_ref().map_or(0, |of| of.line);
        put(bytes, zigzag(i64::from(one.line) - i64::from(line)), one.statistic, one.value);
        let end = bytes.len();
        match before {
            Some(of) => (of.samples, of.end, of.line) = (of.samples + 1, end, one.line),
            None => {
                let Waiting { line, second, .. } = one;
                self.seconds.push(OfSecond { second, samples: 1, end, line });
            }
        }
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = Waiting> + '_ {
        let mut begin = 0;
        self.seconds.iter().flat_map(move |of| {
            let mut bytes = self.bytes.get(begin..of.end).unwrap_or_default();
            begin = of.end;
            let mut line = 0;
            std::iter::from_fn(move || {
                let (step, statistic, value) = take(&mut bytes)?;
                line += unzigzag(step);
                let (line, second) = (u16::try_from(line).ok()?, of.second);
                Some(Waiting { line, statistic, second, value })
            })
        })
    }

    /// Takes out those before `until`.
    pub(super) fn take_before(&mut self, until: i64) -> Sorted {
        let all = std::mem::take(self);
        let mut due = Vec::with_capacity(all.len());
        for one in all.iter() {
            if one.second < until {
                due.push(one);
            } else {
                self.push(one);
            }
        }
        Sorted::of(due)
    }

    /// Gives each series its new number.
    pub(super) fn renumber(&mut self, new: impl Fn(u16) -> u16) {
        let all = std::mem::take(self);
        all.iter().for_each(|one| self.push(Waiting { line: new(one.line), ..one }));
    }
}

/// Samples in the order of their series.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    bytes: Vec<u8>,
    /// Where the bytes of each series end.
    ends: Vec<u32>,
}

impl Sorted {
    fn of(mut all: Vec<Waiting>) -> Self {
        all.sort_unstable_by_key(|one| (one.line, one.statistic, one.second));
        let mut sorted = Self::default();
        for of_line in all.chunk_by(|a, b| a.line == b.line) {
            let line = of_line.first().map_or(0, |one| usize::from(one.line));
            sorted.ends.resize(line, sorted.end());
            let mut before = 0;
            for one in of_line {
                put(&mut sorted.bytes, zigzag(one.second - before), one.statistic, one.value);
                before = one.second;
            }
            sorted.ends.push(sorted.end());
        }
        sorted
    }

    fn end(&self) -> u32 {
        u32::try_from(self.bytes.len()).unwrap_or(u32::MAX)
    }

    /// Those of a series, in the order of their statistics and seconds.
    pub(super) fn of_line(&self, line: u16) -> Vec<Waiting> {
        let end = |line: usize| self.ends.get(line).map(|end| *end as usize);
        let place = usize::from(line);
        let begin = place.checked_sub(1).map_or(Some(0), end);
        let place = begin.zip(end(place)).map(|(begin, end)| begin..end);
        let mut bytes = place.and_then(|place| self.bytes.get(place)).unwrap_or_default();
        let (mut samples, mut second) = (Vec::new(), 0);
        while let Some((step, statistic, value)) = take(&mut bytes) {
            second += unzigzag(step);
            samples.push(Waiting { line, statistic, second, value });
        }
        samples
    }
}

/// Writes one: how far its series or its second is from the one before, its statistic and its value.
fn put(bytes: &mut Vec<u8>, step: u64, statistic: Statistic, value: i64) {
    let place = Statistic::ALL.iter().position(|one| *one == statistic).unwrap_or_default();
    for mut number in [step * STATISTICS + place as u64, zigzag(value)] {
        while number >= 0x80 {
            bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        bytes.push(number.to_le_bytes()[0]);
    }
}

/// Reads one.
fn take(bytes: &mut &[u8]) -> Option<(u64, Statistic, i64)> {
    let first = number(bytes)?;
    let statistic = Statistic::ALL.get(usize::try_from(first % STATISTICS).ok()?)?;
    Some((first / STATISTICS, *statistic, unzigzag(number(bytes)?)))
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f).checked_shl(shift)?;
        if first & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

/// A small number for each that is near zero.
const fn zigzag(value: i64) -> u64 {
    (value.cast_unsigned() << 1) ^ (value >> 63).cast_unsigned()
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn waiting() -> impl Strategy<Value = Waiting> {
        let second = prop_oneof![0..50_i64, -(1_i64 << 40)..1_i64 << 40];
        let value = prop_oneof![-3..300_i64, any::<i64>()];
        (0..40_u16, select(&Statistic::ALL[..]), second, value)
            .prop_map(|(line, statistic, second, value)| Waiting { line, statistic, second, value })
    }

    proptest! {
        #[test]
        fn what_is_packed_comes_out_whatever_it_is(
            all in prop::collection::vec(waiting(), 0..200),
            until in 0..50_i64,
        ) {
            let mut packed = Packed::default();
            all.iter().for_each(|one| packed.push(*one));
            prop_assert_eq!(packed.iter().collect::<Vec<_>>(), all.clone());
            prop_assert_eq!((packed.len(), packed.is_empty()), (all.len(), all.is_empty()));
            prop_assert_eq!(packed.earliest(), all.iter().map(|one| one.second).min());
            let sorted = packed.take_before(until);
            let (mut due, mut rest): (Vec<_>, Vec<_>) =
                all.iter().copied().partition(|one| one.second < until);
            due.sort_by_key(|one| (one.line, one.statistic, one.second));
            for line in 0..42 {
                let mut told = sorted.of_line(line);
                let mut own: Vec<_> = due.iter().copied().filter(|one| one.line == line).collect();
                // Those of one second have no order.
                for samples in [&mut told, &mut own] {
                    samples.sort_by_key(|one| (one.statistic, one.second, one.value));
                }
                prop_assert_eq!(told, own);
            }
            packed.renumber(|line| line + 1);
            rest.iter_mut().for_each(|one| one.line += 1);
            prop_assert_eq!(packed.iter().collect::<Vec<_>>(), rest);
        }
    }

    #[test]
    fn a_sample_of_a_fleet_takes_few_bytes() {
        let mut packed = Packed::default();
        for line in 0..300 {
            packed.push(Waiting {
                line,
                statistic: Statistic::Mean,
                second: 1_795_132_800,
                value: 481,
            });
        }
        assert_eq!(packed.bytes.len(), 3 * 300);
    }
}
