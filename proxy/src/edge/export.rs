//! Exports: what the store has, in a format that billing systems take, to where it is wanted.

mod connector;
mod objects;
mod partitions;
mod place;
mod run;

pub(crate) use objects::{ObjectFault, Objects};
pub(crate) use place::{Place, PlaceFault};
pub(crate) use run::{Content, ExportFault, Job, export, stream};
