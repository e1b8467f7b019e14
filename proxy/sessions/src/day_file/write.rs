//! Writes a file.

use std::collections::BTreeMap;
use std::io::Write;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use taximeter_columnar::{KeptWriter, Layout, ROWS_MAX, Rows, Sealed, WriteError, hex};
use taximeter_ledger::LedgerId;

use super::{FIELDS, FOOTER_KEY, FORMAT};
use crate::day_sum::DaySum;

/// What a file says about its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionsFooter {
    /// The format of the file.
    pub format: u32,
    /// The gateway whose store the file belongs to.
    pub gateway: String,
    /// The UTC day on which the requests were admitted.
    pub day: Date,
    /// Number of sessions.
    pub sessions: u64,
    /// Number of their requests.
    pub requests: u64,
    /// SHA-256 of the rows in order: tenant, name and sum, each with its length in 4 bytes, little-endian,
    /// before it.
    pub sha256: String,
    /// The last entry of a request of that day, by ledger. Entries are fed in order, so the file has all
    /// requests of the day up to these.
    pub last_entries: BTreeMap<LedgerId, u64>,
}

/// A file that is written whole.
#[derive(Debug)]
pub struct SealedSessions<W> {
    /// The file.
    pub file: Sealed<W>,
    /// What the file says about its rows.
    pub footer: SessionsFooter,
}

/// Writes the sums of sessions, in the order of tenant and name.
pub struct SessionsWriter<W: Write + Send> {
    writer: KeptWriter<W>,
    rows: Rows,
    footer: SessionsFooter,
    seen: Seen,
}

/// What the rows of a file add up to.
#[derive(Default)]
pub(super) struct Seen {
    last: Option<(String, String)>,
    sessions: u64,
    requests: u64,
    content: Sha256,
}

impl Seen {
    /// Adds the next row. Whether it is behind the one before: otherwise it is not added.
    pub(super) fn add(&mut self, tenant: &str, session: &str, sum: &DaySum) -> bool {
        let key = (tenant, session);
        if self.last.as_ref().is_some_and(|(a, b)| (a.as_str(), b.as_str()) >= key) {
            return false;
        }
        for bytes in [tenant.as_bytes(), session.as_bytes(), &sum.encode()] {
            self.content.update(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
            self.content.update(bytes);
        }
        self.sessions += 1;
        self.requests += sum.sums.requests;
        self.last = Some((tenant.to_owned(), session.to_owned()));
        true
    }

    /// What the footer of a file with these rows says.
    pub(super) fn footer(self, footer: SessionsFooter) -> SessionsFooter {
        let Self { sessions, requests, content, .. } = self;
        SessionsFooter { sessions, requests, sha256: hex(&content.finalize()), ..footer }
    }
}

impl<W: Write + Send> SessionsWriter<W> {
    /// A file without rows. `last_entries` says which requests will be in it.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn new(
        out: W,
        gateway: &str,
        day: Date,
        last_entries: BTreeMap<LedgerId, u64>,
    ) -> Result<Self, WriteError> {
        let footer = SessionsFooter {
            format: FORMAT,
            gateway: gateway.to_owned(),
            day,
            sessions: 0,
            requests: 0,
            sha256: String::new(),
            last_entries,
        };
        let writer = KeptWriter::new(out, "session", &Layout::SESSIONS, FIELDS.into_iter())?;
        let rows = Rows::new(FIELDS.into_iter());
        Ok(Self { writer, rows, footer, seen: Seen::default() })
    }

    /// Adds a session.
    ///
    /// # Errors
    /// [`WriteError::Misplaced`] if it is not behind the last one. The output cannot be written.
    pub fn add(&mut self, tenant: &str, session: &str, sum: &DaySum) -> Result<(), WriteError> {
        if !self.seen.add(tenant, session, sum) {
            let what = format!("the session {session} of {tenant} is not behind the one before it");
            return Err(WriteError::Misplaced { seq: 0, what });
        }
        let mut row = self.rows.row();
        row.text(tenant.as_bytes());
        row.text(session.as_bytes());
        row.time(sum.first.0);
        row.text(&sum.encode());
        if self.rows.len() >= ROWS_MAX {
            self.writer.add(&mut self.rows)?;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn finish(mut self) -> Result<SealedSessions<W>, WriteError> {
        self.writer.add(&mut self.rows)?;
        let footer = self.seen.footer(self.footer);
        let file = self.writer.finish(FOOTER_KEY, serde_json::to_string(&footer)?)?;
        Ok(SealedSessions { file, footer })
    }
}
