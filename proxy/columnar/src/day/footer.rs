//! What the footer of a file says about its rows.

use std::collections::BTreeMap;

use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use taximeter_ledger::LedgerId;

/// The format of the files that this version writes and reads.
pub(super) const FORMAT: u32 = 1;
/// The key of the JSON of a [`Footer`] among the key-values of Parquet's footer.
pub(super) const FOOTER_KEY: &str = "taximeter.day";
/// What a file says about its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footer {
    /// The format of the file.
    pub format: u32,
    /// The gateway whose store the file belongs to.
    pub gateway: String,
    /// The day of admission of all rows, UTC.
    pub day: Date,
    /// The ledgers that the entries of the rows are in, each with its first and its last one.
    pub ledgers: Vec<LedgerRange>,
    /// Number of rows.
    pub rows: u64,
    /// SHA-256 of the rows in order: of each its place (16 bytes of the ledger and 8 of the
    /// sequence number), the length of its payload in 4 bytes, and its payload. All numbers are
    /// little-endian.
    pub sha256: String,
    /// The same of the rows of each row group.
    pub groups: Vec<String>,
    /// What the rows owe by currency: the cost, or what is known of it. A currency is missing if its
    /// sum has more digits than are kept exactly.
    #[serde(default)]
    pub costs: BTreeMap<String, Decimal>,
    /// Names of the files that this one replaces.
    #[serde(default)]
    pub replaces: Vec<String>,
}

/// The entries of one ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerRange {
    /// The ledger.
    pub ledger: LedgerId,
    /// Lowest sequence number.
    pub first: u64,
    /// Highest sequence number.
    pub last: u64,
    /// Number of rows.
    pub rows: u64,
}
