//! The names of the formats of bills and exports, shared by the command and the admin address.

use clap::ValueEnum;
use taximeter_billing::export::{FocusVersion, Format as Records};
use taximeter_store::bills::Form;
use utoipa::ToSchema;

use crate::Content;

/// A format of a bill or an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub enum Format {
    /// Bill for people. Costs are rounded
    #[default]
    Table,
    /// Bill for spreadsheets, with exact costs
    Csv,
    /// Bill for programs, with exact costs
    Json,
    /// FinOps FOCUS as CSV: one row per meter, tenant, model and hour
    Focus,
    /// FinOps FOCUS as Parquet
    FocusParquet,
    /// Records as Parquet
    Parquet,
    /// Records as JSON, one per line
    Ndjson,
    /// CloudEvents for OpenMeter and others, one batch per line
    Cloudevents,
    /// Stripe meter events, one request body per line
    Stripe,
    /// Lago events, one request body per line
    Lago,
    /// Orb events, one request body per line
    Orb,
}

/// What a format contains.
#[derive(Debug, Clone)]
pub enum Rendering {
    /// Sums and amounts.
    Bill(Form),
    /// An export for other programs.
    Export(Content),
}

impl Format {
    /// Whether this is a FOCUS format. FOCUS has versions.
    pub const fn is_focus(self) -> bool {
        matches!(self, Self::Focus | Self::FocusParquet)
    }

    /// What this format contains. `version` and `issuer` are used for FOCUS.
    pub fn written(self, version: FocusVersion, issuer: &str) -> Rendering {
        let focus = |parquet| Content::Focus { parquet, version, issuer: issuer.to_owned() };
        Rendering::Export(match self {
            Self::Table => return Rendering::Bill(Form::Table),
            Self::Csv => return Rendering::Bill(Form::Csv),
            Self::Json => return Rendering::Bill(Form::Json),
            Self::Focus => focus(false),
            Self::FocusParquet => focus(true),
            Self::Parquet => Content::Parquet,
            Self::Ndjson => Content::Records(Records::Ndjson),
            Self::Cloudevents => Content::Records(Records::CloudEvents),
            Self::Stripe => Content::Records(Records::Stripe),
            Self::Lago => Content::Records(Records::Lago),
            Self::Orb => Content::Records(Records::Orb),
        })
    }
}
