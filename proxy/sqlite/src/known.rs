//! What a connection has met: numbers of rows that others name, and the last sums. It need not ask
//! again until another connection changes the database.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use jiff::Timestamp;
use rusqlite::Connection;
use taximeter_billing::{HourKey, LineKey};
use taximeter_database::forms::Form;
use taximeter_database::granularity::Numbered;

use super::days::SessionCovers;
use super::gone::Gone;
use super::hour_files::Covers;
use super::ledgers::End;

/// Most of each kind that are kept for the next batch.
const KEPT_MAX: usize = 1024;

/// An hour of a combination: its first instant, in microseconds since 1970, and the number of the
/// combination.
type HourRow = (i64, i64);

/// The rows of a form.
#[derive(Debug, Default)]
pub(super) struct FormRows {
    /// Its own number.
    pub(super) number: Option<i64>,
    /// The number of the combination, and those of the lines, of the sums of its requests.
    pub(super) sums: Option<(i64, Vec<i64>)>,
}

/// What a connection has met. Whoever undoes a change must forget it.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Of the database when this was met.
    version: Option<i64>,
    /// Where requests are added.
    pub(super) end: Option<End>,
    /// By the place of the form in memory, which stays there.
    forms: HashMap<usize, (Arc<Form>, FormRows), RandomState>,
    /// Combinations, whose hour means nothing.
    combinations: HashMap<HourKey, i64, RandomState>,
    pub(super) lines: HashMap<LineKey, i64, RandomState>,
    /// The last part of hours, and its number.
    pub(super) parts: HashMap<HourRow, (i64, Numbered), RandomState>,
    /// What has left the tables for good.
    left: Option<Left>,
}

/// What has left the tables, so that it is not added again.
#[derive(Debug, Clone)]
pub(super) struct Left {
    /// The hours that files have.
    pub(super) covers: Arc<Covers>,
    /// The requests whose sessions files have.
    pub(super) sessions: Arc<SessionCovers>,
    /// The requests whose details are gone.
    pub(super) gone: Arc<Gone>,
}

impl Known {
    /// Forgets what may have changed, and what there is too much of. Needs an open transaction.
    pub(super) fn check(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        // It is another one after each commit of another connection.
        let mut version = connection.prepare_cached("PRAGMA data_version")?;
        let version = Some(version.query_row([], |row| row.get(0))?);
        if self.version != version {
            *self = Self { version, ..Self::default() };
        }
        forget_many(&mut self.forms);
        forget_many(&mut self.combinations);
        forget_many(&mut self.lines);
        forget_many(&mut self.parts);
        Ok(())
    }

    /// What has left the tables. Needs an open transaction.
    pub(super) fn left(&mut self, connection: &Connection) -> rusqlite::Result<Left> {
        if let Some(left) = &self.left {
            return Ok(left.clone());
        }
        let covers = Arc::new(Covers::read(connection)?);
        let sessions = Arc::new(SessionCovers::read(connection)?);
        let left = Left { covers, sessions, gone: Arc::new(Gone::read(connection)?) };
        Ok(self.left.insert(left).clone())
    }

    /// What is known of a form.
    pub(super) fn form(&mut self, form: &Arc<Form>) -> &mut FormRows {
        let known = self.forms.entry(Arc::as_ptr(form).addr());
        &mut known.or_insert_with(|| (Arc::clone(form), FormRows::default())).1
    }

    /// The number of the combination of `key`. `ask` finds or gives one that is not known.
    pub(super) fn combination(
        &mut self,
        mut key: HourKey,
        ask: impl FnOnce(&HourKey) -> rusqlite::Result<i64>,
    ) -> rusqlite::Result<i64> {
        key.hour = Timestamp::UNIX_EPOCH;
        if let Some(number) = self.combinations.get(&key) {
            return Ok(*number);
        }
        let number = ask(&key)?;
        self.combinations.insert(key, number);
        Ok(number)
    }
}

fn forget_many<K, V>(known: &mut HashMap<K, V, RandomState>) {
    if known.len() > KEPT_MAX {
        known.clear();
    }
}
