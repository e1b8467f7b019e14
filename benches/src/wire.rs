//! What `load` and `engine` say to each other, and the few looks at HTTP/1.1 that both need.

use memchr::{memchr, memmem};

/// Header that sets how many content chunks a stream has.
pub const CHUNKS_HEADER: &str = "x-bench-chunks";
/// Header that sets the gap between two chunks, in milliseconds; 0 is as fast as they go.
pub const GAP_HEADER: &str = "x-bench-gap-ms";
/// Stands before the send time in a content chunk, and nowhere else: counting it counts chunks.
pub const STAMP_MARK: u8 = b'@';
/// Digits of a send time: nanoseconds of the monotonic clock, padded with zeros.
pub const STAMP_DIGITS: usize = 19;
/// API keys that `load` sends, one after the other; `taximeter.yaml` holds their hashes.
pub const KEYS: [&str; 4] = ["sk-bench-0", "sk-bench-1", "sk-bench-2", "sk-bench-3"];

/// Bytes of the head, its blank line included; `None` while it is incomplete.
#[must_use]
pub fn head_length(bytes: &[u8]) -> Option<usize> {
    memmem::find(bytes, b"\r\n\r\n").map(|at| at + 4)
}

/// Value of header `name` in a head, if it is a number.
#[must_use]
pub fn number(head: &[u8], name: &str) -> Option<u64> {
    head.split(|&byte| byte == b'\n').find_map(|line| {
        let colon = memchr(b':', line)?;
        let (key, value) = line.split_at_checked(colon)?;
        if !key.eq_ignore_ascii_case(name.as_bytes()) {
            return None;
        }
        std::str::from_utf8(value.get(1..)?).ok()?.trim().parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_found_whatever_its_case() {
        let head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 42\r\n\r\n";
        assert_eq!(number(head, "content-length"), Some(42));
        assert_eq!(number(head, "content"), None);
        assert_eq!(head_length(head), Some(head.len()));
    }
}
