//! Values that are numbers: counts, times and parts.

use std::num::{IntErrorKind, NonZeroU32, NonZeroUsize, ParseIntError};
use std::str::FromStr;
use std::time::Duration;

use crate::mistake::Invalid;
use crate::sampling::Ratio;
use crate::shape::Shape;
use crate::values::Value;

/// Longest time that a limit may grant.
const SECONDS_MAX: f64 = 86_400.0;

impl Value for Ratio {
    const EXPECTED: &'static str = "a number from 0 to 1, such as 0.1";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let part = text.parse().ok().and_then(Self::of);
        part.ok_or_else(|| Invalid::new("is no part of a whole", Self::EXPECTED))
    }

    fn shape() -> Shape {
        Shape::Number(0.0, 1.0)
    }
}

impl Value for NonZeroUsize {
    const EXPECTED: &'static str = "a whole number above 0";

    fn parse(text: &str) -> Result<Self, Invalid> {
        count(text)
    }

    fn shape() -> Shape {
        Shape::Whole(1)
    }
}

impl Value for NonZeroU32 {
    const EXPECTED: &'static str = NonZeroUsize::EXPECTED;

    fn parse(text: &str) -> Result<Self, Invalid> {
        count(text)
    }

    fn shape() -> Shape {
        Shape::Whole(1)
    }
}

fn count<N: FromStr<Err = ParseIntError>>(text: &str) -> Result<N, Invalid> {
    // `parse` would also take a `+`.
    let text = if text.starts_with('+') { "" } else { text };
    text.parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow => Invalid::new("is too large", "a smaller number"),
        _ => Invalid::new("is no count", NonZeroUsize::EXPECTED),
    })
}

impl Value for Duration {
    const EXPECTED: &'static str = "seconds, above 0 and at most 86400, such as 30 or 0.5";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let time = seconds(text).filter(|time| !time.is_zero());
        time.ok_or_else(|| Invalid::new("is no time in seconds", Self::EXPECTED))
    }

    fn shape() -> Shape {
        Shape::Number(0.0, SECONDS_MAX)
    }
}

/// A time that may be none at all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grace(Duration);

impl From<Grace> for Duration {
    fn from(Grace(time): Grace) -> Self {
        time
    }
}

impl Value for Grace {
    const EXPECTED: &'static str = "seconds, at most 86400, such as 0 or 5";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let invalid = || Invalid::new("is no time in seconds", Self::EXPECTED);
        seconds(text).map(Self).ok_or_else(invalid)
    }

    fn shape() -> Shape {
        Shape::Number(0.0, SECONDS_MAX)
    }
}

fn seconds(text: &str) -> Option<Duration> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = text.parse().ok().filter(|_| plain)?;
    (seconds <= SECONDS_MAX).then(|| Duration::try_from_secs_f64(seconds).ok())?
}
