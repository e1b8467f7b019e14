//! What a column has of a record.

use std::ops::Deref;

use jiff::Timestamp;
use rust_decimal::Decimal;
use taximeter_ledger::{LedgerId, Record, RequestId};
use uuid::Uuid;

/// A record, and the ledger that its entry is in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept<'a> {
    pub(crate) ledger: LedgerId,
    pub(crate) record: &'a Record,
}

impl Deref for Kept<'_> {
    type Target = Record;

    fn deref(&self) -> &Record {
        self.record
    }
}

impl Kept<'_> {
    /// Null for a ledger without an id.
    pub(super) fn ledger(&self) -> Cell<'static> {
        if self.ledger == LedgerId::UNKNOWN { Cell::Null } else { Cell::Uuid(self.ledger.0) }
    }
}

/// What a column has of a record.
pub(crate) enum Cell<'a> {
    Null,
    Text(&'a str),
    /// The client's id. A file that is kept does not repeat the id of the request in it.
    RequestId(&'a str, RequestId),
    Json(serde_json::Result<Vec<u8>>),
    /// The JSON of what is there and has nothing in it. To other programs it is null.
    EmptyJson(&'static str),
    Uuid(Uuid),
    Time(Timestamp),
    Count(u64),
    Bool(bool),
    Seconds(f64),
    Money(Decimal),
}
