//! Writes records and hours in the formats of billing systems.
//!
//! Each writer keeps the order of its input, and writes the same bytes for the same input: no
//! clock, no random name, nothing from the machine. Money is exact. If a format has a fixed number
//! of decimal places, the writer rounds to them, half to even. Nothing else rounds.

mod cloudevents;
mod error;
mod events;
mod focus;
mod format;
mod item;
mod manifest;
mod partition;
mod records;
mod window;

pub use cloudevents::{CLOUDEVENTS_BATCH_TYPE, CloudEvent};
pub use error::ExportError;
pub use focus::{Charge, FocusVersion, FocusWriter, charges};
pub use format::{BATCH_EVENTS_MAX, Format, RecordWriter};
pub use item::BillItem;
pub use manifest::{CurrencySum, Entries, ExportTotals, Manifest, ManifestFile, SequenceRange};
pub use partition::{Layout, file_name, partition};
pub use records::{RecordRows, RecordsParquet};
pub use window::{EventSpan, OutsideWindow, Window};

#[cfg(test)]
mod tests;
