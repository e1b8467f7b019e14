//! Sums per hour in a Parquet file that is kept: written, read and checked.
//!
//! Rows are in the order of their keys: by hour, then by tenant. Any reader of Parquet can add them
//! up. What a column cannot hold exactly is in the column `exact`, which is null nearly always.

mod columns;
mod cover;
mod read;
mod write;

pub use self::cover::{HoursCover, JournalEnd};
pub use self::read::{HoursFile, check_hours};
pub use self::write::{HoursFooter, HoursWriter, SealedHours};

#[cfg(test)]
mod tests;
