//! Files of sessions of a day.

use std::collections::BTreeMap;

use jiff::civil::date;
use proptest::prelude::*;
use taximeter_columnar::ReadError;

use super::days::sum;
use crate::{DaySum, SessionRow, SessionsFile, SessionsWriter, check_sessions};

fn written(rows: &BTreeMap<(String, String), DaySum>) -> Vec<u8> {
    let day = date(2026, 11, 20);
    let mut writer = SessionsWriter::new(Vec::new(), "gw/0", day, BTreeMap::new()).unwrap();
    for ((tenant, session), sum) in rows {
        writer.add(tenant, session, sum).unwrap();
    }
    let sealed = writer.finish().unwrap();
    assert_eq!(sealed.footer.sessions, rows.len() as u64);
    sealed.file.out
}

fn read(file: &[u8], tenant: Option<&str>, session: Option<&str>) -> Vec<SessionRow> {
    let mut rows = SessionsFile::open(file.to_vec()).unwrap().rows(tenant, session);
    std::iter::from_fn(|| rows.next_row().unwrap()).collect()
}

fn any_rows() -> impl Strategy<Value = BTreeMap<(String, String), DaySum>> {
    let key = ("[ab]{1,2}", "[a-c]{1,2}");
    prop::collection::btree_map(key, (0..99_u128).prop_map(sum), 0..30)
}

proptest! {
    #[test]
    fn what_was_written_is_read_of_all_and_of_each_name(rows in any_rows()) {
        let file = written(&rows);
        prop_assert_eq!(check_sessions(file.clone()).unwrap(), []);
        let expected = |takes: &dyn Fn(&str, &str) -> bool| {
            let rows = rows.iter().filter(|((tenant, session), _)| takes(tenant, session));
            let row = |((tenant, session), sum): (&(String, String), &DaySum)| SessionRow {
                tenant: tenant.clone(),
                session: session.clone(),
                sum: sum.clone(),
            };
            rows.map(row).collect::<Vec<_>>()
        };
        prop_assert_eq!(read(&file, None, None), expected(&|_, _| true));
        for name in ["a", "ab", "bc", "c"] {
            prop_assert_eq!(read(&file, None, Some(name)), expected(&|_, it| it == name));
            prop_assert_eq!(read(&file, Some("b"), Some(name)), expected(&|of, it| of == "b" && it == name));
        }
        prop_assert_eq!(read(&file, Some("aa"), None), expected(&|of, _| of == "aa"));
    }
}

#[test]
fn sessions_in_another_order_are_refused() {
    let mut writer =
        SessionsWriter::new(Vec::new(), "gw/0", date(2026, 11, 20), BTreeMap::new()).unwrap();
    writer.add("acme", "b", &sum(1)).unwrap();
    for (tenant, session) in [("acme", "a"), ("acme", "b"), ("abc", "c")] {
        assert!(writer.add(tenant, session, &sum(2)).is_err(), "{tenant} {session}");
    }
}

#[test]
fn each_flipped_byte_is_found() {
    let names = (0..40).map(|number| (("acme".to_owned(), format!("s-{number:02}")), sum(number)));
    let file = written(&names.collect());
    for at in 0..file.len() {
        let mut damaged = file.clone();
        damaged[at] ^= 0x10;
        let findings = match check_sessions(damaged) {
            Ok(findings) => findings.len(),
            Err(ReadError::Read(_)) => 1,
            Err(error) => panic!("{error}"),
        };
        assert!(findings > 0, "byte {at} of {}", file.len());
    }
}
