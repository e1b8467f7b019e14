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

/// Columns of text, for the tables of others.
pub mod text {
    pub use super::columns::{
        PLACES_MIN, TextColumn, grouped, money, printable, requests_of, rounded, shorten,
        write_columns,
    };
}
