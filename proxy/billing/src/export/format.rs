//! The formats of single records, by name.

use std::io::Write;

use serde::Serialize;
use taximeter_ledger::Record;

use super::cloudevents::CloudEvent;
use super::error::ExportError;
use super::events::{LagoEvent, OrbEvent, StripeEvent, uses};
use super::item::Item;

/// Events of one batch: what Stripe and Lago take in one call, and little enough for all others.
pub const BATCH_EVENTS_MAX: usize = 100;

/// How single records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    Ndjson,
    /// CloudEvents 1.0: one event a request, one batch a line.
    CloudEvents,
    /// Stripe: one event a meter of a request, one body of its meter event stream a line.
    Stripe,
    /// Lago: one event a meter of a request, one body of its batch call a line.
    Lago,
    /// Orb: one event a request, one body of its ingest call a line.
    Orb,
}

impl Format {
    /// The name, as in arguments and manifests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ndjson => "ndjson",
            Self::CloudEvents => "cloudevents",
            Self::Stripe => "stripe",
            Self::Lago => "lago",
            Self::Orb => "orb",
        }
    }

    /// Whether it has events, and so also those of what a bill has beside requests; else it has
    /// records as they were written, and nothing else.
    #[must_use]
    pub const fn has_items(self) -> bool {
        match self {
            Self::CloudEvents | Self::Stripe | Self::Lago | Self::Orb => true,
            Self::Ndjson => false,
        }
    }
}

/// Writes records in one of the formats.
pub struct RecordWriter<W: Write + Send>(Form<W>);

enum Form<W: Write + Send> {
    Lines(W),
    Batches(Batches<W>),
}

impl<W: Write + Send> RecordWriter<W> {
    /// Nothing written yet.
    ///
    /// # Errors
    /// `out`'s.
    pub fn new(format: Format, out: W) -> Result<Self, ExportError> {
        Ok(Self(match format {
            Format::Ndjson => Form::Lines(out),
            Format::CloudEvents | Format::Stripe | Format::Lago | Format::Orb => {
                Form::Batches(Batches { out, format, batch: Vec::new(), events: 0 })
            }
        }))
    }

    /// Writes one request; how many rows, lines or events that made.
    ///
    /// # Errors
    /// `out`'s; [`ExportError::TooLarge`].
    pub fn add(&mut self, record: &Record) -> Result<u64, ExportError> {
        match &mut self.0 {
            Form::Lines(out) => {
                serde_json::to_writer(&mut *out, record)?;
                out.write_all(b"\n")?;
            }
            Form::Batches(batches) => return batches.add(record),
        }
        Ok(1)
    }

    /// Writes an item; how many events that made. None in formats of records.
    ///
    /// # Errors
    /// `out`'s.
    pub fn add_item(&mut self, item: &Item<'_>) -> Result<u64, ExportError> {
        match &mut self.0 {
            Form::Lines(_) => Ok(0),
            Form::Batches(batches) => batches.add_item(item),
        }
    }

    /// Writes what is left; what was written to comes back.
    ///
    /// # Errors
    /// `out`'s.
    pub fn finish(self) -> Result<W, ExportError> {
        let mut out = match self.0 {
            Form::Lines(out) => out,
            Form::Batches(mut batches) => {
                batches.end()?;
                batches.out
            }
        };
        out.flush()?;
        Ok(out)
    }
}

/// Events, so many a line.
struct Batches<W> {
    out: W,
    format: Format,
    batch: Vec<u8>,
    events: usize,
}

impl<W: Write> Batches<W> {
    fn add(&mut self, record: &Record) -> Result<u64, ExportError> {
        match self.format {
            Format::CloudEvents => self.push(&CloudEvent::of(record))?,
            Format::Orb => self.push(&OrbEvent::of(record))?,
            Format::Stripe | Format::Lago => {
                let mut events = 0;
                for used in &uses(record) {
                    match self.format {
                        Format::Stripe => self.push(&StripeEvent::of(record, used))?,
                        _ => self.push(&LagoEvent::of(record, used))?,
                    }
                    events += 1;
                }
                return Ok(events);
            }
            Format::Ndjson => {}
        }
        Ok(1)
    }

    fn add_item(&mut self, item: &Item<'_>) -> Result<u64, ExportError> {
        match self.format {
            Format::CloudEvents => self.push(&CloudEvent::of_item(item))?,
            Format::Lago => self.push(&LagoEvent::of_item(item))?,
            Format::Orb => self.push(&OrbEvent::of_item(item))?,
            Format::Stripe => {
                let Some(event) = StripeEvent::of_item(item) else { return Ok(0) };
                self.push(&event)?;
            }
            Format::Ndjson => return Ok(0),
        }
        Ok(1)
    }

    fn push(&mut self, event: &impl Serialize) -> Result<(), ExportError> {
        let before: &[u8] = match (self.events, self.format) {
            (0, Format::CloudEvents) => b"[",
            (0, _) => b"{\"events\":[",
            _ => b",",
        };
        self.batch.extend_from_slice(before);
        serde_json::to_writer(&mut self.batch, event)?;
        self.events += 1;
        if self.events == BATCH_EVENTS_MAX { self.end() } else { Ok(()) }
    }

    fn end(&mut self) -> Result<(), ExportError> {
        if self.events > 0 {
            let after: &[u8] = if self.format == Format::CloudEvents { b"]\n" } else { b"]}\n" };
            self.out.write_all(&self.batch)?;
            self.out.write_all(after)?;
        }
        self.batch.clear();
        self.events = 0;
        Ok(())
    }
}
