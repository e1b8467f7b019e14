//! Values that are numbers: whole numbers, times and ratios.

use std::borrow::Cow;
use std::num::{IntErrorKind, ParseIntError};
use std::time::Duration;

use crate::json_schema::Allowed;
use crate::mistake::Invalid;
use crate::sampling::Ratio;
use crate::value::Value;

/// The longest time that a key may set.
const SECONDS_MAX: f64 = 86_400.0;

impl Value for Ratio {
    const EXPECTED: &'static str = "a number from 0 to 1, such as 0.1";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let ratio = text.parse().ok().and_then(Self::of);
        ratio.ok_or_else(|| Invalid::new("is not a number from 0 to 1", Self::EXPECTED))
    }

    fn allowed() -> Allowed {
        Allowed::Number { zero: true, max: 1.0 }
    }
}

/// A whole number from `MIN` to `MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Whole<const MIN: u64, const MAX: u64>(u64);

/// A whole number from `MIN` on.
pub(crate) type AtLeast<const MIN: u64> = Whole<MIN, { u64::MAX }>;
/// The same in 32 bits.
pub(crate) type AtLeast32<const MIN: u64> = Whole<MIN, { u32::MAX as u64 }>;

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    pub(crate) const fn get(self) -> u64 {
        self.0
    }

    /// The upper bound where it is another than the type's own.
    fn max() -> Option<u64> {
        (MAX < u32::MAX.into()).then_some(MAX)
    }
}

impl<const MIN: u64, const MAX: u64> Value for Whole<MIN, MAX> {
    const EXPECTED: &'static str = "a whole number";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let too_large = || Invalid::new("is too large", format!("at most {MAX}"));
        // `parse` would also take a `+`.
        let digits = if text.starts_with('+') { "" } else { text };
        match digits.parse() {
            Ok(number) if number < MIN => {
                Err(Invalid::new("is too small", format!("at least {MIN}")))
            }
            Ok(number) if number > MAX => Err(too_large()),
            Ok(number) => Ok(Self(number)),
            Err(fault) if is_overflow(&fault) => Err(too_large()),
            Err(_) => Err(Invalid::new("is not a whole number", Self::expected())),
        }
    }

    fn expected() -> Cow<'static, str> {
        match Self::max() {
            Some(max) => format!("a whole number from {MIN} to {max}").into(),
            None => format!("a whole number, at least {MIN}").into(),
        }
    }

    fn allowed() -> Allowed {
        Allowed::Whole { min: MIN, max: Self::max() }
    }
}

fn is_overflow(fault: &ParseIntError) -> bool {
    *fault.kind() == IntErrorKind::PosOverflow
}

impl<const MIN: u64, const MAX: u64> From<Whole<MIN, MAX>> for usize {
    fn from(number: Whole<MIN, MAX>) -> Self {
        Self::try_from(number.0).unwrap_or(Self::MAX)
    }
}

impl<const MIN: u64, const MAX: u64> From<Whole<MIN, MAX>> for u32 {
    fn from(number: Whole<MIN, MAX>) -> Self {
        Self::try_from(number.0).unwrap_or(Self::MAX)
    }
}

impl<const MIN: u64, const MAX: u64> From<Whole<MIN, MAX>> for Option<usize> {
    fn from(number: Whole<MIN, MAX>) -> Self {
        Some(number.into())
    }
}

impl Value for Duration {
    const EXPECTED: &'static str = "seconds, above 0 and at most 86400, such as 30 or 0.5";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let time = seconds(text).filter(|time| !time.is_zero());
        time.ok_or_else(|| Invalid::new("is not a time in seconds", Self::EXPECTED))
    }

    fn allowed() -> Allowed {
        Allowed::Number { zero: false, max: SECONDS_MAX }
    }
}

/// A time that may be 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SecondsOrZero(Duration);

impl From<SecondsOrZero> for Duration {
    fn from(SecondsOrZero(time): SecondsOrZero) -> Self {
        time
    }
}

impl Value for SecondsOrZero {
    const EXPECTED: &'static str = "seconds, at most 86400, such as 0 or 5";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("is not a time in seconds", Self::EXPECTED);
        seconds(text).map(Self).ok_or_else(invalid)
    }

    fn allowed() -> Allowed {
        Allowed::Number { zero: true, max: SECONDS_MAX }
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = text.parse().ok().filter(|_| plain)?;
    (seconds <= SECONDS_MAX).then(|| Duration::try_from_secs_f64(seconds).ok())?
}
