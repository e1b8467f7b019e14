//! What a column holds until its group is written.

use bytes::Bytes;
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::file::writer::SerializedColumnWriter;
use rust_decimal::{Decimal, RoundingStrategy};
use serde::Serialize;

use super::field::{FieldKind, decimal_width};
use crate::export::error::ExportError;

/// Rows whose texts are handed on at once.
const BATCH_ROWS: usize = 1024;
/// Bytes of the widest decimal.
const DECIMAL_BYTES: usize = 16;

/// One column of a group.
pub(super) struct Column {
    kind: FieldKind,
    nullable: bool,
    /// 1 where there is a value, 0 where there is none; empty where there always is one.
    present: Vec<i16>,
    values: Values,
}

enum Values {
    /// All texts behind each other, and where each ends.
    Bytes {
        all: Vec<u8>,
        ends: Vec<usize>,
    },
    Int64(Vec<i64>),
    Int32(Vec<i32>),
    Bool(Vec<bool>),
    Double(Vec<f64>),
}

impl Column {
    pub(super) fn new(kind: FieldKind, nullable: bool) -> Self {
        let values = match kind {
            FieldKind::Text | FieldKind::Json | FieldKind::Decimal { .. } => {
                Values::Bytes { all: Vec::new(), ends: Vec::new() }
            }
            FieldKind::Time | FieldKind::Int64 => Values::Int64(Vec::new()),
            FieldKind::Int32 => Values::Int32(Vec::new()),
            FieldKind::Bool => Values::Bool(Vec::new()),
            FieldKind::Double => Values::Double(Vec::new()),
        };
        Self { kind, nullable, present: Vec::new(), values }
    }

    /// Gives the memory back.
    pub(super) fn release(&mut self) {
        *self = Self::new(self.kind, self.nullable);
    }

    pub(super) const fn kind(&self) -> FieldKind {
        self.kind
    }

    pub(super) fn push_null(&mut self) {
        if self.nullable {
            self.present.push(0);
        }
    }

    pub(super) fn push_bytes(&mut self, bytes: &[u8]) {
        if let Values::Bytes { all, ends } = &mut self.values {
            all.extend_from_slice(bytes);
            ends.push(all.len());
            self.mark();
        }
    }

    /// How many bytes it took.
    pub(super) fn push_json(&mut self, value: &impl Serialize) -> Result<usize, ExportError> {
        let Values::Bytes { all, ends } = &mut self.values else { return Ok(0) };
        let start = all.len();
        serde_json::to_writer(&mut *all, value)?;
        ends.push(all.len());
        let bytes = all.len() - start;
        self.mark();
        Ok(bytes)
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

    /// Writes what is held, and holds nothing any more but its memory.
    pub(super) fn write(
        &mut self,
        mut writer: SerializedColumnWriter<'_>,
    ) -> Result<(), ExportError> {
        let levels = self.nullable.then_some(self.present.as_slice());
        match &mut self.values {
            Values::Bytes { all, ends } => {
                let mut texts = Bytes::from(std::mem::take(all));
                let slices = slices(&texts, ends);
                if matches!(self.kind, FieldKind::Decimal { .. }) {
                    let slices = slices.map(FixedLenByteArray::from);
                    write_batches(writer.typed::<FixedLenByteArrayType>(), slices, levels)?;
                } else {
                    write_batches(writer.typed::<ByteArrayType>(), slices, levels)?;
                }
                writer.close()?;
                // With the writer goes all that points at it.
                texts.clear();
                *all = texts.into();
                ends.clear();
            }
            Values::Int64(values) => {
                writer.typed::<Int64Type>().write_batch(values, levels, None)?;
                writer.close()?;
                values.clear();
            }
            Values::Int32(values) => {
                writer.typed::<Int32Type>().write_batch(values, levels, None)?;
                writer.close()?;
                values.clear();
            }
            Values::Bool(values) => {
                writer.typed::<BoolType>().write_batch(values, levels, None)?;
                writer.close()?;
                values.clear();
            }
            Values::Double(values) => {
                writer.typed::<DoubleType>().write_batch(values, levels, None)?;
                writer.close()?;
                values.clear();
            }
        }
        self.present.clear();
        Ok(())
    }

    fn mark(&mut self) {
        if self.nullable {
            self.present.push(1);
        }
    }
}

/// Writes `values` a few at a time: what points at them stays in the cache of the processor.
fn write_batches<T: DataType>(
    writer: &mut ColumnWriterImpl<'_, T>,
    mut values: impl Iterator<Item = T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ExportError> {
    let mut batch = Vec::with_capacity(BATCH_ROWS);
    let Some(levels) = levels else {
        loop {
            batch.extend(values.by_ref().take(BATCH_ROWS));
            if batch.is_empty() {
                return Ok(());
            }
            writer.write_batch(&batch, None, None)?;
            batch.clear();
        }
    };
    for levels in levels.chunks(BATCH_ROWS) {
        let present = levels.iter().filter(|level| **level > 0).count();
        batch.extend(values.by_ref().take(present));
        writer.write_batch(&batch, Some(levels), None)?;
        batch.clear();
    }
    Ok(())
}

/// The texts, as slices of one piece of memory.
fn slices(all: &Bytes, ends: &[usize]) -> impl Iterator<Item = ByteArray> {
    ends.iter().scan(0, move |start, end| {
        let slice = all.slice(*start..*end);
        *start = *end;
        Some(ByteArray::from(slice))
    })
}

/// `value` in the places of a decimal field, as the big-endian number that Parquet has, and how many
/// of its bytes the field leaves out; `None` where it has too many digits.
pub(super) fn decimal_bytes(
    value: Decimal,
    kind: FieldKind,
) -> Option<([u8; DECIMAL_BYTES], usize)> {
    let FieldKind::Decimal { precision, scale } = kind else { return None };
    let rounded = value.round_dp_with_strategy(scale, RoundingStrategy::MidpointNearestEven);
    let factor = 10_i128.checked_pow(scale.checked_sub(rounded.scale())?)?;
    let digits = rounded.mantissa().checked_mul(factor)?;
    if digits.unsigned_abs() >= 10_u128.checked_pow(precision)? {
        return None;
    }
    let width = usize::try_from(decimal_width(precision)).ok()?;
    Some((digits.to_be_bytes(), DECIMAL_BYTES - width))
}
