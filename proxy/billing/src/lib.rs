//! Records to bills: this crate adds up hours, makes bills, invoices and statements, and writes the
//! export formats.
//!
//! Begin with `hours.rs` (what is added up), then `bill.rs` and `invoice.rs`. `export.rs` has the
//! formats.
//!
//! # Invariants
//!
//! - Sums are exact. Only the printed table rounds money.
//! - What is unknown is counted separately and never added as zero.
//! - A request belongs to the period in which it was admitted.
//! - Every export adds up to what `bill` says.
//! - The same input gives the same bytes: no clock, no random names.
//!
//! This crate knows no sockets, no files and not where the bytes go. The caller passes something to
//! write to.
//!
//! # Hours and periods
//!
//! An hour keeps what one combination of tenant, model, key and so on used, line by line at one
//! price each. So quantity × unit price is exactly the amount, also after further additions.
//! `zone.rs` and `Period::parts` split a period in a time zone into whole UTC hours and the parts
//! that cut one. For these parts the caller reads the requests.
//!
//! # Exports
//!
//! FOCUS rows are made from hours. Single requests leave as records and events. What a bill has
//! besides requests (corrections, shares of GPUs, credits) leaves as FOCUS rows and as events of
//! its own (`export/item.rs`). A Parquet file of requests is made from the entries as they were
//! written. `export/records` takes them apart and does not parse whole records: it compares an
//! entry with earlier ones, most of which have the same layout, and reads only where they differ
//! (`records/layout.rs`).

mod allowance;
mod bill;
mod credit;
mod difference;
pub mod export;
mod gpu;
mod group;
mod hours;
mod invoice;
mod period;
mod quantities;
mod render;
mod row;
mod statement;
mod sums;
mod zone;

pub use allowance::Allowances;
pub use bill::{Bill, BillError, BillLine, Biller};
pub use credit::{Covered, Credit};
pub use difference::{Difference, Differences, costs_differ};
pub use gpu::{GpuShares, Run};
pub use group::{Dimension, GroupError, Grouping};
pub use hours::{Hour, HourKey, LineKey, TooLarge, corrected, hour_of};
pub use invoice::{Invoice, InvoiceLine, Invoicer, Provisional, TenantPart};
pub use period::{Moment, Month, Period, PeriodError, day, instant};
pub use quantities::{Quantities, QuantityLine, Split};
pub use render::{csv, invoice, json, table};
pub use row::BillRow;
pub use statement::{
    STATEMENT_VERSION, Statement, StatementFault, StatementJournal, StatementLine,
};
pub use sums::{Sums, add_exactly};
pub use zone::{Unit, UnknownZone, Zone};

#[cfg(test)]
mod fixtures;
