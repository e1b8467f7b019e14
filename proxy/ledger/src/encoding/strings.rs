//! The strings of entries: texts and groups of members that many entries share.
//!
//! A writer gives each string a number and writes its bytes with the number in the first **two**
//! entries that have it. After that the number is enough. So if one entry is damaged, no other
//! entry loses a string. A number is given once between two checkpoints, so it never means another
//! string, whatever is lost.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;

use super::keys::{END, ID_BYTES};
use super::member::{DecodeError, bytes, number, put, put_bytes};

/// Longer strings get no number. They are written whole each time.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// One string of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Item<'a> {
    key: u64,
    /// 0 for a string that has none.
    number: u64,
    /// `None` if an earlier entry has them.
    bytes: Option<&'a [u8]>,
}

/// Takes a string off. `None` at their end.
#[inline]
fn take<'a>(from: &mut &'a [u8]) -> Result<Option<Item<'a>>, DecodeError> {
    let key = number(from)?;
    if key == 0 {
        return Ok(None);
    }
    let string = number(from)?;
    let bytes = if key & 1 == 1 { Some(bytes(from)?) } else { None };
    Ok(Some(Item { key: key >> 1, number: string, bytes }))
}

/// What is behind the strings at the start of `from`.
pub(crate) fn skip_strings(mut from: &[u8]) -> Result<&[u8], DecodeError> {
    while take(&mut from)?.is_some() {}
    Ok(from)
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

/// Writes a payload again, with other strings: `string` writes each one. Where in `out` its members
/// begin.
fn rewrite<'a>(
    payload: &'a [u8],
    out: &mut Vec<u8>,
    mut string: impl FnMut(Item<'a>, &mut Vec<u8>) -> Result<(), DecodeError>,
) -> Result<usize, DecodeError> {
    let (id, mut rest) = payload.split_at_checked(ID_BYTES).ok_or(DecodeError::CutOff)?;
    out.extend_from_slice(id);
    while let Some(item) = take(&mut rest)? {
        string(item, out)?;
    }
    if rest.last() != Some(&END) {
        return Err(DecodeError::CutOff);
    }
    out.push(0);
    let members_at = out.len();
    out.extend_from_slice(rest);
    Ok(members_at)
}

/// Gives strings their numbers, from one checkpoint to the next.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    known: HashMap<Box<[u8]>, Known, RandomState>,
    /// Each new string with its number, as a [`StringTable`] reads it.
    table: Arc<Mutex<Vec<u8>>>,
}

/// The strings that had numbers at one moment.
#[derive(Debug, Clone, Default)]
pub struct StringsSoFar {
    /// It may have further ones behind them.
    table: Arc<Mutex<Vec<u8>>>,
    length: usize,
}

impl StringsSoFar {
    /// Each string with its number.
    pub(crate) fn to_table(&self) -> Vec<u8> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.get(..self.length).unwrap_or_default().to_vec()
    }
}

#[derive(Debug)]
struct Known {
    number: u64,
    /// Two entries have its bytes.
    is_safe: bool,
}

impl Interner {
    /// Forgets all strings.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
        // Others may still need the strings until here.
        self.table = Arc::default();
    }

    /// All strings that have numbers now.
    pub(crate) fn so_far(&self) -> StringsSoFar {
        let length = self.table.lock().unwrap_or_else(PoisonError::into_inner).len();
        StringsSoFar { table: Arc::clone(&self.table), length }
    }

    /// Appends a complete payload with numbers in place of the strings that are safe by now.
    pub(crate) fn shorten(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        let shortened = rewrite(payload, out, |item, out| {
            let bytes = item.bytes.ok_or(DecodeError::UnknownString(item.number))?;
            let mut number = 0;
            if bytes.len() <= KEPT_BYTES_MAX {
                if let Some(known) = self.known.get_mut(bytes) {
                    number = known.number;
                    if known.is_safe {
                        put(item.key << 1, out);
                        put(number, out);
                        return Ok(());
                    }
                    known.is_safe = true;
                } else {
                    number = self.known.len() as u64 + 1;
                    self.known.insert(bytes.into(), Known { number, is_safe: false });
                    let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
                    put(number, &mut table);
                    put_bytes(bytes, &mut table);
                }
            }
            put(item.key << 1 | 1, out);
            put(number, out);
            put_bytes(bytes, out);
            Ok(())
        });
        shortened.map(|_| ())
    }
}

/// The strings that the entries behind a checkpoint have given numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct StringTable {
    /// Where each string is in `bytes`, by its number.
    places: Vec<Option<Place>>,
    /// Each string behind its length, as payloads have it.
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    length_at: u32,
    start: u32,
    end: u32,
}

/// Highest number of a string. A number is given to at most one string for some bytes of entries,
/// and there is a checkpoint after each MiB.
const NUMBER_MAX: u64 = 1 << 20;

impl StringTable {
    /// Forgets all strings.
    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.bytes.clear();
    }

    /// Learns the strings of a table: each is `number, length, bytes`.
    pub(crate) fn learn_table(&mut self, mut table: &[u8]) -> Result<(), DecodeError> {
        while !table.is_empty() {
            let string = number(&mut table)?;
            let bytes = bytes(&mut table)?;
            self.learn(string, bytes)?;
        }
        Ok(())
    }

    /// All strings, as the payload of a table.
    pub(crate) fn to_table(&self) -> Vec<u8> {
        let mut table = Vec::new();
        for number in 0..self.places.len() {
            if let Some(bytes) = self.get(number as u64) {
                put(number as u64, &mut table);
                put_bytes(bytes, &mut table);
            }
        }
        table
    }

    /// Learns the strings of a payload, and appends it as a complete one. Where in that its members
    /// begin.
    pub(crate) fn complete(
        &mut self,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<usize, DecodeError> {
        rewrite(payload, out, |item, out| {
            put(item.key << 1 | 1, out);
            out.push(0);
            match item.bytes {
                Some(bytes) => {
                    self.learn(item.number, bytes)?;
                    put_bytes(bytes, out);
                }
                None => {
                    let string = self.with_length(item.number);
                    let unknown = DecodeError::UnknownString(item.number);
                    out.extend_from_slice(string.ok_or(unknown)?);
                }
            }
            Ok(())
        })
    }

    /// Learns the strings of a payload.
    pub(crate) fn pass(&mut self, payload: &[u8]) -> Result<(), DecodeError> {
        let mut rest = payload.get(ID_BYTES..).ok_or(DecodeError::CutOff)?;
        while let Some(item) = take(&mut rest)? {
            if let Some(bytes) = item.bytes {
                self.learn(item.number, bytes)?;
            }
        }
        Ok(())
    }

    fn place(&self, number: u64) -> Option<Place> {
        *self.places.get(usize::try_from(number).ok()?)?
    }

    fn get(&self, number: u64) -> Option<&[u8]> {
        let Place { start, end, .. } = self.place(number)?;
        self.bytes.get(start as usize..end as usize)
    }

    /// The string behind its length.
    fn with_length(&self, number: u64) -> Option<&[u8]> {
        let Place { length_at, end, .. } = self.place(number)?;
        self.bytes.get(length_at as usize..end as usize)
    }

    fn learn(&mut self, number: u64, bytes: &[u8]) -> Result<(), DecodeError> {
        if number == 0 {
            return Ok(());
        }
        // Where the checkpoint between them is lost, the later meaning holds.
        if self.get(number) == Some(bytes) {
            return Ok(());
        }
        if number > NUMBER_MAX {
            return Err(DecodeError::OutOfRange);
        }
        let index = usize::try_from(number).map_err(|_| DecodeError::OutOfRange)?;
        if self.places.len() <= index {
            self.places.resize(index + 1, None);
        }
        let at = |bytes: &[u8]| u32::try_from(bytes.len()).map_err(|_| DecodeError::OutOfRange);
        let length_at = at(&self.bytes)?;
        put(bytes.len() as u64, &mut self.bytes);
        let start = at(&self.bytes)?;
        self.bytes.extend_from_slice(bytes);
        let end = at(&self.bytes)?;
        if let Some(place) = self.places.get_mut(index) {
            *place = Some(Place { length_at, start, end });
        }
        Ok(())
    }
}
