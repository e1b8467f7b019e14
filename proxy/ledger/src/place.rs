//! Where an entry is.

use crate::id::LedgerId;

/// Where an entry is: no other one is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The ledger.
    pub ledger: LedgerId,
    /// The sequence number.
    pub seq: u64,
}
