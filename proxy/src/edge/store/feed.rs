//! From the journal into the store.

use rusqlite::{CachedStatement, Connection, OptionalExtension, TransactionBehavior, params};
use serde_json::value::RawValue;
use taximeter_ledger::{Framed, Kind, Position};

use super::post::{Post, Text};
use super::{Entries, Fed, ReadError, ReadJournal, Store, StoreError, schema};

/// Most entries in one transaction: bounds its memory, and how long other writers wait.
const BATCH_ENTRIES_MAX: usize = 4096;

impl Store {
    /// Feeds what the journal has and the store does not yet.
    ///
    /// `open` keeps the reader for the next call, which goes on where this one ended; begin with
    /// `None`. When the journal does not go on where the store stopped (its tail was lost, or it
    /// was replaced), it is fed whole: requests that are already there stay as they are.
    /// Errors: `Journal` after feeding what came before the fault; `Damaged`, `Unavailable`.
    pub(crate) fn catch_up(
        &mut self,
        open: &mut Option<Entries>,
        read: &mut ReadJournal<'_>,
    ) -> Result<Fed, StoreError> {
        let mut entries = match open.take() {
            Some(entries) => entries,
            None => self.unread(read)?,
        };
        let fed = self.feed(&mut entries)?;
        *open = Some(entries);
        Ok(fed)
    }

    /// What the journal has behind the last entry that is here.
    fn unread(&self, read: &mut ReadJournal<'_>) -> Result<Entries, StoreError> {
        if let Some(cursor) = self.cursor()? {
            let mut entries = read(cursor.seq).map_err(StoreError::Journal)?;
            let last = entries.next().transpose().map_err(StoreError::Journal)?;
            if last.is_some_and(|last| last.position() == cursor) {
                return Ok(entries);
            }
        }
        read(0).map_err(StoreError::Journal)
    }

    /// Feeds entries that follow each other, from anywhere at or before the end of what is here.
    ///
    /// Errors: as [`Store::catch_up`].
    pub(crate) fn feed(
        &mut self,
        entries: impl Iterator<Item = Result<Framed, ReadError>>,
    ) -> Result<Fed, StoreError> {
        let mut entries = entries.peekable();
        let mut fed = Fed::default();
        while entries.peek().is_some() {
            let batch = entries.by_ref().take(BATCH_ENTRIES_MAX);
            let outcome = feed_batch(&mut self.connection, batch, &mut fed);
            outcome.map_err(|error| self.fault(error))?.map_err(StoreError::Journal)?;
        }
        Ok(fed)
    }

    /// The last entry of the journal that is here.
    fn cursor(&self) -> Result<Option<Position>, StoreError> {
        let cursor = self.connection.query_row(schema::CURSOR, [], |row| {
            let seq: i64 = row.get(0)?;
            Ok(Position { seq: seq.cast_unsigned(), chain: row.get(1)? })
        });
        cursor.optional().map_err(|error| self.fault(error))
    }
}

/// Feeds all of `entries` in one transaction. The inner error is the journal's: what came before it
/// is kept.
fn feed_batch(
    connection: &mut Connection,
    entries: impl Iterator<Item = Result<Framed, ReadError>>,
    fed: &mut Fed,
) -> rusqlite::Result<Result<(), ReadError>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut add = transaction.prepare_cached(schema::ADD)?;
    let mut last = None;
    let mut outcome = Ok(());
    for framed in entries {
        let framed = match framed {
            Ok(framed) => framed,
            Err(error) => {
                outcome = Err(error);
                break;
            }
        };
        if framed.kind == Kind::Post {
            match Post::read(&framed) {
                Ok(post) => fed.records += u64::from(add_post(&mut add, &post)?),
                Err(fault) => {
                    outcome = Err(fault.into());
                    break;
                }
            }
        }
        fed.entries += 1;
        last = Some(framed.position());
    }
    drop(add);
    if let Some(Position { seq, chain }) = last {
        let mut set = transaction.prepare_cached(schema::SET_CURSOR)?;
        set.execute(params![seq.cast_signed(), chain])?;
    }
    transaction.commit()?;
    Ok(outcome)
}

/// Whether the request was new.
fn add_post(add: &mut CachedStatement<'_>, post: &Post<'_>) -> rusqlite::Result<bool> {
    let (usage, cost) = (&post.usage, post.cost.as_ref());
    let added = add.execute(params![
        post.started_at.as_microsecond(),
        post.id.0.as_bytes(),
        post.tenant,
        post.model(),
        post.provider,
        post.upstream,
        post.operation,
        post.route,
        post.key_id.as_ref().map(Text::as_str),
        post.labels.map(RawValue::get),
        usage.source.as_str(),
        usage.input_tokens.map(u64::cast_signed),
        usage.cache_read_input_tokens.map(u64::cast_signed),
        usage.output_tokens.map(u64::cast_signed),
        usage.reasoning_output_tokens.map(u64::cast_signed),
        cost.map(|cost| &cost.currency),
        cost.map(|cost| &cost.amount),
        post.seq.cast_signed(),
        post.record,
    ])?;
    Ok(added > 0)
}
