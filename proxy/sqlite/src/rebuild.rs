//! Replaces old tables by new ones after the journals have filled these.
//!
//! A row of the old tables goes in the moment in which the new ones get it, and its page is used
//! again. So neither the database nor its log takes much more room than one store meanwhile. All of
//! it is one transaction: others see the store as it was, also after a crash.
//!
//! Counts of refusals stay where they are: those that the journals have take their own places. So do
//! requests that have left the tables: their hours are made of the files that have them.

use std::fs::File;

use rusqlite::{Connection, Row};
use taximeter_columnar::{DayFile, RowFilter};
use taximeter_database::batch::{Amendment, Batch, NewHours};
use taximeter_database::database::Rebuilt;
use taximeter_database::day::DAY_MICROS;
use taximeter_database::gone::GoneCause;
use taximeter_database::post::Post;
use taximeter_ledger::{Payload, Place};

use super::add;
use super::ask::{self, unreadable};
use super::columns;
use super::days::{self, Days, FileFault};
use super::gone::{self, GoneRow};
use super::hour_files::{self, Covers, HourFiles};
use super::known::{Known, Left};
use super::ledgers;
use super::lost;
use super::new_hours;
use super::schema;
use super::session_check::SessionCheck;

/// Most sums that wait before they are written: bounds their memory.
const SUMS_MAX: usize = 2048;

/// Requests and corrections read at once.
const PAGE: u32 = 512;

const SET_ASIDE: &str = "
    DROP VIEW request_keys;
    ALTER TABLE ledgers RENAME TO old_ledgers;
    DROP INDEX digests;
    ALTER TABLE forms RENAME TO old_forms;
    DROP INDEX admission;
    ALTER TABLE requests RENAME TO old_requests;
    DROP INDEX corrected;
    DROP INDEX waiting;
    ALTER TABLE corrections RENAME TO old_corrections;
    DROP TABLE hours;
    DROP TABLE combinations;
    DROP TABLE lines;
    DROP TABLE IF EXISTS sessions;
    DROP TABLE IF EXISTS session_changes;
    DROP TABLE cursors;
    CREATE INDEX old_admission ON old_requests (started_at, id)";
const REPLACE: &str = "
    CREATE TRIGGER request_is_new AFTER INSERT ON requests BEGIN
        DELETE FROM old_requests WHERE started_at = NEW.started_at AND id = NEW.id;
    END;
    CREATE TRIGGER correction_is_new AFTER INSERT ON corrections BEGIN
        DELETE FROM old_corrections WHERE id = NEW.id;
    END";
const OLD_REQUESTS: &str = "
    SELECT
        old_requests.number,
        (SELECT ledger FROM old_ledgers
            WHERE first <= old_requests.number ORDER BY first DESC LIMIT 1),
        seq, id, strings, members
    FROM old_requests CROSS JOIN old_forms ON old_forms.number = form
    WHERE old_requests.number > ?1
    ORDER BY old_requests.number
    LIMIT ?2";
const OLD_CORRECTIONS: &str = "
    SELECT number, zeroblob(16), seq, correction FROM old_corrections WHERE number > ?1 ORDER BY number LIMIT ?2";
const FORGET: &str = "
    DROP TRIGGER request_is_new; DROP TRIGGER correction_is_new;
    DROP TABLE old_ledgers; DROP TABLE old_requests; DROP TABLE old_forms; DROP TABLE old_corrections";

/// Makes room for new tables, and makes them.
pub(super) fn set_aside(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(SET_ASIDE)?;
    schema::create(connection)?;
    connection.execute_batch(REPLACE)
}

/// Adds the requests of all files of days to the hours, and those of files of sessions that do not have
/// their sums to the sessions: the names of these files, and of those that have no requests. Needs an open
/// transaction.
pub(super) fn add_days(
    connection: &Connection,
    days: &mut Days,
) -> rusqlite::Result<(Vec<String>, Vec<String>)> {
    days.list(connection)?;
    let mut wrong = days::forget_damaged_sessions(connection, days)?;
    let (files, mut known) = (days.files(), Known::default());
    let left = known.left(connection)?;
    let mut check = SessionCheck::begin(connection)?;
    for file in &*files {
        check.go_to(days, file.day)?;
        let opened = days.open(file)?;
        add_file(connection, &mut known, &left, &opened, &mut |post| check.add(post))
            .map_err(|error| days.fault_in(&file.name, error))?;
    }
    let (others, without_requests) = check.end(days)?;
    wrong.extend(others);
    days::keep_first_number(connection, days)?;
    Ok((wrong, without_requests))
}

/// Makes the lists of files anew of the files themselves, and adds the requests of days to the hours if
/// no file of hours has them. Needs an open transaction, and no requests.
pub(super) fn adopt(
    connection: &Connection,
    days: &mut Days,
    hour_files: &HourFiles,
) -> rusqlite::Result<()> {
    lost::look_later(connection)?;
    hour_files::adopt(connection, hour_files)?;
    let found = days::found_files(days)?;
    for found in &found {
        days::adopt_sessions(connection, days, found)?;
    }
    let mut known = Known::default();
    let left = known.left(connection)?;
    for found in found {
        let times = add_file(connection, &mut known, &left, &found.day, &mut |_| Ok(()))
            .map_err(|error| days.fault_in(&found.name, error))?;
        days::add(connection, &found.described(days, times)?)?;
    }
    let covers = &left.covers;
    note_gone(connection, covers)?;
    if covers.days().next().is_some() {
        ledgers::keep_numbers(connection, 1)?;
    }
    days.list(connection)?;
    days::keep_first_number(connection, days)
}

/// Notes the days of which there are hours and no requests.
fn note_gone(connection: &Connection, covers: &Covers) -> rusqlite::Result<()> {
    let files = days::all(connection)?;
    for day in covers.days().filter(|day| files.iter().all(|file| file.day != *day)) {
        let Some(cover) = covers.of_day(day) else { continue };
        let last = day.saturating_add(DAY_MICROS - 1);
        gone::note(
            connection,
            GoneRow {
                day,
                requests: cover.records,
                times: (day, last),
                files: Vec::new(),
                ledgers: cover.requests.clone(),
                gone_at: last,
                cause: GoneCause::Lost,
            },
        )?;
    }
    Ok(())
}

/// Adds the requests of a file to the hours: when the first and the last one was admitted. Shows `visit`
/// those whose sessions a file has.
fn add_file(
    connection: &Connection,
    known: &mut Known,
    left: &Left,
    file: &DayFile<File>,
    visit: &mut dyn FnMut(&Post<'_>) -> rusqlite::Result<()>,
) -> Result<(i64, i64), FileFault> {
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    let mut sums = NewHours::default();
    let mut scan = file.scan(RowFilter::default());
    while let Some(row) = scan.next_row()? {
        let place = Place { ledger: row.place.ledger, seq: row.place.seq };
        let post = Post::read(place, row.payload).map_err(|error| unreadable(2, error))?;
        let at = row.record.started_at.as_microsecond();
        (first, last) = (first.min(at), last.max(at));
        if !left.covers.has_request(at, place) {
            sums.add_read(&post);
        }
        if left.sessions.has_request(at, place) {
            visit(&post)?;
        } else {
            sums.sessions.add_read(&post);
        }
        if sums.count() > SUMS_MAX {
            new_hours::add(connection, known, std::mem::take(&mut sums))?;
        }
    }
    new_hours::add(connection, known, sums)?;
    Ok((first, last))
}

/// Adds what was set aside and did not come again.
pub(super) fn keep(connection: &Connection, days: &mut Days) -> rusqlite::Result<Rebuilt> {
    let mut kept = Rebuilt::default();
    let whole = |row: &Row<'_>, payload: &mut Vec<u8>| ask::payload(row, 3, payload);
    each_page(connection, OLD_REQUESTS, whole, |rows| {
        let rows: Vec<_> =
            rows.iter().map(|(place, payload)| (*place, Payload::from(&**payload))).collect();
        let mut batch = Batch::default();
        for (place, payload) in &rows {
            payload
                .post()
                .and_then(|post| batch.push_post(*place, post))
                .map_err(|error| unreadable(2, error))?;
        }
        let added = add::whole(connection, days, &batch)?;
        kept.kept_records += added.posts;
        Ok(())
    })?;
    let whole = |row: &Row<'_>, payload: &mut Vec<u8>| {
        payload.extend_from_slice(ask::bytes(row, 3)?);
        Ok(())
    };
    each_page(connection, OLD_CORRECTIONS, whole, |rows| {
        let mut batch = Batch::default();
        for (place, payload) in rows {
            let amendment = Amendment::read(*place, payload);
            batch.corrections.push(amendment.map_err(|error| unreadable(2, error))?);
        }
        let added = add::whole(connection, days, &batch)?;
        kept.kept_corrections += added.corrections;
        Ok(())
    })?;
    connection.execute_batch(FORGET)?;
    Ok(kept)
}

/// Shows `visit` where entries were and the payloads that `read` appends.
fn each_page(
    connection: &Connection,
    question: &str,
    read: impl Fn(&Row<'_>, &mut Vec<u8>) -> rusqlite::Result<()>,
    mut visit: impl FnMut(&[(Place, Vec<u8>)]) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut query = connection.prepare(question)?;
    let mut after = 0_i64;
    loop {
        let mut page = Vec::new();
        let mut rows = query.query((after, PAGE))?;
        while let Some(row) = rows.next()? {
            after = row.get(0)?;
            let mut payload = Vec::new();
            read(row, &mut payload)?;
            page.push((
                Place { ledger: columns::ledger(row, 1)?, seq: columns::seq(row, 2)? },
                payload,
            ));
        }
        drop(rows);
        if page.is_empty() {
            return Ok(());
        }
        visit(&page)?;
    }
}
