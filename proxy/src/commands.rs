//! One file per command.

pub(crate) mod bill;
pub(crate) mod failure;
mod ledger;
pub(crate) mod records;
