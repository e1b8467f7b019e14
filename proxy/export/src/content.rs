//! What an export contains, and the names of its files.

use taximeter_billing::export::{FocusVersion, Format};
use taximeter_billing::{Dimension, Grouping, SplitBy};

/// The content and format of an export.
#[derive(Debug, Clone)]
pub enum Content {
    /// Single requests.
    Records(Format),
    /// Single requests as typed columns.
    Parquet,
    /// Charges per hour.
    Focus {
        /// Parquet, or else CSV.
        parquet: bool,
        /// Whose names.
        version: FocusVersion,
        /// Who sends the invoices.
        issuer: String,
    },
}

impl Content {
    /// The default issuer of invoices.
    pub const ISSUER: &'static str = "Taximeter";

    /// Whether the content is events for a receiver, which may not take old ones.
    pub const fn has_events(&self) -> bool {
        matches!(self, Self::Records(format) if format.has_items())
    }

    /// What the charges of this content are split by, if they can be split by `by`: FOCUS has columns
    /// for what clients say, and all else of it is in its rows.
    pub fn split_by(&self, by: Option<&Grouping>) -> Option<SplitBy> {
        let Some(by) = by else { return Some(SplitBy::default()) };
        let is_from_client = |dimension: &Dimension| matches!(dimension, Dimension::FromClient(_));
        let can = matches!(self, Self::Focus { .. }) && by.dimensions().iter().all(is_from_client);
        can.then(|| by.split_by())
    }

    /// Media type.
    pub const fn media_type(&self) -> &'static str {
        match self {
            Self::Parquet | Self::Focus { parquet: true, .. } => "application/vnd.apache.parquet",
            Self::Records(_) => "application/x-ndjson",
            Self::Focus { parquet: false, .. } => "text/csv; charset=utf-8",
        }
    }

    /// The name of the format, as in arguments and manifests.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Records(format) => format.as_str(),
            Self::Parquet => "parquet",
            Self::Focus { parquet: false, .. } => "focus",
            Self::Focus { parquet: true, .. } => "focus-parquet",
        }
    }

    /// The file name extension.
    pub const fn extension(&self) -> &'static str {
        match self {
            Self::Parquet => "records.parquet",
            Self::Records(Format::Ndjson) => "records.ndjson",
            Self::Records(Format::CloudEvents) => "cloudevents.ndjson",
            Self::Records(Format::Stripe) => "stripe.ndjson",
            Self::Records(Format::Lago) => "lago.ndjson",
            Self::Records(Format::Orb) => "orb.ndjson",
            Self::Focus { parquet: false, .. } => "focus.csv",
            Self::Focus { parquet: true, .. } => "focus.parquet",
        }
    }
}
