//! Charts as SVG: numbers in, markup out. The texts of axes are HTML, so their size does not depend
//! on the width of the chart. Colours are CSS classes, because the page forbids inline styles.

mod bars;
mod distribution;
mod lines;
mod scale;
mod stacked;

pub(super) use self::bars::{Piece, bar};
pub(super) use self::distribution::{Bin, distribution};
pub(super) use self::lines::{Line, Lines, Mark, Spanned, lines};
pub(super) use self::scale::ticks;
pub(super) use self::stacked::{Column, Stacked, colour, stacked};
