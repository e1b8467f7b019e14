//! Text → token count.
//!
//! Refuses to know HTTP, prices and tenants.
