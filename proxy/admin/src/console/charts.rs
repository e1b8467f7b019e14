//! Charts as SVG: numbers in, markup out. Texts of axes are HTML, so that they keep their size
//! however wide the chart is; colours are classes, since the page may have no styles of its own.

mod bars;
mod distribution;
mod scale;
mod stacked;

pub(super) use self::bars::{Piece, bar};
pub(super) use self::distribution::{Bin, distribution};
pub(super) use self::stacked::{Column, Stacked, colour, stacked};
