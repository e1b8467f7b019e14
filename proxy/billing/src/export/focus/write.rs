//! Writes FOCUS rows as CSV and as Parquet.

use std::io::Write;

use jiff::Timestamp;
use rust_decimal::Decimal;
use taximeter_columnar::{Field, FieldKind, Layout, ParquetWriter, ROWS_MAX, Rows};

use super::charge::Charge;
use super::columns::{Cell, ColumnType, FocusColumn, FocusVersion, columns};
use crate::client_dimension::SplitBy;
use crate::export::error::ExportError;

/// Digits of money in Parquet.
const COST: FieldKind = FieldKind::Decimal { precision: 38, scale: 18 };
/// Digits of money per unit.
const PRICE: FieldKind = FieldKind::Decimal { precision: 28, scale: 12 };
/// Digits of quantities.
const QUANTITY: FieldKind = FieldKind::Decimal { precision: 28, scale: 9 };

/// Writes a FOCUS dataset.
pub struct FocusWriter<W: Write + Send> {
    issuer: String,
    columns: Vec<&'static FocusColumn>,
    output: FocusOutput<W>,
}

enum FocusOutput<W: Write + Send> {
    Csv(W),
    Parquet(Box<ParquetWriter<W>>, Rows),
}

impl<W: Write + Send> FocusWriter<W> {
    /// CSV (RFC 4180) with the column names of `version`. Decimals are exact. `issuer` sends the
    /// invoices. Charges are split by `by`.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn csv(
        mut out: W,
        version: FocusVersion,
        issuer: &str,
        by: &SplitBy,
    ) -> Result<Self, ExportError> {
        let columns = columns(by);
        let names: Vec<_> = columns.iter().map(|column| column.name(version)).collect();
        out.write_all(names.join(",").as_bytes())?;
        out.write_all(b"\r\n")?;
        Ok(Self { issuer: issuer.to_owned(), columns, output: FocusOutput::Csv(out) })
    }

    /// Parquet with the same columns.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn parquet(
        out: W,
        version: FocusVersion,
        issuer: &str,
        by: &SplitBy,
    ) -> Result<Self, ExportError> {
        let columns = columns(by);
        let fields = columns.iter().map(|column| {
            let kind = match column.kind {
                ColumnType::Text => FieldKind::Text,
                ColumnType::Time => FieldKind::Time,
                ColumnType::Cost => COST,
                ColumnType::Price => PRICE,
                ColumnType::Quantity => QUANTITY,
            };
            Field { name: column.name(version), kind, nullable: column.nullable, distinct: false }
        });
        let rows = Rows::new(fields.clone());
        let writer = ParquetWriter::new(out, "focus", &Layout::EXPORT, fields)?;
        let output = FocusOutput::Parquet(Box::new(writer), rows);
        Ok(Self { issuer: issuer.to_owned(), columns, output })
    }

    /// Writes one row.
    ///
    /// # Errors
    /// The output cannot be written. [`ExportError::TooLarge`] for a number that Parquet's decimals
    /// cannot hold.
    pub fn add(&mut self, charge: &Charge<'_>) -> Result<(), ExportError> {
        let cells = self.columns.iter().map(|column| column.cell(charge, &self.issuer));
        match &mut self.output {
            FocusOutput::Csv(out) => write_csv(out, cells),
            FocusOutput::Parquet(writer, rows) => {
                let mut row = rows.row();
                for cell in cells {
                    match cell {
                        Cell::Null => row.null(),
                        Cell::Text(text) => row.text(text.as_bytes()),
                        Cell::Number(number) => row.decimal(number)?,
                        Cell::Time(at) => row.time(at),
                    }
                }
                if rows.len() == ROWS_MAX {
                    writer.add(rows)?
                }
                Ok(())
            }
        }
    }

    /// Writes the rest and returns the output.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(self) -> Result<W, ExportError> {
        match self.output {
            FocusOutput::Csv(mut out) => {
                out.flush()?;
                Ok(out)
            }
            FocusOutput::Parquet(mut writer, mut rows) => {
                writer.add(&mut rows)?;
                Ok(writer.finish()?)
            }
        }
    }
}

fn write_csv<'a>(
    out: &mut impl Write,
    cells: impl Iterator<Item = Cell<'a>>,
) -> Result<(), ExportError> {
    for (index, cell) in cells.enumerate() {
        if index > 0 {
            out.write_all(b",")?;
        }
        match cell {
            Cell::Null => {}
            Cell::Text(text) => write_text(out, &text)?,
            Cell::Number(number) => write!(out, "{}", plain(number))?,
            Cell::Time(at) => write!(out, "{}", second(at))?,
        }
    }
    Ok(out.write_all(b"\r\n")?)
}

fn write_text(out: &mut impl Write, text: &str) -> Result<(), ExportError> {
    if text.contains([',', '"', '\r', '\n']) {
        write!(out, "\"{}\"", text.replace('"', "\"\""))?;
    } else {
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Without zeros at the end, and without the sign of a zero.
fn plain(number: Decimal) -> Decimal {
    if number.is_zero() { Decimal::ZERO } else { number.normalize() }
}

/// `2026-11-20T16:00:00Z`.
fn second(at: Timestamp) -> jiff::fmt::strtime::Display<'static> {
    at.strftime("%Y-%m-%dT%H:%M:%SZ")
}
