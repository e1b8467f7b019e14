//! A value of a row as a file has it.

use jiff::Timestamp;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use uuid::Uuid;

/// A value that its column cannot have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a column has a value that it cannot have")]
pub struct Misfit;

/// A value as a file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A text, an id, a decimal or bytes.
    Bytes(&'a [u8]),
    /// A number or a time.
    Int(i64),
    /// True or false.
    Bool(bool),
}

impl<'a> Value<'a> {
    /// Bytes, of whatever kind.
    ///
    /// # Errors
    /// [`Misfit`].
    pub const fn bytes(self) -> Result<&'a [u8], Misfit> {
        if let Self::Bytes(bytes) = self { Ok(bytes) } else { Err(Misfit) }
    }

    /// A text.
    ///
    /// # Errors
    /// [`Misfit`].
    pub fn text(self) -> Result<&'a str, Misfit> {
        str::from_utf8(self.bytes()?).map_err(|_| Misfit)
    }

    /// A text of its own.
    ///
    /// # Errors
    /// [`Misfit`].
    pub fn owned(self) -> Result<String, Misfit> {
        self.text().map(str::to_owned)
    }

    /// A word of a fixed list.
    pub(crate) fn word<T: Deserialize<'a>>(self) -> Result<T, Misfit> {
        let word: serde::de::value::BorrowedStrDeserializer<'a, serde::de::value::Error> =
            serde::de::value::BorrowedStrDeserializer::new(self.text()?);
        T::deserialize(word.into_deserializer()).map_err(|_| Misfit)
    }

    /// What a JSON document says.
    ///
    /// # Errors
    /// [`Misfit`].
    pub fn json<T: Deserialize<'a>>(self) -> Result<T, Misfit> {
        serde_json::from_slice(self.bytes()?).map_err(|_| Misfit)
    }

    pub(crate) fn uuid(self) -> Result<Uuid, Misfit> {
        Uuid::from_slice(self.bytes()?).map_err(|_| Misfit)
    }

    /// A whole number.
    ///
    /// # Errors
    /// [`Misfit`].
    pub const fn int(self) -> Result<i64, Misfit> {
        if let Self::Int(value) = self { Ok(value) } else { Err(Misfit) }
    }

    /// True or false.
    ///
    /// # Errors
    /// [`Misfit`].
    pub const fn bool(self) -> Result<bool, Misfit> {
        if let Self::Bool(value) = self { Ok(value) } else { Err(Misfit) }
    }

    /// A whole number that is not negative.
    ///
    /// # Errors
    /// [`Misfit`].
    pub fn count(self) -> Result<u64, Misfit> {
        u64::try_from(self.int()?).map_err(|_| Misfit)
    }

    pub(crate) fn small<T: TryFrom<i64>>(self) -> Result<T, Misfit> {
        T::try_from(self.int()?).map_err(|_| Misfit)
    }

    pub(crate) fn micros(self) -> Result<u64, Misfit> {
        self.count()
    }

    #[expect(clippy::cast_precision_loss, reason = "285 years are exact")]
    pub(crate) fn seconds(self) -> Result<f64, Misfit> {
        Ok(self.micros()? as f64 / 1e6)
    }

    /// A time.
    ///
    /// # Errors
    /// [`Misfit`].
    pub fn time(self) -> Result<Timestamp, Misfit> {
        Timestamp::from_microsecond(self.int()?).map_err(|_| Misfit)
    }

    /// An exact number with so many digits after the point, without zeros at its end.
    ///
    /// # Errors
    /// [`Misfit`].
    pub fn decimal(self, mut scale: u32) -> Result<Decimal, Misfit> {
        let bytes = self.bytes()?;
        let (&first, _) = bytes.split_first().ok_or(Misfit)?;
        let mut wide = [if first & 0x80 == 0 { 0 } else { 0xff }; 16];
        let start = wide.len().checked_sub(bytes.len()).ok_or(Misfit)?;
        wide.get_mut(start..).ok_or(Misfit)?.copy_from_slice(bytes);
        let mut digits = i128::from_be_bytes(wide);
        while scale > 0 && digits % 10 == 0 {
            (digits, scale) = (digits / 10, scale - 1);
        }
        Decimal::try_from_i128_with_scale(digits, scale).map_err(|_| Misfit)
    }
}

/// Whole microseconds of seconds, as the journal has them. What is out of range is the nearest that
/// is not.
#[expect(clippy::cast_possible_truncation, reason = "as saturates")]
pub(crate) fn micros(seconds: f64) -> i64 {
    ((seconds * 1e6).round() as i64).max(0)
}
