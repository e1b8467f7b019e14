//! Amounts as Kubernetes writes them: `512Mi`, `50m`.

use std::fmt;
use std::str::FromStr;

/// What stands behind a number of bytes, and how many it makes of one.
const UNITS: [(&str, u64); 11] = [
    ("", 1),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
];
/// Digits of a number of processors in front of the point; more than any machine has.
const CPU_DIGITS_MAX: usize = 4;
/// A thousandth of a processor is the least that Kubernetes knows.
const CPU_DECIMALS_MAX: usize = 3;

/// A number of bytes, no less than `LEAST` MiB, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bytes<const LEAST: u64> {
    written: String,
    count: u64,
}

/// What a container may take. Below it a quarter, which is for bodies, would be less than one body may
/// have (`limits.body_bytes_max`).
pub type Memory = Bytes<128>;
/// The journal's volume. Below it there would be no room for one segment (`limits.ledger_segment_bytes`).
pub type JournalSize = Bytes<128>;

impl<const LEAST: u64> Bytes<LEAST> {
    /// How many they are.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }
}

impl<const LEAST: u64> fmt::Display for Bytes<LEAST> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl<const LEAST: u64> FromStr for Bytes<LEAST> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count = bytes(text).ok_or_else(|| "is no number of bytes such as 512Mi".to_owned())?;
        if count < LEAST << 20 {
            return Err(format!("is too little; at least {LEAST}Mi"));
        }
        Ok(Self { written: text.to_owned(), count })
    }
}

/// How many bytes a text says, if it says that.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
    let (_, factor) = UNITS.iter().find(|(known, _)| *known == unit)?;
    number.checked_mul(*factor)
}

/// A number of processors, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpu(String);

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Cpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_number = |text: &str, most: usize| {
            (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        let fits = match (text.strip_suffix('m'), text.split_once('.')) {
            (Some(thousandths), _) => is_number(thousandths, CPU_DIGITS_MAX + CPU_DECIMALS_MAX),
            (None, Some((whole, part))) => {
                is_number(whole, CPU_DIGITS_MAX) && is_number(part, CPU_DECIMALS_MAX)
            }
            (None, None) => is_number(text, CPU_DIGITS_MAX),
        };
        let problem = "is no number of processors such as 50m or 0.5";
        fits.then(|| Self(text.to_owned())).ok_or_else(|| problem.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_by_their_unit() {
        let counted = |text: &str| text.parse::<Bytes<0>>().map(|bytes| bytes.count());
        assert_eq!(counted("7"), Ok(7));
        assert_eq!(counted("512Mi"), Ok(512 << 20));
        assert_eq!(counted("1G"), Ok(1_000_000_000));
        assert_eq!(counted("2Pi"), Ok(2 << 50));
        for wrong in
            ["", "Mi", "1.5Gi", "1mi", "-1Gi", "1 Gi", "1Gib", "99999999999999999999", "99999P"]
        {
            let told = counted(wrong).expect_err(wrong);
            assert_eq!(told, "is no number of bytes such as 512Mi", "{wrong}");
        }
        assert_eq!("1024Mi".parse::<Memory>().map(|bytes| bytes.to_string()), Ok("1024Mi".into()));
        assert_eq!("127Mi".parse::<Memory>(), Err("is too little; at least 128Mi".to_owned()));
        assert!("128Mi".parse::<Memory>().is_ok());
    }

    #[test]
    fn processors_are_whole_parts_or_thousandths() {
        for good in ["1", "50m", "0.5", "16.125", "9999", "9999999m"] {
            assert_eq!(good.parse::<Cpu>().map(|cpu| cpu.to_string()), Ok(good.to_owned()));
        }
        for wrong in ["", "m", ".5", "1.", "0.0001", "1e3", "-1", "50 m", "0.5m", "10000", "1k"] {
            assert!(wrong.parse::<Cpu>().is_err(), "{wrong}");
        }
    }
}
