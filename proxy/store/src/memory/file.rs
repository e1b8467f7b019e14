//! A file of samples: one row for each, in the order of their series and times.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use taximeter_columnar::{
    Cursor, Field, FieldKind, FileKind, KeptFile, KeptWriter, Layout, Misfit, Part, ROWS_MAX,
    ReadAt, ReadError, RowFilter, Rows, Sealed, TextCursor, WriteError, pieces,
};
use taximeter_fleet::{At, Grid, SampleKey, Statistic, WHO};

/// The key of the JSON in the footer.
const FOOTER_KEY: &str = "taximeter.samples";
/// The format of the files.
const FORMAT: u32 = 1;
const MICROS: i64 = 1_000_000;
/// Rows that are read at once.
const BATCH_ROWS: usize = 4 << 10;
/// Columns of texts, which come first. The last ones are those of [`WHO`].
const TEXTS: usize = 6 + WHO.len();

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
        let rows = Rows::of_runs(&Layout::SAMPLES, fields.clone());
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
        let mut rest = samples;
        while !rest.is_empty() {
            let room = ROWS_MAX.saturating_sub(self.rows.len());
            let (now, behind) = rest.split_at(rest.len().min(room));
            rest = behind;
            let mut run = self.rows.run(now.len());
            known.clone().for_each(|text| run.text(Some(text)));
            key.who.iter().for_each(|who| run.text(who.as_deref()));
            run.int32(key.scale);
            run.int64s(now.iter().map(|(at, _)| at.saturating_mul(MICROS)));
            run.int64s(now.iter().map(|(_, value)| *value));
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
            texts: Vec::new(),
            numbers: Vec::new(),
            batch: 0..0,
            piece: 0..0,
            raw: Raw::NONE,
        }
    }
}

/// The key of the last row, as the file has it.
struct Raw {
    texts: [Option<String>; TEXTS],
    scale: i32,
}

impl Raw {
    const NONE: Self = Self { texts: [const { None }; TEXTS], scale: 0 };

    fn key(&self) -> Result<SampleKey, Misfit> {
        let mut texts = self.texts.iter().cloned();
        let mut must = || texts.next().flatten().ok_or(Misfit);
        let (quantity, target, labels) = (must()?, must()?, must()?);
        let (program, statistic, unit) = (must()?, must()?, must()?);
        let statistic = Statistic::named(&statistic).ok_or(Misfit)?;
        let scale = self.scale;
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
    /// Of each text the rows that still have it.
    texts: Vec<(TextCursor, usize)>,
    /// The scale, the time and the value of the rows that were read.
    numbers: Vec<Cursor>,
    /// The places of those that are still to be told.
    batch: Range<usize>,
    /// The places of those which have the texts of `raw`.
    piece: Range<usize>,
    raw: Raw,
}

impl<R: ReadAt + 'static> Runs<'_, R> {
    /// The next series with all its samples.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub(super) fn next_run(&mut self) -> Result<Option<(SampleKey, Vec<At>)>, ReadError> {
        if self.piece.is_empty() && self.next_piece()?.is_none() {
            return Ok(None);
        }
        let key = self.raw.key().map_err(|misfit| self.damaged(misfit))?;
        let mut samples = Vec::new();
        loop {
            let piece = std::mem::take(&mut self.piece);
            let [_, times, values] = self.numbers.as_slice() else { return Ok(None) };
            let times = times.int64s().get(piece.clone()).unwrap_or_default();
            let values = values.int64s().get(piece).unwrap_or_default();
            let times = times.iter().map(|time| time.div_euclid(MICROS));
            samples.extend(times.zip(values.iter().copied()));
            // The first piece of the next series waits for the next call.
            if self.next_piece()? != Some(false) {
                return Ok(Some((key, samples)));
            }
        }
    }

    /// The next rows that are one series, and whether it is another one than before.
    fn next_piece(&mut self) -> Result<Option<bool>, ReadError> {
        if self.batch.is_empty() && !self.read()? {
            return Ok(None);
        }
        let (mut rows, mut is_new) = (self.batch.len(), false);
        let mut misfit = None;
        for ((cursor, left), before) in self.texts.iter_mut().zip(&mut self.raw.texts) {
            if *left == 0 {
                let (text, times) = cursor.next_run(self.batch.len())?;
                *left = times;
                if text != before.as_ref().map(String::as_bytes) {
                    match text.map(str::from_utf8).transpose() {
                        Ok(text) => *before = text.map(str::to_owned),
                        Err(_) => misfit = Some(Misfit),
                    }
                    is_new = true;
                }
            }
            rows = rows.min(*left);
        }
        let scales = self.numbers.first().map(Cursor::int32s).unwrap_or_default();
        let scales = scales.get(self.batch.clone()).unwrap_or_default();
        if let Some(first) = scales.first() {
            rows = scales.iter().take(rows).take_while(|scale| *scale == first).count();
            is_new |= std::mem::replace(&mut self.raw.scale, *first) != *first;
        }
        if let Some(misfit) = misfit {
            return Err(self.damaged(misfit));
        }
        self.texts.iter_mut().for_each(|(_, left)| *left -= rows);
        self.piece = self.batch.start..self.batch.start + rows;
        self.batch.start += rows;
        Ok(Some(is_new))
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
            self.batches = pieces(&ranges, BATCH_ROWS).collect();
            self.batches.reverse();
            if !self.batches.is_empty() {
                let texts = (0..TEXTS).map(|column| kept.text_cursor(group, column));
                let texts = texts.map(|cursor| cursor.map(|cursor| (cursor, 0)));
                self.texts = texts.collect::<Result<_, _>>()?;
                let numbers = (TEXTS..FIELDS.len()).map(|column| kept.cursor(group, column));
                self.numbers = numbers.collect::<Result<_, _>>()?;
            }
        }
        let Some(batch) = self.batches.pop() else { return Ok(false) };
        for (cursor, left) in &mut self.texts {
            cursor.skip_to(batch.start)?;
            *left = 0;
        }
        for cursor in &mut self.numbers {
            cursor.read(batch.start, batch.len())?;
        }
        self.batch = 0..batch.len();
        Ok(!self.batch.is_empty())
    }
}
