//! A file of a day that is open.

use super::footer::{FOOTER_KEY, FORMAT, Footer};
use crate::error::ReadError;
use crate::kept::{Cursor, FileKind, KeptFile, ReadAt};
use crate::record::{Form, fields, place_of};

/// A file of a day, open for reading.
pub struct DayFile<R> {
    pub(super) kept: KeptFile<R>,
    footer: Footer,
}

/// A place in the order of admission, of a record or between two.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AdmissionKey {
    /// Admission, in microseconds since 1970.
    pub at: i64,
    /// Id, as bytes; a prefix of it is before it.
    pub id: Vec<u8>,
}

impl AdmissionKey {
    /// The first place behind it: nothing lies between an id and the same with a zero byte more.
    #[must_use]
    pub fn next(mut self) -> Self {
        self.id.push(0);
        self
    }
}

impl<R: ReadAt + 'static> DayFile<R> {
    /// Opens a file.
    ///
    /// # Errors
    /// The file cannot be read. Its footer is damaged. Its format is another one.
    pub fn open(reader: R) -> Result<Self, ReadError> {
        let kind = FileKind {
            key: FOOTER_KEY,
            format: FORMAT,
            columns: fields(Form::Day).map(|field| field.name).collect(),
            selected: ["tenant", "started_at"],
        };
        let (kept, footer) = KeptFile::open(reader, &kind, |footer: &Footer| footer.rows)?;
        if kept.groups() != footer.groups.len() {
            return Err(ReadError::footer("the row groups are not those of the file"));
        }
        Ok(Self { kept, footer })
    }

    /// What the file says about its rows.
    #[must_use]
    pub const fn footer(&self) -> &Footer {
        &self.footer
    }

    /// Length of the file in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.kept.bytes_of_file()
    }

    /// The first and the last admission, in microseconds since 1970. `None` of a file without rows.
    ///
    /// # Errors
    /// The footer says nothing that can be.
    pub fn times(&self) -> Result<Option<(i64, i64)>, ReadError> {
        let mut times = None::<(i64, i64)>;
        for group in 0..self.kept.groups() {
            let Some((first, last)) = self.kept.times(group)? else { continue };
            let (a, b) = times.unwrap_or((first, last));
            times = Some((a.min(first), b.max(last)));
        }
        Ok(times)
    }

    /// A reader of the column with this name.
    pub(super) fn cursor(&self, group: usize, name: &str) -> Result<Cursor, ReadError> {
        self.kept.cursor(group, place_of(name))
    }
}
