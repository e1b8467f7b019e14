//! Bills as text: for people, for spreadsheets, for programs.

mod columns;
mod csv;
mod invoice;
mod json;
mod table;

pub use columns::printable;
pub use csv::{csv, csv_cell};
pub use invoice::invoice;
pub use json::json;
pub use table::table;
