//! Members: a key, and a number or bytes.

use std::str::FromStr as _;

use jiff::Timestamp;
use rust_decimal::Decimal;

use crate::id::RequestId;

/// Why a payload cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end inside a member.
    #[error("the payload ends inside a member")]
    CutOff,
    /// A number has more bits than its type.
    #[error("a number is out of range")]
    OutOfRange,
    /// A text is not UTF-8.
    #[error("a text is not UTF-8")]
    NotText,
    /// A string has a number that no earlier entry gave it.
    #[error("string {0} is not known here")]
    UnknownString(u64),
    /// A member that every entry of the kind has is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A value has no meaning in this version.
    #[error("`{0}` has a value that this version does not know")]
    UnknownValue(&'static str),
}

/// Takes a number off.
#[inline]
pub(crate) fn number(bytes: &mut &[u8]) -> Result<u64, DecodeError> {
    short(bytes).map_or_else(|| long_number(bytes), Ok)
}

/// Takes a number of one or two bytes off, as most are.
#[inline]
fn short(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = match *bytes {
        [low @ ..0x80, rest @ ..] => (u64::from(*low), rest),
        [low, high @ ..0x80, rest @ ..] => (u64::from(low & 0x7f) | u64::from(*high) << 7, rest),
        _ => return None,
    };
    *bytes = rest;
    Some(number)
}

fn long_number(bytes: &mut &[u8]) -> Result<u64, DecodeError> {
    u64::try_from(wide(bytes)?).map_err(|_| DecodeError::OutOfRange)
}

/// Takes a number of up to 128 bits off.
fn wide(bytes: &mut &[u8]) -> Result<u128, DecodeError> {
    let mut value = 0;
    for (length, byte) in bytes.iter().take(8).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * length);
        if *byte < 0x80 {
            *bytes = bytes.get(length + 1..).unwrap_or_default();
            return Ok(value.into());
        }
    }
    wider(bytes)
}

/// The same for any length, at the cost of arithmetic with 128 bits.
fn wider(bytes: &mut &[u8]) -> Result<u128, DecodeError> {
    let mut value = 0_u128;
    for shift in (0..128).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or(DecodeError::CutOff)?;
        *bytes = rest;
        let part = u128::from(byte & 0x7f);
        let shifted = part << shift;
        if shifted >> shift != part {
            return Err(DecodeError::OutOfRange);
        }
        value |= shifted;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(DecodeError::OutOfRange)
}

/// Takes a number off that is written as one more than it is; 0 means that there is none.
#[inline]
pub(super) fn successor(bytes: &mut &[u8]) -> Result<Option<u64>, DecodeError> {
    if let Some(number) = short(bytes) {
        return Ok(number.checked_sub(1));
    }
    let Some(number) = wide(bytes)?.checked_sub(1) else { return Ok(None) };
    u64::try_from(number).map(Some).map_err(|_| DecodeError::OutOfRange)
}

/// Appends a number as one more than it is, and 0 for none.
pub(super) fn put_successor(number: Option<u64>, out: &mut Vec<u8>) {
    match number.map(|number| number.checked_add(1)) {
        None => out.push(0),
        Some(Some(successor)) => put(successor, out),
        Some(None) => put_wide(1 << 64, out),
    }
}

/// Takes bytes off that follow their length.
#[inline]
pub(crate) fn bytes<'a>(from: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let length = usize::try_from(number(from)?).map_err(|_| DecodeError::CutOff)?;
    let (bytes, rest) = from.split_at_checked(length).ok_or(DecodeError::CutOff)?;
    *from = rest;
    Ok(bytes)
}

/// Takes the parts of a decimal off: whether it is negative, its digits as a whole number, and its
/// scale.
pub(super) fn decimal_parts(from: &mut &[u8]) -> Result<(bool, i128, u32), DecodeError> {
    let form = number(from)?;
    let digits = i128::try_from(wide(from)?).map_err(|_| DecodeError::OutOfRange)?;
    let scale = u32::try_from(form >> 1).map_err(|_| DecodeError::OutOfRange)?;
    Ok((form & 1 == 1, digits, scale))
}

/// Takes a decimal off: `scale × 2 + (1 if negative)`, then its digits as a whole number.
pub(crate) fn decimal(from: &mut &[u8]) -> Result<Decimal, DecodeError> {
    let (is_negative, digits, scale) = decimal_parts(from)?;
    let digits = if is_negative { -digits } else { digits };
    let mut decimal =
        Decimal::try_from_i128_with_scale(digits, scale).map_err(|_| DecodeError::OutOfRange)?;
    if is_negative {
        decimal.set_sign_negative(true);
    }
    Ok(decimal)
}

/// Appends a number.
#[inline]
pub(crate) fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

pub(crate) fn put_decimal(decimal: &Decimal, out: &mut Vec<u8>) {
    put(u64::from(decimal.scale()) << 1 | u64::from(decimal.is_sign_negative()), out);
    put_wide(decimal.mantissa().unsigned_abs(), out);
}

fn put_wide(mut number: u128, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// A signed number as one without a sign: 0, −1, 1, −2 and so on.
pub(crate) const fn zigzag(number: i64) -> u64 {
    (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned()
}

/// The signed number of a [`zigzag`].
pub(crate) const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Writes the parts of a payload: first the id, then strings, then members.
pub(crate) struct Writer<'a> {
    pub(super) out: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    pub(crate) const fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// The id, which comes first.
    pub(crate) fn id(&mut self, id: RequestId) {
        self.out.extend_from_slice(id.0.as_bytes());
    }

    /// A string that is a text.
    pub(crate) fn string(&mut self, key: u64, text: &str) {
        write_string(key, self.out, |out| out.extend_from_slice(text.as_bytes()));
    }

    /// A string that is a text, if there is one.
    pub(crate) fn maybe_string(&mut self, key: u64, text: Option<&str>) {
        if let Some(text) = text {
            self.string(key, text);
        }
    }

    /// A string that is a group of members.
    pub(crate) fn group(&mut self, key: u64, members: impl FnOnce(&mut Writer<'_>)) {
        write_string(key, self.out, |out| members(&mut Writer { out }));
    }

    /// The end of the strings.
    pub(crate) fn end_strings(&mut self) {
        self.out.push(0);
    }

    pub(crate) fn number(&mut self, key: u64, number: u64) {
        put(key << 1, self.out);
        put(number, self.out);
    }

    pub(crate) fn maybe_number(&mut self, key: u64, number: Option<u64>) {
        if let Some(number) = number {
            self.number(key, number);
        }
    }

    /// A number that is left out if it is 0.
    pub(crate) fn unless_zero(&mut self, key: u64, number: u64) {
        if number != 0 {
            self.number(key, number);
        }
    }

    pub(crate) fn bytes(&mut self, key: u64, bytes: &[u8]) {
        put(key << 1 | 1, self.out);
        put_bytes(bytes, self.out);
    }

    pub(crate) fn maybe_text(&mut self, key: u64, text: Option<&str>) {
        if let Some(text) = text {
            self.bytes(key, text.as_bytes());
        }
    }

    /// Bytes that `fill` appends. Their length is written before them afterwards.
    pub(crate) fn filled(&mut self, key: u64, fill: impl FnOnce(&mut Vec<u8>)) {
        put(key << 1 | 1, self.out);
        fill_with_length(self.out, fill);
    }

    /// Members inside a member.
    pub(crate) fn nested(&mut self, key: u64, members: impl FnOnce(&mut Writer<'_>)) {
        self.filled(key, |out| members(&mut Writer { out }));
    }

    pub(crate) fn decimal(&mut self, key: u64, decimal: &Decimal) {
        self.filled(key, |out| put_decimal(decimal, out));
    }

    /// A time as microseconds after (or before) another one.
    pub(crate) fn time(&mut self, key: u64, at: Timestamp, base: i64) {
        self.number(key, zigzag(at.as_microsecond().wrapping_sub(base)));
    }
}

/// Appends a string without a number.
fn write_string(key: u64, out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    put(key << 1 | 1, out);
    out.push(0);
    fill_with_length(out, fill);
}

/// Appends what `fill` appends, after its length.
fn fill_with_length(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    // Nearly all lengths take one byte.
    out.push(0);
    fill(out);
    let length = out.len() - at - 1;
    let short = u8::try_from(length).ok().filter(|length| *length < 0x80);
    if let (Some(short), Some(first)) = (short, out.get_mut(at)) {
        *first = short;
        return;
    }
    let mut prefix = Vec::new();
    put(length as u64, &mut prefix);
    out.splice(at..=at, prefix);
}

/// The microsecond, since 1970, of the millisecond in an id of version 7; 0 for other ids. Times of
/// a request are written as what they differ from it.
pub(super) fn time_of(id: RequestId) -> i64 {
    if id.0.get_version_num() != 7 {
        return 0;
    }
    let millis = id.0.as_u128() >> 80;
    i64::try_from(millis).unwrap_or_default().saturating_mul(1_000)
}

/// Members in their order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Members<'a> {
    rest: &'a [u8],
}

/// The value of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Members<'a> {
    pub(crate) const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// The next member and its key.
    // A record has a dozen of them, and a store reads them all.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = number(&mut self.rest)?;
        let value = if key & 1 == 0 {
            Value::Number(number(&mut self.rest)?)
        } else {
            Value::Bytes(bytes(&mut self.rest)?)
        };
        Ok(Some((key >> 1, value)))
    }
}

impl<'a> Value<'a> {
    /// The number. Bytes are another version's, and count as absent: 0.
    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Bytes(_) => 0,
        }
    }

    pub(crate) const fn bytes(self) -> &'a [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(_) => &[],
        }
    }

    pub(crate) fn text(self) -> Result<&'a str, DecodeError> {
        str::from_utf8(self.bytes()).map_err(|_| DecodeError::NotText)
    }

    pub(crate) fn owned(self) -> Result<String, DecodeError> {
        self.text().map(str::to_owned)
    }

    pub(crate) const fn members(self) -> Members<'a> {
        Members::new(self.bytes())
    }

    pub(crate) fn decimal(self) -> Result<Decimal, DecodeError> {
        decimal(&mut self.bytes())
    }

    pub(crate) fn id(self) -> Result<RequestId, DecodeError> {
        let id = uuid::Uuid::from_slice(self.bytes()).map_err(|_| DecodeError::OutOfRange)?;
        Ok(RequestId(id))
    }

    /// A time that is written as what it differs from `base`.
    pub(crate) fn time(self, base: i64) -> Result<Timestamp, DecodeError> {
        time(unzigzag(self.number()), base)
    }
}

/// The time so many microseconds behind `base`.
pub(super) fn time(after: i64, base: i64) -> Result<Timestamp, DecodeError> {
    Timestamp::from_microsecond(base.wrapping_add(after)).map_err(|_| DecodeError::OutOfRange)
}

/// The UUID that `text` is, if its digits are written in the usual form.
pub(super) fn uuid_of(text: &str) -> Option<uuid::Uuid> {
    if text.len() != 36 {
        return None;
    }
    let id = uuid::Uuid::from_str(text).ok()?;
    let mut buffer = uuid::Uuid::encode_buffer();
    (id.hyphenated().encode_lower(&mut buffer) == text).then_some(id)
}
