//! Reads records to export them.

use taximeter_billing::export::ExportError;
use taximeter_ledger::{DecodeError, Record};

/// The record of an entry.
pub(super) fn decoded(seq: u64, payload: &[u8]) -> Result<Record, ExportError> {
    let what = |error: DecodeError| ExportError::Unreadable { seq, what: error.to_string() };
    Record::decode(seq, payload).map_err(what)
}
