//! The days of the rows of one model: they follow each other without a gap, or one is within
//! another, as a price for some days is.

use jiff::civil::Date;

use crate::row::Row;

/// What is wrong with the days of `rows`, which are all rows of one model in a file, and the position
/// of the row to change.
pub(super) fn problem<'a, T: Copy>(rows: &[(T, &'a Row)]) -> Option<(T, String)> {
    let mut rows = rows.to_vec();
    taximeter_collections::sort_by_key(&mut rows, |(_, row)| row.from);
    let mut earlier: Vec<&'a Row> = Vec::new();
    for (place, row) in rows {
        let Some(from) = row.from else {
            earlier.push(row);
            continue;
        };
        let model = &row.model;
        for before in &earlier {
            // Without a last day, the earlier row goes on until the later one begins.
            let Some(until) = before.until else { continue };
            if from < until && row.until.is_none_or(|end| until < end) {
                return Some((
                    place,
                    format!(
                        "{model:?} has two prices from {from} to {until}: let the earlier row end \
                         where this one begins (`until: {from}`)"
                    ),
                ));
            }
        }
        let ends = earlier.iter().map(|row| row.until.unwrap_or(Date::MAX));
        if let Some(end) = ends.max()
            && end < from
        {
            return Some((
                place,
                format!(
                    "{model:?} has no price from {end} to {from}: `until` is the first day without \
                     the price, so write `until: {from}`, or a row for these days"
                ),
            ));
        }
        earlier.push(row);
    }
    None
}
