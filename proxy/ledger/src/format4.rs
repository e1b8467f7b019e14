//! Reads journals of format 4, so that they can be converted. Nothing writes this format, and
//! nothing else in this crate needs this module.
//!
//! ```text
//! segment:  header 512 | frames
//! header:   magic 8 | version u16 | gateway length u16 | first seq u64 | chain u32
//!           | created µs i64 | gateway, zeros | follows 32 | sync marks u8 | lost u64 | crc u32
//! frame:    length u32 | seq u64 | kind u8 | check u32 | chain u32 | JSON     little endian
//! ```
//!
//! The `check` of a frame has no seed. A sync mark is a frame of kind 7 with the payload `{}`, a
//! chain of its own and the number of the last synced entry.

mod entry;
mod frame;
mod header;
mod reader;
mod resume;

pub use self::entry::OldEntry;
pub use self::frame::{FRAME_BYTES_MIN, last_mark, skip_marks};
pub use self::reader::{Part, Reader};
pub use self::resume::find_resume_point;

use crate::segment::{HEADER_BYTES, MAGIC};

/// The format.
pub const VERSION: u16 = 4;

/// The format of a file without entries that stands last in a journal while that is converted. No
/// program reads this format, so none opens such a journal.
pub const CONVERTING: u16 = u16::MAX;

/// The bytes of that file.
#[must_use]
pub fn converting() -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    for (to, from) in bytes.iter_mut().zip(MAGIC.into_iter().chain(CONVERTING.to_le_bytes())) {
        *to = from;
    }
    bytes
}
