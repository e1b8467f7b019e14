//! A chart of lines over time. Where a sample is missing, a line has a gap.

use std::fmt::Write as _;

use maud::{Markup, html};

/// Width and height of the chart, in units of the SVG.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// The data of a chart.
pub(crate) struct Lines<'a> {
    /// What the chart shows, for screen readers.
    pub label: &'a str,
    /// Its first and last instant. All times are seconds from the same one.
    pub from: f64,
    pub to: f64,
    /// The labels of the axis of values, from 0 up, and the value at its end.
    pub axis: (&'a [String], f64),
    /// The labels of the axis of time, from the first instant to the last.
    pub times: &'a [String],
    /// The lines. Later ones are drawn above.
    pub lines: &'a [Line<'a>],
    /// Spans of time that are marked, behind the lines.
    pub spans: &'a [Spanned<'a>],
    /// Instants that are marked.
    pub marks: &'a [Mark<'a>],
}

/// A line.
pub(crate) struct Line<'a> {
    /// Its CSS classes.
    pub class: String,
    /// Time and value, in order of time.
    pub points: &'a [(f64, f64)],
    /// Two points that are farther apart are not joined.
    pub joined: f64,
}

/// A span of time.
pub(crate) struct Spanned<'a> {
    /// Its colour.
    pub class: &'a str,
    pub from: f64,
    pub to: f64,
}

/// An instant.
pub(crate) struct Mark<'a> {
    pub at: f64,
    /// What happened then.
    pub text: &'a str,
}

/// The chart. The page must also show a legend, and the numbers as text.
pub(crate) fn lines(chart: &Lines<'_>) -> Markup {
    let (labels, _) = chart.axis;
    let steps = labels.len().saturating_sub(1).max(1);
    html! {
        div.chart.lines {
            ol.y aria-hidden="true" { @for label in labels.iter().rev() { li { (label) } } }
            svg.plot viewBox="0 0 1000 100" preserveAspectRatio="none" role="img"
                aria-label=(chart.label) {
                @for span in chart.spans {
                    @let (from, to) = (chart.x(span.from), chart.x(span.to));
                    @if to > from {
                        rect class={ "span " (span.class) } x=(short(from)) y="0" width=(short(to - from))
                            height="100" {}
                    }
                }
                @for step in 0..=steps {
                    path.grid d={ "M0 " (short(part(step, steps) * HEIGHT)) "H1000" } {}
                }
                @for line in chart.lines {
                    @let path = chart.path(line);
                    @if !path.is_empty() { path class={ "line " (line.class) } d=(path) {} }
                }
                @for mark in chart.marks.iter().filter(|mark| chart.has(mark.at)) {
                    path.mark d={ "M" (short(chart.x(mark.at))) " 0V100" } {
                        title { (mark.text) }
                    }
                }
            }
            ol.x aria-hidden="true" { @for label in chart.times { li { (label) } } }
        }
    }
}

impl Lines<'_> {
    fn has(&self, at: f64) -> bool {
        (self.from..=self.to).contains(&at)
    }

    fn x(&self, at: f64) -> f64 {
        let x = (at - self.from) / (self.to - self.from) * WIDTH;
        if x.is_finite() { x.clamp(0.0, WIDTH) } else { 0.0 }
    }

    fn y(&self, value: f64) -> f64 {
        let (_, top) = self.axis;
        let y = HEIGHT - value / top * HEIGHT;
        if y.is_finite() { y.clamp(0.0, HEIGHT) } else { HEIGHT }
    }

    /// A path for each run of points that are joined. A point on its own is a short dash, and of points at one
    /// height the last one is enough.
    fn path(&self, line: &Line<'_>) -> String {
        let mut path = String::new();
        let mut before: Option<Point> = None;
        for (at, value) in line.points.iter().filter(|(at, it)| self.has(*at) && it.is_finite()) {
            let mut point = Point::new(*at, self.x(*at), self.y(*value));
            match before {
                Some(last) if at - last.at > line.joined => {
                    last.end(&mut path);
                    point.begin(&mut path);
                }
                Some(last) if last.y == point.y => point.run = Run::Flat,
                Some(last) => {
                    last.end_flat(&mut path);
                    // Writing to a string cannot fail.
                    let _ = write!(path, "L{} {}", point.x, point.y);
                    point.run = Run::Drawn;
                }
                None => point.begin(&mut path),
            }
            before = Some(point);
        }
        before.iter().for_each(|last| last.end(&mut path));
        path
    }
}

/// A point of a path that is being written.
struct Point {
    at: f64,
    x: String,
    y: String,
    run: Run,
}

/// What of a path ends in a point.
#[derive(Clone, Copy)]
enum Run {
    /// The path begins here.
    Alone,
    /// A line up to here is written.
    Drawn,
    /// A flat line up to here is not written yet.
    Flat,
}

impl Point {
    fn new(at: f64, x: f64, y: f64) -> Self {
        Self { at, x: short(x), y: short(y), run: Run::Alone }
    }

    fn begin(&self, path: &mut String) {
        let _ = write!(path, "M{} {}", self.x, self.y);
    }

    fn end_flat(&self, path: &mut String) {
        if let Run::Flat = self.run {
            let _ = write!(path, "H{}", self.x);
        }
    }

    fn end(&self, path: &mut String) {
        match self.run {
            Run::Alone => path.push_str("h3"),
            Run::Drawn => {}
            Run::Flat => self.end_flat(path),
        }
    }
}

/// How far up from the bottom a step is, as a part of the height from above.
fn part(step: usize, steps: usize) -> f64 {
    let [step, steps] = [step, steps].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    f64::from(step) / f64::from(steps)
}

/// A coordinate: a tenth of a unit is less than a pixel.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AXIS: [&str; 3] = ["0", "1", "2"];

    fn drawn(points: &[(f64, f64)], marks: &[Mark<'_>], spans: &[Spanned<'_>]) -> String {
        let line = Line { class: "s0".to_owned(), points, joined: 10.0 };
        let chart = Lines {
            label: "Waiting",
            from: 100.0,
            to: 200.0,
            axis: (&AXIS.map(str::to_owned), 2.0),
            times: &["now".to_owned()],
            lines: &[line],
            spans,
            marks,
        };
        lines(&chart).into_string()
    }

    #[test]
    fn a_line_has_a_gap_where_samples_are_missing_and_a_point_on_its_own_is_seen() {
        let points = [(100.0, 0.0), (110.0, 2.0), (150.0, 1.0), (190.0, 1.0), (200.0, 4.0)];
        let markup = drawn(&points, &[], &[]);
        assert!(markup.contains("d=\"M0 100L100 0M500 50h3M900 50L1000 0\""), "{markup}");
        let flat =
            [(100.0, 1.0), (105.0, 1.0), (110.0, 1.0), (120.0, 2.0), (130.0, 2.0), (170.0, 2.0)];
        let markup = drawn(&flat, &[], &[]);
        assert!(markup.contains("d=\"M0 50H100L200 0H300M700 0h3\""), "{markup}");
        assert!(markup.contains("<li>2</li><li>1</li><li>0</li>"), "{markup}");
        assert!(!markup.contains("style="), "the content security policy forbids it");
    }

    #[test]
    fn what_is_outside_or_no_number_is_not_drawn() {
        let markup = drawn(&[(0.0, 1.0), (150.0, f64::NAN), (900.0, 1.0)], &[], &[]);
        assert!(!markup.contains("class=\"line"), "{markup}");
        let outside = Mark { at: 99.0, text: "before" };
        let inside = Mark { at: 125.0, text: "the model \"a\" <b>" };
        let markup = drawn(&[], &[outside, inside], &[]);
        assert!(markup.contains("d=\"M250 0V100\""), "{markup}");
        assert!(markup.contains("the model &quot;a&quot; &lt;b&gt;"), "{markup}");
        assert!(!markup.contains("before"), "{markup}");
    }

    #[test]
    fn spans_stay_within_the_chart() {
        let span = |from, to| Spanned { class: "wait", from, to };
        let markup = drawn(&[], &[], &[span(0.0, 150.0), span(180.0, 170.0), span(199.0, 999.0)]);
        assert!(markup.contains("x=\"0\" y=\"0\" width=\"500\""), "{markup}");
        assert!(markup.contains("x=\"990\" y=\"0\" width=\"10\""), "{markup}");
        assert_eq!(markup.matches("<rect").count(), 2);
    }
}
