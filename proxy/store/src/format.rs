//! The names of the formats of bills and exports, shared by the command and the admin address.

use clap::ValueEnum;
use taximeter_billing::export::{FocusVersion, Format as Records};
use utoipa::ToSchema;

use crate::bills::Form;
use crate::export::Content;

/// How a period is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub enum Format {
    /// For people; costs rounded
    #[default]
    Table,
    /// For spreadsheets; exact
    Csv,
    /// For programs; exact
    Json,
    /// FinOps FOCUS as CSV: a row per meter, tenant, model and hour
    Focus,
    /// The same as Parquet
    FocusParquet,
    /// Records as Parquet
    Parquet,
    /// Records as JSON, one a line
    Ndjson,
    /// CloudEvents for OpenMeter and others, one batch a line
    Cloudevents,
    /// Stripe meter events, one call's body a line
    Stripe,
    /// Lago events, one call's body a line
    Lago,
    /// Orb events, one call's body a line
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
