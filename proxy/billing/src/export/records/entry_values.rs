//! Splits an entry into the values of the columns.

use taximeter_json::Reader;
use taximeter_ledger::Stage;

use super::members::{MEMBERS, ParentObject, ValueSource, find_column};

/// The value of each column, as it is in the entry.
pub(super) struct EntryValues<'a>([Option<&'a [u8]>; MEMBERS.len()]);

impl<'a> EntryValues<'a> {
    /// The values of an entry. `None` if only a parser can tell.
    pub(super) fn read(entry: &'a [u8]) -> Option<Self> {
        let mut values = Self([None; MEMBERS.len()]);
        let mut reader = Reader::compact(entry);
        values.read_object(ParentObject::Record, &mut reader, &mut 0)?;
        reader.end().ok()?;
        Some(values)
    }

    /// The value of a column.
    pub(super) fn get(&self, column: usize) -> Option<&'a [u8]> {
        self.0.get(column).copied().flatten()
    }

    /// Reads the members of one object. The next member is probably the one of column `next`.
    fn read_object(
        &mut self,
        parent: ParentObject,
        reader: &mut Reader<'a>,
        next: &mut usize,
    ) -> Option<()> {
        reader.enter(b'{').ok()?;
        while let Some(key) = reader.next_key().ok()? {
            if key.is_escaped() {
                return None;
            }
            let inner = parent.inner(key.raw()).filter(|_| reader.peek() == Some(b'{'));
            if let Some(inner) = inner {
                self.read_object(inner, reader, next)?;
                continue;
            }
            let value = reader.verbatim().ok()?.raw();
            if let Some(column) = find_column(parent, key.raw(), *next) {
                *next = self.keep(column, value)?;
            }
        }
        Some(())
    }

    /// Stores the value of a member in its columns, which begin with `column`. Returns the column
    /// after them.
    fn keep(&mut self, column: usize, value: &'a [u8]) -> Option<usize> {
        match MEMBERS.get(column)?.source {
            ValueSource::Value | ValueSource::Entry => {
                self.keep_one(column, value)?;
                Some(column + 1)
            }
            ValueSource::Stage => {
                let behind = column + Stage::ALL.len();
                if value != b"null" {
                    // Stages by name have seconds. A parser reads them.
                    let micros = value.strip_prefix(b"[")?.strip_suffix(b"]")?;
                    for (column, micros) in (column..behind).zip(micros.split(|sign| *sign == b','))
                    {
                        self.keep_one(column, micros)?;
                    }
                }
                Some(behind)
            }
        }
    }

    /// Stores the value of one column. Each column has one value.
    fn keep_one(&mut self, column: usize, value: &'a [u8]) -> Option<()> {
        let cell = self.0.get_mut(column)?;
        if cell.is_some() {
            return None;
        }
        *cell = Some(value).filter(|value| !matches!(*value, b"" | b"null" | b"{}" | b"[]"));
        Some(())
    }
}
