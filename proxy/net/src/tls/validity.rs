//! Reads from certificates when they are valid: as much of X.509 (RFC 5280) as that needs.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use super::contents::FILE_BYTES_MAX;

/// Tags of DER.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const DAY_SECONDS: i64 = 86_400;

/// When a certificate is valid, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// Its first second.
    pub not_before: i64,
    /// Its last one.
    pub not_after: i64,
}

impl Validity {
    /// Of the certificate in a PEM file, or of the one in its chain that ends first. `None` if there is
    /// none that can be read.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of_file(path: &Path) -> io::Result<Option<Self>> {
        let mut pem = Vec::new();
        File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut pem)?;
        let chain = CertificateDer::pem_slice_iter(&pem);
        let times = chain.filter_map(|certificate| Self::of(certificate.ok()?.as_ref()));
        Ok(times.min_by_key(|validity| validity.not_after))
    }

    /// Of a certificate in DER.
    fn of(der: &[u8]) -> Option<Self> {
        let (_, certificate, _) = value(der)?;
        let (_, content, _) = value(certificate)?;
        let (tag, _, behind) = value(content)?;
        let serial = if tag == VERSION { behind } else { content };
        let (_, _, signature) = value(serial)?;
        let (_, _, issuer) = value(signature)?;
        let (_, _, validity) = value(issuer)?;
        let (_, times, _) = value(validity)?;
        let (tag, not_before, behind) = value(times)?;
        let not_before = seconds(tag, not_before)?;
        let (tag, not_after, _) = value(behind)?;
        Some(Self { not_before, not_after: seconds(tag, not_after)? })
    }
}

/// The first value of some DER: its tag, its content, and what is behind it.
fn value(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// A time in seconds since 1970: `YYMMDDHHMMSSZ`, or the same with four digits of the year.
fn seconds(tag: u8, text: &[u8]) -> Option<i64> {
    let digits = text.strip_suffix(b"Z")?;
    let two = |at: usize| -> Option<i64> {
        let pair = digits.get(at..at + 2).filter(|pair| pair.iter().all(u8::is_ascii_digit))?;
        std::str::from_utf8(pair).ok()?.parse().ok()
    };
    let (year, at) = match tag {
        // Until 2049.
        UTC_TIME => (two(0).map(|year| if year < 50 { 2000 + year } else { 1900 + year })?, 2),
        GENERALIZED_TIME => (two(0)? * 100 + two(2)?, 4),
        _ => return None,
    };
    if digits.len() != at + 10 {
        return None;
    }
    let (month, day) = (two(at)?, two(at + 2)?);
    let time = two(at + 4)? * 3600 + two(at + 6)? * 60 + two(at + 8)?;
    (1..=12).contains(&month).then(|| days(year, month, day) * DAY_SECONDS + time)
}

/// Days from 1970 to a day of the Gregorian calendar, by Howard Hinnant's `days_from_civil`.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn pem(until: i32) -> String {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (params.not_before, params.not_after) =
            (date_time_ymd(2026, 2, 28), date_time_ymd(until, 3, 1));
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem()
    }

    #[test]
    fn the_certificate_of_a_chain_counts_that_ends_first() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let of = |text: &str| {
            std::fs::write(file.path(), text).unwrap();
            Validity::of_file(file.path()).unwrap()
        };
        let not_before = 1_772_236_800;
        // The second is beyond the years that have two digits.
        let (soon, late) = (1_803_859_200, 2_687_472_000);
        assert_eq!(of(&pem(2027)), Some(Validity { not_before, not_after: soon }));
        assert_eq!(of(&pem(2055)), Some(Validity { not_before, not_after: late }));
        let chain = pem(2055) + &pem(2027);
        assert_eq!(of(&chain), Some(Validity { not_before, not_after: soon }));
        assert_eq!(of("nothing"), None);
        assert!(Validity::of_file(&file.path().join("nowhere")).is_err());
    }

    #[test]
    fn times_are_seconds_since_1970() {
        for (tag, text, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (UTC_TIME, "500101000000Z", Some(-631_152_000)),
            (GENERALIZED_TIME, "20240229120001Z", Some(1_709_208_001)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (UTC_TIME, "20240229120001Z", None),
            (UTC_TIME, "7001010000Z", None),
            (UTC_TIME, "701301000000Z", None),
            (UTC_TIME, "7a0101000000Z", None),
            (2, "700101000000Z", None),
        ] {
            assert_eq!(seconds(tag, text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_read_nothing_panics(der in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Validity::of(&der);
        }
    }
}
