//! The columns of a row, in order: those of FOCUS, then Taximeter's own, which begin with `x_`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use rust_decimal::Decimal;
use taximeter_collections::Gather as _;

use super::charge::{Charge, ChargeKind, UsageCharge};
use super::words;
use crate::client_dimension::{ClientDimension, SplitBy};
use crate::credit::Covered;
use crate::hours::LineKey;

/// The version of FOCUS, which decides the names of some columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FocusVersion {
    /// 1.2, with `ProviderName` and `PublisherName`.
    #[default]
    V1_2,
    /// 1.3, with `ServiceProviderName` and `HostProviderName` instead.
    V1_3,
}

impl FocusVersion {
    /// The version number as text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1_2 => "1.2",
            Self::V1_3 => "1.3",
        }
    }
}

/// The value of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell<'a> {
    Null,
    Text(Cow<'a, str>),
    Number(Decimal),
    Time(Timestamp),
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnType {
    Text,
    Time,
    /// Money.
    Cost,
    /// Money per unit. It has few digits, so that its product with a quantity fits the decimals of
    /// readers.
    Price,
    /// A quantity. It has few digits, for the same reason.
    Quantity,
}

/// One column.
pub(super) struct FocusColumn {
    /// Name in FOCUS 1.2.
    name: &'static str,
    /// Name in FOCUS 1.3, if it differs.
    name_1_3: Option<&'static str>,
    pub(super) kind: ColumnType,
    pub(super) nullable: bool,
    value: CellSource,
}

/// How to compute the value of a cell.
enum CellSource {
    /// From any charge and the invoice issuer.
    Any(for<'a> fn(&'a Charge<'_>, &'a str) -> Cell<'a>),
    /// From the usage of a charge. Null for a credit.
    Usage(for<'a> fn(&'a UsageCharge<'_>) -> Cell<'a>),
}

impl FocusColumn {
    pub(super) fn name(&self, version: FocusVersion) -> &'static str {
        match version {
            FocusVersion::V1_2 => self.name,
            FocusVersion::V1_3 => self.name_1_3.unwrap_or(self.name),
        }
    }

    /// The value for `charge`. `issuer` sends the invoice.
    pub(super) fn cell<'a>(&self, charge: &'a Charge<'_>, issuer: &'a str) -> Cell<'a> {
        match self.value {
            CellSource::Any(cell) => cell(charge, issuer),
            CellSource::Usage(cell) => charge.usage().map_or(Cell::Null, cell),
        }
    }

    const fn never_null(
        name: &'static str,
        kind: ColumnType,
        cell: for<'a> fn(&'a Charge<'_>, &'a str) -> Cell<'a>,
    ) -> Self {
        Self { name, name_1_3: None, kind, nullable: false, value: CellSource::Any(cell) }
    }

    const fn nullable(
        name: &'static str,
        kind: ColumnType,
        cell: for<'a> fn(&'a Charge<'_>, &'a str) -> Cell<'a>,
    ) -> Self {
        Self { name, name_1_3: None, kind, nullable: true, value: CellSource::Any(cell) }
    }

    const fn of_usage(
        name: &'static str,
        kind: ColumnType,
        cell: for<'a> fn(&'a UsageCharge<'_>) -> Cell<'a>,
    ) -> Self {
        Self { name, name_1_3: None, kind, nullable: true, value: CellSource::Usage(cell) }
    }

    const fn named_in_1_3(self, name: &'static str) -> Self {
        Self { name_1_3: Some(name), ..self }
    }
}

const fn text(text: &str) -> Cell<'_> {
    Cell::Text(Cow::Borrowed(text))
}

fn owned(text: String) -> Cell<'static> {
    Cell::Text(text.into())
}

fn maybe(value: Option<&str>) -> Cell<'_> {
    value.map_or(Cell::Null, text)
}

/// The columns of FOCUS in alphabetical order, then Taximeter's own. The second argument is the
/// invoice issuer.
const COLUMNS: &[FocusColumn] = &[
    FocusColumn::never_null("BilledCost", ColumnType::Cost, |charge, _| Cell::Number(charge.cost)),
    FocusColumn::never_null("BillingAccountId", ColumnType::Text, |charge, _| text(charge.tenant)),
    FocusColumn::never_null("BillingAccountName", ColumnType::Text, |charge, _| {
        text(charge.tenant)
    }),
    FocusColumn::never_null("BillingCurrency", ColumnType::Text, |charge, _| text(charge.currency)),
    FocusColumn::never_null("BillingPeriodEnd", ColumnType::Time, |charge, _| {
        Cell::Time(charge.billing_period.1)
    }),
    FocusColumn::never_null("BillingPeriodStart", ColumnType::Time, |charge, _| {
        Cell::Time(charge.billing_period.0)
    }),
    FocusColumn::never_null("ChargeCategory", ColumnType::Text, |charge, _| match charge.kind {
        ChargeKind::Usage(_) => text("Usage"),
        ChargeKind::Credit(_) => text("Credit"),
    }),
    // A correction in a month that is not over is an ordinary charge, because nothing has been
    // invoiced.
    FocusColumn::of_usage("ChargeClass", ColumnType::Text, |usage| {
        maybe((usage.key.correction && usage.key.late).then_some("Correction"))
    }),
    FocusColumn::never_null("ChargeDescription", ColumnType::Text, |charge, _| {
        owned(description(charge))
    }),
    FocusColumn::never_null("ChargeFrequency", ColumnType::Text, |charge, _| match charge.kind {
        ChargeKind::Usage(_) => text("Usage-Based"),
        ChargeKind::Credit(_) => text("Recurring"),
    }),
    FocusColumn::never_null("ChargePeriodEnd", ColumnType::Time, |charge, _| {
        Cell::Time(charge.time.1)
    }),
    FocusColumn::never_null("ChargePeriodStart", ColumnType::Time, |charge, _| {
        Cell::Time(charge.time.0)
    }),
    FocusColumn::of_usage("ConsumedQuantity", ColumnType::Quantity, |usage| {
        Cell::Number(usage.consumed)
    }),
    FocusColumn::of_usage("ConsumedUnit", ColumnType::Text, |usage| {
        owned(words::unit(&usage.line.unit))
    }),
    FocusColumn::never_null("ContractedCost", ColumnType::Cost, |charge, _| {
        Cell::Number(charge.cost)
    }),
    FocusColumn::of_usage("ContractedUnitPrice", ColumnType::Price, |usage| {
        Cell::Number(usage.unit_price)
    }),
    FocusColumn::never_null("EffectiveCost", ColumnType::Cost, |charge, _| {
        Cell::Number(charge.cost)
    }),
    FocusColumn::nullable("InvoiceId", ColumnType::Text, |_, _| Cell::Null),
    FocusColumn::never_null("InvoiceIssuerName", ColumnType::Text, |_, issuer| text(issuer)),
    FocusColumn::never_null("ListCost", ColumnType::Cost, |charge, _| {
        Cell::Number(charge.list_cost)
    }),
    FocusColumn::of_usage("ListUnitPrice", ColumnType::Price, |usage| {
        Cell::Number(usage.list_unit_price)
    }),
    FocusColumn::of_usage("PricingCategory", ColumnType::Text, |_| text("Standard")),
    FocusColumn::never_null("PricingCurrency", ColumnType::Text, |charge, _| {
        text(charge.pricing_currency)
    }),
    FocusColumn::of_usage("PricingCurrencyContractedUnitPrice", ColumnType::Price, |usage| {
        Cell::Number(usage.pricing_unit_price)
    }),
    FocusColumn::never_null("PricingCurrencyEffectiveCost", ColumnType::Cost, |charge, _| {
        Cell::Number(charge.pricing_cost)
    }),
    FocusColumn::of_usage("PricingCurrencyListUnitPrice", ColumnType::Price, |usage| {
        Cell::Number(usage.pricing_list_unit_price)
    }),
    FocusColumn::of_usage("PricingQuantity", ColumnType::Quantity, |usage| {
        Cell::Number(usage.priced)
    }),
    FocusColumn::of_usage("PricingUnit", ColumnType::Text, |usage| Cell::Text(pricing_unit(usage))),
    FocusColumn::never_null("ProviderName", ColumnType::Text, |_, issuer| text(issuer))
        .named_in_1_3("ServiceProviderName"),
    FocusColumn::never_null("PublisherName", ColumnType::Text, |charge, issuer| {
        text(charge.usage().map_or(issuer, |usage| &usage.key.provider))
    })
    .named_in_1_3("HostProviderName"),
    FocusColumn::never_null("ServiceCategory", ColumnType::Text, |_, _| {
        text("AI and Machine Learning")
    }),
    FocusColumn::never_null("ServiceName", ColumnType::Text, |_, _| text("LLM Inference")),
    FocusColumn::never_null("ServiceSubcategory", ColumnType::Text, |_, _| text("Generative AI")),
    FocusColumn::of_usage("SkuId", ColumnType::Text, |usage| owned(sku(usage))),
    FocusColumn::of_usage("SkuMeter", ColumnType::Text, |usage| owned(sku_meter(usage))),
    FocusColumn::of_usage("SkuPriceDetails", ColumnType::Text, |usage| owned(price_details(usage))),
    FocusColumn::of_usage("SkuPriceId", ColumnType::Text, |usage| owned(sku_price(usage))),
    FocusColumn::never_null("SubAccountId", ColumnType::Text, |charge, _| text(charge.tenant)),
    FocusColumn::never_null("SubAccountName", ColumnType::Text, |charge, _| text(charge.tenant)),
    FocusColumn::of_usage("Tags", ColumnType::Text, tags),
    FocusColumn::never_null("x_ConsumerId", ColumnType::Text, |charge, _| text(charge.tenant)),
    FocusColumn::of_usage("x_CredentialId", ColumnType::Text, |usage| {
        maybe(usage.key.key_id.as_deref())
    }),
    FocusColumn::of_usage("x_Model", ColumnType::Text, |usage| maybe(model(usage))),
    FocusColumn::of_usage("x_Operation", ColumnType::Text, |usage| text(&usage.key.operation)),
    FocusColumn::of_usage("x_PriceId", ColumnType::Text, |usage| text(&usage.line.price_id)),
    FocusColumn::of_usage("x_Provider", ColumnType::Text, |usage| text(&usage.key.provider)),
    FocusColumn::of_usage("x_Route", ColumnType::Text, |usage| text(&usage.key.route)),
    FocusColumn::of_usage("x_TokenSource", ColumnType::Text, |usage| {
        text(usage.line.source.as_str())
    }),
    FocusColumn::of_usage("x_Upstream", ColumnType::Text, |usage| text(&usage.key.upstream)),
];

/// Columns of what clients say. Charges that are not split by it have none of them.
const SESSION: FocusColumn = FocusColumn::of_usage("x_Session", ColumnType::Text, |usage| {
    value(usage, &ClientDimension::Session)
});
const AGENT: FocusColumn = FocusColumn::of_usage("x_Agent", ColumnType::Text, |usage| {
    value(usage, &ClientDimension::Agent)
});
const CLIENT: FocusColumn = FocusColumn::of_usage("x_Client", ColumnType::Text, |usage| {
    value(usage, &ClientDimension::Client)
});
const END_USER: FocusColumn = FocusColumn::of_usage("x_EndUser", ColumnType::Text, |usage| {
    value(usage, &ClientDimension::EndUser)
});
const REQUEST_TAGS: FocusColumn =
    FocusColumn::of_usage("x_RequestTags", ColumnType::Text, request_tags);

/// The columns of charges that are split by what clients say: those of all charges, then one for each
/// property, in order. Tags share one.
pub(super) fn columns(by: &SplitBy) -> Vec<&'static FocusColumn> {
    let mut columns: Vec<_> = COLUMNS.iter().collect();
    let of = |dimension: &ClientDimension| match dimension {
        ClientDimension::Session => &SESSION,
        ClientDimension::Agent => &AGENT,
        ClientDimension::Client => &CLIENT,
        ClientDimension::EndUser => &END_USER,
        ClientDimension::Tag(_) => &REQUEST_TAGS,
    };
    let is_tag = |dimension: &&ClientDimension| matches!(dimension, ClientDimension::Tag(_));
    columns.extend(by.dimensions().iter().filter(|of| !is_tag(of)).map(of));
    columns.extend(by.dimensions().iter().find(is_tag).map(of));
    columns
}

fn value<'a>(usage: &'a UsageCharge<'_>, dimension: &ClientDimension) -> Cell<'a> {
    maybe(usage.key.dimensions.get(dimension).map(String::as_str))
}

fn request_tags(usage: &UsageCharge<'_>) -> Cell<'static> {
    let tags = usage.key.dimensions.iter().filter_map(|(dimension, value)| match dimension {
        ClientDimension::Tag(name) => Some((name, value)),
        _ => None,
    });
    let tags: BTreeMap<_, _> = tags.gather();
    if tags.is_empty() {
        return Cell::Null;
    }
    serde_json::to_string(&tags).map_or(Cell::Null, owned)
}

/// The model that did the work. A further model run has a model of its own.
fn model<'a>(usage: &'a UsageCharge<'_>) -> Option<&'a str> {
    usage.line.model.as_deref().or(usage.key.model.as_deref())
}

/// The model name in the price book, which is the same for all aliases. A further model run has a
/// model of its own.
fn priced_model<'a>(usage: &'a UsageCharge<'_>) -> &'a str {
    let row = usage.line.price_id.split_once('#').map(|(_, row)| row);
    usage.line.model.as_deref().or(row).unwrap_or(&usage.line.price_id)
}

fn sku_meter(usage: &UsageCharge<'_>) -> String {
    words::meter(&usage.line.meter, &usage.line.unit)
}

/// Stays the same for every price and every tenant.
fn sku(usage: &UsageCharge<'_>) -> String {
    format!("{}/{}", priced_model(usage), usage.line.meter)
}

/// The row of the price book, its meter and the list price. A row can have several prices for a
/// meter: by service tier, time and context length.
fn sku_price(usage: &UsageCharge<'_>) -> String {
    let LineKey { price_id, meter, model, .. } = usage.line;
    let pass = model.as_ref().map_or_else(String::new, |model| format!("/{model}"));
    format!("{price_id}{pass}/{meter}@{}", usage.list_unit_price)
}

fn description(charge: &Charge<'_>) -> String {
    let usage = match &charge.kind {
        ChargeKind::Usage(usage) => usage,
        ChargeKind::Credit(credit) => {
            return match &credit.covered {
                Covered::Meter(meter) => {
                    format!("free {}", words::meter(meter, "tokens").to_lowercase())
                }
                Covered::Money => "free amount".to_owned(),
            };
        }
    };
    match model(usage) {
        Some(model) => format!("{model} {}", sku_meter(usage).to_lowercase()),
        None => format!("{} {}", usage.key.upstream, sku_meter(usage)),
    }
}

fn pricing_unit(usage: &UsageCharge<'_>) -> Cow<'static, str> {
    match usage.line.unit.as_str() {
        "tokens" => "1000000 Tokens".into(),
        unit => words::unit(unit).into(),
    }
}

fn price_details(usage: &UsageCharge<'_>) -> String {
    serde_json::json!({"x_Meter": usage.line.meter, "x_ModelId": priced_model(usage)}).to_string()
}

fn tags(usage: &UsageCharge<'_>) -> Cell<'static> {
    if usage.key.labels.is_empty() {
        return Cell::Null;
    }
    let tags = serde_json::to_string(&usage.key.labels);
    tags.map_or(Cell::Null, owned)
}
