//! The reader of Prometheus' text format 0.0.4 and of OpenMetrics 1.0.
//!
//! One pass over the bytes, line by line. The reader is lenient where a program's intent is plain
//! (spaces before a name, CRLF, a lone `-nan(ind)`, a body that is one JSON string), because a scrape
//! with a broken line is worth more than none. It never repairs a number: a last line without its end
//! may be cut off in the middle of its value, so it is skipped.

mod form;
mod line;
mod number;
mod skipped;

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher};
use std::ops::Range;

use foldhash::fast::FixedState;
use taximeter_fleet::{Declared, Label, Sample, Samples};

pub use self::form::{Form, body};
pub use self::skipped::{Skipped, Why};

use self::line::Line;

/// Where reading stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Longest text, in bytes. What is behind is not read.
    pub bytes: usize,
    /// Longest line, in bytes.
    pub line_bytes: usize,
    /// Most labels of a sample.
    pub labels: usize,
    /// Most samples.
    pub samples: usize,
    /// Most skipped lines that are told. All are counted.
    pub told: usize,
}

impl Default for Bounds {
    /// Of one scrape: 16 MiB, and a fifth of a million samples.
    fn default() -> Self {
        Self { bytes: 16 << 20, line_bytes: 64 << 10, labels: 64, samples: 200_000, told: 100 }
    }
}

/// What one scrape says.
#[derive(Debug, Clone, PartialEq)]
pub struct Exposition<'a> {
    /// What the text is.
    pub form: Form,
    /// Its samples, in their order.
    pub samples: Samples<'a>,
    /// How many lines were read.
    pub lines: u64,
    /// Which of them were skipped, and why.
    pub skipped: Skipped,
    /// Whether the text is longer than the bounds allow, so that its end is not read.
    pub cut: bool,
}

/// Reads the text of one scrape.
///
/// `text` may be anything. What [`body`] makes of an answer is what should be read.
#[must_use]
pub fn read<'a>(text: &'a [u8], bounds: &Bounds) -> Exposition<'a> {
    let within = text.get(..bounds.bytes).unwrap_or(text);
    let form = Form::of(within);
    let mut reader = Reader {
        bounds,
        labels: Vec::new(),
        head: "",
        family: Family::default(),
        series: Vec::new(),
        hashes: HashSet::default(),
        is_twice: false,
        ended: false,
        read: Exposition {
            form,
            samples: Samples::default(),
            lines: 0,
            skipped: Skipped::new(bounds.told),
            cut: within.len() < text.len(),
        },
    };
    if matches!(form, Form::Text) {
        // A sample is rarely shorter, so that the lists rarely grow.
        let samples = (within.len() / 96).min(bounds.samples);
        reader.read.samples = Samples::with_capacity(samples);
        reader.series.reserve(samples);
        reader.hashes.reserve(samples);
        reader.lines(form::without_mark(within));
    }
    reader.finish()
}

/// The metric that the last `# TYPE` declared.
#[derive(Default)]
struct Family<'a> {
    name: Cow<'a, str>,
    declared: Declared,
}

/// What a family's samples have behind its name.
const SUFFIXES: &[&str] =
    &["", "_total", "_bucket", "_sum", "_count", "_created", "_info", "_gcount", "_gsum"];

impl Family<'_> {
    fn of(&self, name: &str) -> Declared {
        match name.strip_prefix(self.name.as_ref()) {
            Some(suffix) if SUFFIXES.contains(&suffix) => self.declared,
            _ => Declared::Nothing,
        }
    }
}

struct Reader<'a, 'b> {
    bounds: &'b Bounds,
    /// Labels of the line that is read. Empty between two lines.
    labels: Vec<Label<'a>>,
    /// The text of all labels but the last of the last sample.
    head: &'a str,
    family: Family<'a>,
    /// A hash of the text of each series, and the number of its sample.
    series: Vec<(u64, u32)>,
    /// The same hashes, and whether one of them was there twice.
    hashes: HashSet<u64, BuildHasherDefault<AsItIs>>,
    is_twice: bool,
    /// `# EOF` was there.
    ended: bool,
    read: Exposition<'a>,
}

impl<'a> Reader<'a, '_> {
    fn lines(&mut self, text: &'a [u8]) {
        // Most texts are UTF-8 as a whole. Of others each line is looked at by itself.
        let whole = std::str::from_utf8(text).ok();
        let line_at = |place: Range<usize>| match whole {
            Some(text) => Ok(text.get(place).unwrap_or_default()),
            None => {
                std::str::from_utf8(text.get(place).unwrap_or_default()).map_err(|_| Why::NotUtf8)
            }
        };
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', text) {
            let line = self.bounded(begin..end).and_then(line_at);
            begin = end + 1;
            self.line(line, true);
        }
        if begin < text.len() {
            let line = self.bounded(begin..text.len()).and_then(line_at);
            self.line(line, false);
        }
    }

    /// The place of a line, if it is not too long.
    fn bounded(&self, place: Range<usize>) -> Result<Range<usize>, Why> {
        if place.len() > self.bounds.line_bytes + 1 { Err(Why::LongLine) } else { Ok(place) }
    }

    /// Reads one line. `whole` says that its end was there.
    fn line(&mut self, line: Result<&'a str, Why>, whole: bool) {
        self.read.lines += 1;
        if let Err(why) = line.and_then(|line| self.add(line, whole)) {
            self.skip(self.read.lines, why);
        }
        self.labels.clear();
    }

    fn add(&mut self, line: &'a str, whole: bool) -> Result<(), Why> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.len() > self.bounds.line_bytes {
            return Err(Why::LongLine);
        }
        let line = line.trim_start_matches([' ', '\t']);
        if line.is_empty() {
            return Ok(());
        }
        if self.ended {
            return Err(Why::BehindEnd);
        }
        let known = self.read.samples.last_labels();
        let known = (self.head, known.get(..known.len().saturating_sub(1)).unwrap_or_default());
        match line::parse(line, &mut self.labels, self.bounds.labels, known)? {
            Line::Nothing => Ok(()),
            Line::End => {
                self.ended = true;
                Ok(())
            }
            Line::Type(..) | Line::Sample(_) if !whole => Err(Why::Cut),
            Line::Type(name, declared) => {
                self.family = Family { name, declared };
                Ok(())
            }
            Line::Sample(sample) => self.sample(&sample),
        }
    }

    fn sample(&mut self, sample: &line::Parsed<'a>) -> Result<(), Why> {
        let number = self.read.samples.len();
        if number >= self.bounds.samples {
            return Err(Why::ManySamples);
        }
        let number = u32::try_from(number).map_err(|_| Why::ManySamples)?;
        let hash = FixedState::default().hash_one(sample.series);
        self.series.push((hash, number));
        self.is_twice |= !self.hashes.insert(hash);
        self.head = sample.head;
        let sample = Sample {
            name: sample.name,
            declared: self.family.of(sample.name),
            value: sample.value,
            stamped: sample.stamped,
            line: u32::try_from(self.read.lines).unwrap_or(u32::MAX),
        };
        self.read.samples.push(sample, &mut self.labels);
        Ok(())
    }

    fn skip(&mut self, line: u64, why: Why) {
        self.read.skipped.add(line, why);
    }

    /// Takes out what stands twice: of one series the newest sample stays, else the first.
    fn finish(mut self) -> Exposition<'a> {
        if !self.is_twice {
            return self.read;
        }
        self.series.sort_unstable();
        let mut out = Vec::new();
        let mut stays: Option<(u64, u32)> = None;
        for &(hash, number) in &self.series {
            match stays {
                Some((before, kept)) if before == hash => match self.twice(kept, number) {
                    Some(Older::Kept) => {
                        out.push(kept);
                        stays = Some((hash, number));
                    }
                    Some(Older::Other) => out.push(number),
                    None => {}
                },
                _ => stays = Some((hash, number)),
            }
        }
        if !out.is_empty() {
            self.take_out(out);
        }
        self.read
    }

    /// Which of two samples is not needed, if they are of one series.
    fn twice(&self, kept: u32, other: u32) -> Option<Older> {
        let (kept, kept_labels) = self.read.samples.get(kept as usize)?;
        let (other, other_labels) = self.read.samples.get(other as usize)?;
        if kept.name != other.name || kept_labels != other_labels {
            return None;
        }
        let newer = matches!((kept.stamped, other.stamped), (Some(a), Some(b)) if b > a);
        Some(if newer { Older::Kept } else { Older::Other })
    }

    fn take_out(&mut self, mut out: Vec<u32>) {
        out.sort_unstable();
        let all = std::mem::take(&mut self.read.samples);
        let mut left = Samples::with_capacity(all.len());
        let mut labels = Vec::new();
        for (number, (sample, of)) in all.iter().enumerate() {
            if u32::try_from(number).is_ok_and(|number| out.binary_search(&number).is_ok()) {
                self.skip(sample.line.into(), Why::Twice);
            } else {
                labels.extend_from_slice(of);
                left.push(*sample, &mut labels);
            }
        }
        self.read.samples = left;
        self.read.skipped.sort();
    }
}

enum Older {
    Kept,
    Other,
}

/// The hash of what is a hash.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0 << 8 | u64::from(*byte));
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests;
