//! What a database must do to be a store, and what all databases share.
//!
//! ```text
//! FramedEntry ─▶ Batch ─▶ Database::add, commit      requests, corrections and the sums of their hours
//! Period, Filter ─▶ Database::…                      records, hours, entries, as of one moment
//! ```
//!
//! `store` has SQLite and asks the questions, `postgres` has PostgreSQL. All databases give the same
//! answers: entries are read here (`batch`, `post`, `forms`) and added up here (`batch::Hours`,
//! `granularity`). This crate opens nothing and reads no clock.

pub mod batch;
pub mod behind;
pub mod database;
pub mod day;
pub mod error;
pub mod forms;
pub mod gone;
pub mod granularity;
pub mod old_rows;
pub mod post;
pub mod sealing;
pub mod sessions;
