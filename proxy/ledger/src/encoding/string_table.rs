//! The strings of entries: texts and groups of members that many entries share.
//!
//! A writer gives each string a number and writes its bytes with the number in the first **two**
//! entries that have it. After that the number is enough. So if one entry is damaged, no other
//! entry loses a string. A number is given once between two checkpoints, so it never means another
//! string, whatever is lost.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;

use super::dimensions::{self, Shared};
use super::keys::{END, ID_BYTES};
use super::member::{DecodeError, bytes, number, put, put_bytes};
use super::payload::Payload;
use super::strings::{end_of_numbers, skip_strings, take};

/// Longer strings get no number. They are written whole each time.
const KEPT_BYTES_MAX: usize = 4 << 10;

/// Gives strings their numbers, from one checkpoint to the next.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    known: HashMap<Box<[u8]>, Known, RandomState>,
    /// The same for dimensions. A reader that knows none of these learns no string from them.
    dimensions: HashMap<Box<[u8]>, Known, RandomState>,
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
        self.dimensions.clear();
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
        let (id, mut rest) = payload.split_at_checked(ID_BYTES).ok_or(DecodeError::CutOff)?;
        out.extend_from_slice(id);
        while let Some(item) = take(&mut rest)? {
            let bytes = item.bytes.ok_or(DecodeError::UnknownString(item.number))?;
            self.shorten_string(item.key, bytes, out);
        }
        if rest.last() != Some(&END) {
            return Err(DecodeError::CutOff);
        }
        out.push(0);
        match dimensions::split(rest)? {
            Some(shared) => self.shorten_dimensions(shared, out)?,
            None => out.extend_from_slice(rest),
        }
        Ok(())
    }

    fn shorten_dimensions(
        &mut self,
        Shared { number, group, rest }: Shared<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        if number != 0 {
            return Err(DecodeError::UnknownString(number));
        }
        let (number, is_safe) = if group.is_empty() || group.len() > KEPT_BYTES_MAX {
            (0, false)
        } else {
            self.number(group, |interner| &mut interner.dimensions)
        };
        dimensions::join(number, (!is_safe).then_some(group), rest, out);
        Ok(())
    }

    /// The number of some bytes, and whether it is enough: two earlier entries have the bytes.
    fn number(
        &mut self,
        bytes: &[u8],
        known: impl Fn(&mut Self) -> &mut HashMap<Box<[u8]>, Known, RandomState>,
    ) -> (u64, bool) {
        if let Some(known) = known(self).get_mut(bytes) {
            return (known.number, std::mem::replace(&mut known.is_safe, true));
        }
        let number = (self.known.len() + self.dimensions.len()) as u64 + 1;
        known(self).insert(bytes.into(), Known { number, is_safe: false });
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        put(number, &mut table);
        put_bytes(bytes, &mut table);
        (number, false)
    }

    fn shorten_string(&mut self, key: u64, bytes: &[u8], out: &mut Vec<u8>) {
        let mut number = 0;
        if bytes.len() <= KEPT_BYTES_MAX {
            let is_safe;
            (number, is_safe) = self.number(bytes, |interner| &mut interner.known);
            if is_safe {
                put(key << 1, out);
                put(number, out);
                return;
            }
        }
        put(key << 1 | 1, out);
        put(number, out);
        put_bytes(bytes, out);
    }
}

/// The strings that the entries behind a checkpoint have given numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct StringTable {
    /// Where each string is in `bytes`, by its number.
    places: Vec<Option<Span>>,
    /// Each string behind its length, as payloads have it.
    bytes: Vec<u8>,
    /// The complete strings of entries that have nothing but numbers, by these.
    shared: HashMap<Box<[u8]>, Arc<[u8]>, RandomState>,
    shared_bytes: usize,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    length_at: u32,
    start: u32,
    end: u32,
}

/// About what the strings of an entry take, in bytes.
const STRINGS_BYTES: usize = 256;
/// Most bytes of complete strings that wait for another entry with the same ones.
const SHARED_BYTES_MAX: usize = 1 << 20;

/// What the key, the length and the number of dimensions take, in bytes.
const DIMENSIONS_BYTES_MORE: usize = 8;

/// Highest number of a string. A number is given to at most one string for some bytes of entries,
/// and there is a checkpoint after each MiB.
const NUMBER_MAX: u64 = 1 << 20;

impl StringTable {
    /// Forgets all strings.
    pub(crate) fn clear(&mut self) {
        self.places.clear();
        self.bytes.clear();
        self.forget_shared();
    }

    fn forget_shared(&mut self) {
        self.shared.clear();
        self.shared_bytes = 0;
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

    /// Learns the strings of a payload, and makes it a complete one.
    pub(crate) fn complete(&mut self, payload: &[u8]) -> Result<Payload, DecodeError> {
        let (id, rest) = payload.split_at_checked(ID_BYTES).ok_or(DecodeError::CutOff)?;
        let numbers = end_of_numbers(rest).and_then(|end| rest.split_at_checked(end));
        let (strings, members) = match numbers {
            Some(split) => split,
            None => {
                let members = skip_strings(rest)?;
                rest.split_at_checked(rest.len() - members.len()).ok_or(DecodeError::CutOff)?
            }
        };
        if members.last() != Some(&END) {
            return Err(DecodeError::CutOff);
        }
        let members = &*self.complete_dimensions(members)?;
        if numbers.is_none() {
            return Ok(Payload::new(id, self.complete_strings(strings)?.into(), members));
        }
        if let Some(shared) = self.shared.get(strings) {
            return Ok(Payload::new(id, Arc::clone(shared), members));
        }
        let shared: Arc<[u8]> = self.complete_strings(strings)?.into();
        self.shared_bytes += shared.len();
        if self.shared_bytes > SHARED_BYTES_MAX {
            self.forget_shared();
        }
        self.shared.insert(strings.into(), Arc::clone(&shared));
        Ok(Payload::new(id, shared, members))
    }

    /// Learns the dimensions at the start of members, and completes them.
    #[inline]
    fn complete_dimensions<'m>(&mut self, members: &'m [u8]) -> Result<Cow<'m, [u8]>, DecodeError> {
        let Some(Shared { number, group, rest }) = dimensions::split(members)? else {
            return Ok(Cow::Borrowed(members));
        };
        if !group.is_empty() {
            self.learn(number, group)?;
        }
        let known = if group.is_empty() && number != 0 { self.get(number) } else { Some(group) };
        let group = known.ok_or(DecodeError::UnknownString(number))?;
        let mut whole = Vec::with_capacity(group.len() + rest.len() + DIMENSIONS_BYTES_MORE);
        dimensions::join(0, Some(group), rest, &mut whole);
        Ok(Cow::Owned(whole))
    }

    /// Learns strings, and completes them.
    fn complete_strings(&mut self, mut strings: &[u8]) -> Result<Vec<u8>, DecodeError> {
        let mut out = Vec::with_capacity(STRINGS_BYTES);
        while let Some(item) = take(&mut strings)? {
            put(item.key << 1 | 1, &mut out);
            out.push(0);
            match item.bytes {
                Some(bytes) => {
                    self.learn(item.number, bytes)?;
                    put_bytes(bytes, &mut out);
                }
                None => {
                    let string = self.with_length(item.number);
                    let unknown = DecodeError::UnknownString(item.number);
                    out.extend_from_slice(string.ok_or(unknown)?);
                }
            }
        }
        out.push(0);
        Ok(out)
    }

    /// Learns the strings of a payload.
    pub(crate) fn pass(&mut self, payload: &[u8]) -> Result<(), DecodeError> {
        let mut rest = payload.get(ID_BYTES..).ok_or(DecodeError::CutOff)?;
        if let Some(end) = end_of_numbers(rest) {
            rest = rest.get(end..).unwrap_or_default();
        } else {
            while let Some(item) = take(&mut rest)? {
                if let Some(bytes) = item.bytes {
                    self.learn(item.number, bytes)?;
                }
            }
        }
        match dimensions::split(rest)? {
            Some(Shared { number, group, .. }) if !group.is_empty() => self.learn(number, group),
            _ => Ok(()),
        }
    }

    fn place(&self, number: u64) -> Option<Span> {
        *self.places.get(usize::try_from(number).ok()?)?
    }

    fn get(&self, number: u64) -> Option<&[u8]> {
        let Span { start, end, .. } = self.place(number)?;
        self.bytes.get(start as usize..end as usize)
    }

    /// The string behind its length.
    fn with_length(&self, number: u64) -> Option<&[u8]> {
        let Span { length_at, end, .. } = self.place(number)?;
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
        if let Some(place) = self.places.get_mut(index)
            && place.replace(Span { length_at, start, end }).is_some()
        {
            self.forget_shared();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::member_key::DIMENSIONS;
    use super::*;

    /// A payload whose one string has the number 1, with these bytes or without.
    fn payload(bytes: Option<&[u8]>) -> Vec<u8> {
        let mut payload = vec![7; ID_BYTES];
        put(5 << 1 | u64::from(bytes.is_some()), &mut payload);
        put(1, &mut payload);
        if let Some(bytes) = bytes {
            put_bytes(bytes, &mut payload);
        }
        payload.extend([0, END]);
        payload
    }

    fn strings(of: &Payload) -> &Arc<[u8]> {
        of.post().unwrap().strings
    }

    #[test]
    fn entries_with_the_same_numbers_share_their_strings() {
        let mut table = StringTable::default();
        let first = table.complete(&payload(Some(b"acme"))).unwrap();
        let [second, third] = [(); 2].map(|()| table.complete(&payload(None)).unwrap());
        assert_eq!(first, second);
        assert!(Arc::ptr_eq(strings(&second), strings(&third)));
    }

    #[test]
    fn a_number_that_has_another_meaning_is_not_taken_for_the_one_before() {
        let mut table = StringTable::default();
        let mut complete = |bytes| table.complete(&payload(bytes)).unwrap();
        let before = [complete(Some(b"acme")), complete(None)];
        // The checkpoint between them is lost.
        let after = [complete(Some(b"globex")), complete(None)];
        assert_eq!(before[0], before[1]);
        assert_eq!(after[0], after[1]);
        assert_ne!(before, after);
    }

    /// A payload without strings, whose dimensions are this group.
    fn of_session(group: &[u8]) -> Vec<u8> {
        let mut payload = vec![7; ID_BYTES];
        payload.push(0);
        dimensions::join(0, Some(group), &[5 << 1, 9, END], &mut payload);
        payload
    }

    #[test]
    fn dimensions_are_shared_as_strings_are_and_no_string_needs_them() {
        let (mut interner, mut table, mut passed) =
            (Interner::default(), StringTable::default(), StringTable::default());
        let mut written = |payload: &[u8]| {
            let mut out = Vec::new();
            interner.shorten(payload, &mut out).unwrap();
            out
        };
        let (one, other) = (of_session(b"one, of some length"), of_session(b"other"));
        for (payload, is_short) in
            [(&one, false), (&other, false), (&one, false), (&one, true), (&other, false)]
        {
            let short = written(payload);
            assert_eq!(short.len() < payload.len(), is_short);
            assert_eq!(table.complete(&short).unwrap().to_vec(), *payload);
            passed.pass(&short).unwrap();
        }
        // One that has only passed knows them too.
        let short = written(&one);
        assert_eq!(passed.complete(&short).unwrap().to_vec(), one);
        let unknown = DecodeError::UnknownString(1);
        assert_eq!(StringTable::default().complete(&short), Err(unknown));
        // The same bytes as a string have another number: others may not have read the dimensions.
        let string = written(&payload(Some(b"one, of some length")));
        assert_eq!(string.get(ID_BYTES..ID_BYTES + 3), Some([5 << 1 | 1, 3, 19].as_slice()));
    }

    #[test]
    fn what_is_no_group_at_the_start_of_members_is_told() {
        let mut table = StringTable::default();
        let mut of = |members: &[u8]| {
            let payload = [[7; ID_BYTES].as_slice(), &[0], members].concat();
            table.complete(&payload).map(|payload| payload.to_vec())
        };
        let key = (DIMENSIONS << 1 | 1).to_le_bytes()[0];
        assert_eq!(of(&[key, 9, 1, END]), Err(DecodeError::CutOff));
        assert_eq!(of(&[key, 1, 0x80, END]), Err(DecodeError::CutOff));
        assert_eq!(of(&[key, 1, 5, END]), Err(DecodeError::UnknownString(5)));
        assert!(of(&[key, 0, END]).is_ok());
    }

    #[test]
    fn no_string_outlives_its_block() {
        let mut table = StringTable::default();
        table.complete(&payload(Some(b"acme"))).unwrap();
        table.complete(&payload(None)).unwrap();
        table.clear();
        assert_eq!(table.complete(&payload(None)), Err(DecodeError::UnknownString(1)));
    }
}
