//! Holds the beginning of a block until the rest of it arrives.

/// What has come of a block that is not whole, up to a limit; then the last one that crossed reads.
#[derive(Debug)]
pub(crate) struct Partial {
    /// Longest block that is read.
    bytes_max: usize,
    bytes: Vec<u8>,
    /// The block has ended.
    is_whole: bool,
    /// The block is too long; its bytes are not kept.
    is_too_long: bool,
    /// Blocks that were too long.
    pub(crate) too_long: u32,
}

impl Partial {
    /// Nothing, of blocks of at most `bytes_max`.
    pub(crate) const fn new(bytes_max: usize) -> Self {
        let (is_whole, is_too_long, too_long) = (false, false, 0);
        Self { bytes_max, bytes: Vec::new(), is_whole, is_too_long, too_long }
    }

    /// Lets go of a block that has been handed out.
    pub(crate) fn renew(&mut self) {
        if std::mem::take(&mut self.is_whole) {
            self.bytes = Vec::new();
        }
    }

    /// Keeps the next part of a block that goes on in the next read.
    pub(crate) fn keep(&mut self, part: &[u8]) {
        if self.is_too_long {
            return;
        }
        if self.bytes.len() + part.len() <= self.bytes_max {
            self.bytes.extend_from_slice(part);
            return;
        }
        self.too_long = self.too_long.saturating_add(1);
        self.is_too_long = true;
        self.bytes = Vec::new();
    }

    /// The block that ends with `part`, which is not copied if it is all of it; `None` if it is too
    /// long.
    pub(crate) fn end<'s>(&'s mut self, part: &'s [u8]) -> Option<&'s [u8]> {
        if self.bytes.is_empty() && !self.is_too_long && part.len() <= self.bytes_max {
            return Some(part);
        }
        self.keep(part);
        self.is_whole = true;
        let is_readable = !std::mem::take(&mut self.is_too_long);
        is_readable.then_some(&*self.bytes)
    }

    /// A block of which no more will come; `None` if it is too long.
    pub(crate) fn close(&mut self) -> Option<&[u8]> {
        let is_open = !std::mem::replace(&mut self.is_whole, true) && !self.is_too_long;
        is_open.then_some(&*self.bytes)
    }
}
