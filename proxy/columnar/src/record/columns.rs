//! The columns of a record, in both directions.

mod column;
mod cost;
mod dimensions;
mod request;
mod usage;

use std::slice::Iter;
use std::sync::LazyLock;

use self::column::Column;
pub(crate) use self::column::{CellOf, Set};

/// Number of columns.
pub(crate) const COUNT: usize =
    request::COLUMNS.len() + dimensions::COLUMNS.len() + usage::COLUMNS.len() + cost::COLUMNS.len();

/// All columns. They have the names of the members. If a name alone is not clear, it has the name
/// of the outer object and `_` before it.
pub(super) fn columns() -> Iter<'static, Column> {
    static ALL: LazyLock<Vec<Column>> = LazyLock::new(|| {
        let all: [&[Column]; 4] =
            [&request::COLUMNS, &dimensions::COLUMNS, &usage::COLUMNS, &cost::COLUMNS];
        all.concat()
    });
    ALL.iter()
}
