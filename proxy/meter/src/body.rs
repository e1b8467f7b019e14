//! Gathers the body of an answer that is one document.

use bytes::Bytes;

use crate::partial::{Data, PLAIN_BYTES_MAX, Partial};

/// A body that is read as one document, when it is whole.
#[derive(Debug, Default)]
pub(crate) enum Body {
    #[default]
    Empty,
    /// Came in one read: nothing is copied.
    One(Bytes),
    Many(Partial),
}

impl Body {
    /// Adds a read.
    pub(crate) fn push(&mut self, read: &Bytes) {
        if matches!(self, Self::Empty) && read.len() <= PLAIN_BYTES_MAX {
            *self = Self::One(read.clone());
        } else {
            self.push_copy(read);
        }
    }

    /// Adds a read of which nothing but a copy can be kept.
    pub(crate) fn push_copy(&mut self, read: &[u8]) {
        let mut all = match std::mem::take(self) {
            Self::Empty => Partial::new(),
            Self::One(first) => {
                let mut all = Partial::new();
                all.keep(&first);
                all
            }
            Self::Many(all) => all,
        };
        all.keep(read);
        *self = Self::Many(all);
    }

    /// All of it, from its first brace on.
    pub(crate) fn data(&self) -> Data<'_> {
        let all = match self {
            Self::Empty => Data::plain(&[]),
            Self::One(all) => Data::plain(all),
            Self::Many(all) => all.so_far(),
        };
        let from = all.bytes.iter().position(|byte| matches!(byte, b'{' | b'['));
        let bytes = all.bytes.get(from.unwrap_or(0)..).unwrap_or_default();
        Data { bytes, ..all }
    }
}
