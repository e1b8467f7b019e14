//! Earlier formats are read, later ones are not.

use super::*;

#[test]
fn a_later_format_is_named_with_both_versions() {
    let (mut bytes, _, _) = segment(&[], Position::START);
    bytes[8] = 4;
    let (_, end) = read_whole(&bytes);
    assert_eq!(end, Err(Fault::Newer { found: 4, known: 3 }));
    assert_eq!(
        end.unwrap_err().to_string(),
        "format 4 is newer than 3, the last that this version reads"
    );
}

#[test]
fn an_earlier_format_is_read() {
    for version in [1, 2] {
        let (mut bytes, _, _) = segment(&[void(1)], Position::START);
        bytes[8] = version;
        let crc = crc32c::crc32c(&bytes[..508]);
        bytes[508..512].copy_from_slice(&crc.to_le_bytes());
        let mut reader = Reader::new(None, 1);
        reader.feed(&bytes);
        let framed = reader.next_entry().unwrap().unwrap();
        assert_eq!(framed.entry(), Ok(void(1)));
        assert_eq!((reader.next_entry(), reader.finish()), (Ok(None), Ok(())));
        // Who wrote it knew of no marks.
        assert!(!reader.header().unwrap().marked);
    }
}
