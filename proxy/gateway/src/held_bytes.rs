//! Counts the bytes of bodies that are held in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::journey::refuse::Refusal;

/// Bytes of one body, counted while this lives.
#[derive(Debug, Default)]
pub struct HeldBytes {
    total: Arc<AtomicUsize>,
    bytes_max: usize,
    bytes: usize,
}

impl HeldBytes {
    /// No bytes yet, of a body that counts against `total`.
    pub(crate) const fn of(total: Arc<AtomicUsize>, bytes_max: usize) -> Self {
        Self { total, bytes_max, bytes: 0 }
    }

    /// More of the body has come.
    ///
    /// Errors: `Overloaded` when all bodies together are too large.
    pub fn add(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.bytes += bytes;
        if self.total.fetch_add(bytes, Relaxed) + bytes > self.bytes_max {
            return Err(Refusal::Overloaded);
        }
        Ok(())
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes, Relaxed);
    }
}
