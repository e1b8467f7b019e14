//! Reads a file.

use std::collections::VecDeque;
use std::ops::Range;

use taximeter_columnar::{
    Cursor, FileKind, Finding, KeptFile, Part, ReadAt, ReadError, RowFilter, batches,
};

use super::write::{Seen, SessionsFooter};
use super::{FIELDS, FOOTER_KEY, FORMAT, SESSION};
use crate::day_sum::DaySum;

/// A file of sessions, open for reading.
pub struct SessionsFile<R> {
    kept: KeptFile<R>,
    footer: SessionsFooter,
}

/// What a session adds up to on the day of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The tenant that pays.
    pub tenant: String,
    /// The name of the session.
    pub session: String,
    /// The sum.
    pub sum: DaySum,
}

/// Rows of a file, in its order.
pub struct SessionRows<R> {
    file: SessionsFile<R>,
    filter: RowFilter,
    /// Only those of this name, if set.
    session: Option<String>,
    group: usize,
    batches: VecDeque<Range<usize>>,
    cursors: Vec<Cursor>,
    /// Rows that are read and not given out yet.
    left: usize,
}

impl<R: ReadAt + 'static> SessionsFile<R> {
    /// Opens a file.
    ///
    /// # Errors
    /// The file cannot be read. Its footer is damaged. Its format is another one.
    pub fn open(reader: R) -> Result<Self, ReadError> {
        let kind = FileKind {
            key: FOOTER_KEY,
            format: FORMAT,
            columns: FIELDS.map(|field| field.name).to_vec(),
            selected: ["tenant", "started_at"],
        };
        let (kept, footer) =
            KeptFile::open(reader, &kind, |footer: &SessionsFooter| footer.sessions)?;
        Ok(Self { kept, footer })
    }

    /// What the file says about its rows.
    #[must_use]
    pub const fn footer(&self) -> &SessionsFooter {
        &self.footer
    }

    /// Length of the file in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.kept.bytes_of_file()
    }

    /// The sessions of one tenant or of all, of one name or of all, in the order of tenant and name.
    #[must_use]
    pub fn rows(self, tenant: Option<&str>, session: Option<&str>) -> SessionRows<R> {
        let filter = RowFilter { tenant: tenant.map(str::to_owned), ..RowFilter::default() };
        SessionRows {
            file: self,
            filter,
            session: session.map(str::to_owned),
            group: 0,
            batches: VecDeque::new(),
            cursors: Vec::new(),
            left: 0,
        }
    }
}

impl<R: ReadAt + 'static> SessionRows<R> {
    /// The next row. `None` at the end.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn next_row(&mut self) -> Result<Option<SessionRow>, ReadError> {
        loop {
            if let Some(left) = self.left.checked_sub(1) {
                self.left = left;
                let row = self.take_row()?;
                if self.session.as_ref().is_none_or(|session| *session == row.session) {
                    return Ok(Some(row));
                }
            } else if let Some(batch) = self.batches.pop_front() {
                for cursor in &mut self.cursors {
                    cursor.read(batch.start, batch.len())?;
                }
                self.left = batch.len();
            } else if self.group < self.file.kept.groups() {
                self.enter_group()?;
            } else {
                return Ok(None);
            }
        }
    }

    fn enter_group(&mut self) -> Result<(), ReadError> {
        let (kept, group) = (&self.file.kept, self.group);
        self.group += 1;
        let mut rows = kept.matching(group, &self.filter)?;
        if let Some(session) = &self.session {
            rows = kept.may_have(group, &rows, SESSION, session.as_bytes())?;
        }
        let cursors = (0..FIELDS.len()).map(|column| kept.cursor(group, column));
        self.cursors = cursors.collect::<Result<_, _>>()?;
        self.batches = batches(&rows).collect();
        Ok(())
    }

    fn take_row(&mut self) -> Result<SessionRow, ReadError> {
        let part = Part::Group(self.group.saturating_sub(1));
        let damaged = || ReadError::Damaged { part, what: "a row is no session".to_owned() };
        let mut cursors = self.cursors.iter_mut();
        let mut next = || cursors.next().and_then(Cursor::next_value);
        let tenant = next().and_then(|it| it.owned().ok()).ok_or_else(damaged)?;
        let session = next().and_then(|it| it.owned().ok()).ok_or_else(damaged)?;
        next();
        let sum = next().and_then(|it| DaySum::decode(it.bytes().ok()?).ok());
        Ok(SessionRow { tenant, session, sum: sum.ok_or_else(damaged)? })
    }
}

/// Reads all of a file and compares it with its footer. What is wrong with it.
///
/// # Errors
/// The file cannot be read. Damage is no error but a finding.
pub fn check_sessions<R: ReadAt + 'static>(reader: R) -> Result<Vec<Finding>, ReadError> {
    let mut findings = Vec::new();
    let note = |error| match error {
        ReadError::Damaged { part, what } => Ok(Finding { part, what }),
        ReadError::Format { .. } => Ok(Finding { part: Part::Footer, what: error.to_string() }),
        error => Err(error),
    };
    let file = match SessionsFile::open(reader) {
        Ok(file) => file,
        Err(error) => return Ok(vec![note(error)?]),
    };
    file.kept.check_groups(&mut |part, what| findings.push(Finding { part, what }))?;
    if !findings.is_empty() {
        return Ok(findings);
    }
    let (footer, mut seen, mut is_sorted) = (file.footer.clone(), Seen::default(), true);
    let mut rows = file.rows(None, None);
    loop {
        match rows.next_row() {
            Ok(None) => break,
            Ok(Some(SessionRow { tenant, session, sum })) => {
                is_sorted &= seen.add(&tenant, &session, &sum);
            }
            Err(error) => return Ok(vec![note(error)?]),
        }
    }
    if !is_sorted || seen.footer(footer.clone()) != footer {
        let what = "its rows are not those of its digest and its sums".to_owned();
        findings.push(Finding { part: Part::Footer, what });
    }
    Ok(findings)
}
