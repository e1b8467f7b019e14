use std::collections::BTreeMap;

use super::*;

/// 300 requests of two ledgers. Entries and rows have different orders.
fn requests() -> Vec<(Place, Record)> {
    let mut requests: Vec<_> = (0..300)
        .map(|number| {
            let (own, seq) = (number % 3 != 0, u64::from(number * 7 % 300) + 1);
            let record = Record { seq, ..record(number) };
            (Place { ledger: ledger(if own { 7 } else { 8 }), seq }, record)
        })
        .collect();
    requests.sort_by(|(_, a), (_, b)| (&a.tenant, a.id).cmp(&(&b.tenant, b.id)));
    requests
}

fn file() -> DayFile<Bytes> {
    let mut writer = writer(&SMALL);
    for (place, record) in requests() {
        writer.add(place, &payload(&record)).unwrap();
    }
    open(writer.finish().unwrap().file.out)
}

/// The entries of a ledger in this range, and the payloads of their requests.
fn expected(of: LedgerId, (after, until): (u64, u64)) -> BTreeMap<u64, Vec<u8>> {
    let requests = requests().into_iter();
    requests
        .filter(|(place, _)| place.ledger == of && place.seq > after && place.seq <= until)
        .map(|(place, record)| (place.seq, payload(&record)))
        .collect()
}

#[test]
fn rows_come_by_the_numbers_of_their_entries_whatever_order_the_file_has() {
    let file = file();
    for (of, range, limit) in [
        (ledger(7), (0, u64::MAX), 1000),
        (ledger(7), (0, u64::MAX), 20),
        (ledger(7), (33, 150), 50),
        (ledger(8), (33, 150), 1),
        (ledger(8), (299, 400), 9),
        (ledger(9), (0, u64::MAX), 9),
    ] {
        let expected: Vec<_> = expected(of, range).into_iter().take(limit).collect();
        let found = file.entries(of, range, limit).unwrap();
        let numbers: Vec<_> = found.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(numbers, expected.iter().map(|(seq, _)| *seq).collect::<Vec<_>>());
        let mut rows: Vec<_> = found.iter().map(|(_, at)| *at).collect();
        let mut payloads = BTreeMap::new();
        file.rows_at(&mut rows, &mut |_, row| {
            assert_eq!(row.place.ledger, of);
            payloads.insert(row.place.seq, row.payload.to_vec());
        })
        .unwrap();
        assert_eq!(payloads.into_iter().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn it_counts_what_is_behind_an_entry() {
    let file = file();
    for of in [7, 8, 9].map(ledger) {
        for after in [0, 1, 33, 299, 300, 999] {
            let expected = expected(of, (after, u64::MAX)).len() as u64;
            assert_eq!(file.count_behind(of, after).unwrap(), expected, "{of:?} {after}");
        }
    }
}
