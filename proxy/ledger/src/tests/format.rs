//! Readers accept one format.

use super::*;

#[test]
fn another_format_is_named_with_both_versions() {
    for version in [0, 1, 2, 3, 5] {
        let (mut bytes, _, _) = segment(&[void(1)], Position::START);
        bytes[8] = version;
        let crc = crc32c::crc32c(&bytes[..508]);
        bytes[508..512].copy_from_slice(&crc.to_le_bytes());
        let (entries, end) = read_whole(&bytes);
        assert!(entries.is_empty());
        let fault = Fault::Format { found: version.into(), known: 4 };
        assert_eq!(end, Err(fault.clone()));
        let told = format!("format {version} is not 4, the one that this version reads");
        assert_eq!(fault.to_string(), told);
    }
}
