//! Parses the values of members.

use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

use crate::export::error::ExportError;

/// A value of plain characters, with or without quotes.
pub(super) fn parsed<T: FromStr>(value: &[u8]) -> Option<T> {
    let inside = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
    str::from_utf8(inside.unwrap_or(value)).ok()?.parse().ok()
}

/// A time. Entries have times in UTC in one form. Reading that form takes a tenth of the time of a
/// general parser.
pub(super) fn time(value: &[u8]) -> Option<Timestamp> {
    plain_time(value).or_else(|| parsed(value))
}

/// `"2026-11-01T00:00:00.25Z"`.
fn plain_time(value: &[u8]) -> Option<Timestamp> {
    let text = value.strip_prefix(b"\"")?.strip_suffix(b"Z\"")?;
    let (whole, fraction) = text.split_at_checked("2026-11-01T00:00:00".len())?;
    let [_, _, _, _, b'-', _, _, b'-', _, _, b'T', _, _, b':', _, _, b':', _, _] = whole else {
        return None;
    };
    let part = |part| whole.get(part).and_then(digits);
    let two = |from| part(from..from + 2).and_then(|part| i8::try_from(part).ok());
    let year = i16::try_from(part(0..4)?).ok()?;
    let nanos = match fraction {
        [] => 0,
        [b'.', places @ ..] if places.len() <= 9 => {
            digits(places)? * 10_i32.pow(9 - u32::try_from(places.len()).ok()?)
        }
        _ => return None,
    };
    let at = DateTime::new(year, two(5)?, two(8)?, two(11)?, two(14)?, two(17)?, nanos).ok()?;
    Offset::UTC.to_timestamp(at).ok()
}

/// Up to nine digits.
fn digits(digits: &[u8]) -> Option<i32> {
    let mut number = None;
    for sign in digits {
        let digit = sign.checked_sub(b'0').filter(|digit| *digit < 10)?;
        number = Some(number.unwrap_or(0) * 10 + i32::from(digit));
    }
    number
}

/// A whole number in digits.
pub(super) fn count(value: &[u8]) -> Option<Result<i64, ExportError>> {
    let too_large = ExportError::TooLarge { what: "a count" };
    let mut count = 0_i64;
    for sign in value {
        let digit = sign.checked_sub(b'0').filter(|digit| *digit < 10)?;
        match count.checked_mul(10).and_then(|count| count.checked_add(digit.into())) {
            Some(larger) => count = larger,
            None => return Some(Err(too_large)),
        }
    }
    (!value.is_empty()).then_some(Ok(count))
}

/// A number with digits at both ends. This excludes words such as `inf` that Rust's parser accepts.
pub(super) fn number(value: &[u8]) -> Option<f64> {
    let digits = value.strip_prefix(b"-").unwrap_or(value);
    let ends = [digits.first()?, digits.last()?];
    let is_number = ends.iter().all(|end| end.is_ascii_digit());
    is_number.then(|| plain_number(value).or_else(|| parsed(value))).flatten()
}

/// Digits with at most one decimal point. A float holds 15 digits exactly, and so it does the power
/// of ten that divides them. So the quotient is the nearest float.
fn plain_number(value: &[u8]) -> Option<f64> {
    const DIGITS_MAX: usize = 15;
    const POWERS: [f64; DIGITS_MAX + 1] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let (mut digits, mut point) = (0_u64, None);
    for (at, sign) in value.iter().enumerate() {
        match sign {
            b'0'..=b'9' => digits = digits.checked_mul(10)?.checked_add((sign - b'0').into())?,
            b'.' if point.is_none() => point = Some(at + 1),
            _ => return None,
        }
    }
    let places = point.map_or(0, |behind| value.len() - behind);
    let is_few = value.len() - usize::from(point.is_some()) <= DIGITS_MAX;
    is_few.then_some(digits as f64 / POWERS.get(places)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_times_are_what_a_parser_reads() {
        let mut plain = 0;
        for year in ["2024", "2026", "1969", "9999", "0000", "+026", "202x"] {
            for day in ["02-28", "02-29", "12-31", "13-01", "00-10", "1-001", "11/30"] {
                for time in ["00:00:00", "23:59:59", "24:00:00", "12:60:00", "23:59:60", "1:02:003"]
                {
                    for places in
                        ["", ".", ".5", ".000001", ".123456789", ".1234567890", ".1x", ",5"]
                    {
                        for end in ["Z", "z", "", "+01:00", "Z[UTC]"] {
                            let value = format!("\"{year}-{day}T{time}{places}{end}\"");
                            let Some(at) = plain_time(value.as_bytes()) else { continue };
                            assert_eq!(Some(at), parsed(value.as_bytes()), "{value}");
                            plain += 1;
                        }
                    }
                }
            }
        }
        // Five years with two days each, without the last day of the last year and with one more
        // day in leap years. Two times of the day, four fractions.
        assert_eq!(plain, (5 * 2 - 1 + 2) * 2 * 4);
    }

    #[test]
    fn times_as_entries_have_them_are_plain() {
        for at in ["2026-11-01T00:00:00.25Z", "2026-11-01T00:00:00Z", "-009999-01-02T01:59:59Z"] {
            let at: Timestamp = at.parse().unwrap();
            let value = serde_json::to_vec(&at).unwrap();
            assert_eq!(time(&value), Some(at));
            assert_eq!(plain_time(&value).is_some(), !value.starts_with(b"\"-"));
        }
    }

    #[test]
    fn plain_numbers_are_what_a_parser_reads() {
        for value in [
            "0",
            "0.0",
            "7",
            "0.1",
            "0.000001",
            "12.345678",
            "999999999999999",
            "0.00000000000001",
            "123456.789012345",
            "9007199254740.99",
            "00.5",
            "1.3134",
            "0.30000000000000",
        ] {
            let plain = plain_number(value.as_bytes()).unwrap();
            assert_eq!(plain.to_bits(), value.parse::<f64>().unwrap().to_bits(), "{value}");
        }
        for other in ["-1", "1e3", "1..2", "1.2.3", "1000000000000000", "0.1234567890123456", "inf"]
        {
            assert_eq!(plain_number(other.as_bytes()), None, "{other}");
        }
        for none in ["", ".5", "5.", "-", "inf", "NaN", "+1", "1_0", "1.2.3"] {
            assert_eq!(number(none.as_bytes()), None, "{none}");
        }
        assert_eq!(number(b"-1.5e3"), Some(-1500.0));
    }

    proptest! {
        #[test]
        fn plain_numbers_are_the_nearest_floats(digits in 0_u64..1_000_000_000_000_000, places in 0_usize..15) {
            let value = format!("{digits:0width$}", width = places + 1);
            let (whole, part) = value.split_at(value.len() - places);
            let value = format!("{whole}.{part}0");
            let plain = plain_number(value.as_bytes());
            let expected = value.parse::<f64>().unwrap();
            prop_assert_eq!(plain.unwrap_or(expected).to_bits(), expected.to_bits());
            prop_assert_eq!(plain.is_some(), value.len() <= 16);
        }
    }
}
