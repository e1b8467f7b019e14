//! The reader of JSON bytes, and what only the meter reads by it.

use rust_decimal::Decimal;
pub(crate) use taximeter_json::{Count, Malformed, Reader, Text};

/// A number of something that need not be whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    /// `null`.
    Absent,
    /// As it is written, not negative.
    Exact(Decimal),
    /// Anything else.
    Invalid,
}

impl Quantity {
    /// Reads a quantity. Some engines quote it.
    pub(crate) fn read(value: &mut Reader<'_>) -> Result<Self, Malformed> {
        let literal = match value.peek() {
            Some(b'"') => value.text()?.unwrap_or_default(),
            Some(b'n') => return value.skip().map(|()| Self::Absent),
            _ => value.verbatim()?,
        };
        let literal = literal.decode();
        let number = Decimal::from_str_exact(&literal)
            .or_else(|_| Decimal::from_scientific(&literal))
            .ok()
            .filter(|number| !number.is_sign_negative());
        Ok(number.map_or(Self::Invalid, Self::Exact))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_taken_as_it_is_written() {
        let quantity = |document: &str| Quantity::read(&mut Reader::new(document.as_bytes()));
        let exact = |digits, scale| Ok(Quantity::Exact(Decimal::new(digits, scale)));
        assert_eq!(quantity("12.50"), exact(1250, 2));
        assert_eq!(quantity("\"8.470000095367432\""), exact(8_470_000_095_367_432, 15));
        assert_eq!(quantity("2e3"), exact(2000, 0));
        assert_eq!(quantity("null"), Ok(Quantity::Absent));
        for wrong in ["-1", "true", "\"long\"", "{}", "1e99", "0.12345678901234567890123456789"] {
            assert_eq!(quantity(wrong), Ok(Quantity::Invalid), "{wrong}");
        }
    }
}
