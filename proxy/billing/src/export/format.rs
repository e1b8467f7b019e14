//! The formats of records and events.

use std::io::Write;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use taximeter_ledger::{Correction, Record};

use super::cloudevents::CloudEvent;
use super::error::ExportError;
use super::events::{LagoEvent, Metered, OrbEvent, StripeEvent, meter_quantities};
use super::item::BillItem;
use super::manifest::ExportTotals;
use super::window::{OutsideWindow, Window};
use crate::billed_request::BilledRequest;

/// Events of one batch. Stripe and Lago take this number in one call, and it is small enough for
/// all others.
pub const BATCH_EVENTS_MAX: usize = 100;

/// The format of an export of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One record per line, as a JSON object.
    Ndjson,
    /// CloudEvents 1.0: one event for each request, one batch per line.
    CloudEvents,
    /// Stripe: one event for each meter of a request, one body of its meter event stream per line.
    Stripe,
    /// Lago: one event for each meter of a request, one body of its batch call per line.
    Lago,
    /// Orb: one event for each request, one body of its ingest call per line.
    Orb,
}

impl Format {
    /// The name in arguments and manifests.
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

    /// The times that the receiver of this format takes. `age_max` is the limit of this account, in
    /// place of the receiver's own or its default.
    #[must_use]
    pub fn window(self, age_max: Option<SignedDuration>) -> Window {
        let (receiver, age, ahead_max) = match self {
            Self::Stripe => ("Stripe", Some(35 * 24), Some(SignedDuration::from_mins(5))),
            // The default of its accounts.
            Self::Orb => ("Orb", Some(12), None),
            Self::Lago => ("Lago", None, None),
            Self::CloudEvents | Self::Ndjson => ("the receiver", None, None),
        };
        let age_max = age_max.or_else(|| age.map(SignedDuration::from_hours));
        Window { receiver, age_max, ahead_max }
    }

    /// Whether the format has events, and so also events of the items of a bill besides requests.
    /// Otherwise it has records only.
    #[must_use]
    pub const fn has_items(self) -> bool {
        match self {
            Self::CloudEvents | Self::Stripe | Self::Lago | Self::Orb => true,
            Self::Ndjson => false,
        }
    }
}

/// Writes records in one of the formats.
pub struct RecordWriter<W: Write + Send>(RecordOutput<W>);

enum RecordOutput<W: Write + Send> {
    Lines(W),
    Batches(Box<Batches<W>>),
}

impl<W: Write + Send> RecordWriter<W> {
    /// A writer that has written nothing yet. `window` is that of the receiver, and `now` the time
    /// of the export, which changes no event.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(
        format: Format,
        window: Window,
        now: Timestamp,
        out: W,
    ) -> Result<Self, ExportError> {
        Ok(Self(match format {
            Format::Ndjson => RecordOutput::Lines(out),
            Format::CloudEvents | Format::Stripe | Format::Lago | Format::Orb => {
                let outside = OutsideWindow::new(window, now);
                let batch = Vec::new();
                let batches = Batches { out, format, window, outside, batch, events: 0 };
                RecordOutput::Batches(Box::new(batches))
            }
        }))
    }

    /// Writes one request. Returns the number of its lines or events.
    ///
    /// # Errors
    /// The output cannot be written, or [`ExportError::TooLarge`].
    pub fn add(&mut self, record: &Record) -> Result<u64, ExportError> {
        match &mut self.0 {
            RecordOutput::Lines(out) => {
                serde_json::to_writer(&mut *out, record)?;
                out.write_all(b"\n")?;
            }
            RecordOutput::Batches(batches) => return batches.add(record),
        }
        Ok(1)
    }

    /// Writes an item. Returns the number of its events, which is 0 in formats of records.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn add_item(&mut self, item: &BillItem<'_>) -> Result<u64, ExportError> {
        match &mut self.0 {
            RecordOutput::Lines(_) => Ok(0),
            RecordOutput::Batches(batches) => batches.add_item(item),
        }
    }

    /// Writes a correction of the request `row`, and adds it to the totals. If it completes the
    /// request, formats with an event for each meter get those of the request.
    ///
    /// # Errors
    /// The output cannot be written, or [`ExportError::TooLarge`].
    pub fn add_correction(
        &mut self,
        row: &BilledRequest<'_>,
        correction: &Correction,
        totals: &mut ExportTotals,
    ) -> Result<(), ExportError> {
        totals.add_correction(correction);
        let mut events = self.add_metered(row, correction)?;
        for item in BillItem::of_correction(correction)? {
            let item = &self.in_window(item);
            let rows = match &mut events {
                Some(events) => std::mem::take(events),
                None => self.add_item(item)?,
            };
            totals.add_item(item, rows)?;
        }
        Ok(())
    }

    fn in_window<'a>(&self, item: BillItem<'a>) -> BillItem<'a> {
        match &self.0 {
            RecordOutput::Lines(_) => item,
            RecordOutput::Batches(batches) => item.within(batches.window),
        }
    }

    /// The events so far that the receiver does not take. `None` if there are none.
    #[must_use]
    pub fn outside_window(&self) -> Option<OutsideWindow> {
        let RecordOutput::Batches(batches) = &self.0 else { return None };
        (!batches.outside.is_empty()).then(|| batches.outside.clone())
    }

    /// The number of events that were written for the meters of a request. `None` where one event
    /// says all.
    fn add_metered(
        &mut self,
        row: &BilledRequest<'_>,
        correction: &Correction,
    ) -> Result<Option<u64>, ExportError> {
        let RecordOutput::Batches(batches) = &mut self.0 else { return Ok(None) };
        let metered = Metered::of_completion(row, correction, batches.window)
            .filter(|_| matches!(batches.format, Format::Stripe | Format::Lago));
        metered.map(|metered| batches.add_metered(&metered)).transpose()
    }

    /// Writes the rest and returns the output.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(self) -> Result<W, ExportError> {
        let mut out = match self.0 {
            RecordOutput::Lines(out) => out,
            RecordOutput::Batches(mut batches) => {
                batches.end()?;
                batches.out
            }
        };
        out.flush()?;
        Ok(out)
    }
}

/// Writes events in batches, one per line.
struct Batches<W> {
    out: W,
    format: Format,
    window: Window,
    outside: OutsideWindow,
    batch: Vec<u8>,
    events: usize,
}

impl<W: Write> Batches<W> {
    fn add(&mut self, record: &Record) -> Result<u64, ExportError> {
        match self.format {
            Format::CloudEvents => self.push(record.started_at, &CloudEvent::of(record))?,
            Format::Orb => self.push(record.started_at, &OrbEvent::of(record))?,
            Format::Stripe | Format::Lago => {
                return Metered::of(record).map_or(Ok(0), |metered| self.add_metered(&metered));
            }
            Format::Ndjson => {}
        }
        Ok(1)
    }

    /// Adds an event for each meter.
    fn add_metered(&mut self, metered: &Metered<'_>) -> Result<u64, ExportError> {
        let mut events = 0;
        for used in &meter_quantities(metered) {
            match self.format {
                Format::Stripe => self.push(metered.at, &StripeEvent::of(metered, used))?,
                _ => self.push(metered.at, &LagoEvent::of(metered, used))?,
            }
            events += 1;
        }
        Ok(events)
    }

    fn add_item(&mut self, item: &BillItem<'_>) -> Result<u64, ExportError> {
        match self.format {
            Format::CloudEvents => self.push(item.at, &CloudEvent::of_item(item))?,
            Format::Lago => self.push(item.at, &LagoEvent::of_item(item))?,
            Format::Orb => self.push(item.at, &OrbEvent::of_item(item))?,
            Format::Stripe => {
                let Some(event) = StripeEvent::of_item(item) else { return Ok(0) };
                self.push(item.at, &event)?;
            }
            Format::Ndjson => return Ok(0),
        }
        Ok(1)
    }

    fn push(&mut self, at: Timestamp, event: &impl Serialize) -> Result<(), ExportError> {
        self.outside.count(at);
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
