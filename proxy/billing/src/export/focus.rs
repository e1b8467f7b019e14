//! FOCUS 1.2 Cost and Usage: one row for each meter, price, tenant, model and hour.
//!
//! A row is a charge: quantity × unit price = cost, exactly. Requests with an unknown cost make no
//! charge and no row. The manifest counts them.

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
