//! What the footer of a file says about its rows, and how its bytes are checked.

use std::collections::BTreeMap;

use jiff::civil::Date;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use taximeter_ledger::LedgerId;

/// The format of the files that this version writes and reads.
pub(super) const FORMAT: u32 = 1;
/// The key of the JSON of a [`Footer`] among the key-values of Parquet's footer.
pub(super) const FOOTER_KEY: &str = "taximeter.day";
/// The key of two CRC32C in hexadecimal: of the bytes from the end of the row groups to the
/// footer, and of the footer from its first byte to the end of the file, with zeros in place of
/// this second value.
pub(super) const CHECK_KEY: &str = "taximeter.check";
/// Characters of one of these, and of both.
pub(super) const CHECK_LENGTH: usize = 8;
const CHECKS_LENGTH: u8 = 16;
/// Longest footer. A file of a day has 70 KiB for each million of rows.
pub(super) const FOOTER_BYTES_MAX: u64 = 64 << 20;

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
    /// Bytes up to the end of the row groups. Behind them are the CRC32C of each piece of
    /// [`BLOCK_BYTES`](super::blocks::BLOCK_BYTES) of them in 4 bytes.
    pub body_bytes: u64,
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

/// Where the second value of the key-value [`CHECK_KEY`] is in the bytes of a footer.
///
/// It is found by its key, because the footer is not parsed before it is checked: the key, then
/// the type and the length of the value in Thrift's compact protocol.
pub(super) fn check_position(footer: &[u8]) -> Option<usize> {
    let mut pattern = CHECK_KEY.as_bytes().to_vec();
    pattern.extend([0x18, CHECKS_LENGTH]);
    let start = footer.windows(pattern.len()).rposition(|window| window == pattern)?;
    let value = start + pattern.len() + CHECK_LENGTH;
    (value + CHECK_LENGTH <= footer.len()).then_some(value)
}

/// A CRC32C in hexadecimal.
pub(super) fn check_text(check: u32) -> String {
    format!("{check:08x}")
}

/// Hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
