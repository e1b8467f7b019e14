//! A day of records in one Parquet file.

mod blocks;
mod check;
mod column;
mod file;
mod filter;
mod footer;
mod group;
mod merge;
mod pick;
mod scan;
mod writer;

pub use blocks::ReadAt;
pub use check::{Checked, Expected, Finding, check};
pub use file::DayFile;
pub use filter::{AdmissionKey, RowFilter};
pub use footer::{Footer, LedgerRange};
pub use merge::{MergeError, merge};
pub use scan::{Row, Scan};
pub use writer::{DayWriter, Sealed};

#[cfg(test)]
mod tests;
