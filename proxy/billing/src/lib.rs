//! Records → bills.
//!
//! Sums are exact; what is unknown is counted apart and never added as zero; money is rounded in
//! the printed table only. A request belongs to the period in which it was admitted. Refuses to
//! know sockets, files and where the bytes go.

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
