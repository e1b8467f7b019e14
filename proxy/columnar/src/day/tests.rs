//! Files of a day, written and read.

mod by_entry;
mod damage;
mod merging;
mod searching;
mod sessions;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{Date, date};
use proptest::prelude::*;
use rust_decimal::Decimal;
use taximeter_ledger::{
    Dimensions, Gaps, LedgerId, Place, Record, RecordError, RequestKind, SessionSource, Stages,
};
use uuid::Uuid;

use super::*;
use crate::error::WriteError;
use crate::kept::{ReadAt, RowFilter};
use crate::samples::{DAY, record, records};
use crate::table::Layout;

const TODAY: Date = date(2026, 11, 20);
/// Small, so that a file of few rows has several row groups and pages.
const SMALL: Layout = Layout::small(200, 40);

type Bytes = Arc<Vec<u8>>;

fn ledger(number: u128) -> LedgerId {
    LedgerId(Uuid::from_u128(number))
}

fn payload(record: &Record) -> Vec<u8> {
    let mut payload = Vec::new();
    record.encode(&mut payload);
    payload
}

fn place(record: &Record) -> Place {
    Place { ledger: ledger(7), seq: record.seq }
}

fn writer(layout: &Layout) -> DayWriter<Vec<u8>> {
    DayWriter::laid_out(Vec::new(), "gw/0", TODAY, Vec::new(), layout, 20).unwrap()
}

/// A file of these records, sorted.
fn sealed(layout: &Layout, mut records: Vec<Record>) -> SealedDay<Vec<u8>> {
    records.sort_by(|a, b| (&a.tenant, a.id).cmp(&(&b.tenant, b.id)));
    let mut writer = writer(layout);
    for record in &records {
        writer.add(place(record), &payload(record)).unwrap();
    }
    writer.finish().unwrap()
}

fn open(bytes: Vec<u8>) -> DayFile<Bytes> {
    DayFile::open(Arc::new(bytes)).unwrap()
}

/// All rows that `filter` takes.
fn rows(file: &DayFile<Bytes>, filter: RowFilter) -> Vec<(Place, Vec<u8>)> {
    let mut scan = file.scan(filter);
    let mut rows = Vec::new();
    while let Some(row) = scan.next_row().unwrap() {
        rows.push((row.place, row.payload.to_vec()));
    }
    rows
}

fn any_records() -> impl Strategy<Value = Vec<Record>> {
    (1..5_u32).prop_flat_map(|count| (0..count).map(records).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn any_record_is_read_back_byte_for_byte(records in any_records()) {
        let expected: Vec<_> = {
            let mut records = records.clone();
            records.sort_by(|a, b| (&a.tenant, a.id).cmp(&(&b.tenant, b.id)));
            records.iter().map(|record| (place(record), payload(record))).collect()
        };
        let file = open(sealed(&SMALL, records).file.out);
        let mut scan = file.scan(RowFilter::default());
        let mut found = Vec::new();
        while let Some(row) = scan.next_row().unwrap() {
            prop_assert_eq!(row.record, &Record::decode(row.place.seq, row.payload).unwrap());
            found.push((row.place, row.payload.to_vec()));
        }
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn members_of_a_later_version_are_kept() {
    let whole = record(1);
    let mut payload = payload(&whole);
    // Member 99 with the number 5, before the end.
    payload.pop();
    payload.extend([0xc6, 0x01, 5, b'.']);
    assert_eq!(Record::decode(whole.seq, &payload).unwrap(), whole);
    let mut writer = writer(&SMALL);
    writer.add(place(&whole), &payload).unwrap();
    let file = open(writer.finish().unwrap().file.out);
    assert_eq!(rows(&file, RowFilter::default()), [(place(&whole), payload)]);
}

/// A file that `day FILE 20` (in `examples`) has written before records told tools and dimensions.
const EARLY: &[u8] = include_bytes!("tests/early.parquet");

#[test]
fn what_a_file_of_an_earlier_version_lacks_is_absent() {
    let early = open(EARLY.to_vec());
    let found = rows(&early, RowFilter::default());
    assert_eq!(found.len(), 20);
    let decoded = found.iter().map(|(place, payload)| Record::decode(place.seq, payload).unwrap());
    let tells_none = |record: Record| record.tools.is_empty() && record.dimensions.is_none();
    assert!(decoded.into_iter().all(tells_none));
    assert_eq!(check(Arc::new(EARLY.to_vec()), &Expected::default()).unwrap().findings, []);
    // Merged with others it is a file as those of today.
    let mut called = record(1);
    called.tools.insert("exec".to_owned(), 2);
    called.dimensions = Some(all_dimensions());
    let mut merged = writer(&SMALL);
    merge(&[early, open(sealed(&SMALL, vec![called.clone()]).file.out)], &mut merged).unwrap();
    let merged = open(merged.finish().unwrap().file.out);
    let all = rows(&merged, RowFilter::default());
    assert_eq!(all.len(), 21);
    assert!(all.contains(&(place(&called), payload(&called))));
    assert!(found.iter().all(|row| all.contains(row)));
}

fn all_dimensions() -> Box<Dimensions> {
    let name = |name: &str| Some(name.to_owned());
    Box::new(Dimensions {
        session: name("5f3f0c3a-4c1e-4d55-9a6b-0d4a5e3c2b1a"),
        session_source: Some(SessionSource::Derived),
        agent: name("root"),
        parent_agent: name("main"),
        client: name("codex/0.169"),
        turn: name("1"),
        end_user: name("8f14e45fceea167a5a36dedd4bea2543"),
        tags: [("team".to_owned(), "search".to_owned())].into(),
        kind: Some(RequestKind::Compaction),
    })
}

/// Whether the columns of a record say all of it, so that its payload is not kept besides.
fn is_in_columns(record: Record) -> bool {
    let file = open(sealed(&SMALL, vec![record]).file.out);
    let mut cursor = file.cursor(0, "payload").unwrap();
    cursor.read(0, 1).unwrap();
    cursor.next_value().is_none()
}

#[test]
fn columns_say_all_of_a_record_that_is_not_extreme() {
    let of = |change: fn(&mut Record)| {
        let mut record = record(1);
        change(&mut record);
        record
    };
    let all: [fn(&mut Record); 17] = [
        |_| {},
        |it| it.tools = [("exec".to_owned(), 2), ("mcp:a/b".to_owned(), 1 << 40)].into(),
        |it| it.dimensions = Some(all_dimensions()),
        |it| {
            it.dimensions =
                Dimensions { client: Some(String::new()), ..Default::default() }.if_any()
        },
        |it| it.request_id = it.id.to_string(),
        |it| it.error = Some(RecordError::default()),
        |it| it.usage.modalities = Some(BTreeMap::new()),
        |it| it.usage.passes = Some(Vec::new()),
        |it| it.timing.gaps = Some(Gaps::default()),
        |it| it.timing.gaps = Some(Gaps::from(vec![3, 0, u32::MAX])),
        |it| (it.cost, it.cost_known) = (None, it.cost.take()),
        |it| it.cost = None,
        // Zeros at the end of amounts, and a list price.
        |it| it.cost.iter_mut().for_each(|cost| cost.lines[0].unit_price.rescale(12)),
        |it| {
            let cost = it.cost.as_mut().unwrap();
            cost.lines[0].list_unit_price = Some("0.0000050".parse().unwrap());
            cost.list_amount = Decimal::ONE * "0.0000050".parse::<Decimal>().unwrap();
        },
        |it| it.cost.iter_mut().for_each(|cost| cost.amount = cost.amount.normalize()),
        |it| {
            let cost = it.cost.as_mut().unwrap();
            (cost.amount, cost.list_amount) = ("7.500".parse().unwrap(), "8.0".parse().unwrap());
        },
        |it| {
            it.timing.stages = Some(Stages::lasting([Some(Duration::from_micros(7)); 9]));
            it.timing.duration = 1e9;
            it.ended_at = Timestamp::UNIX_EPOCH;
        },
    ];
    for (place, change) in all.into_iter().enumerate() {
        let mut record = of(change);
        if let Some(cost) = &mut record.cost_known {
            cost.at_least = true;
        }
        assert!(is_in_columns(record), "{place}");
    }
    let extreme = of(|it| it.usage.input_tokens = Some(u64::MAX));
    assert!(!is_in_columns(extreme));
}

#[test]
fn the_footer_says_what_is_in_the_file() {
    let sealed = sealed(&SMALL, (0..500).map(record).collect());
    let file = open(sealed.file.out);
    let footer = file.footer();
    assert_eq!(footer, &sealed.footer);
    assert_eq!((footer.rows, footer.day, footer.groups.len()), (500, TODAY, 3));
    let range = LedgerRange { ledger: ledger(7), first: 1, last: 500, rows: 500 };
    assert_eq!(footer.ledgers, [range]);
    let cost = (0..500).map(|number| record(number).cost.unwrap().amount).sum();
    assert_eq!(footer.costs.get("USD"), Some(&cost));
}

#[test]
fn the_same_rows_make_the_same_bytes() {
    let bytes = || sealed(&SMALL, (0..500).map(record).collect()).file.sha256;
    assert_eq!(bytes(), bytes());
}

#[test]
fn rows_in_another_order_or_of_another_day_are_refused() {
    let mut writer = writer(&SMALL);
    let [first, second] = [record(0), record(4)];
    writer.add(place(&second), &payload(&second)).unwrap();
    let mut add = |record: &Record| writer.add(place(record), &payload(record));
    for record in [&first, &second] {
        assert!(matches!(add(record), Err(WriteError::Misplaced { .. })));
    }
    let started_at = Timestamp::from_microsecond(DAY - 1).unwrap();
    let yesterday = Record { started_at, ..record(8) };
    let told = add(&yesterday).unwrap_err().to_string();
    assert!(told.contains("2026-11-19"), "{told}");
    assert!(matches!(writer.add(place(&first), b"no post"), Err(WriteError::Unreadable { .. })));
    assert_eq!(writer.finish().unwrap().footer.rows, 1);
}

#[test]
fn a_file_without_rows_is_a_file() {
    let file = open(writer(&SMALL).finish().unwrap().file.out);
    assert_eq!(rows(&file, RowFilter::default()), []);
    assert_eq!(file.count(&RowFilter::default()).unwrap(), 0);
    assert_eq!(file.find(record(1).id, &mut Vec::new()).unwrap(), None);
}
