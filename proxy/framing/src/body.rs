//! Gathers the body of an answer that is one document.

use bytes::Bytes;

use crate::partial::{Data, PLAIN_BYTES_MAX, Partial};

/// A body that is read as one document, when it is whole.
#[derive(Debug, Default)]
pub struct Body(Gathered);

#[derive(Debug, Default)]
enum Gathered {
    #[default]
    Empty,
    /// Came in one read: nothing is copied.
    One(Bytes),
    Many(Partial),
}

impl Body {
    /// Adds a read.
    pub fn push(&mut self, read: &Bytes) {
        if matches!(self.0, Gathered::Empty) && read.len() <= PLAIN_BYTES_MAX {
            self.0 = Gathered::One(read.clone());
        } else {
            self.push_copy(read);
        }
    }

    /// Adds a read of which nothing but a copy can be kept.
    pub fn push_copy(&mut self, read: &[u8]) {
        let mut all = match std::mem::take(&mut self.0) {
            Gathered::Empty => Partial::new(),
            Gathered::One(first) => {
                let mut all = Partial::new();
                all.keep(&first);
                all
            }
            Gathered::Many(all) => all,
        };
        all.keep(read);
        self.0 = Gathered::Many(all);
    }

    /// All of it, from its first brace on.
    #[must_use]
    pub fn data(&self) -> Data<'_> {
        let all = match &self.0 {
            Gathered::Empty => Data::plain(&[]),
            Gathered::One(all) => Data::plain(all),
            Gathered::Many(all) => all.so_far(),
        };
        let from = all.bytes.iter().position(|byte| matches!(byte, b'{' | b'['));
        let bytes = all.bytes.get(from.unwrap_or(0)..).unwrap_or_default();
        Data { bytes, ..all }
    }
}
