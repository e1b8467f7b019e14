//! Earlier formats are read, later ones are not.

use super::*;

#[test]
fn a_later_format_is_named_with_both_versions() {
    let (mut bytes, _, _) = segment(&[], Position::START);
    bytes[8] = 5;
    let (_, end) = read_whole(&bytes);
    assert_eq!(end, Err(Fault::Newer { found: 5, known: 4 }));
    assert_eq!(
        end.unwrap_err().to_string(),
        "format 5 is newer than 4, the last that this version reads"
    );
}

#[test]
fn an_earlier_format_is_read() {
    for version in 1..FORMAT_VERSION {
        let (mut bytes, _, _) = segment(&[void(1)], Position::START);
        bytes[8..10].copy_from_slice(&version.to_le_bytes());
        let crc = crc32c::crc32c(&bytes[..508]);
        bytes[508..512].copy_from_slice(&crc.to_le_bytes());
        let mut reader = Reader::new(None, 1);
        reader.feed(&bytes);
        let framed = reader.next_entry().unwrap().unwrap();
        assert_eq!(framed.entry(), Ok(void(1)));
        assert_eq!((reader.next_entry(), reader.finish()), (Ok(None), Ok(())));
        let SegmentHeader { marked, follows, .. } = reader.header().unwrap();
        assert_eq!(*marked, version == 3, "who wrote it knew of no marks");
        assert_eq!(*follows, None, "and of no digests");
    }
}
