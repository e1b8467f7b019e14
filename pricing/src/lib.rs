//! `Usage` × `PriceBook` → `Cost`: what the tokens of one request cost.
//!
//! Invariants: money is exact decimal and never a float; unknown is never zero; a price in the book that is
//! zero is free on purpose. Refuses to know HTTP, provider JSON and tenants.

mod usage;

pub use usage::{Flag, Pass, Source, Usage};
