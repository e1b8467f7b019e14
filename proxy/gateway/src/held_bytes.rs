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
            return Err(Refusal::Overloaded { limit: "bodies_total_bytes_max" });
        }
        Ok(())
    }

    /// None of it is held any longer.
    fn release(&mut self) {
        self.total.fetch_sub(std::mem::take(&mut self.bytes), Relaxed);
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.release();
    }
}

/// A text that is held until the rest of it has come.
#[derive(Debug)]
pub(crate) struct HeldText {
    text: Vec<u8>,
    held: HeldBytes,
    bytes_max: usize,
}

impl HeldText {
    /// Nothing yet, of at most `bytes_max` bytes.
    pub(crate) const fn new(held: HeldBytes, bytes_max: usize) -> Self {
        Self { text: Vec::new(), held, bytes_max }
    }

    /// More of it has come. Returns whether there is room for it; if not, nothing is held any longer.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        let fits = self.text.len() + bytes.len() <= self.bytes_max;
        let has_room = fits && self.held.add(bytes.len()).is_ok();
        if has_room {
            self.text.extend_from_slice(bytes);
        } else {
            self.take();
        }
        has_room
    }

    /// What has come of it.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.text
    }

    /// Hands over what has come of it, and begins anew.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.held.release();
        std::mem::take(&mut self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_counts_while_it_is_held_and_is_let_go_when_it_is_too_long() {
        let total = Arc::<AtomicUsize>::default();
        let text = |bytes_max| HeldText::new(HeldBytes::of(total.clone(), 8), bytes_max);
        let mut one = text(100);
        assert!(one.push(b"abc") && one.push(b"de"));
        assert_eq!((one.as_bytes(), total.load(Relaxed)), (&b"abcde"[..], 5));
        // All together hold eight bytes.
        let mut other = text(100);
        assert!(!other.push(b"fghi"));
        assert_eq!((other.as_bytes(), total.load(Relaxed)), (&b""[..], 5));
        assert_eq!((one.take(), total.load(Relaxed)), (b"abcde".to_vec(), 0));
        assert!(one.as_bytes().is_empty());
        let mut short = text(2);
        assert!(short.push(b"jk") && !short.push(b"l"));
        assert!(short.as_bytes().is_empty());
        drop((one, other, short));
        assert_eq!(total.load(Relaxed), 0);
    }
}
