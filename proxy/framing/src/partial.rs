//! Holds the beginning of a block until the rest of it arrives, and shortens a long block.

use taximeter_json::{Condensed, Condenser};

/// Longest block that is read as it came, in bytes. A longer one is condensed, so that its length has
/// no limit.
///
/// What is taken out of a block is found in the block as it came: so this is not less than what is
/// withheld of one.
pub(crate) const PLAIN_BYTES_MAX: usize = 64 << 10;

/// A buffer that grew beyond this is given back after its block.
const KEPT_CAPACITY_BYTES_MAX: usize = 16 << 10;

/// What a whole block says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Data<'a> {
    /// The block, or what is left of it where it was condensed.
    pub bytes: &'a [u8],
    /// The same, where the block was condensed.
    pub condensed: Option<&'a Condensed>,
}

impl<'a> Data<'a> {
    /// A block as it came.
    pub const fn plain(bytes: &'a [u8]) -> Self {
        Self { bytes, condensed: None }
    }
}

/// What has come of a block that is not whole; then the last one that crossed reads.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    bytes: Vec<u8>,
    /// The block is long.
    condenser: Option<Box<Condenser>>,
    /// The block has ended.
    is_whole: bool,
}

impl Partial {
    /// Nothing yet.
    pub(crate) const fn new() -> Self {
        Self { bytes: Vec::new(), condenser: None, is_whole: false }
    }

    /// Lets go of a block that has been handed out.
    pub(crate) fn renew(&mut self) {
        if std::mem::take(&mut self.is_whole) {
            self.condenser = None;
            if self.bytes.capacity() > KEPT_CAPACITY_BYTES_MAX {
                self.bytes = Vec::new();
            } else {
                self.bytes.clear();
            }
        }
    }

    /// Keeps the next part of a block that goes on.
    pub(crate) fn keep(&mut self, part: &[u8]) {
        if let Some(condenser) = &mut self.condenser {
            condenser.push(part);
        } else if self.bytes.len() + part.len() <= PLAIN_BYTES_MAX {
            self.bytes.extend_from_slice(part);
        } else {
            let condenser = self.condenser.insert(Box::default());
            condenser.push(&self.bytes);
            condenser.push(part);
            self.bytes = Vec::new();
        }
    }

    /// The block that ends with `part`, which is not copied if it is all of a short block.
    pub(crate) fn end<'s>(&'s mut self, part: &'s [u8]) -> Data<'s> {
        if self.bytes.is_empty() && self.condenser.is_none() && part.len() <= PLAIN_BYTES_MAX {
            return Data::plain(part);
        }
        self.keep(part);
        self.is_whole = true;
        self.so_far()
    }

    /// A block of which no more will come; `None` if it has been handed out.
    pub(crate) fn close(&mut self) -> Option<Data<'_>> {
        let is_open = !std::mem::replace(&mut self.is_whole, true);
        is_open.then(|| self.so_far())
    }

    /// What has come of the block.
    pub(crate) fn so_far(&self) -> Data<'_> {
        self.condenser.as_ref().map_or(Data::plain(&self.bytes), |condenser| {
            let condensed = condenser.condensed();
            Data { bytes: condensed.text(), condensed: Some(condensed) }
        })
    }
}
