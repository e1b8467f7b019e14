//! The fields of a flat row and their Parquet types.

use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::ParquetError;
use parquet::schema::types::Type;

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::export) enum FieldKind {
    Text,
    /// Text that is a JSON document.
    Json,
    /// Microseconds, UTC.
    Time,
    Int64,
    Int32,
    Bool,
    Double,
    Decimal {
        precision: u32,
        scale: u32,
    },
}

/// One field of a flat row.
#[derive(Debug, Clone, Copy)]
pub(in crate::export) struct Field {
    pub(in crate::export) name: &'static str,
    pub(in crate::export) kind: FieldKind,
    pub(in crate::export) nullable: bool,
    /// Whether values hardly ever repeat. Then a dictionary is useless.
    pub(in crate::export) distinct: bool,
}

impl Field {
    /// Whether readers skip row groups by the smallest and largest value. Rows are in the order of
    /// time, so this works for times and numbers. Texts of the whole alphabet are in every group.
    pub(super) const fn has_statistics(&self) -> bool {
        match self.kind {
            FieldKind::Time | FieldKind::Int64 | FieldKind::Int32 | FieldKind::Bool => true,
            FieldKind::Text | FieldKind::Json | FieldKind::Double | FieldKind::Decimal { .. } => {
                false
            }
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
