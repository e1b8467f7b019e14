//! The sums per hour, as rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use taximeter_billing::{Hour, HourKey, LineKey, Period, Sums};
use taximeter_collections::Gather as _;
use taximeter_database::batch::Hours;
use taximeter_database::granularity::{Gathering, Granularity, Numbered};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::ask::{ask, storable, tokens};
use super::fault::Fault;
use super::link::{Given, Link};

const COMBINATIONS: &str = "
    SELECT digest, number FROM taximeter.combinations WHERE digest = ANY ($1)";
const ADD_COMBINATIONS: &str = "
    INSERT INTO taximeter.combinations (digest, dimensions, tenant)
    SELECT * FROM unnest($1::bytea[], $2::text[], $3::text[])
    RETURNING digest, number";
const LINES: &str = "SELECT digest, number FROM taximeter.lines WHERE digest = ANY ($1)";
const ADD_LINES: &str = "
    INSERT INTO taximeter.lines (digest, line)
    SELECT * FROM unnest($1::bytea[], $2::text[])
    RETURNING digest, number";

/// One look-up a key, by the index: however many hours there are.
const LAST_PARTS: &str = "
    SELECT requests, input_tokens, cache_read_input_tokens, output_tokens, reasoning_output_tokens,
        cost::text, list_cost::text, unknown_cost_requests, counted_requests,
        unknown_usage_requests, quantities, hour, combination, part
    FROM unnest($1::bigint[], $2::bigint[]) AS asked (at, number),
        LATERAL (
            SELECT * FROM taximeter.hours WHERE hour = at AND combination = number
            ORDER BY part DESC LIMIT 1
        ) AS last";
const SET_PARTS: &str = "
    INSERT INTO taximeter.hours
    SELECT hour, combination, part, requests, input_tokens, cache_read_input_tokens, output_tokens,
        reasoning_output_tokens, cost::numeric, list_cost::numeric, unknown_cost_requests,
        counted_requests, unknown_usage_requests, quantities
    FROM unnest(
        $1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
        $7::bigint[], $8::bigint[], $9::text[], $10::text[], $11::bigint[], $12::bigint[],
        $13::bigint[], $14::text[])
    AS sums (
        hour, combination, part, requests, input_tokens, cache_read_input_tokens, output_tokens,
        reasoning_output_tokens, cost, list_cost, unknown_cost_requests, counted_requests,
        unknown_usage_requests, quantities)
    ON CONFLICT (hour, combination, part) DO UPDATE SET
        requests = excluded.requests,
        input_tokens = excluded.input_tokens,
        cache_read_input_tokens = excluded.cache_read_input_tokens,
        output_tokens = excluded.output_tokens,
        reasoning_output_tokens = excluded.reasoning_output_tokens,
        cost = excluded.cost,
        list_cost = excluded.list_cost,
        unknown_cost_requests = excluded.unknown_cost_requests,
        counted_requests = excluded.counted_requests,
        unknown_usage_requests = excluded.unknown_usage_requests,
        quantities = excluded.quantities";

const SOME_LINES: &str = "SELECT number, line FROM taximeter.lines WHERE number = ANY ($1)";
const ALL_LINES: &str = "SELECT number, line FROM taximeter.lines";
const TENANT_COMBINATIONS: &str = "
    SELECT number, dimensions FROM taximeter.combinations WHERE $1 IS NULL OR tenant = $1";
const HOURS: &str = "
    SELECT requests, input_tokens, cache_read_input_tokens, output_tokens, reasoning_output_tokens,
        cost::text, list_cost::text, unknown_cost_requests, counted_requests,
        unknown_usage_requests, quantities, hour, combination
    FROM taximeter.hours
    WHERE hour >= $1 AND hour < $2
        AND ($3 IS NULL
            OR combination IN (SELECT number FROM taximeter.combinations WHERE tenant = $3))
    ORDER BY hour, combination, part";

/// Where the sums of an hour stand: hour, combination, part.
type HourPart = (i64, i64, i64);
/// Quantities by the number of their line, as they are kept.
type Quantities = BTreeMap<i64, Decimal>;

/// Adds `added` to the hours that are here. Needs an open change.
pub(super) fn add(link: &Link, added: &mut Hours) -> Result<(), Fault> {
    let added: Vec<_> = added.take().collect();
    if added.is_empty() {
        return Ok(());
    }
    let numbers = combinations(link, added.iter().map(|(key, _)| key))?;
    let mut sums = last_parts(link, added.iter().zip(&numbers).map(|((k, _), n)| (k.hour, *n)))?;
    for ((key, parts), combination) in added.into_iter().zip(numbers) {
        let hour = key.hour.as_microsecond();
        let all = (hour, combination, 0)..=(hour, combination, i64::MAX);
        for added in parts {
            let last = sums.range_mut(all.clone()).next_back();
            let part = match last.map(|((.., part), sum)| (*part, sum.add(&added))) {
                None => 0,
                Some((_, Ok(()))) => continue,
                Some((part, Err(_))) => part + 1,
            };
            sums.insert((hour, combination, part), added);
        }
    }
    write(link, &sums)
}

/// Shows the sums of whole hours, as finely as `granularity` says; those that it tells apart by the hour
/// in order of time.
pub(super) fn visit(
    link: &Link,
    hours: Period,
    tenant: Option<&str>,
    granularity: Granularity<'_>,
    visit: &mut dyn FnMut(HourKey, Hour) -> ControlFlow<()>,
) -> Result<(), Fault> {
    link.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
    let visited = visit_held(link, hours, tenant, granularity, visit);
    visited.and(link.run("ROLLBACK"))
}

/// The same inside of a transaction that sees one moment: what numbers stand for has to be what it
/// was when the hours were.
pub(super) fn visit_held(
    link: &Link,
    hours: Period,
    tenant: Option<&str>,
    granularity: Granularity<'_>,
    visit: &mut dyn FnMut(HourKey, Hour) -> ControlFlow<()>,
) -> Result<(), Fault> {
    let lines: HashMap<i64, LineKey> = texts(link, ALL_LINES, &[])?;
    let stored = tenant.map(storable);
    let combinations: HashMap<i64, HourKey> =
        texts(link, TENANT_COMBINATIONS, &[(&stored, Type::TEXT)])?;
    let mut gathering = Gathering::new(granularity);
    let mut show = |sums: Vec<(HourKey, Numbered)>| {
        for (key, sum) in sums {
            if visit(key, with_lines(sum, &lines)?).is_break() {
                return Ok::<_, Fault>(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    };
    let mut is_over = false;
    ask(link, HOURS, hours, tenant, |row| {
        let hour = Timestamp::from_microsecond(row.try_get(11)?).map_err(Fault::unreadable)?;
        let mut sums = if gathering.is_due(hour) { gathering.take() } else { Vec::new() };
        let number = row.try_get(12)?;
        let key = || combinations.get(&number).cloned().ok_or_else(|| unknown("a combination"));
        sums.extend(gathering.add((hour, number), numbered(row)?, key)?);
        let outcome = show(sums)?;
        is_over = outcome.is_break();
        Ok(outcome)
    })?;
    if !is_over {
        let _ = show(gathering.take())?;
    }
    Ok(())
}

/// The sums that are added to.
fn last_parts(
    link: &Link,
    asked: impl Iterator<Item = (Timestamp, i64)>,
) -> Result<BTreeMap<HourPart, Hour>, Fault> {
    let asked = asked.map(|(hour, combination)| (hour.as_microsecond(), combination));
    let (hours, combinations): (Vec<_>, Vec<_>) = asked.unzip();
    let given = [(&hours as _, Type::INT8_ARRAY), (&combinations as _, Type::INT8_ARRAY)];
    let rows = link.query(LAST_PARTS, &given)?;
    let sums = rows.iter().map(numbered).collect::<Result<Vec<_>, _>>()?;
    let numbers: BTreeSet<i64> =
        sums.iter().flat_map(|sum| &sum.quantities).map(|(number, _)| *number).collect();
    let numbers = Vec::from_iter(numbers);
    let lines = texts(link, SOME_LINES, &[(&numbers, Type::INT8_ARRAY)])?;
    let read = |(row, sum): (&Row, Numbered)| {
        let place = (row.try_get(11)?, row.try_get(12)?, row.try_get(13)?);
        Ok((place, with_lines(sum, &lines)?))
    };
    rows.iter().zip(sums).map(read).collect()
}

/// An hour, from the first columns of `row`.
fn numbered(row: &Row) -> Result<Numbered, Fault> {
    let count = |column: usize| row.try_get(column).map(i64::cast_unsigned);
    let sums = Sums {
        requests: count(0)?,
        input_tokens: tokens(row, 1)?,
        cache_read_input_tokens: tokens(row, 2)?,
        output_tokens: tokens(row, 3)?,
        reasoning_output_tokens: tokens(row, 4)?,
        cost: money(row, 5)?,
        list_cost: money(row, 6)?,
        unknown_cost_requests: row.try_get(7)?,
        counted_requests: count(8)?,
        unknown_usage_requests: row.try_get(9)?,
    };
    Numbered::new(sums, row.try_get(10)?).map_err(Fault::unreadable)
}

/// A row with its lines in place of their numbers.
fn with_lines(row: Numbered, lines: &HashMap<i64, LineKey>) -> Result<Hour, Fault> {
    let Numbered { sums, quantities } = row;
    let line = |(number, quantity): (i64, Decimal)| {
        let line = lines.get(&number).ok_or_else(|| unknown("a line"))?;
        Ok((line.clone(), quantity))
    };
    Ok(Hour { sums, lines: quantities.into_iter().map(line).collect::<Result<_, Fault>>()? })
}

fn write(link: &Link, sums: &BTreeMap<HourPart, Hour>) -> Result<(), Fault> {
    let numbers = line_numbers(link, sums.values().flat_map(|hour| hour.lines.keys()))?;
    let quantities = sums.values().map(|hour| {
        let numbered = hour.lines.iter().filter_map(|(l, q)| Some((*numbers.get(l)?, *q)));
        json(&numbered.gather::<Quantities>())
    });
    let quantities = quantities.collect::<Result<Vec<_>, _>>()?;
    let place = |of: fn(&HourPart) -> i64| sums.keys().map(of).collect::<Vec<_>>();
    let places = [place(|place| place.0), place(|place| place.1), place(|place| place.2)];
    let count = |of: fn(&Sums) -> u64| {
        sums.values().map(|hour| of(&hour.sums).cast_signed()).collect::<Vec<_>>()
    };
    let tokens = |of: fn(&Sums) -> Option<u64>| {
        sums.values().map(|hour| of(&hour.sums).map(u64::cast_signed)).collect::<Vec<_>>()
    };
    let money = |of: fn(&Sums) -> Option<Decimal>| {
        sums.values().map(|hour| of(&hour.sums).map(|money| money.to_string())).collect::<Vec<_>>()
    };
    let [requests, counted] = [count(|sums| sums.requests), count(|sums| sums.counted_requests)];
    let unknown_usage: Vec<_> = sums.values().map(|h| h.sums.unknown_usage_requests).collect();
    let [input, cache_read, output, reasoning] = [
        tokens(|sums| sums.input_tokens),
        tokens(|sums| sums.cache_read_input_tokens),
        tokens(|sums| sums.output_tokens),
        tokens(|sums| sums.reasoning_output_tokens),
    ];
    let [cost, list_cost] = [money(|sums| sums.cost), money(|sums| sums.list_cost)];
    let unknown_cost: Vec<_> = sums.values().map(|h| h.sums.unknown_cost_requests).collect();
    let [hours, combinations, parts] = &places;
    let given: [Given<'_>; 14] = [
        (hours, Type::INT8_ARRAY),
        (combinations, Type::INT8_ARRAY),
        (parts, Type::INT8_ARRAY),
        (&requests, Type::INT8_ARRAY),
        (&input, Type::INT8_ARRAY),
        (&cache_read, Type::INT8_ARRAY),
        (&output, Type::INT8_ARRAY),
        (&reasoning, Type::INT8_ARRAY),
        (&cost, Type::TEXT_ARRAY),
        (&list_cost, Type::TEXT_ARRAY),
        (&unknown_cost, Type::INT8_ARRAY),
        (&counted, Type::INT8_ARRAY),
        (&unknown_usage, Type::INT8_ARRAY),
        (&quantities, Type::TEXT_ARRAY),
    ];
    link.query(SET_PARTS, &given).map(|_| ())
}

/// The numbers that stand for keys, in their order.
fn combinations<'a>(
    link: &Link,
    keys: impl Iterator<Item = &'a HourKey>,
) -> Result<Vec<i64>, Fault> {
    let keys: Vec<_> = keys.map(|key| Ok((json(key)?, key))).collect::<Result<_, Fault>>()?;
    let tenants: HashMap<_, _> = keys.iter().map(|(text, key)| (&**text, &*key.tenant)).collect();
    let numbers = numbers(link, COMBINATIONS, tenants.keys().copied(), |digests, texts| {
        let tenants: Vec<_> =
            texts.iter().map(|text| storable(tenants.get(text).unwrap_or(&""))).collect();
        let given: [Given<'_>; 3] = [
            (&digests, Type::BYTEA_ARRAY),
            (&texts, Type::TEXT_ARRAY),
            (&tenants, Type::TEXT_ARRAY),
        ];
        link.query(ADD_COMBINATIONS, &given)
    })?;
    let number = |text| numbers.get(text).copied().ok_or_else(|| unknown("a combination"));
    keys.iter().map(|(text, _)| number(&**text)).collect()
}

/// The numbers that stand for lines.
fn line_numbers<'a>(
    link: &Link,
    lines: impl Iterator<Item = &'a LineKey>,
) -> Result<HashMap<&'a LineKey, i64>, Fault> {
    let lines: BTreeSet<_> = lines.gather_set();
    let texts: Vec<_> =
        lines.into_iter().map(|line| Ok((json(line)?, line))).collect::<Result<_, Fault>>()?;
    let all = texts.iter().map(|(text, _)| &**text);
    let numbers = numbers(link, LINES, all, |digests, texts| {
        let given = [(&digests as _, Type::BYTEA_ARRAY), (&texts as _, Type::TEXT_ARRAY)];
        link.query(ADD_LINES, &given)
    })?;
    let number = |text| numbers.get(text).copied().ok_or_else(|| unknown("a line"));
    texts.iter().map(|(text, line)| Ok((*line, number(&**text)?))).collect()
}

/// The numbers of distinct `texts`; `add` those that have none.
fn numbers<'a>(
    link: &Link,
    find: &str,
    texts: impl Iterator<Item = &'a str>,
    add: impl Fn(Vec<Vec<u8>>, Vec<&'a str>) -> Result<Vec<Row>, Fault>,
) -> Result<HashMap<&'a str, i64>, Fault> {
    let mut missing: BTreeMap<Vec<u8>, &str> =
        texts.map(|text| (Sha256::digest(text).to_vec(), text)).gather();
    let mut numbers = HashMap::new();
    let mut take = |missing: &mut BTreeMap<Vec<u8>, &'a str>, rows: &[Row]| {
        for row in rows {
            if let Some(text) = missing.remove(row.try_get::<_, &[u8]>(0)?) {
                numbers.insert(text, row.try_get(1)?);
            }
        }
        Ok::<_, Fault>(())
    };
    let digests: Vec<_> = missing.keys().collect();
    let found = link.query(find, &[(&digests, Type::BYTEA_ARRAY)])?;
    take(&mut missing, &found)?;
    if !missing.is_empty() {
        let (digests, texts) = missing.iter().map(|(digest, text)| (digest.clone(), *text)).unzip();
        let added = add(digests, texts)?;
        take(&mut missing, &added)?;
    }
    Ok(numbers)
}

/// What numbers stand for, from rows of a number and its JSON.
fn texts<T: DeserializeOwned>(
    link: &Link,
    question: &str,
    given: &[Given<'_>],
) -> Result<HashMap<i64, T>, Fault> {
    let mut found = HashMap::new();
    link.each(question, given, |row| {
        let json: &str = row.try_get(1)?;
        let text = serde_json::from_slice(json.as_bytes()).map_err(Fault::unreadable)?;
        found.insert(row.try_get(0)?, text);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// An exact decimal.
fn money(row: &Row, column: usize) -> Result<Option<Decimal>, Fault> {
    let amount = row.try_get::<_, Option<&str>>(column)?.map(Decimal::from_str_exact);
    amount.transpose().map_err(Fault::unreadable)
}

fn json(value: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(Fault::unreadable)
}

/// A number stands for nothing.
fn unknown(what: &str) -> Fault {
    Fault::unreadable(format!("an hour names {what} that is not there"))
}
