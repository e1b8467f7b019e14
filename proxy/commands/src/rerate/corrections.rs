//! Writes the journal of corrections.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use jiff::{Timestamp, ToSpan as _};
use taximeter_config::{Durability, OnDamage, OnUnavailable};
use taximeter_gateway::journey::identify::new_id;
use taximeter_journal::{Journal, Options};
use taximeter_ledger::{Charge, Completed, Correction, Entry, Record, RecordCost, RequestId};
use taximeter_system::clock;
use tokio::runtime::Runtime;

use crate::serve::host;

/// Corrections between two waits for the journal. It limits the queue.
const WAIT_EVERY: u64 = 256;
/// Length of a segment, in bytes.
const SEGMENT_BYTES: u64 = 64 << 20;
/// Most bytes in the queue.
const QUEUE_BYTES_MAX: usize = 64 << 20;

/// Writes the corrections of one run. No other process can write corrections meanwhile.
pub(crate) struct Corrections<'a> {
    journal: Journal,
    runtime: Runtime,
    reason: &'a str,
    made_at: Timestamp,
    written: u64,
}

impl<'a> Corrections<'a> {
    /// Opens the journal in `dir`. The directory is created if it does not exist.
    ///
    /// Errors: as [`Journal::open`].
    pub(crate) fn open(
        dir: &Path,
        resource: &BTreeMap<String, String>,
        reason: &'a str,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let options = Options {
            gateway: format!("{}/corrections", host(resource)),
            durability: Durability::Group,
            recovery: OnDamage::Strict,
            unavailable: OnUnavailable::Refuse,
            queue_bytes_max: QUEUE_BYTES_MAX,
            segment_bytes: SEGMENT_BYTES,
            now: clock::wall,
            // An error ends the command, which prints it.
            tell: Box::new(|_| {}),
        };
        // This journal has no reservations, so none can be open.
        let (journal, _) = Journal::open(dir, options, &|_| Charge::default())?;
        let runtime = runtime.context("cannot wait for the ledger")?;
        Ok(Self { journal, runtime, reason, made_at: now, written: 0 })
    }

    /// Makes all further corrections later than `newest`. Corrections of a request are in order of
    /// their times, and the clock of another machine may be ahead.
    pub(crate) fn go_on_behind(&mut self, newest: Option<Timestamp>) {
        let behind = newest.and_then(|newest| newest.checked_add(1.microsecond()).ok());
        self.made_at = self.made_at.max(behind.unwrap_or(self.made_at));
    }

    /// Writes a correction: the cost of a request becomes `after`. `completed` says what completed
    /// the request before, if anything did.
    ///
    /// Errors: the ledger cannot be written. Earlier corrections stay, and a later run continues.
    pub(crate) fn write(
        &mut self,
        record: &Record,
        completed: Option<Completed>,
        before: Option<RecordCost>,
        after: Option<RecordCost>,
    ) -> anyhow::Result<()> {
        let append = self.journal.append(&Entry::Correction(Box::new(Correction {
            id: RequestId(new_id(self.made_at)),
            corrects: record.id,
            started_at: record.started_at,
            tenant: record.tenant.clone(),
            made_at: self.made_at,
            reason: self.reason.to_owned(),
            before,
            after,
            completion: None,
            completed,
        })))?;
        self.written += 1;
        if self.written.is_multiple_of(WAIT_EVERY) {
            self.runtime.block_on(append)?;
        }
        Ok(())
    }

    /// Waits until all corrections are on the disk.
    ///
    /// Errors: they cannot be written.
    pub(crate) fn close(self) -> anyhow::Result<()> {
        Ok(self.journal.close()?)
    }
}
