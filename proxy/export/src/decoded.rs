//! Reads records to export them.

use taximeter_billing::export::ExportError;
use taximeter_ledger::{DecodeError, Record, RecordDecoder};

/// The record of an entry.
pub(super) fn decoded<'a>(
    decoder: &'a mut RecordDecoder,
    seq: u64,
    payload: &[u8],
) -> Result<&'a Record, ExportError> {
    let what = |error: DecodeError| ExportError::Unreadable { seq, what: error.to_string() };
    decoder.decode(seq, payload).map_err(what)
}
