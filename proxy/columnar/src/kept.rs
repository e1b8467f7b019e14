//! A Parquet file of our own whose bytes are checked when they are read, whatever its rows are.

mod blocks;
mod checks;
mod cursor;
mod errors;
mod file;
mod filter;
mod select;
mod text_cursor;
mod writer;

pub use blocks::ReadAt;
pub use checks::hex;
pub use cursor::Cursor;
pub use file::{FileKind, KeptFile};
pub use filter::RowFilter;
pub use select::{BATCH_ROWS, RowRanges, batches, pieces};
pub(crate) use select::{Bounds, common, push};
pub use text_cursor::TextCursor;
pub use writer::{KeptWriter, Sealed};
