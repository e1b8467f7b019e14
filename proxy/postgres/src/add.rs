//! Adds a batch to the PostgreSQL tables.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use taximeter_database::batch::{Added, Amendment, Batch, NewHours, NewPost};
use taximeter_database::post::Post;
use taximeter_ledger::{Correction, Place, RequestId};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::ask::{place, storable};
use super::fault::Fault;
use super::gone::Gone;
use super::hours;
use super::ledgers;
use super::link::Link;
use super::reached;
use super::refusals;
use super::schema::VERSION;
use super::sessions;

const STATE: &str = "
    SELECT (SELECT version FROM taximeter.format),
        EXISTS (SELECT 1 FROM taximeter.corrections WHERE waiting),
        (SELECT max(day) FROM taximeter.gone_days)";

const ADD_REQUESTS: &str = "
    INSERT INTO taximeter.requests (
        number, started_at, id, ended_at, tenant, upstream, model, input_tokens, output_tokens,
        ledger, series, seq, gateway, billed, payload)
    SELECT nextval('taximeter.arrivals'), * FROM unnest(
        $1::bigint[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[],
        $8::bigint[], $9::uuid[], $10::bigint[], $11::bigint[], $12::text[], $13::boolean[], $14::bytea[])
    ON CONFLICT (started_at, id) DO NOTHING
    RETURNING started_at, id";
const REQUESTS: &str = "
    SELECT started_at, id, ledger, seq, payload
    FROM unnest($1::bigint[], $2::uuid[]) AS asked (at, request)
        JOIN taximeter.requests ON started_at = at AND id = request";

const ADD_CORRECTIONS: &str = "
    INSERT INTO taximeter.corrections (id, started_at, corrects, made_at, waiting, seq, correction)
    SELECT * FROM unnest(
        $1::uuid[], $2::bigint[], $3::uuid[], $4::bigint[], $5::boolean[], $6::bigint[], $7::bytea[])
    ON CONFLICT DO NOTHING
    RETURNING id";
const WAIT_NO_LONGER: &str = "
    UPDATE taximeter.corrections SET waiting = false
    FROM unnest($1::bigint[], $2::uuid[]) AS added (at, request)
    WHERE waiting AND started_at = at AND corrects = request
    RETURNING started_at, corrects, correction";

const SET_CURSOR: &str = "
    INSERT INTO taximeter.cursors VALUES ($1, $2, $3, $4)
    ON CONFLICT (gateway, journal) DO UPDATE SET seq = excluded.seq, chain = excluded.chain";

/// A request: its admission, and its id.
type Key = (i64, Uuid);

/// Adds what is new, to the hours as well; to those of days without details not if these were kept
/// when the rest began anew. Needs an open change.
pub(super) fn batch(
    link: &Link,
    gateway: &str,
    batch: &Batch<'_>,
    is_anew: bool,
) -> Result<Added, Fault> {
    let state = link.query_one(STATE, &[])?;
    // A newer program may have been here since this one began.
    let format = state.try_get(0)?;
    if format != VERSION {
        return Err(Fault::Format { found: format, known: VERSION });
    }
    let posted = batch.posts.iter().map(|post| post.numbers.started_at.as_microsecond());
    let corrected = batch.corrections.iter().map(|new| new.correction.started_at.as_microsecond());
    let gone = Gone::of(link, state.try_get(2)?, posted.chain(corrected))?;
    let mut hours = NewHours::default();
    let new = add_posts(link, batch, &gone)?;
    let counts = |(at, _): &Key| !(is_anew && gone.has_day(*at));
    let counted = new.iter().filter(|(key, _)| counts(key));
    counted.for_each(|(_, post)| hours.add_post(batch, post));
    new.values().for_each(|post| hours.sessions.add_post(post.place, &post.bytes));
    if state.try_get(1)? && !new.is_empty() {
        add_waiting(link, &new, &counts, &mut hours)?;
    }
    let corrections = add_corrections(link, &batch.corrections, (&gone, &counts), &mut hours)?;
    sessions::add(link, std::mem::take(&mut hours.sessions))?;
    hours::add(link, &mut hours.finish())?;
    refusals::add(link, &batch.refusals)?;
    if let Some((journal, end)) = batch.end {
        let (seq, chain) = (end.seq.cast_signed(), i64::from(end.chain));
        let given = [
            (&gateway as _, Type::TEXT),
            (&journal as _, Type::TEXT),
            (&seq as _, Type::INT8),
            (&chain as _, Type::INT8),
        ];
        link.query(SET_CURSOR, &given)?;
        if journal == taximeter_journal::REQUESTS {
            reached::set(link, gateway, &batch.reach)?;
        }
    }
    Ok(Added { posts: count(new.len()), corrections })
}

/// Those that were not there.
fn add_posts<'a, 'b>(
    link: &Link,
    batch: &'b Batch<'a>,
    gone: &Gone,
) -> Result<BTreeMap<Key, &'b NewPost<'a>>, Fault> {
    let is_gone = |post: &&NewPost<'_>| gone.has(ledgers::key(post).0, post.place);
    let posts: Vec<_> = batch.posts.iter().filter(|post| !is_gone(post)).collect();
    if posts.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (posts, series): (Vec<_>, Vec<_>) = ledgers::series(link, &posts)?.into_iter().unzip();
    let keys = posts.iter().map(|post| ledgers::key(post));
    let (started, ids): (Vec<_>, Vec<_>) = keys.clone().unzip();
    let payloads: Vec<_> =
        posts.iter().map(|post| post.payload(&mut Vec::new()).to_vec()).collect();
    let mut columns = Columns::default();
    for (post, payload) in posts.iter().zip(&payloads) {
        columns.push(&Post::read(post.place, payload).map_err(Fault::unreadable)?);
    }
    let rows = link.query(
        ADD_REQUESTS,
        &[
            (&started, Type::INT8_ARRAY),
            (&ids, Type::UUID_ARRAY),
            (&columns.ended, Type::INT8_ARRAY),
            (&columns.tenants, Type::TEXT_ARRAY),
            (&columns.upstreams, Type::TEXT_ARRAY),
            (&columns.models, Type::TEXT_ARRAY),
            (&columns.input, Type::INT8_ARRAY),
            (&columns.output, Type::INT8_ARRAY),
            (&columns.ledgers, Type::UUID_ARRAY),
            (&series, Type::INT8_ARRAY),
            (&columns.seqs, Type::INT8_ARRAY),
            (&columns.gateways, Type::TEXT_ARRAY),
            (&columns.billed, Type::BOOL_ARRAY),
            (&payloads, Type::BYTEA_ARRAY),
        ],
    )?;
    let new = rows.iter().map(read_key).collect::<Result<HashSet<Key>, _>>()?;
    // Of one that is twice in the batch, the first is there.
    let posts = keys.zip(posts.iter().copied()).rev();
    Ok(posts.filter(|(key, _)| new.contains(key)).collect())
}

/// The columns of requests that people query.
#[derive(Default)]
struct Columns<'a> {
    ended: Vec<i64>,
    tenants: Vec<Cow<'a, str>>,
    upstreams: Vec<Cow<'a, str>>,
    models: Vec<Option<Cow<'a, str>>>,
    input: Vec<Option<i64>>,
    output: Vec<Option<i64>>,
    ledgers: Vec<Uuid>,
    seqs: Vec<i64>,
    gateways: Vec<Cow<'a, str>>,
    billed: Vec<bool>,
}

impl<'a> Columns<'a> {
    fn push(&mut self, post: &Post<'a>) {
        let view = post.view();
        self.ended.push(view.ended_at.as_microsecond());
        self.tenants.push(storable(view.tenant));
        self.upstreams.push(storable(view.upstream));
        self.models.push(post.model().map(storable));
        self.input.push(view.input_tokens.map(u64::cast_signed));
        self.output.push(view.output_tokens.map(u64::cast_signed));
        self.ledgers.push(post.place.ledger.0);
        self.seqs.push(post.place.seq.cast_signed());
        self.gateways.push(storable(view.gateway));
        self.billed.push(!post.used_nothing());
    }
}

/// The corrections that came before their request.
fn add_waiting(
    link: &Link,
    new: &BTreeMap<Key, &NewPost<'_>>,
    counts: &dyn Fn(&Key) -> bool,
    hours: &mut NewHours,
) -> Result<(), Fault> {
    let (started, ids): (Vec<_>, Vec<_>) = new.keys().copied().unzip();
    let given = [(&started as _, Type::INT8_ARRAY), (&ids as _, Type::UUID_ARRAY)];
    for row in link.query(WAIT_NO_LONGER, &given)? {
        let correction = Correction::decode(row.try_get(2)?).map_err(Fault::unreadable)?;
        let key = read_key(&row)?;
        if let Some(post) = new.get(&key) {
            let mut payload = Vec::new();
            let post = Post::read(post.place, post.payload(&mut payload));
            let post = post.map_err(Fault::unreadable)?;
            hours.sessions.add_correction(&post, &correction);
            if counts(&key) {
                hours.add_correction(&post, &correction);
            }
        }
    }
    Ok(())
}

/// How many were not there.
fn add_corrections(
    link: &Link,
    amendments: &[Amendment<'_>],
    (gone, counts): (&Gone, &dyn Fn(&Key) -> bool),
    hours: &mut NewHours,
) -> Result<u64, Fault> {
    if amendments.is_empty() {
        return Ok(0);
    }
    let corrections = || amendments.iter().map(|amendment| &*amendment.correction);
    let (started, corrects): (Vec<_>, Vec<_>) = corrections().map(corrected_key).unzip();
    let given = [(&started as _, Type::INT8_ARRAY), (&corrects as _, Type::UUID_ARRAY)];
    let mut requests: HashMap<Key, (Place, Vec<u8>)> = HashMap::new();
    for row in link.query(REQUESTS, &given)? {
        requests.insert(read_key(&row)?, (place(&row, 2)?, row.try_get(4)?));
    }
    let ids: Vec<_> = corrections().map(|correction| correction.id.0).collect();
    let made: Vec<_> = corrections().map(|c| c.made_at.as_microsecond()).collect();
    let waits = |key: Key| !requests.contains_key(&key) && !gone.has_day(key.0);
    let waiting: Vec<_> = corrections().map(|c| waits(corrected_key(c))).collect();
    let seqs: Vec<_> =
        amendments.iter().map(|amendment| amendment.place.seq.cast_signed()).collect();
    let payloads: Vec<_> = amendments.iter().map(|amendment| &*amendment.payload).collect();
    let rows = link.query(
        ADD_CORRECTIONS,
        &[
            (&ids, Type::UUID_ARRAY),
            (&started, Type::INT8_ARRAY),
            (&corrects, Type::UUID_ARRAY),
            (&made, Type::INT8_ARRAY),
            (&waiting, Type::BOOL_ARRAY),
            (&seqs, Type::INT8_ARRAY),
            (&payloads, Type::BYTEA_ARRAY),
        ],
    )?;
    let mut new = rows.iter().map(|row| row.try_get(0)).collect::<Result<HashSet<Uuid>, _>>()?;
    let added = count(new.len());
    for correction in corrections() {
        let key = corrected_key(correction);
        if !new.remove(&correction.id.0) {
            continue;
        }
        if let Some((place, payload)) = requests.get(&key) {
            let post = Post::read(*place, payload).map_err(Fault::unreadable)?;
            hours.sessions.add_correction(&post, correction);
            if counts(&key) {
                hours.add_correction(&post, correction);
            }
        } else if counts(&key) && gone.has_day(key.0) {
            hours.add_gone_correction(correction);
        }
    }
    Ok(added)
}

fn corrected_key(correction: &Correction) -> Key {
    let RequestId(id) = correction.corrects;
    (correction.started_at.as_microsecond(), id)
}

/// From the first two columns.
fn read_key(row: &Row) -> Result<Key, Fault> {
    Ok((row.try_get(0)?, row.try_get(1)?))
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
