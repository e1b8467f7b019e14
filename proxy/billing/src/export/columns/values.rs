//! What a column holds until its group is written.

use bytes::Bytes;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    Int32Type, Int64Type,
};
use parquet::file::writer::SerializedColumnWriter;
use rust_decimal::{Decimal, RoundingStrategy};
use serde::Serialize;

use super::field::{FieldKind, decimal_width};
use crate::export::error::ExportError;

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

    /// Writes what is held, and holds nothing any more.
    pub(super) fn write(
        &mut self,
        writer: &mut SerializedColumnWriter<'_>,
    ) -> Result<(), ExportError> {
        let levels = self.nullable.then_some(self.present.as_slice());
        match &mut self.values {
            Values::Bytes { all, ends } => {
                let slices = slices(std::mem::take(all), ends);
                if matches!(self.kind, FieldKind::Decimal { .. }) {
                    let values: Vec<_> = slices.map(FixedLenByteArray::from).collect();
                    writer.typed::<FixedLenByteArrayType>().write_batch(&values, levels, None)?;
                } else {
                    let values: Vec<_> = slices.collect();
                    writer.typed::<ByteArrayType>().write_batch(&values, levels, None)?;
                }
                ends.clear();
            }
            Values::Int64(values) => {
                writer.typed::<Int64Type>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Int32(values) => {
                writer.typed::<Int32Type>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Bool(values) => {
                writer.typed::<BoolType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Double(values) => {
                writer.typed::<DoubleType>().write_batch(values, levels, None)?;
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

/// The texts, as slices of one piece of memory.
fn slices(all: Vec<u8>, ends: &[usize]) -> impl Iterator<Item = ByteArray> {
    let all = Bytes::from(all);
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
