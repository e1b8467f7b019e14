//! Names and numbers for people. Names are cut and cleaned. Numbers are rounded; the exact value is
//! in `<data value>`. maud escapes all markup.

use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};
use rust_decimal::{Decimal, RoundingStrategy};
use taximeter_net::visible::is_visible;
use taximeter_telemetry::money;

/// Longest name shown, in characters.
const NAME_CHARS_MAX: usize = 64;
/// Longest text shown, in characters.
const TEXT_CHARS_MAX: usize = 400;
/// The console shows prices of tokens for this many tokens.
const PRICED_TOKENS: i64 = 1_000_000;
/// Decimal places of the smallest amounts.
const PLACES_MAX: u32 = 6;

/// A name from outside. The result is short, keeps its own text direction, and has no control
/// characters.
pub(super) fn name(text: &str) -> Markup {
    html! { bdi { (clean(text, NAME_CHARS_MAX)) } }
}

/// A name from outside, or `none`.
pub(super) fn name_or_none(text: Option<&str>) -> Markup {
    text.map_or_else(|| html! { span.none { "none" } }, name)
}

/// One of our own sentences. It may quote text from outside.
pub(super) fn sentence(text: &str) -> String {
    clean(text, TEXT_CHARS_MAX)
}

/// A name without markup, for tooltips and fields of forms.
pub(super) fn plain(text: &str) -> String {
    clean(text, NAME_CHARS_MAX)
}

fn clean(text: &str, chars_max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(chars_max));
    for (index, character) in text.chars().enumerate() {
        if index == chars_max {
            out.push('…');
            break;
        }
        out.push(if is_visible(character) { character } else { '\u{fffd}' });
    }
    out
}

/// The word for an unknown value. An unknown value is never zero.
pub(super) fn unknown() -> Markup {
    html! { span.unknown { "unknown" } }
}

/// A whole number.
pub(super) fn count(number: u64) -> Markup {
    html! { data value=(number) { (grouped(&number.to_string())) } }
}

/// The same for a value that may be unknown.
pub(super) fn count_or_unknown(number: Option<u64>) -> Markup {
    number.map_or_else(unknown, count)
}

/// An exact quantity.
pub(super) fn quantity(number: Decimal) -> Markup {
    let exact = number.normalize().to_string();
    html! { data value=(exact) { (grouped(&exact)) } }
}

/// Decimal places for a column of amounts whose largest one is `largest`.
pub(super) fn places(largest: Decimal) -> u32 {
    match largest.abs() {
        large if large >= Decimal::ONE_HUNDRED => 2,
        middle if middle >= Decimal::ONE => 4,
        _ => PLACES_MAX,
    }
}

/// An amount, rounded half to even. An amount that rounds to zero is shown as `<0.000001`.
pub(super) fn money(amount: Decimal, places: u32) -> Markup {
    html! { data value=(amount.normalize()) { (money_text(amount, places)) } }
}

/// The same for a value that may be unknown.
pub(super) fn money_or_unknown(amount: Option<Decimal>, places: u32) -> Markup {
    amount.map_or_else(unknown, |amount| money(amount, places))
}

/// An amount as it is shown, rounded half to even.
pub(super) fn rounded(amount: Decimal, places: u32) -> Decimal {
    amount.round_dp_with_strategy(places, RoundingStrategy::MidpointNearestEven)
}

/// The text of an amount.
pub(super) fn money_text(amount: Decimal, places: u32) -> String {
    let shown = rounded(amount, places);
    if shown.is_zero() && !amount.is_zero() {
        let sign = if amount.is_sign_negative() { ">−" } else { "<" };
        return format!("{sign}0.{:0>width$}", 1, width = places as usize);
    }
    grouped(&format!("{shown:.width$}", width = places as usize))
}

/// A unit price. A price of tokens is shown per million.
pub(super) fn price_of(price: Decimal, unit: &str) -> Markup {
    let million = price.checked_mul(Decimal::from(PRICED_TOKENS)).filter(|_| unit == "tokens");
    html! {
        data value=(price.normalize()) {
            @match million {
                Some(million) => { (million.normalize()) " " span.unit { "/ 1M" } }
                None => {
                    (price.normalize()) " "
                    span.unit { "/ " (name(unit.strip_suffix('s').unwrap_or(unit))) }
                }
            }
        }
    }
}

/// A unit price with all its digits.
pub(super) fn unit_price(price: Decimal) -> Markup {
    let exact = price.normalize().to_string();
    html! { data value=(exact) { (exact) } }
}

/// `part` in per cent of `whole`. `None` if `whole` is zero.
pub(super) fn per_cent(part: Decimal, whole: Decimal) -> Option<String> {
    let share = part.checked_mul(Decimal::ONE_HUNDRED)?.checked_div(whole)?;
    let text = format!("{:.1} %", share.round_dp(1));
    Some(text)
}

/// `1234567.5` → `1,234,567.5`. The minus sign is as wide as a digit.
pub(super) fn grouped(number: &str) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("−", rest));
    let (whole, fraction) =
        number.split_once('.').map_or((number, None), |(whole, rest)| (whole, Some(rest)));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A number for an axis or a tile: three digits and a letter such as `k` or `M`.
pub(super) fn short(number: Decimal) -> String {
    const STEPS: [(&str, u32); 4] = [("T", 12), ("G", 9), ("M", 6), ("k", 3)];
    for (letter, power) in STEPS {
        let step = Decimal::from(10_u64.pow(power));
        if number.abs() >= step {
            let rounded = (number / step).round_sf(3).unwrap_or_default().normalize();
            return format!("{rounded}{letter}");
        }
    }
    number.round_sf(3).unwrap_or_default().normalize().to_string()
}

/// A time in seconds. People see the fitting unit.
pub(super) fn seconds(seconds: f64) -> Markup {
    html! { data value=(seconds) { (seconds_text(seconds)) } }
}

/// The same for a value that may be unknown.
pub(super) fn seconds_or_unknown(time: Option<f64>) -> Markup {
    time.map_or_else(unknown, seconds)
}

/// The text of a time in seconds: three significant digits.
pub(super) fn seconds_text(seconds: f64) -> String {
    match seconds {
        none if !none.is_finite() => "unknown".to_owned(),
        tiny if tiny < 0.000_999_5 => format!("{:.0} µs", tiny * 1e6),
        small if small < 0.009_995 => format!("{:.2} ms", small * 1e3),
        small if small < 0.099_95 => format!("{:.1} ms", small * 1e3),
        middle if middle < 0.999_5 => format!("{:.0} ms", middle * 1e3),
        large if large < 9.995 => format!("{large:.2} s"),
        large if large < 99.95 => format!("{large:.1} s"),
        long => {
            let whole = SignedDuration::try_from_secs_f64(long).unwrap_or(SignedDuration::MAX);
            let (hours, minutes) = (whole.as_hours(), whole.as_mins() % 60);
            format!("{hours} h {minutes} min {} s", whole.as_secs() % 60)
        }
    }
}

/// How long it is from one instant to a later one.
pub(super) fn duration(from: Timestamp, to: Timestamp) -> Markup {
    seconds(to.duration_since(from).as_secs_f64())
}

/// A part of a whole, from 0 to 1, in per cent. It may be unknown.
pub(super) fn part(part: Option<f64>) -> Markup {
    part.map_or_else(unknown, |part| html! { data value=(part) { (part_text(part)) } })
}

/// The text of a part, in whole per cent.
pub(super) fn part_text(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// A rounded number for drawing. Sums are never made of it.
pub(super) fn rough(number: Decimal) -> f64 {
    money::nearest(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::from_str_exact(text).unwrap()
    }

    #[test]
    fn names_are_escaped_cut_and_cleaned() {
        let shown = |text: &str| name(text).into_string();
        assert_eq!(shown("<script>\"&'"), "<bdi>&lt;script&gt;&quot;&amp;'</bdi>");
        assert_eq!(shown("a\0b\u{1b}[2J\u{202e}c"), "<bdi>a\u{fffd}b\u{fffd}[2J\u{fffd}c</bdi>");
        assert_eq!(shown("שלום"), "<bdi>שלום</bdi>");
        let long = shown(&"ä".repeat(1 << 20));
        assert_eq!(long, format!("<bdi>{}…</bdi>", "ä".repeat(NAME_CHARS_MAX)));
    }

    #[test]
    fn amounts_are_rounded_and_never_to_zero() {
        for (amount, places, text) in [
            ("0", 6, "0.000000"),
            ("0.0000004", 6, "<0.000001"),
            ("-0.0000004", 6, ">−0.000001"),
            ("1234567.005", 2, "1,234,567.00"),
            ("-1234.5", 4, "−1,234.5000"),
            ("999.999", 2, "1,000.00"),
        ] {
            assert_eq!(money_text(decimal(amount), places), text, "{amount}");
        }
        let exact = money(decimal("0.00012340"), 4).into_string();
        assert_eq!(exact, "<data value=\"0.0001234\">0.0001</data>");
        assert_eq!(
            money_or_unknown(None, 2).into_string(),
            "<span class=\"unknown\">unknown</span>"
        );
    }

    #[test]
    fn numbers_are_short_where_there_is_no_room() {
        for (number, text) in [
            ("0", "0"),
            ("0.25", "0.25"),
            ("999", "999"),
            ("1000", "1k"),
            ("1234567", "1.23M"),
            ("25000000000", "25G"),
        ] {
            assert_eq!(short(decimal(number)), text);
        }
    }

    #[test]
    fn times_have_three_digits_that_count() {
        for (seconds, text) in [
            (0.000_042, "42 µs"),
            (0.0043, "4.30 ms"),
            (0.0431, "43.1 ms"),
            (0.5, "500 ms"),
            (1.178, "1.18 s"),
            (42.0, "42.0 s"),
            (3725.4, "1 h 2 min 5 s"),
            (f64::NAN, "unknown"),
        ] {
            assert_eq!(seconds_text(seconds), text);
        }
    }

    #[test]
    fn a_part_of_nothing_has_no_share() {
        assert_eq!(per_cent(decimal("1"), decimal("3")).as_deref(), Some("33.3 %"));
        assert_eq!(per_cent(decimal("1"), Decimal::ZERO), None);
    }
}
