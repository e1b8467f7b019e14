//! Figures of engines, GPUs and hosts, as people read them.

use maud::{Markup, html};

use super::subject::Told;
use crate::console::text::{part_text, seconds_text};

/// Bytes of a tebibyte.
const TEBI: f64 = 1_099_511_627_776.0;

/// A number with its unit, or the word *unknown* with the reason.
fn figure(told: Told<'_>, form: Form) -> Markup {
    match told {
        Ok(value) => html! { data value=(value) { (form.text(value)) } },
        Err(why) => html! { span.unknown title=(why) { "unknown" } },
    }
}

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A number of things.
    Number,
    /// So many things a second.
    PerSecond,
    /// A part of a whole.
    Share,
    /// Watts.
    Watts,
    /// Degrees.
    Celsius,
    /// A frequency in hertz.
    Clock,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// A time.
    Seconds,
}

impl Form {
    /// The number with its unit.
    pub(crate) fn text(self, value: f64) -> String {
        match self {
            Self::Number => digits(value),
            Self::PerSecond => format!("{} /s", digits(value)),
            Self::Share => part_text(value),
            Self::Watts => format!("{value:.0} W"),
            Self::Celsius => format!("{value:.0} °C"),
            Self::Clock => format!("{:.0} MHz", value / 1e6),
            Self::Bytes => bytes_text(value),
            Self::BytesPerSecond => format!("{}/s", bytes_text(value)),
            Self::Seconds if value == 0.0 => "0 s".to_owned(),
            Self::Seconds => seconds_text(value),
        }
    }

    /// A label of an axis: with so many decimal places of the axis' [base](Self::base) that no two are alike.
    pub(crate) fn label(self, value: f64, places: usize) -> String {
        let places = if value == 0.0 { 0 } else { places };
        let (scale, unit) = match self {
            Self::Number => (1.0, ""),
            Self::PerSecond => (1.0, " /s"),
            Self::Share => (0.01, " %"),
            Self::Watts => (1.0, " W"),
            Self::Celsius => (1.0, " °C"),
            Self::Clock => (1e6, " MHz"),
            Self::Bytes | Self::BytesPerSecond | Self::Seconds => return self.text(value),
        };
        format!("{:.places$}{unit}", value / scale)
    }

    /// What the steps of an axis up to `largest` are whole numbers of.
    pub(crate) fn base(self, largest: f64) -> f64 {
        match self {
            Self::Share => 0.01,
            Self::Clock => 1e6,
            Self::Bytes | Self::BytesPerSecond => {
                let mut base = 1.0;
                while largest / base >= 1024.0 && base < TEBI {
                    base *= 1024.0;
                }
                base
            }
            Self::Number | Self::PerSecond | Self::Watts | Self::Celsius | Self::Seconds => 1.0,
        }
    }
}

/// A number of things.
pub(super) fn number(told: Told<'_>) -> Markup {
    figure(told, Form::Number)
}

/// So many things a second.
pub(super) fn per_second(told: Told<'_>) -> Markup {
    figure(told, Form::PerSecond)
}

/// A part of a whole.
pub(super) fn share(told: Told<'_>) -> Markup {
    figure(told, Form::Share)
}

/// Watts.
pub(super) fn watts(told: Told<'_>) -> Markup {
    figure(told, Form::Watts)
}

/// Degrees.
pub(super) fn celsius(told: Told<'_>) -> Markup {
    figure(told, Form::Celsius)
}

/// A frequency in hertz.
pub(super) fn clock(told: Told<'_>) -> Markup {
    figure(told, Form::Clock)
}

/// Bytes.
pub(super) fn bytes(told: Told<'_>) -> Markup {
    figure(told, Form::Bytes)
}

/// Bytes a second.
pub(super) fn bytes_per_second(told: Told<'_>) -> Markup {
    figure(told, Form::BytesPerSecond)
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
