//! Rows that have the same texts one after the other.

use super::column_buffer::ColumnBuffer;

/// Fills rows that differ in 64-bit numbers only. If a cell does not fit its field, writing the file fails.
pub struct RunWriter<'a> {
    columns: std::slice::IterMut<'a, ColumnBuffer>,
    bytes: &'a mut usize,
    times: usize,
}

impl<'a> RunWriter<'a> {
    pub(super) const fn new(
        columns: std::slice::IterMut<'a, ColumnBuffer>,
        bytes: &'a mut usize,
        times: usize,
    ) -> Self {
        Self { columns, bytes, times }
    }

    /// The text that all of them have, or none.
    pub fn text(&mut self, text: Option<&str>) {
        *self.bytes += text.map_or(0, str::len);
        if let Some(column) = self.columns.next() {
            column.push_run(text.map(str::as_bytes), self.times);
        }
    }

    /// The 32-bit number that all of them have.
    pub fn int32(&mut self, value: i32) {
        *self.bytes += 4 * self.times;
        if let Some(column) = self.columns.next() {
            column.repeat_int32(value, self.times);
        }
    }

    /// The 64-bit number of each of them.
    pub fn int64s(&mut self, values: impl Iterator<Item = i64>) {
        *self.bytes += 8 * self.times;
        if let Some(column) = self.columns.next() {
            column.push_int64s(values);
        }
    }
}
