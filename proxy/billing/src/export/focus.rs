//! FOCUS 1.2 Cost and Usage: one row per meter, price, tenant, model and hour.
//!
//! A row is a charge: quantity × unit price = cost, exactly. Requests whose cost is unknown are no
//! charges and in no row; the manifest counts them.

mod charge;
mod columns;
mod pricing;
mod words;
mod write;

pub use charge::{Charge, charges};
pub use columns::FocusVersion;
pub use write::FocusWriter;

#[cfg(test)]
mod tests;
