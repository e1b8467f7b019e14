//! Exports: writes the store's data in a format of billing systems, to a file, a folder or an
//! object store.

mod beside;
mod connector;
mod content;
mod decoded;
mod destination;
mod job;
mod objects;
mod parquet;
mod partitions;
mod run;
mod stream;

pub use content::Content;
pub(crate) use destination::hex;
pub use destination::{Destination, DestinationFault};
pub use job::{ExportFault, Job};
pub use objects::{ObjectFault, Objects};
pub use run::export;
pub use stream::stream;
