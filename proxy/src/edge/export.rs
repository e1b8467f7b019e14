//! Exports: what the store has, in a format that billing systems take, to where it is wanted.

mod beside;
mod connector;
mod content;
mod job;
mod objects;
mod parquet;
mod partitions;
mod place;
mod run;
mod stream;

pub(crate) use content::Content;
pub(crate) use job::{ExportFault, Job};
pub(crate) use objects::{ObjectFault, Objects};
pub(crate) use place::{Place, PlaceFault};
pub(crate) use run::export;
pub(crate) use stream::stream;
