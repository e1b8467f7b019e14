//! Numbers and names as text for a terminal.

use ratatui::text::Span;
use rust_decimal::Decimal;
use taximeter_net::visible::is_visible;

use super::distribution::Quantile;
use super::snapshot::Rates;

/// The text for an unknown value. An unknown value is never zero.
pub(super) const UNKNOWN: &str = "–";

/// The width of a text, in columns.
pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// A name from outside, without control characters, and at most `columns` wide.
pub(super) fn name(text: &str, columns: usize) -> String {
    let clean = |character| if is_visible(character) { character } else { '\u{fffd}' };
    let mut out = String::new();
    let mut taken = 0;
    // The length of the text that leaves room for an ellipsis.
    let mut cut = 0;
    for character in text.chars().map(clean) {
        taken += width(character.encode_utf8(&mut [0; 4]));
        if taken > columns {
            out.truncate(cut);
            out.push('…');
            break;
        }
        out.push(character);
        if taken < columns {
            cut = out.len();
        }
    }
    out
}

/// A rate per second: three significant digits, and a letter such as `k` for thousands.
pub(super) fn rate(number: f64) -> String {
    const STEPS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    for (step, letter) in STEPS {
        // 999.6 rounds to 1000, so it is shown as 1.00k.
        if number >= step * 0.9995 {
            return digits(number / step) + letter;
        }
    }
    digits(number)
}

fn digits(number: f64) -> String {
    match number {
        none if none <= 0.0 => "0".to_owned(),
        tiny if tiny < 0.005 => "<.01".to_owned(),
        small if small < 9.995 => format!("{small:.2}"),
        middle if middle < 99.95 => format!("{middle:.1}"),
        large => format!("{large:.0}"),
    }
}

/// A whole number with commas.
pub(super) fn count(number: u64) -> String {
    grouped(&number.to_string())
}

fn grouped(number: &str) -> String {
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        let follows = out.ends_with(|before: char| before.is_ascii_digit());
        if follows && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

/// A measured time, in seconds.
pub(super) fn time(seconds: f64) -> String {
    match seconds {
        small if small < 0.009_95 => format!("{:.1} ms", small * 1e3),
        middle if middle < 0.999_5 => format!("{:.0} ms", middle * 1e3),
        large if large < 9.995 => format!("{large:.2} s"),
        large if large < 99.95 => format!("{large:.1} s"),
        long => span(long),
    }
}

/// The same for a time that may be unknown.
pub(super) fn time_or_unknown(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| UNKNOWN.to_owned(), time)
}

/// A quantile of times.
pub(super) fn quantile(quantile: Option<Quantile>) -> String {
    match quantile {
        Some(Quantile { seconds, beyond: true }) => format!(">{}", time(seconds)),
        known => time_or_unknown(known.map(|quantile| quantile.seconds)),
    }
}

/// A duration in its two largest units, from seconds.
pub(super) fn span(seconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped before")]
    let whole = seconds.clamp(0.0, 1e12) as u64;
    match whole {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        seconds @ ..86_400 => format!("{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
        seconds => format!("{}d {:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// Spend per hour. A `+` means that some requests had no known price.
pub(super) fn spend(rates: &Rates) -> String {
    match (rates.spend, rates.unpriced) {
        (spend, true) if spend <= 0.0 => "unknown".to_owned(),
        (spend, true) => money(spend) + "+",
        (spend, false) => money(spend),
    }
}

fn money(amount: f64) -> String {
    match amount {
        none if none <= 0.0 => "0".to_owned(),
        tiny if tiny < 0.000_05 => "<0.0001".to_owned(),
        small if small < 0.999_95 => format!("{small:.4}"),
        middle if middle < 99_999.5 => grouped(&format!("{middle:.2}")),
        large => grouped(&format!("{large:.0}")),
    }
}

/// An amount of money on a bill.
pub(super) fn amount(amount: Decimal) -> String {
    let places = if amount.abs() >= Decimal::ONE { 2 } else { 4 };
    let shown = amount.round_dp(places);
    if shown.is_zero() && !amount.is_zero() {
        return "<0.0001".to_owned();
    }
    grouped(&format!("{shown:.places$}", places = places as usize))
}

/// A share in per cent.
pub(super) fn share(part: Option<f64>) -> String {
    part.map_or_else(|| UNKNOWN.to_owned(), |part| format!("{:.0} %", part * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_count() {
        for (number, text) in [
            (0.0, "0"),
            (0.001, "<.01"),
            (0.5, "0.50"),
            (9.996, "10.0"),
            (99.96, "100"),
            (999.4, "999"),
            (999.6, "1.00k"),
            (12_345.0, "12.3k"),
            (999_600.0, "1.00M"),
            (7.7e12, "7.70T"),
        ] {
            assert_eq!(rate(number), text, "{number}");
        }
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        for (seconds, text) in [
            (0.0004, "0.4 ms"),
            (0.0123, "12 ms"),
            (0.9996, "1.00 s"),
            (12.34, "12.3 s"),
            (125.0, "2m 05s"),
        ] {
            assert_eq!(time(seconds), text, "{seconds}");
        }
        for (seconds, text) in [(59.9, "59 s"), (3_725.0, "1h 02m"), (90_000.0, "1d 01h")] {
            assert_eq!(span(seconds), text, "{seconds}");
        }
        let beyond = Quantile { seconds: 10.0, beyond: true };
        assert_eq!(quantile(Some(beyond)), ">10.0 s");
        assert_eq!(quantile(None), UNKNOWN);
    }

    #[test]
    fn what_has_no_price_is_no_zero() {
        let rates = |spend, unpriced| Rates {
            requests: 1.0,
            input_tokens: 1.0,
            output_tokens: 1.0,
            first_token_p50: None,
            first_token_p95: None,
            spend,
            unpriced,
            share: None,
        };
        for (amount, unpriced, text) in [
            (0.0, false, "0"),
            (0.0, true, "unknown"),
            (0.00001, false, "<0.0001"),
            (0.0123, true, "0.0123+"),
            (1234.5, false, "1,234.50"),
        ] {
            assert_eq!(spend(&rates(amount, unpriced)), text);
        }
        assert_eq!(super::amount("-1234.567".parse().unwrap()), "-1,234.57");
        assert_eq!(super::amount("-123".parse().unwrap()), "-123.00");
        assert_eq!(super::amount("0.00001".parse().unwrap()), "<0.0001");
    }

    #[test]
    fn names_are_cut_by_columns_and_never_control_the_terminal() {
        assert_eq!(name("acme", 4), "acme");
        assert_eq!(name("acme!", 4), "acm…");
        assert_eq!(name("\u{4e16}\u{754c}\u{4e16}", 5), "\u{4e16}\u{754c}…");
        assert_eq!(name("\u{4e16}\u{754c}\u{4e16}", 4), "\u{4e16}…");
        assert_eq!(name("a\x1b[2J\n\u{202e}b", 20), "a\u{fffd}[2J\u{fffd}\u{fffd}b");
        assert_eq!(name("long", 0), "…");
    }
}
