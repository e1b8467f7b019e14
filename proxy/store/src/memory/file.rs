//! A file of samples: one row for each, in the order of their series and times.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use taximeter_columnar::{
    Cursor, Field, FieldKind, FileKind, KeptFile, KeptWriter, Layout, Misfit, Part, ROWS_MAX,
    ReadAt, ReadError, RowFilter, Rows, Sealed, Value, WriteError, batches,
};
use taximeter_fleet::{At, Grid, SampleKey, Statistic, WHO};

/// The key of the JSON in the footer.
const FOOTER_KEY: &str = "taximeter.samples";
/// The format of the files.
const FORMAT: u32 = 1;
const MICROS: i64 = 1_000_000;
/// Columns of texts, which come first. The last ones are those of [`WHO`].
const TEXTS: usize = 6 + WHO.len();
const SCALE: usize = TEXTS;

const FIELDS: [Field; TEXTS + 3] = [
    text("quantity", FieldKind::Text, false),
    text("target", FieldKind::Text, false),
    text("labels", FieldKind::Json, false),
    text("program", FieldKind::Text, false),
    text("statistic", FieldKind::Text, false),
    text("unit", FieldKind::Text, false),
    text("host", FieldKind::Text, true),
    text("gpu", FieldKind::Text, true),
    text("part", FieldKind::Text, true),
    text("namespace", FieldKind::Text, true),
    text("pod", FieldKind::Text, true),
    text("container", FieldKind::Text, true),
    text("engine", FieldKind::Text, true),
    text("model", FieldKind::Text, true),
    Field { name: "scale", kind: FieldKind::Int32, nullable: false, distinct: false },
    Field { name: "time", kind: FieldKind::Time, nullable: false, distinct: true },
    Field { name: "value", kind: FieldKind::Int64, nullable: false, distinct: true },
];

const fn text(name: &'static str, kind: FieldKind, nullable: bool) -> Field {
    Field { name, kind, nullable, distinct: false }
}

/// What a file says about its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Footer {
    /// The format of the file.
    pub format: u32,
    /// How far apart samples are.
    pub grid: String,
    /// Number of samples.
    pub samples: u64,
    /// Names of the files that it takes the place of.
    pub replaces: Vec<String>,
}

/// Writes samples.
pub(super) struct Writer {
    writer: KeptWriter<BufWriter<File>>,
    rows: Rows,
    footer: Footer,
}

impl Writer {
    /// A file without samples.
    pub(super) fn new(
        out: BufWriter<File>,
        grid: Grid,
        replaces: Vec<String>,
    ) -> Result<Self, WriteError> {
        let fields = FIELDS.into_iter();
        let rows = Rows::new(fields.clone());
        let writer = KeptWriter::new(out, "sample", &Layout::SAMPLES, fields)?;
        let footer = Footer { format: FORMAT, grid: grid.name().to_owned(), samples: 0, replaces };
        Ok(Self { writer, rows, footer })
    }

    /// Adds samples of one series. Series come in the order of their keys.
    pub(super) fn add(&mut self, key: &SampleKey, samples: &[At]) -> Result<(), WriteError> {
        let statistic = key.statistic.as_str();
        let named =
            [&key.quantity, &key.target, &key.labels, &key.program].map(|text| text.as_str());
        let known = named.into_iter().chain([statistic, &key.unit]);
        for (at, value) in samples {
            let mut row = self.rows.row();
            known.clone().for_each(|text| row.text(text.as_bytes()));
            for who in &key.who {
                match who {
                    Some(who) => row.text(who.as_bytes()),
                    None => row.null(),
                }
            }
            row.int32(key.scale);
            row.int64(at.saturating_mul(MICROS));
            row.int64(*value);
            if self.rows.len() >= ROWS_MAX {
                self.writer.add(&mut self.rows)?;
            }
        }
        self.footer.samples += samples.len() as u64;
        Ok(())
    }

    /// Ends the file. How many samples it has.
    pub(super) fn finish(mut self) -> Result<(BufWriter<File>, u64), WriteError> {
        self.writer.add(&mut self.rows)?;
        let samples = self.footer.samples;
        let footer = serde_json::to_string(&self.footer)?;
        let Sealed { mut out, .. } = self.writer.finish(FOOTER_KEY, footer)?;
        out.flush()?;
        Ok((out, samples))
    }
}

/// A file that is open for reading.
pub(super) struct Samples<R = File> {
    kept: KeptFile<R>,
    footer: Footer,
}

impl<R: ReadAt + 'static> Samples<R> {
    /// Opens a file.
    ///
    /// # Errors
    /// The file cannot be read. Its footer is damaged, or of another format.
    pub(super) fn open(reader: R) -> Result<Self, ReadError> {
        let kind = FileKind {
            key: FOOTER_KEY,
            format: FORMAT,
            columns: FIELDS.map(|field| field.name).to_vec(),
            selected: ["quantity", "time"],
        };
        let (kept, footer) = KeptFile::open(reader, &kind, |footer: &Footer| footer.samples)?;
        Ok(Self { kept, footer })
    }

    /// What it says about its rows.
    pub(super) const fn footer(&self) -> &Footer {
        &self.footer
    }

    /// The series of these rows one after the other. `filter` has the quantity in place of the tenant.
    pub(super) const fn runs(&self, filter: RowFilter) -> Runs<'_, R> {
        Runs {
            of: self,
            filter,
            group: 0,
            batches: Vec::new(),
            cursors: Vec::new(),
            left: 0,
            raw: Raw::NONE,
            ahead: None,
        }
    }
}

/// The key of the last row, as the file has it.
struct Raw {
    texts: [Option<String>; TEXTS],
    scale: i64,
}

impl Raw {
    const NONE: Self = Self { texts: [const { None }; TEXTS], scale: 0 };

    fn key(&self) -> Result<SampleKey, Misfit> {
        let mut texts = self.texts.iter().cloned();
        let mut must = || texts.next().flatten().ok_or(Misfit);
        let (quantity, target, labels) = (must()?, must()?, must()?);
        let (program, statistic, unit) = (must()?, must()?, must()?);
        let statistic = Statistic::named(&statistic).ok_or(Misfit)?;
        let scale = i32::try_from(self.scale).map_err(|_| Misfit)?;
        let who = std::array::from_fn(|_| texts.next().flatten());
        Ok(SampleKey { quantity, target, labels, program, statistic, scale, unit, who })
    }
}

/// The series of a file, one after the other.
pub(super) struct Runs<'a, R> {
    of: &'a Samples<R>,
    filter: RowFilter,
    /// The next row group.
    group: usize,
    /// Rows that are still to be read of the last one, the next ones last.
    batches: Vec<Range<usize>>,
    cursors: Vec<Cursor>,
    /// Rows that are read.
    left: usize,
    raw: Raw,
    /// The first sample of the next series.
    ahead: Option<At>,
}

impl<R: ReadAt + 'static> Runs<'_, R> {
    /// The next series with all its samples.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub(super) fn next_run(&mut self) -> Result<Option<(SampleKey, Vec<At>)>, ReadError> {
        let first = match self.ahead.take() {
            Some(first) => first,
            None => match self.row()? {
                Some((_, first)) => first,
                None => return Ok(None),
            },
        };
        let key = self.raw.key().map_err(|misfit| self.damaged(misfit))?;
        let mut samples = vec![first];
        while let Some((is_new, at)) = self.row()? {
            if is_new {
                self.ahead = Some(at);
                break;
            }
            samples.push(at);
        }
        Ok(Some((key, samples)))
    }

    /// The next sample, and whether its series is another one than that of the last.
    fn row(&mut self) -> Result<Option<(bool, At)>, ReadError> {
        if self.left == 0 && !self.read()? {
            return Ok(None);
        }
        self.left -= 1;
        self.take().map(Some).map_err(|misfit| self.damaged(misfit))
    }

    fn damaged(&self, misfit: Misfit) -> ReadError {
        let part = Part::Group(self.group.saturating_sub(1));
        ReadError::Damaged { part, what: misfit.to_string() }
    }

    /// Reads further rows. Whether there are any.
    fn read(&mut self) -> Result<bool, ReadError> {
        while self.batches.is_empty() {
            if self.group >= self.of.kept.groups() {
                return Ok(false);
            }
            let (group, kept) = (self.group, &self.of.kept);
            self.group += 1;
            let ranges = kept.matching(group, &self.filter)?;
            self.batches = batches(&ranges).collect();
            self.batches.reverse();
            if !self.batches.is_empty() {
                let cursors = (0..FIELDS.len()).map(|column| kept.cursor(group, column));
                self.cursors = cursors.collect::<Result<_, _>>()?;
            }
        }
        let Some(batch) = self.batches.pop() else { return Ok(false) };
        for cursor in &mut self.cursors {
            cursor.read(batch.start, batch.len())?;
        }
        self.left = batch.len();
        Ok(self.left > 0)
    }

    fn take(&mut self) -> Result<(bool, At), Misfit> {
        let mut is_new = false;
        let (texts, numbers) = self.cursors.split_at_mut_checked(SCALE).ok_or(Misfit)?;
        for (cursor, before) in texts.iter_mut().zip(&mut self.raw.texts) {
            let text = cursor.next_value().map(Value::text).transpose()?;
            if text != before.as_deref() {
                *before = text.map(str::to_owned);
                is_new = true;
            }
        }
        let mut next = numbers.iter_mut().map(|cursor| cursor.next_value().ok_or(Misfit)?.int());
        let mut number = || next.next().ok_or(Misfit)?;
        let (scale, time, value) = (number()?, number()?, number()?);
        is_new |= std::mem::replace(&mut self.raw.scale, scale) != scale;
        Ok((is_new, (time.div_euclid(MICROS), value)))
    }
}
