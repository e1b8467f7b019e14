//! Curves as a chart, with a legend that has their numbers.

use maud::{Markup, html};
use rust_decimal::Decimal;

use super::curves::{Curve, Curves, Measure, mean};
use super::figures::Form;
use crate::console::charts::{Line, Lines, Mark, Spanned, lines, ticks};
use crate::console::text::{name, rough, unknown};

/// What all charts of a page share: their time.
pub(in crate::console) struct TimeAxis<'a> {
    /// The last second, from the first one on.
    pub(in crate::console) seconds: f64,
    /// The labels, from the first instant to the last.
    pub(in crate::console) labels: Vec<String>,
    /// Spans behind the lines.
    pub(in crate::console) spans: Vec<Spanned<'a>>,
    /// What happened when.
    pub(in crate::console) marks: Vec<Mark<'a>>,
    /// How the time before is called that is compared with. `None` if there is none.
    pub(in crate::console) before: Option<&'a str>,
}

/// A source that is asked seldom has a point each 15 seconds.
const SELDOM: f64 = 15.0;

/// The chart of a measure.
pub(in crate::console) fn chart(measure: &Measure, found: &Curves, time: &TimeAxis<'_>) -> Markup {
    let (labels, top) = axis(measure.form, found.largest());
    let [joined, joined_before] = found.steps.map(|step| (2.5 * step).max(1.5 * SELDOM));
    let curves = || found.curves.iter().enumerate();
    let before = curves().map(|(index, curve)| Line {
        class: format!("s{index} before"),
        points: &curve.before,
        joined: joined_before,
    });
    let now = curves().map(|(index, curve)| Line {
        class: format!("s{index}"),
        points: &curve.points,
        joined,
    });
    let lines_of: Vec<_> = before.chain(now).collect();
    let drawn = Lines {
        label: measure.title,
        from: 0.0,
        to: time.seconds,
        axis: (&labels, top),
        times: &time.labels,
        lines: &lines_of,
        spans: &time.spans,
        marks: &time.marks,
    };
    html! {
        figure.over-time data-quantity=(measure.quantity) {
            figcaption { (measure.title) }
            (lines(&drawn))
            (legend(measure.form, found, time.before))
        }
    }
}

fn legend(form: Form, found: &Curves, before: Option<&str>) -> Markup {
    html! {
        div.scroll { table.legend {
            thead { tr {
                th scope="col" { "Line" }
                th.number scope="col" { "Mean" }
                th.number scope="col" { "Peak" }
                @if let Some(before) = before { th.number scope="col" { "Mean " (before) } }
            } }
            tbody {
                @for (index, curve) in found.curves.iter().enumerate() {
                    tr {
                        th scope="row" {
                            span class={ "swatch s" (index) } {} " " (name(&curve.name))
                        }
                        td.number { (figure(form, mean(&curve.points))) }
                        td.number { (figure(form, peak(curve))) }
                        @if before.is_some() {
                            td.number { (figure(form, mean(&curve.before))) }
                        }
                    }
                }
            }
            @if found.others > 0 {
                tfoot { tr { td colspan="4" {
                    "These have the highest values. "
                    @if found.others == 1 { "One other is not shown." }
                    @else { (found.others) " others are not shown." }
                } } }
            }
        } }
    }
}

fn peak(curve: &Curve) -> Option<f64> {
    Some(curve.peak()).filter(|peak| peak.is_finite())
}

fn figure(form: Form, value: Option<f64>) -> Markup {
    html! {
        @match value {
            Some(value) => data value=(value) { (form.text(value)) },
            None => (unknown()),
        }
    }
}

/// The labels of an axis from 0 to at least `largest`, and the value at its end.
fn axis(form: Form, largest: f64) -> (Vec<String>, f64) {
    let base = form.base(largest);
    // What has no number of decimal digits is not shown by an axis either.
    let steps = ticks(Decimal::try_from(largest / base).unwrap_or_default());
    let values: Vec<_> = steps.iter().map(|step| rough(*step) * base).collect();
    let labels = values.iter().map(|value| form.text(*value)).collect();
    (labels, values.last().copied().unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_numbers_of_the_unit_that_fits() {
        let shown = |form, largest| axis(form, largest).0.join(" | ");
        assert_eq!(shown(Form::Number, 7.0), "0 | 2 | 4 | 6 | 8");
        assert_eq!(shown(Form::Share, 0.42), "0 % | 20 % | 40 % | 60 %");
        let gib = 1024.0 * 1024.0 * 1024.0;
        assert_eq!(
            shown(Form::Bytes, 70.0 * gib),
            "0 B | 20.0 GiB | 40.0 GiB | 60.0 GiB | 80.0 GiB"
        );
        assert_eq!(shown(Form::Clock, 1.9e9), "0 MHz | 500 MHz | 1000 MHz | 1500 MHz | 2000 MHz");
        assert_eq!(shown(Form::Seconds, 0.003), "0 s | 1.00 ms | 2.00 ms | 3.00 ms");
        assert_eq!(shown(Form::Watts, 0.0), "0 W | 0 W | 0 W | 1 W | 1 W");
    }

    #[test]
    fn a_legend_says_what_is_unknown_and_how_many_are_left_out() {
        let curve = Curve {
            name: "GPU-1".to_owned(),
            points: vec![(0.0, 100.0), (1.0, 300.0)],
            before: Vec::new(),
        };
        let found = Curves { curves: vec![curve], others: 94, steps: [15.0; 2] };
        let markup = legend(Form::Watts, &found, Some("a week before")).into_string();
        for text in ["200 W", "300 W", "Mean a week before", "unknown", "94 others"] {
            assert!(markup.contains(text), "{text} in {markup}");
        }
    }
}
