//! A record as the columns of a row.

mod cell;
mod columns;
mod draft;
mod lines;

use std::io::Write;
use std::sync::LazyLock;

use taximeter_ledger::{LedgerId, Record, RequestId};

use self::cell::Cell;
pub(crate) use self::cell::Kept;
pub(crate) use self::columns::{COUNT, Set};
use self::columns::{CellOf, columns};
pub(crate) use self::draft::Draft;
use crate::error::WriteError;
use crate::table::{Field, FieldKind, Layout, ParquetWriter, ROWS_MAX, RowWriter, Rows};
use crate::value::{Value, micros};

/// Who reads a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Other programs: ids are texts, and seconds are floats.
    Export,
    /// Ourselves as well: ids are 16 bytes, seconds are whole microseconds, and what the columns
    /// cannot say is kept as it was.
    Day,
}

/// The fields of a record.
pub(crate) fn fields(form: Form) -> impl Iterator<Item = Field> + Clone {
    columns().filter(move |column| form == Form::Day || !column.is_own).map(move |column| {
        let field = column.field;
        match (form, field.kind) {
            (Form::Export, FieldKind::Uuid) => Field { kind: FieldKind::Text, ..field },
            (Form::Export, FieldKind::Seconds) => Field { kind: FieldKind::Double, ..field },
            (Form::Export, _) if field.name == "request_id" => Field { nullable: false, ..field },
            _ => field,
        }
    })
}

/// The cells of a row for other programs, and what kind of field each is for.
static EXPORTED: LazyLock<Vec<(CellOf, FieldKind)>> = LazyLock::new(|| {
    let cells = columns().filter(|column| !column.is_own).map(|column| column.cell);
    cells.zip(fields(Form::Export).map(|field| field.kind)).collect()
});

/// Some records as rows, in the order in which they are added.
pub struct RecordRows(Rows);

impl RecordRows {
    /// Most rows to gather before they are written.
    pub const MAX: usize = ROWS_MAX;

    /// No rows yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Rows::new(fields(Form::Export)))
    }

    /// Adds one row.
    ///
    /// # Errors
    /// [`WriteError::TooLarge`]. After an error none of the rows may be written.
    pub fn add(&mut self, ledger: LedgerId, record: &Record) -> Result<(), WriteError> {
        let mut row = self.0.row();
        let kept = Kept { ledger, record };
        EXPORTED.iter().try_for_each(|(cell, kind)| fill(&mut row, *kind, cell(&kept)))
    }

    /// Number of rows.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no rows.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of their values.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl Default for RecordRows {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes records to a Parquet file for other programs.
pub struct RecordsParquet<W: Write + Send>(ParquetWriter<W>);

impl<W: Write + Send> RecordsParquet<W> {
    /// A file without rows.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(out: W) -> Result<Self, WriteError> {
        ParquetWriter::new(out, "record", &Layout::EXPORT, fields(Form::Export)).map(Self)
    }

    /// Writes rows, and clears them.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn add(&mut self, rows: &mut RecordRows) -> Result<(), WriteError> {
        self.0.add(&mut rows.0)
    }

    /// Writes the gathered rows as a row group of their own, whatever its size.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn end_group(&mut self) -> Result<(), WriteError> {
        self.0.end_group()
    }

    /// Writes the rest and returns the output.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(self) -> Result<W, WriteError> {
        self.0.finish()
    }
}

/// Writes the next cell of a row for other programs.
fn fill(row: &mut RowWriter<'_>, kind: FieldKind, cell: Cell<'_>) -> Result<(), WriteError> {
    match cell {
        Cell::Null | Cell::EmptyJson(_) => row.null(),
        Cell::Text(text) | Cell::RequestId(text, _) => row.text(text.as_bytes()),
        Cell::Json(json) => row.text(&json?),
        Cell::Uuid(id) => {
            let mut buffer = uuid::Uuid::encode_buffer();
            row.text(id.hyphenated().encode_lower(&mut buffer).as_bytes());
        }
        Cell::Time(at) => row.time(at),
        Cell::Count(count) => {
            let too_large = |_| WriteError::TooLarge { what: "a count" };
            let count = i64::try_from(count).map_err(too_large)?;
            match kind {
                FieldKind::Int32 => row.int32(i32::try_from(count).map_err(too_large)?),
                _ => row.int64(count),
            }
        }
        Cell::Bool(value) => row.bool(value),
        Cell::Seconds(value) => row.double(value),
        Cell::Money(amount) => row.decimal(amount)?,
    }
    Ok(())
}

/// Adds a row to a file that is kept.
///
/// `payload` is the complete payload of the entry, and `scratch` memory for it. What the columns
/// cannot say of it is written as it is.
pub(crate) fn keep(
    rows: &mut Rows,
    kept: Kept<'_>,
    payload: &[u8],
    scratch: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let mut row = rows.row();
    let (mut draft, mut misfit) = (Draft::new(), false);
    let mut has_own_id = false;
    // The last column has the payload.
    for column in columns().take(COUNT - 1) {
        let mut hold = Hold::default();
        let value = hold.value((column.cell)(&kept), column.field.kind)?;
        let Some(value) = value else {
            has_own_id |= column.field.name == "request_id";
            row.null();
            continue;
        };
        row.value(column.field.kind, value);
        misfit |= (column.set)(&mut draft, value).is_err();
    }
    let is_whole = !misfit
        && draft.finish(has_own_id).is_ok_and(|record| {
            record.encode(scratch);
            scratch == payload
        });
    if is_whole {
        row.null()
    } else {
        row.text(payload)
    }
    Ok(())
}

/// Memory of a value that is made for a row.
#[derive(Default)]
struct Hold {
    json: Vec<u8>,
    fixed: [u8; 16],
}

impl Hold {
    /// The value as a file that is kept has it. A number that is too large is the largest, and a
    /// row with it has its payload.
    fn value<'a>(
        &'a mut self,
        cell: Cell<'a>,
        kind: FieldKind,
    ) -> Result<Option<Value<'a>>, WriteError> {
        Ok(Some(match cell {
            Cell::Null => return Ok(None),
            Cell::Text(text) | Cell::EmptyJson(text) => Value::Bytes(text.as_bytes()),
            Cell::RequestId(text, id) if is_text_of(id, text) => return Ok(None),
            Cell::RequestId(text, _) => Value::Bytes(text.as_bytes()),
            Cell::Json(json) => {
                self.json = json?;
                Value::Bytes(&self.json)
            }
            Cell::Uuid(id) => {
                self.fixed = id.into_bytes();
                Value::Bytes(&self.fixed)
            }
            Cell::Time(at) => Value::Int(at.as_microsecond()),
            Cell::Count(count) => {
                let most = if kind == FieldKind::Int32 { i32::MAX.into() } else { i64::MAX };
                Value::Int(i64::try_from(count).map_or(most, |count| count.min(most)))
            }
            Cell::Bool(value) => Value::Bool(value),
            Cell::Seconds(seconds) => Value::Int(micros(seconds)),
            Cell::Money(amount) => {
                let Some((bytes, _)) = crate::table::decimal_bytes(amount, kind) else {
                    return Ok(None);
                };
                self.fixed = bytes;
                Value::Bytes(&self.fixed)
            }
        }))
    }
}

/// Whether a text is the usual form of an id.
fn is_text_of(id: RequestId, text: &str) -> bool {
    let mut buffer = uuid::Uuid::encode_buffer();
    id.0.hyphenated().encode_lower(&mut buffer) == text
}

/// The place of a column of a file that is kept.
pub(crate) fn place_of(name: &str) -> usize {
    columns().position(|column| column.field.name == name).unwrap_or(usize::MAX)
}

/// What sets the member that a column has, of each column of a file that is kept.
pub(crate) fn setters() -> impl Iterator<Item = Set> {
    columns().map(|column| column.set)
}

/// Whether files of earlier versions may lack a column, of each column of a file that is kept.
pub(crate) fn late() -> impl Iterator<Item = bool> {
    columns().map(|column| column.is_late)
}
