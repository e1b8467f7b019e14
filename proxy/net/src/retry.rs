//! Computes how long to wait before the next attempt at a receiver that fails.

use std::time::Duration;

use http::HeaderMap;
use http::header::RETRY_AFTER;
use jiff::fmt::rfc2822::DateTimeParser;
use taximeter_system::clock;

/// First pause after a failure; each one is twice the one before.
const PAUSE_MIN: Duration = Duration::from_millis(500);
/// Longest pause of ours.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// The longest pause that a receiver can ask for.
pub const ASKED_PAUSE_MAX: Duration = Duration::from_secs(3600);

/// The pause that `retry-after` asks for: in seconds, or until a date (RFC 9110 §10.2.3).
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let asked = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let until = DateTimeParser::new().parse_timestamp(text).ok()?;
            Duration::try_from(until.duration_since(clock::wall())).unwrap_or_default()
        }
    };
    Some(asked.min(ASKED_PAUSE_MAX))
}

/// The pause after failure number `attempt`, from 0: twice the one before, somewhere between half
/// of it and all of it, so that many gateways do not come back together; at least what was `asked`.
pub fn backoff(attempt: u32, asked: Option<Duration>) -> Duration {
    let whole = PAUSE_MIN.saturating_mul(2_u32.saturating_pow(attempt)).min(PAUSE_MAX);
    // Without a random number the pause is whole.
    let random = getrandom::u32().map_or(u32::MAX, |random| random);
    let part = (f64::from(random) / f64::from(u32::MAX)).mul_add(0.5, 0.5);
    whole.mul_f64(part).max(asked.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_may_be_asked_for_but_not_for_ever() {
        let asked = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(asked("7"), Some(Duration::from_secs(7)));
        assert_eq!(asked("99999999"), Some(ASKED_PAUSE_MAX));
        assert_eq!(asked("soon"), None);
        assert_eq!(asked("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO));
        assert_eq!(asked("Thu, 31 Dec 9998 23:59:59 GMT"), Some(ASKED_PAUSE_MAX));
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn pauses_grow_to_a_limit_and_are_never_shorter_than_asked() {
        for attempt in [0, 1, 5, 31, u32::MAX] {
            let pause = backoff(attempt, None);
            assert!((PAUSE_MIN / 2..=PAUSE_MAX).contains(&pause), "{attempt}: {pause:?}");
        }
        assert!(backoff(20, None) >= PAUSE_MAX / 2);
        assert_eq!(backoff(0, Some(Duration::from_secs(90))), Duration::from_secs(90));
    }
}
