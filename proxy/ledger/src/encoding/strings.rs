//! Reads the strings of a payload: texts and groups of members that many entries share.

use super::member::{DecodeError, bytes, number};

/// One string of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item<'a> {
    pub(super) key: u64,
    /// 0 for a string that has none.
    pub(super) number: u64,
    /// `None` if an earlier entry has them.
    pub(super) bytes: Option<&'a [u8]>,
}

/// Takes a string off. `None` at their end.
#[inline]
pub(super) fn take<'a>(from: &mut &'a [u8]) -> Result<Option<Item<'a>>, DecodeError> {
    let key = number(from)?;
    if key == 0 {
        return Ok(None);
    }
    let string = number(from)?;
    let bytes = if key & 1 == 1 { Some(bytes(from)?) } else { None };
    Ok(Some(Item { key: key >> 1, number: string, bytes }))
}

/// Where strings end that have nothing but numbers. `None` if one of them has bytes.
pub(super) fn end_of_numbers(strings: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let key = *strings.get(at)?;
        if key == 0 {
            return Some(at + 1);
        }
        // Keys that take more than a byte are rare.
        if key & 0x81 != 0 {
            return None;
        }
        at += 1;
        while strings.get(at)? & 0x80 != 0 {
            at += 1;
        }
        at += 1;
    }
}

/// What is behind the strings at the start of `from`.
pub(crate) fn skip_strings(mut from: &[u8]) -> Result<&[u8], DecodeError> {
    loop {
        // As nearly all are: the key, no number, and the length, of one byte each.
        if let [key @ ..0x80, 0, length @ ..0x80, rest @ ..] = from
            && key & 1 == 1
        {
            from = rest.get(usize::from(*length)..).ok_or(DecodeError::CutOff)?;
        } else if take(&mut from)?.is_none() {
            return Ok(from);
        }
    }
}

/// The strings of a complete payload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strings<'a> {
    rest: &'a [u8],
}

impl<'a> Strings<'a> {
    pub(super) const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// The next string and its key.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, &'a [u8])>, DecodeError> {
        let Some(item) = take(&mut self.rest)? else { return Ok(None) };
        let bytes = item.bytes.ok_or(DecodeError::UnknownString(item.number))?;
        Ok(Some((item.key, bytes)))
    }
}
