//! Records as columns: Parquet files that are written, merged, read and checked.
//!
//! ```text
//! DayWriter::new(out, gateway, day, replaces)?    .add(place, payload)?    .finish()? → SealedDay
//! merge(&[file, …], &mut writer)?                 files of one day, into one
//! check(reader, &expected)? → Checked             all that a file says about itself
//! DayFile::open(reader)?                          .footer()
//!     .find(id, &mut payload)? → Option<Place>    one request
//!     .scan(filter), .scan_session(filter, name)? .next_row()? → Option<Row>, in order of tenant and id
//!     .first(&filter, from, limit, visit)?        in order of admission; .last(…) backward
//!     .count(&filter)?
//! RecordsParquet::new(out)?                       .add(&mut rows)?    for other programs
//! ```
//!
//! A **file of a day** keeps the records of one UTC day of admission, of one or several ledgers,
//! sorted by tenant and id. Every reader of Parquet opens it. Each member of a record is a column
//! (`record/columns`), and a row gives back the payload of its entry byte for byte. What the columns
//! cannot say (a member of a later version, a number that a column cannot hold) is in the column
//! `payload`, which is null nearly always.
//!
//! Files for other programs have the same columns, but for three that only we need (`payload`, and the
//! digits of amounts), and three differences: ids are texts and not 16 bytes, seconds are floats and
//! not exact decimals of whole microseconds, and `request_id` repeats the id where the client sent
//! none. They are written for programs that expect this, and a file that is kept has to be small.
//!
//! `kept` has what files of all kinds have in common: `billing` keeps hours in the same way.
//!
//! # Invariants
//!
//! - No byte is decoded before it is checked: the row groups in pieces of 16 KiB, the rest as a whole.
//!   So damage is an error with its row group, and never a wrong row.
//! - A lookup reads the footer, the indexes, and one page of each column.
//! - A writer holds one row group in compressed pages (at most 128 Ki rows and 96 MiB of values,
//!   usually 13 MiB), of each column a page of 64 KiB, a dictionary of 32 KiB and a compressor (20 MiB),
//!   and the indexes: 66 MiB in a program that writes 8.6 million rows. Names of sessions, agents, turns
//!   and end users have dictionaries of up to 512 KiB each: they come again for a while, and a random name
//!   that is written twice takes as much as all else of a session.
//! - Texts that most rows have from the row before are written and read run by run (`table/run_column.rs`,
//!   `kept/text_cursor.rs`). The dictionaries of such columns of a row group have 4 MiB together.
//! - A reader holds footer and indexes, and a scan of each column a page and a decompressor: 7 MiB. A
//!   merge has one scan for each file.
//!
//! This crate knows no store, no clock and no names of files. Begin with `day/writer.rs` and
//! `day/file.rs`.

mod day;
mod error;
mod hybrid;
mod kept;
mod record;
#[cfg(test)]
mod samples;
mod table;
mod value;

pub use day::{
    AdmissionKey, Checked, DayFile, DayWriter, Expected, Finding, Footer, LedgerRange, MergeError,
    Row, RowAt, Scan, SealedDay, check, merge,
};
pub use error::{Part, ReadError, WriteError};
pub use kept::{
    BATCH_ROWS, Cursor, FileKind, KeptFile, KeptWriter, ReadAt, RowFilter, RowRanges, Sealed,
    TextCursor, batches, hex, pieces,
};
pub use record::{RecordRows, RecordsParquet};
pub use table::{Field, FieldKind, Layout, ParquetWriter, ROWS_MAX, RowWriter, Rows, RunWriter};
pub use value::{Misfit, Value};
