//! Reads the rows of formats 2 and 3, which are JSON. SQLite and PostgreSQL have the same.

use taximeter_ledger::{Correction, EncodedEntry, Entry, Record};

use super::error::ReadError;

/// The formats with such rows. Format 2 has no counts of refusals.
const OLD: [i64; 2] = [2, 3];
/// The format of tables that are being converted. Nobody else opens them.
pub const CONVERTING: i64 = 1_000;

/// Whether tables of this format have such rows alone.
pub fn is_unconverted(version: impl Into<i64>) -> bool {
    OLD.contains(&version.into())
}

/// Whether tables of this format have such rows, or had them before a conversion that has not ended.
pub fn is_old(version: impl Into<i64>) -> bool {
    let version = version.into();
    is_unconverted(version) || version == CONVERTING
}

/// The complete payload of the entry of a request.
///
/// Errors: it is no record.
pub fn request(json: &str) -> Result<Vec<u8>, ReadError> {
    let record: Record = serde_json::from_slice(json.as_bytes())?;
    payload(&Entry::Post(Box::new(record)))
}

/// The complete payload of the entry of a correction.
///
/// Errors: it is no correction.
pub fn correction(json: &str) -> Result<Vec<u8>, ReadError> {
    let correction: Correction = serde_json::from_slice(json.as_bytes())?;
    payload(&Entry::Correction(Box::new(correction)))
}

fn payload(entry: &Entry) -> Result<Vec<u8>, ReadError> {
    let mut payload = Vec::new();
    EncodedEntry::new(entry, &mut payload)?;
    Ok(payload)
}
