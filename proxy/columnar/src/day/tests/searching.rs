use std::sync::LazyLock;

use taximeter_ledger::TenantId;

use super::*;

/// 1000 requests.
fn file() -> DayFile<Bytes> {
    static FILE: LazyLock<Bytes> =
        LazyLock::new(|| Arc::new(sealed(&SMALL, (0..1000).map(record).collect()).file.out));
    DayFile::open(Arc::clone(&FILE)).unwrap()
}

fn at(number: u32) -> Option<Timestamp> {
    Some(record(number).started_at)
}

#[test]
fn each_request_is_found_by_its_id() {
    let file = file();
    let mut found = Vec::new();
    for number in 0..1000 {
        let record = record(number);
        assert_eq!(file.find(record.id, &mut found).unwrap(), Some(place(&record)));
        assert_eq!(found, payload(&record));
    }
    for number in 1000..1100 {
        assert_eq!(file.find(record(number).id, &mut found).unwrap(), None);
    }
}

#[test]
fn bloom_filters_take_what_is_there_and_hardly_anything_else() {
    let file = file();
    let takes = |group, number| file.filter_takes(group, record(number).id.0.as_bytes()).unwrap();
    assert!((0..1000).all(|number| (0..file.kept.groups()).any(|group| takes(group, number))));
    let wrong = (1000..3000).filter(|number| takes(0, *number)).count();
    assert!(wrong < 100, "{wrong} of 2000");
}

fn filters() -> impl Strategy<Value = RowFilter> {
    let tenant =
        proptest::option::of(proptest::sample::select(vec!["acme", "blue", "dock", "none"]));
    let time = || proptest::option::of(0..1000_u32);
    (tenant, time(), time()).prop_map(|(tenant, from, to)| RowFilter {
        tenant: tenant.map(str::to_owned),
        from: from.and_then(at),
        to: to.and_then(at),
    })
}

/// The same records, one by one.
fn matching(filter: &RowFilter) -> Vec<Record> {
    let all = (0..1000).map(record);
    let is_asked = |record: &Record| {
        filter.takes_tenant(record.tenant.as_str().as_bytes())
            && filter.from.is_none_or(|from| record.started_at >= from)
            && filter.to.is_none_or(|to| record.started_at < to)
    };
    all.filter(is_asked).collect()
}

fn key(record: &Record) -> AdmissionKey {
    AdmissionKey { at: record.started_at.as_microsecond(), id: record.id.0.as_bytes().to_vec() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_scan_shows_what_its_filter_takes_in_order(filter in filters()) {
        let file = file();
        let mut expected = matching(&filter);
        expected.sort_by(|a, b| (&a.tenant, a.id).cmp(&(&b.tenant, b.id)));
        prop_assert_eq!(file.count(&filter).unwrap(), expected.len() as u64);
        let expected: Vec<_> = expected.iter().map(|it| (place(it), payload(it))).collect();
        prop_assert_eq!(rows(&file, filter), expected);
    }

    #[test]
    fn the_first_and_the_last_come_in_the_order_of_admission(
        filter in filters(),
        start in proptest::option::of(0..1000_u32),
        limit in 0..60_usize,
    ) {
        let file = file();
        let start = start.map(|number| key(&record(number)));
        let mut expected = matching(&filter);
        expected.sort_by_key(key);
        let mut backward: Vec<_> = expected.clone();
        backward.retain(|it| start.as_ref().is_none_or(|start| key(it) < *start));
        expected.retain(|it| start.as_ref().is_none_or(|start| key(it) >= *start));
        expected.truncate(limit);
        backward.reverse();
        backward.truncate(limit);
        let mut found = Vec::new();
        file.first(&filter, start.as_ref(), limit, &mut |at, place, payload| {
            let record = Record::decode(place.seq, payload).unwrap();
            assert_eq!(*at, key(&record));
            found.push(record);
        }).unwrap();
        prop_assert_eq!(&found, &expected);
        found.clear();
        file.last(&filter, start.as_ref(), limit, &mut |_, place, payload| {
            found.push(Record::decode(place.seq, payload).unwrap());
        }).unwrap();
        prop_assert_eq!(&found, &backward);
    }
}

#[test]
fn tenants_with_long_names_are_told_apart() {
    let name = |number: u32| format!("{}{}", "é".repeat(50), number % 3);
    let of = |number| Record { tenant: TenantId(name(number).into()), ..record(number) };
    let file = open(sealed(&SMALL, (0..600).map(of).collect()).file.out);
    for number in 0..4 {
        let filter = RowFilter { tenant: Some(name(number)), ..RowFilter::default() };
        assert_eq!(file.count(&filter).unwrap(), 200);
        assert_eq!(rows(&file, filter).len(), 200);
    }
    let filter = RowFilter { tenant: Some("é".repeat(50)), ..RowFilter::default() };
    assert_eq!(file.count(&filter).unwrap(), 0);
}

/// Counts the bytes that are read.
struct Counting(Vec<u8>, std::sync::atomic::AtomicU64);

impl ReadAt for Counting {
    fn length(&self) -> std::io::Result<u64> {
        self.0.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.1.fetch_add(buffer.len() as u64, std::sync::atomic::Ordering::Relaxed);
        self.0.read_at(offset, buffer)
    }
}

#[test]
fn a_request_is_found_without_reading_the_others() {
    let sealed = sealed(&Layout::small(10_000, 2000), (0..40_000).map(record).collect());
    let bytes = Arc::new(Counting(sealed.file.out, 0.into()));
    let file = DayFile::open(Arc::clone(&bytes)).unwrap();
    let opened = bytes.1.load(std::sync::atomic::Ordering::Relaxed);
    file.find(record(20_000).id, &mut Vec::new()).unwrap().unwrap();
    let read = bytes.1.load(std::sync::atomic::Ordering::Relaxed) - opened;
    assert!(opened * 10 < sealed.file.bytes, "{opened} of {}", sealed.file.bytes);
    assert!(read * 3 < sealed.file.bytes, "{read} of {}", sealed.file.bytes);
}

#[test]
fn of_many_ids_those_are_told_that_are_in_the_file() {
    let file = file();
    let mut ids: Vec<_> = (500..1500).step_by(3).map(|number| record(number).id).collect();
    ids.sort_unstable();
    let mut found = Vec::new();
    file.has(&ids, &mut |place| found.push(ids[place])).unwrap();
    found.sort_unstable();
    let mut expected: Vec<_> = (500..1000).step_by(3).map(|number| record(number).id).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

proptest! {
    #[test]
    fn the_tenants_are_those_of_the_rows_that_a_filter_takes(filter in filters()) {
        let mut tenants = std::collections::BTreeSet::new();
        file().tenants(&filter, &mut |tenant| tenants.extend([tenant.to_owned()])).unwrap();
        let expected: std::collections::BTreeSet<_> =
            matching(&filter).iter().map(|record| record.tenant.as_str().to_owned()).collect();
        prop_assert_eq!(tenants, expected);
    }
}
