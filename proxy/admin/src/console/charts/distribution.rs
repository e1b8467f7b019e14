//! A histogram of times.

use maud::{Markup, html};

use crate::console::text::seconds_text;

/// Width of a column, in units of the SVG.
const COLUMN: usize = 10;

/// The samples between two bounds, in seconds. The last bound may be infinite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bin {
    /// The lower bound, not included.
    pub from: f64,
    /// The upper bound, included.
    pub to: f64,
    /// The number of samples.
    pub samples: u64,
}

/// The chart.
pub(crate) fn distribution(label: &str, bins: &[Bin]) -> Markup {
    let bins = trimmed(bins);
    let most = bins.iter().map(|bin| bin.samples).max().unwrap_or_default().max(1);
    let width = bins.len().max(1) * COLUMN;
    html! {
        div.chart.small {
            svg.plot viewBox={ "0 0 " (width) " 100" } preserveAspectRatio="none" role="img"
                aria-label=(label) {
                path.grid d={ "M0 100H" (width) } {}
                @for (index, bin) in bins.iter().enumerate() {
                    @let height = bin.samples * 100 / most;
                    @let height = if bin.samples > 0 { height.max(1) } else { 0 };
                    rect.s0 x=(index * COLUMN + 1) y=(100 - height) width=(COLUMN - 2)
                        height=(height) {}
                    rect.column x=(index * COLUMN) y="0" width=(COLUMN) height="100" {
                        title { (between(bin)) ": " (bin.samples) }
                    }
                }
            }
            ol.x aria-hidden="true" {
                @if let (Some(first), Some(last)) = (bins.first(), bins.last()) {
                    li { (seconds_text(first.from)) }
                    li { @if last.to.is_finite() { (seconds_text(last.to)) } @else { "more" } }
                }
            }
        }
    }
}

/// The bins without the empty ones at both ends.
fn trimmed(bins: &[Bin]) -> &[Bin] {
    let used = |bin: &Bin| bin.samples > 0;
    let first = bins.iter().position(used).unwrap_or_default();
    let end = bins.iter().rposition(used).map_or(0, |last| last + 1);
    bins.get(first..end).unwrap_or_default()
}

fn between(bin: &Bin) -> String {
    if bin.to.is_finite() {
        format!("{} to {}", seconds_text(bin.from), seconds_text(bin.to))
    } else {
        format!("above {}", seconds_text(bin.from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rare_is_seen_and_what_is_empty_at_the_ends_is_left_out() {
        let bin = |from: f64, to: f64, samples| Bin { from, to, samples };
        let bins = [
            bin(0.0, 0.01, 0),
            bin(0.01, 0.02, 1000),
            bin(0.02, 0.04, 0),
            bin(0.04, f64::INFINITY, 1),
        ];
        let markup = distribution("Gaps", &bins).into_string();
        assert!(markup.contains("viewBox=\"0 0 30 100\""), "{markup}");
        assert!(markup.contains("y=\"99\" width=\"8\" height=\"1\""), "{markup}");
        assert!(markup.contains("<title>above 40.0 ms: 1</title>"), "{markup}");
        assert!(distribution("none", &[]).into_string().contains("viewBox=\"0 0 10 100\""));
    }
}
