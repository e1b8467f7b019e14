//! Encodes where a reader of records stopped as a text. The reader sends it back to continue.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use taximeter_ledger::RequestId;

/// The order in which records are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// In order of admission.
    OldestFirst,
    /// In reverse order of admission.
    NewestFirst,
}

/// The record after which reading continues. Records that arrived after the first page are not on
/// later pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The order of the page.
    pub order: Order,
    /// The number of the newest record when it began.
    pub(super) newest: i64,
    /// Admission of the last record that was looked at, in microseconds since 1970.
    pub(super) at: i64,
    /// That record.
    pub(super) id: RequestId,
}

/// The text is not a cursor of this store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoCursor;

/// Order, newest, admission, id.
const BYTES: usize = 1 + 8 + 8 + 16;

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.push(u8::from(self.order == Order::NewestFirst));
        bytes.extend(self.newest.to_be_bytes());
        bytes.extend(self.at.to_be_bytes());
        bytes.extend(self.id.0.as_bytes());
        f.write_str(&BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }
}

impl FromStr for Cursor {
    type Err = NoCursor;

    fn from_str(text: &str) -> Result<Self, NoCursor> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| NoCursor)?;
        let bytes: [u8; BYTES] = bytes.try_into().map_err(|_| NoCursor)?;
        let [order, rest @ ..] = bytes;
        let order = match order {
            0 => Order::OldestFirst,
            1 => Order::NewestFirst,
            _ => return Err(NoCursor),
        };
        let (newest, rest) = rest.split_first_chunk().ok_or(NoCursor)?;
        let (at, rest) = rest.split_first_chunk().ok_or(NoCursor)?;
        let id = rest.first_chunk().ok_or(NoCursor)?;
        let id = RequestId(uuid::Uuid::from_bytes(*id));
        Ok(Self { order, newest: i64::from_be_bytes(*newest), at: i64::from_be_bytes(*at), id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_as_itself_and_nothing_else_is_one() {
        let id = RequestId(uuid::Uuid::from_u128(0x0193_0000_0000_7000_8000_0000_0000_0001));
        for order in [Order::OldestFirst, Order::NewestFirst] {
            let cursor = Cursor { order, newest: 7, at: -1, id };
            let text = cursor.to_string();
            assert_eq!(text.parse(), Ok(cursor));
            assert_eq!(text[..text.len() - 2].parse::<Cursor>(), Err(NoCursor));
        }
        for text in ["", "next", "ä", &"A".repeat(1000), &"_".repeat(44)] {
            assert_eq!(text.parse::<Cursor>(), Err(NoCursor), "{text}");
        }
    }
}
