//! A bill as text: for people, for spreadsheets, for programs.

mod csv;
mod json;
mod table;

pub use csv::csv;
pub use json::json;
pub use table::table;
