//! Converts the ledger of an older version: the journals, the cursors of pushes and of a shared store,
//! then the stores.

use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use taximeter_journal::convert::{Conversion, Damage, Follow};
use taximeter_journal::{CORRECTIONS, JournalError, Loss, REQUESTS};
use taximeter_ledger::Position;

use super::Location;
use taximeter_database::database::Rebuilt;
use taximeter_database::error::StoreError;
use taximeter_postgres::Postgres;
use taximeter_sqlite::Sqlite;
use taximeter_sqlite::keeper::check_keeper;

/// Most faults of a kind that are told.
const TOLD_MAX: usize = 100;
/// Most rows of a shared store that are converted in one transaction.
const ROWS_MAX: u32 = 4096;

/// Why a ledger cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ConvertError {
    /// A journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The directory or the output cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Converts the ledger in `data_dir`, and the store that its gateway feeds, which is at `fed`. Says to
/// `out` what was done, and to `err` what is damaged. With damage it changes nothing, unless that is to
/// be left out by a `salvage`. Whether nothing is left to do. It calls `steps` for each entry, and for
/// each row of a shared store.
///
/// # Errors
/// What was converted before stays so, and the next call goes on there.
pub fn convert(
    data_dir: &Path,
    fed: &Location,
    salvage: bool,
    now: Timestamp,
    steps: &mut dyn FnMut(&'static str),
    (out, err): (&mut dyn Write, &mut dyn Write),
) -> Result<bool, ConvertError> {
    check_keeper(data_dir)?;
    let shared = Shared::open(fed)?;
    let conversion = Conversion::begin(data_dir)?;
    if !conversion.is_needed() {
        let own = convert_store(data_dir, out)?;
        let shared = shared.map_or(Ok(false), |shared| shared.convert(steps, out))?;
        if !own && !shared {
            writeln!(out, "{} needs no conversion", data_dir.display())?;
        }
        return Ok(true);
    }
    let mut follow = Cursors { data_dir, shared: shared.as_ref(), steps };
    let damage = conversion.examine(&mut follow)?;
    tell(&damage, err)?;
    if !damage.is_none() && !salvage {
        writeln!(
            err,
            "nothing was changed: restore what is damaged from a backup, or run this with --salvage \
             to leave it out"
        )?;
        return Ok(false);
    }
    let converted = conversion.run(now, &mut follow)?;
    writeln!(
        out,
        "{} segments with {} entries converted: {} bytes before, {} now",
        converted.segments, converted.entries, converted.bytes_before, converted.bytes
    )?;
    convert_store(data_dir, out)?;
    if let Some(shared) = shared {
        shared.convert(steps, out)?;
    }
    Ok(true)
}

/// Converts the store in `data_dir`, if it is old. Whether it was. What it lacks it gets when it is fed.
fn convert_store(data_dir: &Path, out: &mut dyn Write) -> Result<bool, ConvertError> {
    let Some(moved) = Sqlite::convert(data_dir)? else { return Ok(false) };
    tell_moved("the store", moved, out)?;
    Ok(true)
}

fn tell_moved(store: &str, moved: Rebuilt, out: &mut dyn Write) -> io::Result<()> {
    let Rebuilt { kept_records, kept_corrections, .. } = moved;
    writeln!(out, "{store} is converted: {kept_records} records and {kept_corrections} corrections")
}

/// Says what is wrong.
fn tell(damage: &Damage, err: &mut dyn Write) -> io::Result<()> {
    let Damage { losses, altered, unreadable } = damage;
    for Loss { path, fault, first_seq, entries, torn_bytes, .. } in losses.iter().take(TOLD_MAX) {
        write!(err, "{}: {fault}; ", path.display())?;
        match (torn_bytes, entries) {
            (Some(bytes), 0) => {
                writeln!(err, "{bytes} bytes that were not known to be on the disk are left out")
            }
            (_, 0) => writeln!(err, "no entry is lost"),
            (_, 1) => writeln!(err, "entry {first_seq} cannot be read"),
            (_, entries) => {
                writeln!(err, "entries {first_seq} to {} cannot be read", first_seq + entries - 1)
            }
        }?;
    }
    for altered in altered.iter().take(TOLD_MAX) {
        writeln!(
            err,
            "{} differs from what was written: its SHA-256 up to entry {} is {}, and {} says {}",
            altered.path.display(),
            altered.last,
            altered.digest,
            altered.behind.display(),
            altered.said
        )?;
    }
    for (path, fault) in unreadable.iter().take(TOLD_MAX) {
        writeln!(err, "{}: {fault}; it is kept as it is", path.display())?;
    }
    let counts = [losses.len(), altered.len(), unreadable.len()];
    let more: usize = counts.into_iter().map(|count| count.saturating_sub(TOLD_MAX)).sum();
    if more > 0 {
        writeln!(err, "and {more} more")?;
    }
    Ok(())
}

/// A store that several gateways can share, in any format.
struct Shared {
    database: Postgres,
    name: String,
    /// The last entries that it has of the journals of requests and of corrections.
    ends: [Option<Position>; 2],
}

impl Shared {
    /// Opens the store that is at `fed`. `None` if that is no shared one.
    fn open(fed: &Location) -> Result<Option<Self>, StoreError> {
        let Location::Postgres { url, gateway } = fed else { return Ok(None) };
        let database = Postgres::connect(url, gateway)?;
        let ends = [database.fed(REQUESTS)?, database.fed(CORRECTIONS)?];
        Ok(Some(Self { database, name: fed.to_string(), ends }))
    }

    /// Converts the rows of all gateways. Whether there was anything to do.
    fn convert(
        &self,
        steps: &mut dyn FnMut(&'static str),
        out: &mut dyn Write,
    ) -> Result<bool, ConvertError> {
        let mut moved: Option<Rebuilt> = None;
        while let Some(some) = self.database.convert_some(ROWS_MAX)? {
            let moved = moved.get_or_insert_default();
            moved.kept_records += some.kept_records;
            moved.kept_corrections += some.kept_corrections;
            let rows = some.kept_records + some.kept_corrections;
            (0..rows).for_each(|_| steps("rows of the store converted"));
        }
        let Some(moved) = moved else { return Ok(false) };
        tell_moved(&format!("the store {}", self.name), moved, out)?;
        Ok(true)
    }
}

/// The cursors of pushes in the data directory, and those of a shared store.
struct Cursors<'a> {
    data_dir: &'a Path,
    shared: Option<&'a Shared>,
    steps: &'a mut dyn FnMut(&'static str),
}

impl Follow for Cursors<'_> {
    fn watched(&self, journal: &str) -> Vec<u64> {
        let (requests, corrections) = taximeter_journal::pushed(self.data_dir);
        let [stored, stored_corrections] = self.shared.map_or([None; 2], |shared| shared.ends);
        let (sent, stored) = match journal {
            REQUESTS => (requests, stored),
            CORRECTIONS => (corrections, stored_corrections),
            _ => return Vec::new(),
        };
        std::iter::once(sent).chain(stored.map(|end| end.seq)).collect()
    }

    fn moved(&self, journal: &str, from: Position, to: Position) -> io::Result<()> {
        taximeter_journal::follow_push(self.data_dir, journal, from, to)?;
        let moved = self.shared.map(|shared| shared.database.moved(journal, from, to));
        moved.unwrap_or(Ok(())).map_err(io::Error::other)
    }

    fn entry(&mut self, what: &'static str) {
        (self.steps)(what);
    }
}
