//! Turns records into bills: adds up hours, makes bills, invoices and statements, and writes the
//! export formats.
//!
//! Begin with `hours.rs` (what is added up). Then read `bill.rs` and `invoice.rs`. `export.rs` has
//! the formats.
//!
//! # Invariants
//!
//! - Sums are exact. Only the printed tables round money.
//! - Unknown numbers are counted separately and never added as zero.
//! - A request belongs to the period in which it was admitted.
//! - Every export adds up to the bill.
//! - The same input gives the same bytes: no clock, no random names.
//!
//! This crate knows no sockets, no files and no destinations. The caller passes a writer.
//!
//! # Hours and periods
//!
//! An hour keeps the quantities of one combination of tenant, model, key and so on, with one line
//! for each meter and price. So quantity × unit price is exactly the amount, also after further
//! additions. `zone.rs` and `Period::parts` split a period in a time zone into whole UTC hours and
//! parts that cut one. For these parts the caller reads the requests.
//!
//! `hours_file` keeps hours in Parquet files of their own.
//!
//! # Final and provisional
//!
//! `closing.rs` decides from what gateways have written whether a period is closed, and has the words
//! for it. A final statement never changes. What comes later is in a further one, which states the
//! difference (`statement_series.rs`).
//!
//! # Exports
//!
//! FOCUS rows are made from hours. Single requests are exported as records and events. A bill also
//! has items besides requests: corrections, shares of GPUs and credits. They are exported as FOCUS
//! rows and as events of their own (`export/item.rs`). `export/records` writes Parquet files of
//! requests, whose columns are in `columnar`.

mod allowance;
mod bill;
mod billed_request;
mod client_dimension;
mod closing;
mod credit;
mod difference;
pub mod export;
mod gpu;
mod group;
mod hours;
mod hours_file;
mod invoice;
mod period;
mod quantities;
mod render;
mod running_hour;
mod statement;
mod statement_series;
mod sums;
mod zone;

pub use allowance::Allowances;
pub use bill::{Bill, BillError, BillLine, Biller};
pub use billed_request::BilledRequest;
pub use client_dimension::{ClientDimension, SplitBy};
pub use closing::{
    Closing, Finality, GONE_AFTER, GatewayProgress, LostRequests, PeriodStatus, REQUEST_MAX,
    SILENT_AFTER, SettledUntil, SilentGateway, WaitedGateway, closing,
};
pub use credit::{Covered, Credit};
pub use difference::{Difference, Differences, amounts_differ, costs_differ};
pub use gpu::{GpuShares, RequestRun};
pub use group::{Dimension, GroupError, Grouping};
pub use hours::{Hour, HourKey, LineKey, TooLarge, corrected, hour_of};
pub use hours_file::{
    HoursCover, HoursFile, HoursFooter, HoursWriter, JournalEnd, SealedHours, check_hours,
};
pub use invoice::{Invoice, InvoiceLine, Invoicer, Provisional, TenantInvoice};
pub use period::{Moment, Month, Period, PeriodError, day, instant};
pub use quantities::{Quantities, QuantityLine, Split};
pub use render::text;
pub use render::{csv, csv_cell, invoice, json, printable, table};
pub use running_hour::{CostLines, RunningHour, RunningTotals};
pub use statement::{
    STATEMENT_VERSION, Statement, StatementBefore, StatementFault, StatementJournal, StatementLine,
};
pub use statement_series::{SeriesFault, check_series};
pub use sums::{Sums, add_exactly};
pub use zone::{Unit, UnknownZone, Zone};

#[cfg(test)]
mod fixtures;
