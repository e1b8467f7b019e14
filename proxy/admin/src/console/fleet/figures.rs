//! Figures of engines, GPUs and hosts, as people read them.

use maud::{Markup, html};

use super::subject::Told;
use crate::console::text::part_text;

/// A number with its unit, or the word *unknown* with the reason.
fn figure(told: Told<'_>, text: impl Fn(f64) -> String) -> Markup {
    match told {
        Ok(value) => html! { data value=(value) { (text(value)) } },
        Err(why) => html! { span.unknown title=(why) { "unknown" } },
    }
}

/// A number of things.
pub(super) fn number(told: Told<'_>) -> Markup {
    figure(told, digits)
}

/// So many things a second.
pub(super) fn per_second(told: Told<'_>) -> Markup {
    figure(told, |value| format!("{} /s", digits(value)))
}

/// A part of a whole.
pub(super) fn share(told: Told<'_>) -> Markup {
    figure(told, part_text)
}

/// Watts.
pub(super) fn watts(told: Told<'_>) -> Markup {
    figure(told, |value| format!("{value:.0} W"))
}

/// Degrees.
pub(super) fn celsius(told: Told<'_>) -> Markup {
    figure(told, |value| format!("{value:.0} °C"))
}

/// A frequency in hertz.
pub(super) fn clock(told: Told<'_>) -> Markup {
    figure(told, |value| format!("{:.0} MHz", value / 1e6))
}

/// Bytes.
pub(super) fn bytes(told: Told<'_>) -> Markup {
    figure(told, bytes_text)
}

/// Bytes a second.
pub(super) fn bytes_per_second(told: Told<'_>) -> Markup {
    figure(told, |value| format!("{}/s", bytes_text(value)))
}

fn digits(value: f64) -> String {
    if value.fract() == 0.0 || value.abs() >= 100.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.2}")
    }
}

fn bytes_text(bytes: f64) -> String {
    let mut scaled = bytes;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if scaled.abs() < 1024.0 {
            let places = usize::from(unit != "B" && scaled.abs() < 100.0);
            return format!("{scaled:.places$} {unit}");
        }
        scaled /= 1024.0;
    }
    format!("{scaled:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_what_is_unknown_says_why() {
        let texts = [0.0, 1023.0, 1536.0, 85_899_345_920.0, 2e15].map(bytes_text);
        assert_eq!(texts, ["0 B", "1023 B", "1.5 KiB", "80.0 GiB", "1819.0 TiB"]);
        assert_eq!([3.0, 0.125, 1234.5].map(digits), ["3", "0.12", "1234"]);
        let unknown = watts(Err("the exporter \"hides\" it")).into_string();
        assert_eq!(
            unknown,
            "<span class=\"unknown\" title=\"the exporter &quot;hides&quot; it\">unknown</span>"
        );
        assert_eq!(watts(Ok(0.0)).into_string(), "<data value=\"0\">0 W</data>");
    }
}
