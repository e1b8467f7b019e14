//! Entries of a journal, as the store has them: for who reads a journal and finds that segments have
//! gone.

use taximeter_ledger::LedgerId;

/// Entries of a journal that are asked for.
#[derive(Debug, Clone, Copy)]
pub struct Behind<'a> {
    /// The journal, as its cursor is called.
    pub journal: &'a str,
    /// The ledger that the journal is of.
    pub ledger: LedgerId,
    /// Only entries behind this one.
    pub after: u64,
    /// Up to this one.
    pub until: u64,
}

/// Entries in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntryPage {
    /// The entries that have left something.
    pub entries: Vec<StoredEntry>,
    /// The page has all of them up to this one.
    pub through: u64,
}

/// An entry that has left something in the store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredEntry {
    /// Its sequence number.
    pub seq: u64,
    /// What it is.
    pub what: Stored,
}

/// What an entry has left, as it was written: the complete payload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stored {
    /// A request.
    Request(Vec<u8>),
    /// A correction.
    Correction(Vec<u8>),
}

/// What is behind an entry of the journal of requests, and what files have before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lacked {
    /// Requests behind it.
    pub requests: u64,
    /// Bytes of the files of days that have none of these.
    pub bytes_before: u64,
}

/// Leaves out what may not be complete of the first `limit` places in the order of their numbers, of which
/// there are no others up to `until`. Up to where all are left.
pub fn complete<P>(
    places: &mut Vec<P>,
    seq: impl Fn(&P) -> u64,
    (limit, until): (usize, u64),
) -> u64 {
    let Some(cut) = limit.checked_sub(1).and_then(|last| places.get(last)).map(&seq) else {
        return until;
    };
    // Those behind the last one may have the same number.
    let first = places.first().map_or(cut, &seq);
    let through = if first == cut { cut } else { cut - 1 }.min(until);
    places.retain(|place| seq(place) <= through);
    through
}
