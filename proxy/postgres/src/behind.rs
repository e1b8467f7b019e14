//! Requests and corrections in the order of their entries.

use std::ops::ControlFlow;

use taximeter_database::behind::{Behind, EntryPage, Lacked, Stored, StoredEntry, complete};
use taximeter_journal::CORRECTIONS;
use taximeter_ledger::{Correction, LedgerId};
use tokio_postgres::types::Type;

use super::fault::Fault;
use super::link::{Given, Link};

const REQUESTS: &str = "
    SELECT seq, payload FROM taximeter.requests
    WHERE ledger = $1 AND seq > $2 AND seq <= $3
    ORDER BY seq, id LIMIT $4";
/// What completes a request in the background is in the journal of the request.
const COMPLETIONS: &str = "
    SELECT corrections.seq, correction
    FROM taximeter.corrections JOIN taximeter.requests
        ON requests.started_at = corrections.started_at AND requests.id = corrects
    WHERE ledger = $1 AND corrections.seq > $2 AND corrections.seq <= $3
    ORDER BY corrections.seq, corrections.number LIMIT $4";
/// Nothing says in which journal of corrections one is: each has those that were made beside it, of
/// requests of any ledger.
const NUMBERED: &str = "
    SELECT seq, correction FROM taximeter.corrections
    WHERE $1::uuid IS NOT NULL AND seq > $2 AND seq <= $3
    ORDER BY seq, number LIMIT $4";
const FIRST: &str = "SELECT min(seq) FROM taximeter.requests WHERE ledger = $1";
const COUNT: &str = "SELECT count(*) FROM taximeter.requests WHERE ledger = $1 AND seq > $2";

/// Entries in order.
pub(super) fn behind(link: &Link, asked: &Behind<'_>, limit: usize) -> Result<EntryPage, Fault> {
    let mut page = EntryPage { entries: Vec::new(), through: asked.until };
    if asked.journal == CORRECTIONS {
        let found = ask(link, NUMBERED, asked, limit, Stored::Correction)?;
        add(&mut page, found, limit);
        page.entries.retain(|entry| !completes(&entry.what));
    } else {
        add(&mut page, ask(link, REQUESTS, asked, limit, Stored::Request)?, limit);
        let mut completions = ask(link, COMPLETIONS, asked, limit, Stored::Correction)?;
        page.through = complete(&mut completions, |entry| entry.seq, (limit, page.through));
        completions.retain(|entry| completes(&entry.what));
        page.entries.append(&mut completions);
        taximeter_collections::sort(&mut page.entries);
        page.entries.retain(|entry| entry.seq <= page.through);
        page.through = complete(&mut page.entries, |entry| entry.seq, (limit, page.through));
    }
    Ok(page)
}

/// The first entry of a ledger that a request here is of, if there is one.
pub(super) fn first_entry(link: &Link, ledger: LedgerId) -> Result<Option<u64>, Fault> {
    let first: Option<i64> = link.query_one(FIRST, &[(&ledger.0, Type::UUID)])?.try_get(0)?;
    Ok(first.map(i64::cast_unsigned))
}

/// How many requests are behind an entry.
pub(super) fn lacked(link: &Link, ledger: LedgerId, after: u64) -> Result<Lacked, Fault> {
    let after = after.cast_signed();
    let given: [Given<'_>; 2] = [(&ledger.0, Type::UUID), (&after, Type::INT8)];
    let count: i64 = link.query_one(COUNT, &given)?.try_get(0)?;
    Ok(Lacked { requests: count.cast_unsigned(), bytes_before: 0 })
}

fn add(page: &mut EntryPage, mut found: Vec<StoredEntry>, limit: usize) {
    page.through = complete(&mut found, |entry| entry.seq, (limit, page.through));
    page.entries.append(&mut found);
}

fn completes(what: &Stored) -> bool {
    match what {
        Stored::Request(_) => false,
        Stored::Correction(payload) => {
            Correction::decode(payload).is_ok_and(|correction| correction.completion.is_some())
        }
    }
}

fn ask(
    link: &Link,
    question: &str,
    asked: &Behind<'_>,
    limit: usize,
    what: impl Fn(Vec<u8>) -> Stored,
) -> Result<Vec<StoredEntry>, Fault> {
    let (after, until) = (asked.after.cast_signed(), asked.until.cast_signed());
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let given: [Given<'_>; 4] = [
        (&asked.ledger.0, Type::UUID),
        (&after, Type::INT8),
        (&until, Type::INT8),
        (&limit, Type::INT8),
    ];
    let mut found = Vec::new();
    link.each(question, &given, |row| {
        let seq = row.try_get(0).map(i64::cast_unsigned)?;
        found.push(StoredEntry { seq, what: what(row.try_get(1)?) });
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}
