//! The values of a column of some rows, until they are encoded.

use std::iter::repeat_n;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::ParquetError;
use rust_decimal::{Decimal, RoundingStrategy};

use super::column_writer::ColumnWriter;
use super::field::{Field, FieldKind, decimal_width};
use crate::error::WriteError;

/// Most rows that are gathered before they are encoded. The texts of this number of rows fit in the
/// processor's cache.
pub const ROWS_MAX: usize = 512;
/// Bytes that are reserved for each text. Most texts are shorter.
const TEXT_BYTES: usize = 16;
/// Bytes of the widest decimal.
const DECIMAL_BYTES: usize = 16;

/// One column of some rows.
pub(super) struct ColumnBuffer {
    field: Field,
    /// 1 for a value, 0 for a null. Empty if the field is not nullable.
    present: Vec<i16>,
    values: Values,
}

enum Values {
    /// All texts one after the other. A text that repeats in consecutive rows is stored once.
    Bytes {
        all: Vec<u8>,
        runs: Vec<RepeatedText>,
    },
    /// The same with nulls, for a column that is written run by run.
    Runs {
        all: Vec<u8>,
        runs: Vec<Run>,
    },
    Int64(Vec<i64>),
    Int32(Vec<i32>),
    Bool(Vec<bool>),
    Double(Vec<f64>),
}

/// A text, and how many consecutive rows have it.
struct RepeatedText {
    begin: usize,
    end: usize,
    /// Number of consecutive rows.
    times: usize,
}

/// Consecutive rows with one text, or without one.
pub(super) struct Run {
    pub text: Option<Range<usize>>,
    pub times: usize,
}

impl ColumnBuffer {
    /// A column that is written run by run.
    pub(super) fn of_runs(field: Field) -> Self {
        let values = Values::Runs { all: Vec::new(), runs: Vec::new() };
        Self { field, present: Vec::new(), values }
    }

    pub(super) fn new(field: Field) -> Self {
        let values = match field.kind {
            FieldKind::Text
            | FieldKind::Json
            | FieldKind::Bytes
            | FieldKind::Uuid
            | FieldKind::Decimal { .. } => {
                let all = Vec::with_capacity(ROWS_MAX * TEXT_BYTES);
                Values::Bytes { all, runs: Vec::with_capacity(ROWS_MAX) }
            }
            FieldKind::Time | FieldKind::Int64 | FieldKind::Seconds => {
                Values::Int64(Vec::with_capacity(ROWS_MAX))
            }
            FieldKind::Int32 => Values::Int32(Vec::with_capacity(ROWS_MAX)),
            FieldKind::Bool => Values::Bool(Vec::with_capacity(ROWS_MAX)),
            FieldKind::Double => Values::Double(Vec::with_capacity(ROWS_MAX)),
        };
        let present = Vec::with_capacity(if field.nullable { ROWS_MAX } else { 0 });
        Self { field, present, values }
    }

    /// Removes all values but keeps the memory.
    pub(super) fn clear(&mut self) {
        self.present.clear();
        match &mut self.values {
            Values::Bytes { all, runs } => {
                all.clear();
                runs.clear();
            }
            Values::Runs { all, runs } => {
                all.clear();
                runs.clear();
            }
            Values::Int64(values) => values.clear(),
            Values::Int32(values) => values.clear(),
            Values::Bool(values) => values.clear(),
            Values::Double(values) => values.clear(),
        }
    }

    pub(super) const fn kind(&self) -> FieldKind {
        self.field.kind
    }

    pub(super) fn push_null(&mut self) {
        if self.field.nullable {
            self.present.push(0);
        }
    }

    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        if let Values::Bytes { all, runs } = &mut self.values {
            match runs.last_mut() {
                Some(run) if !self.field.distinct && all.get(run.begin..run.end) == Some(bytes) => {
                    run.times += 1;
                }
                _ => {
                    let begin = all.len();
                    all.extend_from_slice(bytes);
                    runs.push(RepeatedText { begin, end: all.len(), times: 1 });
                }
            }
            self.mark();
        }
    }

    pub(super) fn push_int64(&mut self, value: i64) {
        if let Values::Int64(values) = &mut self.values {
            values.push(value);
            self.mark();
        }
    }

    pub(super) fn push_int32(&mut self, value: i32) {
        if let Values::Int32(values) = &mut self.values {
            values.push(value);
            self.mark();
        }
    }

    pub(super) fn push_bool(&mut self, value: bool) {
        if let Values::Bool(values) = &mut self.values {
            values.push(value);
            self.mark();
        }
    }

    pub(super) fn push_double(&mut self, value: f64) {
        if let Values::Double(values) = &mut self.values {
            values.push(value);
            self.mark();
        }
    }

    /// So many rows with this text, or without one.
    pub(super) fn push_run(&mut self, text: Option<&[u8]>, times: usize) {
        if let Values::Runs { all, runs } = &mut self.values {
            if let Some(last) = runs.last_mut()
                && last.text.clone().map(|place| all.get(place).unwrap_or_default()) == text
            {
                last.times += times;
                return;
            }
            let begin = all.len();
            all.extend_from_slice(text.unwrap_or_default());
            runs.push(Run { text: text.map(|_| begin..all.len()), times });
        }
    }

    pub(super) fn repeat_int32(&mut self, value: i32, times: usize) {
        if let Values::Int32(values) = &mut self.values {
            values.extend(repeat_n(value, times));
            self.present.extend(repeat_n(1, if self.field.nullable { times } else { 0 }));
        }
    }

    pub(super) fn push_int64s(&mut self, all: impl Iterator<Item = i64>) {
        if let Values::Int64(values) = &mut self.values {
            let before = values.len();
            values.extend(all);
            let times = values.len() - before;
            self.present.extend(repeat_n(1, if self.field.nullable { times } else { 0 }));
        }
    }

    /// The texts of a column that is written run by run, and its runs.
    pub(super) fn runs(&self) -> Result<(&[u8], &[Run]), WriteError> {
        let Values::Runs { all, runs } = &self.values else { return Err(wrong_column()) };
        Ok((all, runs))
    }

    /// Writes the values. `texts` has the texts of the rows before: a text that continues is not
    /// built again.
    pub(super) fn write(
        &mut self,
        to: &mut ColumnWriter,
        texts: &mut Texts,
    ) -> Result<(), WriteError> {
        let levels = self.field.nullable.then_some(self.present.as_slice());
        match (&mut self.values, to) {
            (Values::Bytes { all, runs }, to) => {
                let held = Bytes::from(std::mem::take(all));
                let written = match to {
                    ColumnWriter::Fixed(to) => {
                        let mut numbers = Vec::<FixedLenByteArray>::new();
                        push_each(&held, runs, &mut numbers);
                        to.write_batch(&numbers, levels, None)?
                    }
                    ColumnWriter::Bytes(to) => {
                        to.write_batch(texts.fill(&held, runs), levels, None)?
                    }
                    _ => return Err(wrong_column()),
                };
                texts.drop_texts();
                *all = emptied(held);
                written
            }
            (Values::Int64(values), ColumnWriter::Int64(to)) => {
                to.write_batch(values, levels, None)?
            }
            (Values::Int32(values), ColumnWriter::Int32(to)) => {
                to.write_batch(values, levels, None)?
            }
            (Values::Bool(values), ColumnWriter::Bool(to)) => {
                to.write_batch(values, levels, None)?
            }
            (Values::Double(values), ColumnWriter::Double(to)) => {
                to.write_batch(values, levels, None)?
            }
            _ => return Err(wrong_column()),
        };
        Ok(())
    }

    fn mark(&mut self) {
        if self.field.nullable {
            self.present.push(1);
        }
    }
}

/// The rows belong to another file.
fn wrong_column() -> WriteError {
    ParquetError::General("a column of another kind".to_owned()).into()
}

/// The texts of a column, one for each row, for the encoder.
#[derive(Default)]
pub(super) struct Texts {
    values: Vec<ByteArray>,
    /// Whether all rows have the same text. The next rows often have it as well.
    is_one: bool,
}

impl Texts {
    fn fill(&mut self, all: &Bytes, runs: &[RepeatedText]) -> &[ByteArray] {
        if let [run] = runs {
            let text = all.slice(run.begin..run.end);
            let is_again =
                self.is_one && self.values.first().is_some_and(|one| *one.data() == *text);
            if !is_again {
                self.values.clear();
            }
            if self.values.len() < run.times {
                // A copy, because it outlives the other texts.
                self.values.resize(run.times, ByteArray::from(text.to_vec()));
            }
            self.is_one = true;
            return self.values.get(..run.times).unwrap_or_default();
        }
        self.values.clear();
        push_each(all, runs, &mut self.values);
        self.is_one = false;
        &self.values
    }

    /// Drops the texts that belong to the memory of these rows.
    fn drop_texts(&mut self) {
        if !self.is_one {
            self.values.clear();
        }
    }
}

/// Adds every text as a slice of the same memory.
fn push_each<T: From<ByteArray> + Clone>(all: &Bytes, runs: &[RepeatedText], to: &mut Vec<T>) {
    for run in runs {
        let text = ByteArray::from(all.slice(run.begin..run.end));
        to.extend(repeat_n(T::from(text), run.times));
    }
}

/// The memory of the written texts. New memory of the same size while a dictionary still uses them.
fn emptied(texts: Bytes) -> Vec<u8> {
    let length = texts.len();
    let mut texts = texts.try_into_mut().unwrap_or_else(|_| BytesMut::with_capacity(length));
    texts.clear();
    texts.into()
}

/// Powers of ten. The last one has more digits than any field.
const POWERS: [i128; 39] = {
    let mut powers = [0; 39];
    let mut rest = powers.as_mut_slice();
    let mut power = 1_i128;
    while let [first, others @ ..] = rest {
        *first = power;
        power = power.saturating_mul(10);
        rest = others;
    }
    powers
};

fn power(exponent: u32) -> Option<i128> {
    POWERS.get(usize::try_from(exponent).ok()?).copied()
}

/// `value` with the decimal places of the field, as Parquet's big-endian number, and how many of
/// the first bytes the field does not use. `None` if it has too many digits.
pub(crate) fn decimal_bytes(
    value: Decimal,
    kind: FieldKind,
) -> Option<([u8; DECIMAL_BYTES], usize)> {
    let FieldKind::Decimal { precision, scale } = kind else { return None };
    let rounded = value.round_dp_with_strategy(scale, RoundingStrategy::MidpointNearestEven);
    let digits = rounded.mantissa().checked_mul(power(scale.checked_sub(rounded.scale())?)?)?;
    if digits.unsigned_abs() >= power(precision)?.unsigned_abs() {
        return None;
    }
    let width = usize::try_from(decimal_width(precision)).ok()?;
    Some((digits.to_be_bytes(), DECIMAL_BYTES - width))
}
