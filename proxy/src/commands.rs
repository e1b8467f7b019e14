//! The commands, one file each.

pub(crate) mod backup;
pub(crate) mod bill;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod count;
pub(crate) mod demo;
mod export;
pub(crate) mod failure;
pub(crate) mod healthy;
mod hex;
pub(crate) mod inject;
pub(crate) mod keys;
mod ledger;
mod load;
mod model_files;
mod period;
pub(crate) mod prices;
mod progress;
pub(crate) mod records;
pub(crate) mod refusals;
pub(crate) mod rerate;
pub(crate) mod schema;
pub(crate) mod serve;
mod sidecar;
pub(crate) mod simulate;
pub(crate) mod verify;
pub(crate) mod webhook;
