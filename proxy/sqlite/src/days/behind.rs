//! Requests and corrections in the order of their entries, from the tables and from the files.
//!
//! No index is in this order. So the places of many are selected at once, by their numbers alone, and
//! payloads are read of those that are asked for.

use std::collections::BTreeMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use taximeter_columnar::{LedgerRange, RowAt};
use taximeter_database::behind::{Behind, EntryPage, Lacked, Stored, StoredEntry, complete};
use taximeter_journal::CORRECTIONS;
use taximeter_ledger::{Correction, LedgerId};

use super::list::LiveFile;
use super::open::Days;
use super::selection::{SELECTED_MAX, Selection, Source};
use crate::ask::{self, bytes, unreadable};
use crate::ledgers;

const REQUESTS: &str = "
    SELECT seq, number FROM requests
    WHERE seq > ?1 AND seq <= ?2
        AND (SELECT ledger FROM ledgers WHERE first <= number ORDER BY first DESC LIMIT 1) = ?3
    ORDER BY seq, number LIMIT ?4";
const COUNT: &str = "
    SELECT count(*) FROM requests
    WHERE seq > ?1
        AND (SELECT ledger FROM ledgers WHERE first <= number ORDER BY first DESC LIMIT 1) = ?2";
const REQUEST: &str = "
    SELECT id, strings, members FROM requests CROSS JOIN forms ON forms.number = form
    WHERE requests.number = ?1";
const NUMBERS: &str = "
    SELECT seq, number FROM corrections WHERE seq > ?1 AND seq <= ?2
    ORDER BY seq, number LIMIT ?3";
const CORRECTION: &str = "SELECT correction FROM corrections WHERE number = ?1";

/// Entries in order. The tables and the list must be as of one moment.
pub(crate) fn behind(
    connection: &Connection,
    days: &mut Days,
    asked: &Behind<'_>,
    limit: usize,
) -> rusqlite::Result<EntryPage> {
    let known = days.selected.take().filter(|known| {
        known.journal == asked.journal
            && known.ledger == asked.ledger
            && known.after <= asked.after
            && asked.after < known.through
    });
    let selected = match known {
        Some(known) => known,
        None => select(connection, days, asked)?,
    };
    let first = selected.places.partition_point(|(seq, _)| *seq <= asked.after);
    let rest = selected.places.get(first..).unwrap_or_default();
    let mut places: Vec<_> =
        rest.iter().take_while(|(seq, _)| *seq <= asked.until).take(limit).copied().collect();
    let until = selected.through.min(asked.until);
    let through = complete(&mut places, |(seq, _)| *seq, (limit, until));
    let is_own = asked.journal != CORRECTIONS;
    days.selected = Some(selected);
    let entries = read(connection, days, &places)?;
    // What completes a request in the background is in the journal of requests. Corrections of both
    // journals are in one table.
    let mut kept = Vec::with_capacity(entries.len());
    for entry in entries {
        let is_of = match &entry.what {
            Stored::Request(_) => true,
            Stored::Correction(payload) => {
                let correction = Correction::decode(payload);
                let correction = correction.map_err(|error| unreadable(0, error))?;
                correction.completion.is_some() == is_own
            }
        };
        kept.extend(is_of.then_some(entry));
    }
    taximeter_collections::sort(&mut kept);
    Ok(EntryPage { entries: kept, through })
}

/// How many requests are behind an entry, and what files take that have none of these.
pub(crate) fn lacked(
    connection: &Connection,
    days: &mut Days,
    ledger: LedgerId,
    after: u64,
) -> rusqlite::Result<Lacked> {
    let mut count = connection.prepare_cached(COUNT)?;
    let given = params![after.cast_signed(), ledger.0.as_bytes()];
    let mut lacked = Lacked { requests: count.query_row(given, number)?, bytes_before: 0 };
    for file in &*days.files() {
        match range(days, file, ledger)? {
            Some(range) if range.first > after => {
                lacked.requests += range.rows;
            }
            Some(range) if range.last > after => {
                let counted = days.open(file)?.count_behind(ledger, after);
                lacked.requests += counted.map_err(|error| days.fault(&file.name, error))?;
            }
            _ => lacked.bytes_before += file.bytes,
        }
    }
    Ok(lacked)
}

/// The first entry of a ledger that a request here is of, if there is one.
pub(crate) fn first_entry(
    connection: &Connection,
    days: &mut Days,
    ledger: LedgerId,
) -> rusqlite::Result<Option<u64>> {
    let mut first = ledgers::first_seq(connection, ledger)?;
    for file in &*days.files() {
        let of_file = range(days, file, ledger)?.map(|range| range.first);
        first = first.into_iter().chain(of_file).min();
    }
    Ok(first)
}

fn select(
    connection: &Connection,
    days: &mut Days,
    asked: &Behind<'_>,
) -> rusqlite::Result<Selection> {
    let Behind { journal, ledger, after, .. } = *asked;
    let (mut places, mut until) = (Vec::new(), asked.until);
    let most = i64::try_from(SELECTED_MAX).unwrap_or(i64::MAX);
    let corrections = params![after.cast_signed(), until.cast_signed(), most];
    add(&mut places, &mut until, rows(connection, NUMBERS, corrections, Source::Correction)?);
    if journal != CORRECTIONS {
        let id = ledger.0.as_bytes();
        let requests = params![after.cast_signed(), until.cast_signed(), id, most];
        add(&mut places, &mut until, rows(connection, REQUESTS, requests, Source::Request)?);
        for file in &*days.files() {
            let has_any = range(days, file, ledger)?
                .is_some_and(|range| range.last > after && range.first <= until);
            if has_any {
                let found = days.open(file)?.entries(ledger, (after, until), SELECTED_MAX);
                let found = found.map_err(|error| days.fault(&file.name, error))?;
                let number = file.number;
                let found = found.into_iter().map(|(seq, at)| (seq, Source::File(number, at)));
                add(&mut places, &mut until, found.collect());
            }
        }
    }
    let journal = journal.to_owned();
    Ok(Selection { journal, ledger, after, through: until, places })
}

/// Adds the first places of one source up to `until`, which becomes the last entry up to which all are
/// there.
fn add(places: &mut Vec<(u64, Source)>, until: &mut u64, mut found: Vec<(u64, Source)>) {
    let limits = |until: u64| (SELECTED_MAX, until);
    *until = complete(&mut found, |(seq, _)| *seq, limits(*until));
    places.append(&mut found);
    taximeter_collections::sort(places);
    places.retain(|(seq, _)| *seq <= *until);
    if places.len() > SELECTED_MAX {
        places.truncate(SELECTED_MAX);
        *until = complete(places, |(seq, _)| *seq, limits(*until));
    }
}

fn rows(
    connection: &Connection,
    question: &str,
    given: impl rusqlite::Params,
    source: impl Fn(i64) -> Source,
) -> rusqlite::Result<Vec<(u64, Source)>> {
    let mut query = connection.prepare_cached(question)?;
    query.query_map(given, |row| Ok((number(row)?, source(row.get(1)?))))?.collect()
}

/// What these places have, in any order.
fn read(
    connection: &Connection,
    days: &mut Days,
    places: &[(u64, Source)],
) -> rusqlite::Result<Vec<StoredEntry>> {
    let mut entries = Vec::with_capacity(places.len());
    let mut by_file = BTreeMap::<i64, Vec<RowAt>>::new();
    for (seq, source) in places {
        match *source {
            Source::File(number, at) => by_file.entry(number).or_default().push(at),
            Source::Request(number) => {
                let mut payload = Vec::new();
                let mut query = connection.prepare_cached(REQUEST)?;
                query.query_row([number], |row| ask::payload(row, 0, &mut payload))?;
                entries.push(StoredEntry { seq: *seq, what: Stored::Request(payload) });
            }
            Source::Correction(number) => {
                let mut query = connection.prepare_cached(CORRECTION)?;
                let found = query.query_row([number], |row| Ok(bytes(row, 0)?.to_vec()));
                let what = found.optional()?.map(Stored::Correction);
                entries.extend(what.map(|what| StoredEntry { seq: *seq, what }));
            }
        }
    }
    for (number, mut rows) in by_file {
        let file = days.files().iter().find(|file| file.number == number).cloned();
        let Some(file) = file else { continue };
        let shown = days.open(&file)?.rows_at(&mut rows, &mut |_, row| {
            let what = Stored::Request(row.payload.to_vec());
            entries.push(StoredEntry { seq: row.place.seq, what });
        });
        shown.map_err(|error| days.fault(&file.name, error))?;
    }
    Ok(entries)
}

/// The entries of a ledger that a file has.
fn range(
    days: &mut Days,
    file: &LiveFile,
    ledger: LedgerId,
) -> rusqlite::Result<Option<LedgerRange>> {
    let known = days.ranges.get(&file.number).cloned();
    let ranges = match known {
        Some(known) => known,
        None => {
            let ranges: Arc<[_]> = days.open(file)?.footer().ledgers.clone().into();
            days.ranges.insert(file.number, Arc::clone(&ranges));
            ranges
        }
    };
    Ok(ranges.iter().find(|range| range.ledger == ledger).cloned())
}

fn number(row: &Row<'_>) -> rusqlite::Result<u64> {
    row.get(0).map(i64::cast_unsigned)
}
