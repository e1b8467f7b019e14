//! The journal of corrections, open for writing.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use jiff::{Timestamp, ToSpan as _};
use taximeter_config::{Durability, OnDamage, OnUnavailable};
use taximeter_gateway::journey::identify::new_id;
use taximeter_journal::{Journal, Options};
use taximeter_ledger::{Correction, Entry, Record, RecordCost, RequestId};
use taximeter_system::clock;
use tokio::runtime::Runtime;

use crate::commands::serve::host;

/// Corrections between two waits for the journal: bounds what waits in its queue.
const WAIT_EVERY: u64 = 256;
/// A segment that is this long is followed by another one, in bytes.
const SEGMENT_BYTES: u64 = 64 << 20;
/// Most bytes that wait there.
const QUEUE_BYTES_MAX: usize = 64 << 20;

/// Writes corrections of one run. Another process that does waits outside.
pub(in crate::commands) struct Corrections<'a> {
    journal: Journal,
    runtime: Runtime,
    reason: &'a str,
    made_at: Timestamp,
    written: u64,
}

impl<'a> Corrections<'a> {
    /// Opens the journal in `dir`, which is made if needed.
    ///
    /// Errors: as [`Journal::open`].
    pub(in crate::commands) fn open(
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
            // What fails here ends the command, which says so.
            tell: Box::new(|_| {}),
        };
        // Nothing is ever reserved here that could be open.
        let (journal, _) = Journal::open(dir, options, &|_| None)?;
        let runtime = runtime.context("cannot wait for the ledger")?;
        Ok(Self { journal, runtime, reason, made_at: now, written: 0 })
    }

    /// What is written from now on was made after `newest`: of one request, the order of corrections
    /// is that of their times, and another machine's clock may be ahead of ours.
    pub(in crate::commands) fn go_on_behind(&mut self, newest: Option<Timestamp>) {
        let behind = newest.and_then(|newest| newest.checked_add(1.microsecond()).ok());
        self.made_at = self.made_at.max(behind.unwrap_or(self.made_at));
    }

    /// Writes that a request owes `after` from now on.
    ///
    /// Errors: the ledger cannot be written; what was written before stays, and a later run goes on
    /// from there.
    pub(in crate::commands) fn write(
        &mut self,
        record: &Record,
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
        })))?;
        self.written += 1;
        if self.written.is_multiple_of(WAIT_EVERY) {
            self.runtime.block_on(append)?;
        }
        Ok(())
    }

    /// All of them are on the disk.
    ///
    /// Errors: they are not.
    pub(in crate::commands) fn close(self) -> anyhow::Result<()> {
        Ok(self.journal.close()?)
    }
}
