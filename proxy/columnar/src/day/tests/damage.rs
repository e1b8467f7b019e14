use super::*;
use crate::error::Part;

fn checked(bytes: Vec<u8>) -> Checked {
    check(Arc::new(bytes), &Expected::default()).unwrap()
}

fn file() -> SealedDay<Vec<u8>> {
    sealed(&SMALL, (0..450).map(record).collect())
}

fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap()
}

#[test]
fn a_sound_file_has_no_findings() {
    let sealed = file();
    let expected = Expected {
        gateway: Some("gw/0".to_owned()),
        day: Some(TODAY),
        sha256: Some(sealed.file.sha256),
    };
    let checked = check(Arc::new(sealed.file.out), &expected).unwrap();
    assert_eq!(checked.findings, []);
    assert_eq!((checked.rows, checked.footer), (450, Some(sealed.footer)));
}

#[test]
fn each_flipped_byte_is_found_and_its_row_group_is_named() {
    let whole = file().file.out;
    let file = open(whole.clone());
    let begins: Vec<_> = (0..file.kept.groups())
        .map(|group| size(file.kept.group(group).unwrap().column(0).byte_range().0))
        .collect();
    let end = file.kept.body_bytes();
    for at in (0..whole.len()).step_by(13).chain(whole.len() - 300..whole.len()) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        let findings = checked(bytes).findings;
        assert!(!findings.is_empty(), "byte {at} of {}", whole.len());
        let part = begins.iter().rposition(|begin| *begin <= at).unwrap_or(0);
        let part = if at < end { Part::Group(part) } else { Part::Footer };
        assert!(findings.iter().any(|finding| finding.part == part), "byte {at}: {findings:?}");
    }
}

#[test]
fn each_cut_is_found() {
    let whole = file().file.out;
    for length in (0..whole.len()).step_by(131).chain(whole.len() - 200..whole.len()) {
        let findings = checked(whole[..length].to_vec()).findings;
        assert!(!findings.is_empty(), "{length} of {} bytes", whole.len());
    }
}

#[test]
fn nobody_reads_a_damaged_row() {
    let whole = file().file.out;
    let end = open(whole.clone()).kept.body_bytes();
    for at in (4..end).step_by(997) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        let file = open(bytes);
        let mut scan = file.scan(RowFilter::default());
        let (mut rows, mut errors) = (0, 0);
        loop {
            match scan.next_row() {
                Ok(Some(row)) => {
                    let number = u32::try_from(row.place.seq).unwrap() - 1;
                    assert_eq!(row.payload, payload(&record(number)));
                    rows += 1;
                }
                Ok(None) => break,
                Err(_) => errors += 1,
            }
        }
        assert!(rows + errors <= 450);
    }
}

#[test]
fn a_file_in_place_of_another_is_found() {
    let expected = |gateway: &str, day| Expected {
        gateway: Some(gateway.to_owned()),
        day: Some(day),
        sha256: Some(file().file.sha256),
    };
    let findings = |bytes, expected| check(Arc::new(bytes), &expected).unwrap().findings;
    let told = findings(file().file.out, expected("gw/1", TODAY));
    assert!(told[0].what.contains("gw/0") && told[0].part == Part::Footer, "{told:?}");
    let told = findings(file().file.out, expected("gw/0", date(2026, 11, 21)));
    assert!(told[0].what.contains("2026-11-20"), "{told:?}");
    let other = sealed(&SMALL, (0..451).map(record).collect()).file.out;
    assert_eq!(findings(other, expected("gw/0", TODAY)).len(), 1);
}

#[test]
fn bytes_of_any_kind_are_no_file_and_no_panic() {
    for bytes in [vec![], vec![0; 7], vec![0xff; 4096], [vec![0xff; 64], b"PAR1".to_vec()].concat()]
    {
        assert_eq!(checked(bytes).findings[0].part, Part::Footer);
    }
    let mut other = crate::RecordsParquet::new(Vec::new()).unwrap();
    other.add(&mut crate::RecordRows::new()).unwrap();
    assert_eq!(checked(other.finish().unwrap()).findings[0].part, Part::Footer);
}
