//! The fields of a flat row and their Parquet types.

use std::sync::Arc;

use parquet::basic::{Encoding, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::Type;

/// The type of a field, as a reader sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// UTF-8.
    Text,
    /// Text that is a JSON document.
    Json,
    /// Bytes without a meaning to other readers.
    Bytes,
    /// 16 bytes.
    Uuid,
    /// Microseconds, UTC.
    Time,
    /// With a sign.
    Int64,
    /// With a sign.
    Int32,
    /// True or false.
    Bool,
    /// A 64-bit float.
    Double,
    /// Seconds with six places, as a whole number of microseconds.
    Seconds,
    /// An exact number.
    Decimal {
        /// Number of digits.
        precision: u32,
        /// Digits after the point.
        scale: u32,
    },
}

/// One field of a flat row.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Name of the column.
    pub name: &'static str,
    /// Its type.
    pub kind: FieldKind,
    /// Whether a row can have no value.
    pub nullable: bool,
    /// Whether values hardly ever repeat. Then a dictionary is useless.
    pub distinct: bool,
}

impl Field {
    /// Whether readers skip row groups by the smallest and largest value. Rows are in the order of
    /// time, so this works for times and numbers. Texts of the whole alphabet are in every group.
    pub(super) const fn has_statistics(&self) -> bool {
        match self.kind {
            FieldKind::Time | FieldKind::Int64 | FieldKind::Int32 | FieldKind::Bool => true,
            FieldKind::Text
            | FieldKind::Json
            | FieldKind::Bytes
            | FieldKind::Uuid
            | FieldKind::Double
            | FieldKind::Seconds
            | FieldKind::Decimal { .. } => false,
        }
    }

    /// Whether values are texts or bytes of another kind.
    pub(super) const fn is_bytes(&self) -> bool {
        matches!(
            self.kind,
            FieldKind::Text
                | FieldKind::Json
                | FieldKind::Bytes
                | FieldKind::Uuid
                | FieldKind::Decimal { .. }
        )
    }

    /// Whether some of the values that hardly ever repeat are few in some files: durations of a
    /// stage, tokens of requests that are all alike.
    pub(super) const fn may_repeat(&self) -> bool {
        matches!(self.kind, FieldKind::Seconds | FieldKind::Int64 | FieldKind::Decimal { .. })
    }

    /// How values are written that have no dictionary. Texts that begin alike are written without
    /// that beginning if the file `is_kept`.
    pub(super) fn encoding(&self, is_kept: bool) -> Option<Encoding> {
        match self.kind {
            FieldKind::Time | FieldKind::Int64 if self.distinct => {
                Some(Encoding::DELTA_BINARY_PACKED)
            }
            FieldKind::Seconds | FieldKind::Int64 | FieldKind::Int32 if is_kept => {
                Some(Encoding::DELTA_BINARY_PACKED)
            }
            FieldKind::Text if self.distinct && is_kept => Some(Encoding::DELTA_BYTE_ARRAY),
            FieldKind::Uuid if self.distinct => Some(Encoding::DELTA_BYTE_ARRAY),
            // The last bytes of such numbers are noise if hardly any two are alike. Apart from the
            // first bytes, the compressor soon gives up on them and does not search for
            // repetitions.
            FieldKind::Double => Some(Encoding::BYTE_STREAM_SPLIT),
            _ => None,
        }
    }

    pub(super) fn schema(&self) -> Result<Arc<Type>, ParquetError> {
        let repetition = if self.nullable { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let builder = |physical, logical| {
            Type::primitive_type_builder(self.name, physical)
                .with_repetition(repetition)
                .with_logical_type(logical)
        };
        let built = match self.kind {
            FieldKind::Text => builder(Physical::BYTE_ARRAY, Some(LogicalType::String)),
            FieldKind::Json => builder(Physical::BYTE_ARRAY, Some(LogicalType::Json)),
            FieldKind::Bytes => builder(Physical::BYTE_ARRAY, None),
            FieldKind::Uuid => {
                builder(Physical::FIXED_LEN_BYTE_ARRAY, Some(LogicalType::Uuid)).with_length(16)
            }
            FieldKind::Seconds => builder(Physical::INT64, Some(LogicalType::decimal(6, 18)))
                .with_precision(18)
                .with_scale(6),
            FieldKind::Time => {
                let logical = LogicalType::timestamp(true, TimeUnit::MICROS);
                builder(Physical::INT64, Some(logical))
            }
            FieldKind::Int64 => builder(Physical::INT64, None),
            FieldKind::Int32 => builder(Physical::INT32, None),
            FieldKind::Bool => builder(Physical::BOOLEAN, None),
            FieldKind::Double => builder(Physical::DOUBLE, None),
            FieldKind::Decimal { precision, scale } => {
                let (precision_, scale_) = (precision.cast_signed(), scale.cast_signed());
                builder(
                    Physical::FIXED_LEN_BYTE_ARRAY,
                    Some(LogicalType::decimal(scale_, precision_)),
                )
                .with_length(decimal_width(precision))
                .with_precision(precision_)
                .with_scale(scale_)
            }
        };
        built.build().map(Arc::new)
    }
}

/// Bytes of a decimal with this number of digits.
pub(super) const fn decimal_width(precision: u32) -> i32 {
    // 12 bytes hold 28 digits, 16 bytes hold 38.
    if precision <= 28 { 12 } else { 16 }
}
