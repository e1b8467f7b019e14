//! What the tests of several crates share: a PostgreSQL server, and pages that are made from the code.
//! Black-box tests live in `it/`.

pub mod generated;
pub mod postgres;
