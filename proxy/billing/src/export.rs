//! Records and hours → the formats that billing systems take.
//!
//! Each writer takes what it is given in the order in which it is given, and writes the same bytes
//! for the same input: no clock, no random name, nothing of the machine. Money is exact; where a
//! format has a fixed number of places, it is rounded there and only there, half to even.

mod cloudevents;
mod columns;
mod error;
mod events;
mod focus;
mod format;
mod item;
mod manifest;
mod partition;
mod records;

pub use cloudevents::{CLOUDEVENTS_BATCH_TYPE, CloudEvent};
pub use error::ExportError;
pub use focus::{Charge, FocusVersion, FocusWriter, charges};
pub use format::{BATCH_EVENTS_MAX, Format, RecordWriter};
pub use item::Item;
pub use manifest::{CurrencySum, Entries, Manifest, ManifestFile, SequenceRange, Tally};
pub use partition::{Layout, file_name, partition};
pub use records::{RecordRow, RecordRows, RecordsParquet};

#[cfg(test)]
mod tests;
