//! What sessions add up to on a day that is closed, in a Parquet file that is kept beside that of the
//! day's requests: written, read and checked.
//!
//! Rows are in the order of tenant and name, and the index of pages has the names: who opens a session
//! reads one page. The file is one of its own, and not a part of the footer of the file of the day, because
//! whoever reads a request would read all sessions of the day with it. A sum is one column of bytes, as
//! stores have it: it is never read in part, and is the same to the last digit.

mod read;
mod write;

pub use self::read::{SessionRow, SessionRows, SessionsFile, check_sessions};
pub use self::write::{SealedSessions, SessionsFooter, SessionsWriter};

use taximeter_columnar::{Field, FieldKind};

/// The key of the footer's JSON.
const FOOTER_KEY: &str = "taximeter.sessions";
/// The format that this version writes and reads.
const FORMAT: u32 = 1;

const fn field(name: &'static str, kind: FieldKind, distinct: bool) -> Field {
    Field { name, kind, nullable: false, distinct }
}

/// The columns. The time is that of the first request.
const FIELDS: [Field; 4] = [
    field("tenant", FieldKind::Text, false),
    field("session", FieldKind::Text, true),
    field("started_at", FieldKind::Time, true),
    field("sum", FieldKind::Bytes, true),
];
const SESSION: usize = 1;
