//! Joins pieces of an answer that are ready together, so that they leave in one write.

use bytes::{Bytes, BytesMut};

/// Pieces that become one; a single piece is not copied.
#[derive(Default)]
pub(super) struct Pieces {
    first: Bytes,
    more: BytesMut,
}

impl Pieces {
    /// Adds a piece at the end.
    pub(super) fn push(&mut self, piece: Bytes) {
        if piece.is_empty() {
            return;
        }
        if self.first.is_empty() {
            self.first = piece;
            return;
        }
        if self.more.is_empty() {
            self.more.reserve(self.first.len() + piece.len());
            self.more.extend_from_slice(&self.first);
        }
        self.more.extend_from_slice(&piece);
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.first.len().max(self.more.len())
    }

    /// All of them.
    pub(super) fn join(self) -> Bytes {
        if self.more.is_empty() { self.first } else { self.more.freeze() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_join_in_order_and_one_is_not_copied() {
        let one = Bytes::from_static(b"one");
        let mut pieces = Pieces::default();
        pieces.push(one.clone());
        pieces.push(Bytes::new());
        assert_eq!(pieces.len(), 3);
        assert_eq!(pieces.join().as_ptr(), one.as_ptr());
        let mut pieces = Pieces::default();
        for piece in ["a", "", "bc", "d"] {
            pieces.push(Bytes::from_static(piece.as_bytes()));
        }
        assert_eq!(pieces.len(), 4);
        assert_eq!(pieces.join(), "abcd");
    }
}
