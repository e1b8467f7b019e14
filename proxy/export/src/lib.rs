//! Writes what the store has in a format of billing systems, to a file, a folder or an object store; and
//! checks what was written.
//!
//! ```text
//! export(store, job, destination) → Manifest     whole files, the manifest last
//! stream(store, job, out)                        one file, as an answer of the admin address
//! verify_export(manifest, store, …)              are the files unchanged, do they add up to the ledger
//! ```
//!
//! Bills and FOCUS are made from hours; single requests leave as records and events. `billing::export`
//! makes the rows, this crate puts the files where they belong. A file appears under its name only when
//! it is whole. All questions of one export see the same moment, so that a manifest and its files agree.
//! One thread reads the store, several make rows, and another one encodes them (`parquet.rs`).
//!
//! It knows the public interface of the store alone, and no client, engine or socket but those of object
//! stores.

mod beside;
mod connector;
mod content;
mod decoded;
mod destination;
pub mod format;
mod job;
mod objects;
mod parquet;
mod partitions;
mod run;
mod stream;
mod verify;

pub use content::Content;
pub use destination::{Destination, DestinationFault};
pub use job::{ExportFault, Job};
pub use objects::{ObjectFault, Objects};
pub use run::export;
pub use stream::stream;
pub use verify::verify_export;
