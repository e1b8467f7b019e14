//! The key of a request: the id of its ledger, a series, and the sequence number of its entry there.
//!
//! Sequence numbers of a series ascend, in the order in which its requests arrive. A journal can give a
//! sequence number to another request: one that lost its tail and goes on. Such a request begins the next
//! series of the ledger. What is known by its id keeps its key.
//!
//! Series 0 has the requests that came before there were series: no two of the others have one key. Each
//! month that is made has an index that sees to that.

use std::collections::{HashMap, HashSet};

use taximeter_database::batch::NewPost;
use taximeter_ledger::LedgerId;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::fault::Fault;
use super::link::Link;

const LEDGERS: &str = "SELECT ledger, series, seq FROM taximeter.ledgers WHERE ledger = ANY($1)";
const SET_LEDGERS: &str = "
    INSERT INTO taximeter.ledgers SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[])
    ON CONFLICT (ledger) DO UPDATE SET series = excluded.series, seq = excluded.seq";
const ARE_HERE: &str = "
    SELECT started_at, id
    FROM unnest($1::bigint[], $2::uuid[]) AS asked (at, request)
        JOIN taximeter.requests ON started_at = at AND id = request";

/// The last series of a ledger, and the last sequence number of it.
#[derive(Debug, Clone, Copy)]
struct End {
    series: i64,
    seq: u64,
}

/// Where the ledgers of some requests end.
#[derive(Debug, Clone)]
struct Ends(HashMap<LedgerId, End>);

impl Ends {
    /// The series of a request that goes on behind the last one.
    fn go_on(&mut self, post: &NewPost<'_>) -> Option<i64> {
        let end = self.0.entry(post.place.ledger).or_insert(End { series: 1, seq: 0 });
        let goes_on = end.seq < post.place.seq;
        end.seq = end.seq.max(post.place.seq);
        goes_on.then_some(end.series)
    }

    /// The next series of a ledger, which begins with this request.
    fn begin(&mut self, post: &NewPost<'_>) -> i64 {
        let seq = post.place.seq;
        let end = self.0.entry(post.place.ledger).or_insert(End { series: 0, seq });
        *end = End { series: end.series.saturating_add(1), seq };
        end.series
    }
}

/// The series of each request that may be new. Needs an open change.
pub(super) fn series<'a, 'b>(
    link: &Link,
    posts: &[&'b NewPost<'a>],
) -> Result<Vec<(&'b NewPost<'a>, i64)>, Fault> {
    let mut ends = read(link, posts)?;
    let mut seen = ends.clone();
    let behind = posts.iter().copied().filter(|post| seen.go_on(post).is_none());
    let behind: Vec<_> = behind.collect();
    let here = if behind.is_empty() { HashSet::new() } else { are_here(link, &behind)? };
    let mut series = Vec::with_capacity(posts.len());
    for &post in posts {
        match ends.go_on(post) {
            Some(same) => series.push((post, same)),
            None if here.contains(&key(post)) => {}
            None => series.push((post, ends.begin(post))),
        }
    }
    set(link, &ends)?;
    Ok(series)
}

fn read(link: &Link, posts: &[&NewPost<'_>]) -> Result<Ends, Fault> {
    let mut ledgers: Vec<_> = posts.iter().map(|post| post.place.ledger.0).collect();
    ledgers.dedup();
    let mut ends = HashMap::new();
    for row in link.query(LEDGERS, &[(&ledgers as _, Type::UUID_ARRAY)])? {
        let seq = row.try_get(2).map(i64::cast_unsigned)?;
        ends.insert(LedgerId(row.try_get(0)?), End { series: row.try_get(1)?, seq });
    }
    Ok(Ends(ends))
}

fn set(link: &Link, ends: &Ends) -> Result<(), Fault> {
    let ledgers: Vec<_> = ends.0.keys().map(|ledger| ledger.0).collect();
    let series: Vec<_> = ends.0.values().map(|end| end.series).collect();
    let seqs: Vec<_> = ends.0.values().map(|end| end.seq.cast_signed()).collect();
    let given = [
        (&ledgers as _, Type::UUID_ARRAY),
        (&series as _, Type::INT8_ARRAY),
        (&seqs as _, Type::INT8_ARRAY),
    ];
    link.query(SET_LEDGERS, &given).map(drop)
}

fn are_here(link: &Link, posts: &[&NewPost<'_>]) -> Result<HashSet<(i64, Uuid)>, Fault> {
    let (started, ids): (Vec<_>, Vec<_>) = posts.iter().map(|post| key(post)).unzip();
    let given = [(&started as _, Type::INT8_ARRAY), (&ids as _, Type::UUID_ARRAY)];
    let rows = link.query(ARE_HERE, &given)?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
}

/// The admission of a request, and its id.
pub(super) fn key(post: &NewPost<'_>) -> (i64, Uuid) {
    (post.numbers.started_at.as_microsecond(), post.bytes.id.0)
}
