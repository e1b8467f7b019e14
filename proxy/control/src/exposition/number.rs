//! Values and time stamps.

/// The value that `text` is.
///
/// Beside Go's numbers there are those of C: `-nan`, `-nan(ind)`, `1.17e+010`.
pub(super) fn value(text: &str) -> Option<f64> {
    if let Some(value) = whole(text).or_else(|| text.parse().ok()) {
        return Some(value);
    }
    let bare = text.strip_prefix(['-', '+']).unwrap_or(text).as_bytes();
    let is_nan = bare.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"nan("));
    (is_nan && bare.ends_with(b")")).then_some(f64::NAN)
}

/// A number of a few digits without a fraction, as most are: a float has it exactly.
fn whole(text: &str) -> Option<f64> {
    const DIGITS_MAX: usize = 15;
    let digits = text.strip_suffix(".0").unwrap_or(text).as_bytes();
    if digits.is_empty() || digits.len() > DIGITS_MAX {
        return None;
    }
    let mut value = 0_u64;
    for digit in digits {
        value = value * 10 + u64::from(digit.checked_sub(b'0').filter(|digit| *digit < 10)?);
    }
    #[expect(clippy::cast_precision_loss, reason = "15 digits are exact")]
    Some(value as f64)
}

/// The time that `text` is, in milliseconds since 1970.
///
/// Prometheus' text has whole milliseconds, OpenMetrics seconds, and nothing else tells the two apart.
/// A whole number below 10¹¹ counts as seconds: as milliseconds it would be before 1973.
pub(super) fn stamp(text: &str) -> Option<i64> {
    const MILLISECONDS_FROM: i64 = 100_000_000_000;
    if let Ok(whole) = text.parse::<i64>() {
        let is_milliseconds = whole.unsigned_abs() >= MILLISECONDS_FROM.unsigned_abs();
        return if is_milliseconds { Some(whole) } else { whole.checked_mul(1000) };
    }
    let milliseconds = text.parse::<f64>().ok()? * 1000.0;
    // Beyond a year of seven digits it is no time of a sample.
    if !milliseconds.is_finite() || milliseconds.abs() > 1e17 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "the line before bounds it")]
    Some(milliseconds.round() as i64)
}
