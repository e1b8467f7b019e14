//! What is exported: the formats, by name.

use taximeter_billing::export::{FocusVersion, Format};

/// What is written, and how.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// Single requests.
    Records(Format),
    /// Charges by the hour.
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
    /// Who sends the invoices where nobody says.
    pub(crate) const ISSUER: &'static str = "Taximeter";
    /// The names of all formats.
    pub(crate) const NAMES: [&'static str; 8] =
        ["focus", "focus-parquet", "parquet", "ndjson", "cloudevents", "stripe", "lago", "orb"];

    /// The format of that name; `None` is none of them.
    pub(crate) fn named(name: &str, version: FocusVersion, issuer: &str) -> Option<Self> {
        let focus = |parquet| Self::Focus { parquet, version, issuer: issuer.to_owned() };
        Some(match name {
            "focus" => focus(false),
            "focus-parquet" => focus(true),
            "parquet" => Self::Records(Format::Parquet),
            "ndjson" => Self::Records(Format::Ndjson),
            "cloudevents" => Self::Records(Format::CloudEvents),
            "stripe" => Self::Records(Format::Stripe),
            "lago" => Self::Records(Format::Lago),
            "orb" => Self::Records(Format::Orb),
            _ => return None,
        })
    }

    /// Media type.
    pub(crate) const fn media_type(&self) -> &'static str {
        match self {
            Self::Records(Format::Parquet) | Self::Focus { parquet: true, .. } => {
                "application/vnd.apache.parquet"
            }
            Self::Records(_) => "application/x-ndjson",
            Self::Focus { parquet: false, .. } => "text/csv; charset=utf-8",
        }
    }

    /// The name of the format, as in arguments and manifests.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Records(format) => format.as_str(),
            Self::Focus { parquet: false, .. } => "focus",
            Self::Focus { parquet: true, .. } => "focus-parquet",
        }
    }

    /// How files of it end.
    pub(crate) const fn extension(&self) -> &'static str {
        match self {
            Self::Records(Format::Parquet) => "records.parquet",
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
