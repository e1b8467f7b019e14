//! Takes an entry apart: which value of it goes into which column.

use taximeter_json::Reader;
use taximeter_ledger::Stage;

use super::members::{MEMBERS, Reading, Within, find_column};

/// What goes into each column, as the entry has it.
pub(super) struct Cells<'a>([Option<&'a [u8]>; MEMBERS.len()]);

impl<'a> Cells<'a> {
    /// The cells of an entry; `None` where a parser is needed to tell.
    pub(super) fn read(entry: &'a [u8]) -> Option<Self> {
        let mut cells = Self([None; MEMBERS.len()]);
        let mut reader = Reader::compact(entry);
        cells.read_object(Within::Record, &mut reader, &mut 0)?;
        reader.end().ok()?;
        Some(cells)
    }

    /// The value of a column.
    pub(super) fn get(&self, column: usize) -> Option<&'a [u8]> {
        self.0.get(column).copied().flatten()
    }

    /// Reads the members of one object. The next one is likely that of column `next`.
    fn read_object(
        &mut self,
        within: Within,
        reader: &mut Reader<'a>,
        next: &mut usize,
    ) -> Option<()> {
        reader.enter(b'{').ok()?;
        while let Some(key) = reader.next_key().ok()? {
            if key.is_escaped() {
                return None;
            }
            let inner = within.inner(key.raw()).filter(|_| reader.peek() == Some(b'{'));
            if let Some(inner) = inner {
                self.read_object(inner, reader, next)?;
                continue;
            }
            let value = reader.verbatim().ok()?.raw();
            if let Some(column) = find_column(within, key.raw(), *next) {
                *next = self.keep(column, value)?;
            }
        }
        Some(())
    }

    /// Keeps what the columns of a member, from this one on, are made of. Gives the column behind
    /// them.
    fn keep(&mut self, column: usize, value: &'a [u8]) -> Option<usize> {
        match MEMBERS.get(column)?.reading {
            Reading::Value | Reading::Entry => {
                self.keep_one(column, value)?;
                Some(column + 1)
            }
            Reading::Stage => {
                let behind = column + Stage::ALL.len();
                if value != b"null" {
                    // Stages by name are in seconds: a parser reads them.
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

    /// Keeps the value of a column, which comes once.
    fn keep_one(&mut self, column: usize, value: &'a [u8]) -> Option<()> {
        let cell = self.0.get_mut(column)?;
        if cell.is_some() {
            return None;
        }
        *cell = Some(value).filter(|value| !matches!(*value, b"" | b"null" | b"{}" | b"[]"));
        Some(())
    }
}
