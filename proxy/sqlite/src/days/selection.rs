//! Places of entries that were selected ahead.

use std::collections::BTreeMap;
use std::sync::Arc;

use taximeter_columnar::{LedgerRange, RowAt};
use taximeter_ledger::LedgerId;

/// Most places that are selected at once.
pub(super) const SELECTED_MAX: usize = 16 << 10;

/// Where an entry has left something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// The row of a table with this number.
    Request(i64),
    Correction(i64),
    /// A row of the file with this number.
    File(i64, RowAt),
}

/// Places of a journal, in order.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) journal: String,
    pub(super) ledger: LedgerId,
    pub(super) after: u64,
    /// It has all up to this entry.
    pub(super) through: u64,
    pub(super) places: Vec<(u64, Source)>,
}

/// The files and the ledgers that they have entries of, by the numbers of the files.
pub(super) type Ranges = BTreeMap<i64, Arc<[LedgerRange]>>;
