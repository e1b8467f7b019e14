//! Numbers and texts as bytes, for stores.

use jiff::Timestamp;
use rust_decimal::Decimal;
use taximeter_ledger::RequestId;
use uuid::Uuid;

/// The bytes are no sum of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is no sum of a session that this version knows")]
pub struct Malformed;

#[derive(Debug, Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Seven bits a byte, the lowest first.
    pub(crate) fn unsigned(&mut self, mut number: u64) {
        loop {
            let low = number.to_le_bytes()[0] & 0x7f;
            number >>= 7;
            if number == 0 {
                return self.byte(low);
            }
            self.byte(low | 0x80);
        }
    }

    /// Small ones of both signs are short.
    pub(crate) fn signed(&mut self, number: i64) {
        self.unsigned((number << 1 ^ number >> 63).cast_unsigned());
    }

    /// One more than the number, or 0 for none.
    pub(crate) fn maybe(&mut self, number: Option<u64>) {
        self.unsigned(number.map_or(0, |number| number.saturating_add(1)));
    }

    pub(crate) fn text(&mut self, text: Option<&str>) {
        self.maybe(text.map(|text| text.len() as u64));
        self.bytes(text.unwrap_or_default().as_bytes());
    }

    pub(crate) fn decimal(&mut self, number: Option<Decimal>) {
        self.byte(number.is_some().into());
        number.iter().for_each(|number| self.bytes(&number.serialize()));
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

#[derive(Debug)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], Malformed> {
        let (array, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*array)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn unsigned(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed)
    }

    pub(crate) fn signed(&mut self) -> Result<i64, Malformed> {
        let number = self.unsigned()?;
        Ok((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }

    pub(crate) fn maybe(&mut self) -> Result<Option<u64>, Malformed> {
        Ok(self.unsigned()?.checked_sub(1))
    }

    pub(crate) fn text(&mut self) -> Result<Option<String>, Malformed> {
        let Some(length) = self.maybe()? else { return Ok(None) };
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        let (text, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        let text = std::str::from_utf8(text).map_err(|_| Malformed)?;
        Ok(Some(text.to_owned()))
    }

    pub(crate) fn decimal(&mut self) -> Result<Option<Decimal>, Malformed> {
        match self.byte()? {
            0 => Ok(None),
            _ => Ok(Some(Decimal::deserialize(self.array()?))),
        }
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp, Malformed> {
        Timestamp::from_microsecond(self.signed()?).map_err(|_| Malformed)
    }

    pub(crate) fn request(&mut self) -> Result<(Timestamp, RequestId), Malformed> {
        Ok((self.time()?, RequestId(Uuid::from_bytes(self.array()?))))
    }

    pub(crate) fn end(&self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}
