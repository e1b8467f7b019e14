//! From the journal into the store.

use rusqlite::{Connection, OptionalExtension, Statement, TransactionBehavior, params};
use taximeter_billing::BillRow;
use taximeter_ledger::{Entry, Record, RequestId};
use taximeter_pricing::Source;
use uuid::Uuid;

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
        if let Some((seq, id)) = self.cursor()? {
            let mut entries = read(seq).map_err(StoreError::Journal)?;
            let last = entries.next().transpose().map_err(StoreError::Journal)?;
            if last.is_some_and(|(at, entry)| (at, request(&entry)) == (seq, id)) {
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
        entries: impl Iterator<Item = Result<(u64, Entry), ReadError>>,
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

    /// The last entry of the journal that is here, and its request.
    fn cursor(&self) -> Result<Option<(u64, RequestId)>, StoreError> {
        let cursor = self.connection.query_row(schema::CURSOR, [], |row| {
            let (seq, id): (i64, [u8; 16]) = (row.get(0)?, row.get(1)?);
            Ok((seq.cast_unsigned(), RequestId(Uuid::from_bytes(id))))
        });
        cursor.optional().map_err(|error| self.fault(error))
    }
}

/// Feeds all of `entries` in one transaction. The inner error is the journal's: what came before it
/// is kept.
fn feed_batch(
    connection: &mut Connection,
    entries: impl Iterator<Item = Result<(u64, Entry), ReadError>>,
    fed: &mut Fed,
) -> rusqlite::Result<Result<(), ReadError>> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut insert = Insert::new(&transaction)?;
    let mut last = None;
    let mut outcome = Ok(());
    for entry in entries {
        match entry {
            Ok((seq, entry)) => {
                fed.entries += 1;
                last = Some((seq, request(&entry)));
                if let Entry::Post(record) = entry {
                    fed.records += u64::from(insert.record(*record, seq)?);
                }
            }
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    drop(insert);
    if let Some((seq, id)) = last {
        let id = id.0.as_bytes();
        transaction.execute(schema::SET_CURSOR, params![seq.cast_signed(), id])?;
    }
    transaction.commit()?;
    Ok(outcome)
}

/// The prepared statements of one transaction.
struct Insert<'c> {
    requests: Statement<'c>,
    records: Statement<'c>,
    /// Number of the last record.
    newest: i64,
}

impl<'c> Insert<'c> {
    fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            requests: connection.prepare(schema::ADD_REQUEST)?,
            records: connection.prepare(schema::ADD_RECORD)?,
            newest: connection.query_row(schema::NEWEST, [], |row| row.get(0))?,
        })
    }

    /// Whether the record was new.
    fn record(&mut self, mut record: Record, seq: u64) -> rusqlite::Result<bool> {
        record.seq = seq;
        let number = self.newest + 1;
        if !self.request(&record, number)? {
            return Ok(false);
        }
        self.records.execute(params![number, json(&record)?])?;
        self.newest = number;
        Ok(true)
    }

    fn request(&mut self, record: &Record, number: i64) -> rusqlite::Result<bool> {
        let row = BillRow::from(record);
        let labels = (!row.labels.is_empty()).then(|| json(row.labels)).transpose()?;
        let added = self.requests.execute(params![
            number,
            row.started_at.as_microsecond(),
            record.id.0.as_bytes(),
            row.tenant,
            row.model,
            row.provider,
            row.upstream,
            row.operation,
            row.route,
            row.key_id,
            labels,
            source_word(row.source),
            row.input_tokens.map(u64::cast_signed),
            row.cache_read_input_tokens.map(u64::cast_signed),
            row.output_tokens.map(u64::cast_signed),
            row.reasoning_output_tokens.map(u64::cast_signed),
            row.cost.map(|(currency, _)| currency),
            row.cost.map(|(_, amount)| amount.to_string()),
        ])?;
        Ok(added > 0)
    }
}

const fn request(entry: &Entry) -> RequestId {
    match entry {
        Entry::Reserve(reserve) => reserve.id,
        Entry::Post(record) => record.id,
        Entry::Void(void) => void.id,
    }
}

const fn source_word(source: Source) -> &'static str {
    match source {
        Source::Reported => "reported",
        Source::Counted => "counted",
        Source::Unknown => "unknown",
    }
}

fn json(value: &impl serde::Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}
