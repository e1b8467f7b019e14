//! A horizontal bar with pieces: the parts of a whole, or a timeline.

use maud::{Markup, html};

/// Width of a bar, in units of the SVG.
const WIDTH: f64 = 1000.0;
/// Least width of a piece, so that a small piece stays visible.
const WIDTH_MIN: f64 = 3.0;

/// A piece of a bar.
pub(crate) struct Piece<'a> {
    /// Its colour.
    pub(crate) class: &'a str,
    /// Its start, in the units of the whole.
    pub from: f64,
    /// Its end.
    pub to: f64,
}

/// A bar with a scale from 0 to `whole`. The page must show the same numbers as text.
pub(crate) fn bar(whole: f64, pieces: &[Piece<'_>]) -> Markup {
    html! {
        svg.bar viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" {
            rect.track x="0" y="0" width="1000" height="10" {}
            @for piece in pieces {
                @let (x, width) = span(whole, piece);
                rect class=(piece.class) x=(x) y="0" width=(width) height="10" {}
            }
        }
    }
}

/// Start and width of a piece, always within the bar. Only an empty piece has no width.
fn span(whole: f64, piece: &Piece<'_>) -> (String, String) {
    let x = |value: f64| {
        let x = value / whole * WIDTH;
        if x.is_finite() { x.clamp(0.0, WIDTH) } else { 0.0 }
    };
    if piece.to <= piece.from || whole <= 0.0 {
        return (format!("{:.0}", x(piece.from)), "0".to_owned());
    }
    let from = x(piece.from).min(WIDTH - WIDTH_MIN);
    let width = (x(piece.to) - from).max(WIDTH_MIN);
    (format!("{from:.0}"), format!("{width:.0}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_stay_within_the_bar() {
        for (whole, from, to, x, width) in [
            (2.0, 0.5, 1.0, "250", "250"),
            (2.0, 1.0, 9.0, "500", "500"),
            (2.0, 1.0, 0.5, "500", "0"),
            (2.0, 0.0, 0.001, "0", "3"),
            (2.0, 5.0, 6.0, "997", "3"),
            (0.0, 0.0, 1.0, "0", "0"),
            (f64::NAN, 0.0, 1.0, "0", "3"),
        ] {
            let piece = Piece { class: "s0", from, to };
            assert_eq!(span(whole, &piece), (x.to_owned(), width.to_owned()));
        }
    }
}
