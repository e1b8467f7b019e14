//! Curves as a chart, with a legend that has their numbers.

use jiff::Timestamp;
use maud::{Markup, html};
use rust_decimal::Decimal;

use super::curves::{Curve, Curves, Measure, mean};
use super::figures::Form;
use crate::console::charts::{Line, Lines, Mark, Spanned, lines, ticks};
use crate::console::text::{name, rough, unknown};
use crate::fleet::events::{EventsAnswer, FleetEvent};

/// What all charts of a page share: their time.
pub(crate) struct TimeAxis<'a> {
    /// The last second, from the first one on.
    pub(crate) seconds: f64,
    /// The labels, from the first instant to the last.
    pub(crate) labels: Vec<String>,
    /// Spans behind the lines.
    pub(crate) spans: Vec<Spanned<'a>>,
    /// What happened when.
    pub(crate) happened: Vec<Happened<'a>>,
    /// How the time before is called that is compared with. `None` if there is none.
    pub(crate) before: Option<&'a str>,
}

/// Something that happened.
pub(crate) struct Happened<'a> {
    /// Seconds since the first one of the charts.
    at: f64,
    event: &'a FleetEvent,
}

/// What happened since `from`, the first second of the charts.
pub(crate) fn happened(found: &EventsAnswer, from: i64) -> Vec<Happened<'_>> {
    let from = Timestamp::from_second(from).unwrap_or_default();
    let events = found.events.iter();
    events
        .map(|event| Happened { at: event.at.duration_since(from).as_secs_f64(), event })
        .collect()
}

/// A source that is asked seldom has a point each 15 seconds.
const SELDOM: f64 = 15.0;

/// The chart of a measure.
pub(crate) fn chart(measure: &Measure, found: &Curves, time: &TimeAxis<'_>) -> Markup {
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
    // What the gateway itself rests on concerns all.
    let concerns = |event: &FleetEvent| {
        event.source.is_none() || event.about.iter().any(|about| found.about.contains(about))
    };
    let marks = time.happened.iter().filter(|happened| concerns(happened.event));
    let marks: Vec<_> =
        marks.map(|happened| Mark { at: happened.at, text: &happened.event.text }).collect();
    let drawn = Lines {
        label: measure.title,
        from: 0.0,
        to: time.seconds,
        axis: (&labels, top),
        times: &time.labels,
        lines: &lines_of,
        spans: &time.spans,
        marks: &marks,
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
    let places = steps.iter().map(|step| step.normalize().scale()).max().unwrap_or_default();
    let places = usize::try_from(places).unwrap_or_default();
    let values: Vec<_> = steps.iter().map(|step| rough(*step) * base).collect();
    let labels = values.iter().map(|value| form.label(*value, places)).collect();
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
        assert_eq!(shown(Form::Watts, 0.0), "0 W | 0.25 W | 0.50 W | 0.75 W | 1.00 W");
        assert_eq!(shown(Form::Share, 0.018), "0 % | 0.5 % | 1.0 % | 1.5 % | 2.0 %");
        assert_eq!(shown(Form::Number, 0.09), "0 | 0.025 | 0.050 | 0.075 | 0.100");
    }

    #[test]
    fn a_legend_says_what_is_unknown_and_how_many_are_left_out() {
        let curve = Curve {
            name: "GPU-1".to_owned(),
            points: vec![(0.0, 100.0), (1.0, 300.0)],
            before: Vec::new(),
        };
        let found = Curves { curves: vec![curve], others: 94, ..Curves::default() };
        let markup = legend(Form::Watts, &found, Some("a week before")).into_string();
        for text in ["200 W", "300 W", "Mean a week before", "unknown", "94 others"] {
            assert!(markup.contains(text), "{text} in {markup}");
        }
    }

    #[test]
    fn events_are_marked_on_the_charts_of_those_whom_they_concern() {
        let event = |source: Option<&str>, about: &str, text: &str| FleetEvent {
            at: "2026-11-27T12:00:30Z".parse().unwrap(),
            kind: "engine_version",
            subject: about.to_owned(),
            source: source.map(str::to_owned),
            about: vec![about.to_owned()],
            before: None,
            after: None,
            text: text.to_owned(),
        };
        let from: Timestamp = "2026-11-27T12:00:00Z".parse().unwrap();
        let found = EventsAnswer {
            from,
            to: from,
            events: vec![
                event(None, "taximeter.yaml", "the configuration was read"),
                event(Some("http://e"), "http://e", "its version is 2"),
                event(Some("http://f"), "http://f", "its version is 3"),
            ],
            more: false,
            skipped_lines: 0,
        };
        let curve = Curve { points: vec![(0.0, 1.0)], ..Curve::default() };
        let about = ["http://e".to_owned()].into();
        let curves = Curves { curves: vec![curve], about, ..Curves::default() };
        let time = TimeAxis {
            seconds: 60.0,
            labels: Vec::new(),
            spans: Vec::new(),
            happened: happened(&found, from.as_second()),
            before: None,
        };
        let measure = &crate::console::fleet::measures::ENGINES[0];
        let markup = chart(measure, &curves, &time).into_string();
        assert!(markup.contains("d=\"M500 0V100\""), "{markup}");
        assert!(markup.contains("the configuration was read"), "{markup}");
        assert!(markup.contains("its version is 2"), "{markup}");
        assert!(!markup.contains("its version is 3"), "{markup}");
    }
}
