//! Gathers the body of an answer that is one document.

use bytes::{Bytes, BytesMut};

/// A body that is read as one document, when it is whole.
#[derive(Debug, Default)]
pub(crate) enum Body {
    #[default]
    Empty,
    /// Came in one read: nothing is copied.
    One(Bytes),
    Many(BytesMut),
    TooLong,
}

impl Body {
    /// Adds a read, up to the limit.
    pub(crate) fn push(&mut self, read: &Bytes, bytes_max: usize) {
        *self = match std::mem::take(self) {
            Self::Empty if read.len() <= bytes_max => Self::One(read.clone()),
            Self::One(first) => {
                let mut all = BytesMut::with_capacity(first.len() + read.len());
                all.extend_from_slice(&first);
                Self::Many(all).followed_by(read, bytes_max)
            }
            all => all.followed_by(read, bytes_max),
        };
    }

    fn followed_by(self, read: &Bytes, bytes_max: usize) -> Self {
        match self {
            Self::Many(mut all) if all.len() + read.len() <= bytes_max => {
                all.extend_from_slice(read);
                Self::Many(all)
            }
            _ => Self::TooLong,
        }
    }

    /// All of it, from its first brace on; `None` when it was too long.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        let all: &[u8] = match self {
            Self::Empty => &[],
            Self::One(all) => all,
            Self::Many(all) => all,
            Self::TooLong => return None,
        };
        let from = all.iter().position(|byte| matches!(byte, b'{' | b'[')).unwrap_or(0);
        all.get(from..)
    }
}
