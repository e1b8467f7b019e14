//! The outcome of a look-up.

use jiff::civil::Date;

use crate::row::Row;
use crate::rule::PriceMatch;

/// A row that prices a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<'a> {
    /// The row.
    pub row: &'a Row,
    /// The rules that led to it.
    pub how: PriceMatch,
    /// The region in the name, where the row has a price for it (`when: region`).
    pub region: Option<String>,
}

/// Why no row prices a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoRow<'q> {
    /// No row has the name or a form of it.
    #[error("no row has the name {0:?}")]
    Unknown(&'q str),
    /// The last row of the name has ended.
    #[error(
        "{price_id} has the last price of {name:?}, and it ended on {until}: add a row from then on"
    )]
    Ended {
        /// The name.
        name: &'q str,
        /// The first day without a price.
        until: Date,
        /// The row.
        price_id: String,
    },
    /// The first row of the name has not begun.
    #[error(
        "{price_id} has the first price of {name:?}, and it begins on {from}: add a row for before"
    )]
    NotBegun {
        /// The name.
        name: &'q str,
        /// The first day with a price.
        from: Date,
        /// The row.
        price_id: String,
    },
    /// The rows are of the model before it was tuned, which has another price.
    #[error(
        "{0:?} is a fine-tuned model, and the price of its base is not its own: add a row for \
         `ft:BASE`"
    )]
    Tuned(&'q str),
    /// The name ends in a variant, which can have another price.
    #[error(
        "{0:?} is a variant, and the price of the model without it is not its own: add a row or an \
         alias for the whole name"
    )]
    Variant(&'q str),
    /// A customer's own deployment, profile or endpoint.
    #[error("{0:?} does not say which model it is: add a row or an alias for the whole name")]
    Deployment(&'q str),
    /// The row does not say what the region costs.
    #[error(
        "{price_id} does not say what region {region:?} of {name:?} costs: add `when: {{region: \
         {{{region}: {{times: …}}}}}}` to the row, or a row for the whole name"
    )]
    Region {
        /// The name.
        name: &'q str,
        /// The region in it.
        region: String,
        /// The row.
        price_id: String,
    },
}

impl NoRow<'_> {
    /// The same of another name.
    pub(crate) fn with_name<'q>(&self, name: &'q str) -> NoRow<'q> {
        match self {
            Self::Unknown(_) => NoRow::Unknown(name),
            Self::Ended { until, price_id, .. } => {
                NoRow::Ended { name, until: *until, price_id: price_id.clone() }
            }
            Self::NotBegun { from, price_id, .. } => {
                NoRow::NotBegun { name, from: *from, price_id: price_id.clone() }
            }
            Self::Tuned(_) => NoRow::Tuned(name),
            Self::Variant(_) => NoRow::Variant(name),
            Self::Deployment(_) => NoRow::Deployment(name),
            Self::Region { region, price_id, .. } => {
                NoRow::Region { name, region: region.clone(), price_id: price_id.clone() }
            }
        }
    }
}
