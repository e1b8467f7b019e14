//! A day of records in one Parquet file.

mod by_entry;
mod check;
mod file;
mod footer;
mod known;
mod merge;
mod of_session;
mod pick;
mod scan;
mod totals;
mod writer;

pub use by_entry::RowAt;
pub use check::{Checked, Expected, Finding, check};
pub use file::{AdmissionKey, DayFile};
pub use footer::{Footer, LedgerRange};
pub use merge::{MergeError, merge};
pub use scan::{Row, Scan};
pub use writer::{DayWriter, SealedDay};

#[cfg(test)]
mod tests;
