//! The head of a frame, and sync marks.

/// Bytes of a frame before its payload.
pub(super) const HEAD_BYTES: usize = 21;

/// Shortest frame, in bytes: a head and an empty JSON object.
pub const FRAME_BYTES_MIN: u64 = HEAD_BYTES as u64 + 2;

/// The payload of a sync mark.
const MARK: &[u8] = b"{}";
/// The kind byte of a sync mark. Entries with counts of refusals have it too.
const MARK_KIND: u8 = 7;
/// Length of a sync mark, in bytes.
pub(super) const MARK_BYTES: usize = HEAD_BYTES + MARK.len();

/// The fields of a head that the chain covers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) length: u32,
    pub(super) seq: u64,
    pub(super) kind: u8,
    pub(super) check: u32,
}

impl Head {
    /// Splits a head into its fields, the chain value in the bytes, and the chain value that fits
    /// the fields behind a frame with the chain value `before`.
    pub(super) fn read(bytes: &[u8; HEAD_BYTES], before: u32) -> (Self, u32, u32) {
        let [a, b, c, d, e, f, g, h, i, j, k, l, kind, m, n, o, p, q, r, s, t] = *bytes;
        let head = Self {
            length: u32::from_le_bytes([a, b, c, d]),
            seq: u64::from_le_bytes([e, f, g, h, i, j, k, l]),
            kind,
            check: u32::from_le_bytes([m, n, o, p]),
        };
        let expected =
            crc32c::crc32c_append(before, &[a, b, c, d, e, f, g, h, i, j, k, l, kind, m, n, o, p]);
        (head, u32::from_le_bytes([q, r, s, t]), expected)
    }
}

/// The last synced entry that the head of a sync mark names. `None` if the bytes are something
/// else.
pub(super) fn mark(bytes: &[u8; HEAD_BYTES]) -> Option<u64> {
    let (head, found, expected) = Head::read(bytes, 0);
    let is_mark = head.kind == MARK_KIND
        && found == expected
        && head.length as usize == MARK.len()
        && head.check == crc32c::crc32c(MARK);
    is_mark.then_some(head.seq)
}

/// Whether the payload of a sync mark is whole. `None` if there are too few bytes to tell.
pub(super) fn is_marks_payload(rest: &[u8]) -> Option<bool> {
    rest.get(..MARK.len()).map(|payload| payload == MARK)
}

/// Total length of the sync marks at the start of `bytes`.
#[must_use]
pub fn skip_marks(bytes: &[u8]) -> usize {
    let is_mark = |rest: &[u8]| {
        let (head, payload) = rest.split_first_chunk()?;
        mark(head)?;
        is_marks_payload(payload)
    };
    let mut length = 0;
    while bytes.get(length..).and_then(is_mark) == Some(true) {
        length += MARK_BYTES;
    }
    length
}

/// The highest synced entry that a sync mark in `bytes` names. `bytes` is a part of a segment.
#[must_use]
pub fn last_mark(bytes: &[u8]) -> Option<u64> {
    let rests = (0..bytes.len()).filter_map(|at| bytes.get(at..)?.split_first_chunk());
    let whole = rests.filter(|(_, payload)| payload.starts_with(MARK));
    whole.filter_map(|(head, _)| mark(head)).max()
}
