//! The checks in a footer.

/// The key of the length of the row groups. Behind them are the CRC32C of each piece of
/// [`BLOCK_BYTES`](super::blocks::BLOCK_BYTES) of them in 4 bytes, and then the indexes.
pub(super) const BODY_KEY: &str = "taximeter.body";
/// The key of two CRC32C in hexadecimal: of the bytes from the end of the row groups to the
/// footer, and of the footer from its first byte to the end of the file, with zeros in place of
/// this second value.
pub(super) const CHECK_KEY: &str = "taximeter.check";
/// Characters of one of these, and of both.
pub(super) const CHECK_LENGTH: usize = 8;
const CHECKS_LENGTH: u8 = 16;
/// Longest footer. A file of a day has 70 KiB for each million of rows.
pub(super) const FOOTER_BYTES_MAX: u64 = 64 << 20;

/// Where the second value of the key-value [`CHECK_KEY`] is in the bytes of a footer.
///
/// It is found by its key, because the footer is not parsed before it is checked: the key, then
/// the type and the length of the value in Thrift's compact protocol.
pub(super) fn check_position(footer: &[u8]) -> Option<usize> {
    let mut pattern = CHECK_KEY.as_bytes().to_vec();
    pattern.extend([0x18, CHECKS_LENGTH]);
    let start = footer.windows(pattern.len()).rposition(|window| window == pattern)?;
    let value = start + pattern.len() + CHECK_LENGTH;
    (value + CHECK_LENGTH <= footer.len()).then_some(value)
}

/// A CRC32C in hexadecimal.
pub(super) fn check_text(check: u32) -> String {
    format!("{check:08x}")
}

/// Hexadecimal digits of bytes.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
