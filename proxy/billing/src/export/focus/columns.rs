//! The columns of a row, in order: FOCUS's own, then ours, which begin with `x_`.

use std::borrow::Cow;

use jiff::{SignedDuration, Timestamp};
use rust_decimal::Decimal;

use super::charge::Charge;
use super::words;
use crate::hours::LineKey;

/// Names and columns of which version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FocusVersion {
    /// 1.2, with `ProviderName` and `PublisherName`.
    #[default]
    V1_2,
    /// 1.3, with `ServiceProviderName` and `HostProviderName` in their place.
    V1_3,
}

impl FocusVersion {
    /// The number, as written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V1_2 => "1.2",
            Self::V1_3 => "1.3",
        }
    }
}

/// What a cell holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cell<'a> {
    Null,
    Text(Cow<'a, str>),
    Number(Decimal),
    Time(Timestamp),
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Time,
    /// Money.
    Cost,
    /// Money per unit: few digits, so that a product with a quantity fits the decimals of readers.
    Price,
    /// How many: few digits, for the same reason.
    Quantity,
}

/// One column.
pub(super) struct Column {
    /// In 1.2.
    name: &'static str,
    /// In 1.3, where that differs.
    name_1_3: Option<&'static str>,
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    pub(super) cell: for<'a> fn(&'a Charge<'_>, &'a str) -> Cell<'a>,
}

impl Column {
    pub(super) fn name(&self, version: FocusVersion) -> &'static str {
        match version {
            FocusVersion::V1_2 => self.name,
            FocusVersion::V1_3 => self.name_1_3.unwrap_or(self.name),
        }
    }

    const fn never_null(
        name: &'static str,
        kind: Kind,
        cell: for<'a> fn(&'a Charge<'_>, &'a str) -> Cell<'a>,
    ) -> Self {
        Self { name, name_1_3: None, kind, nullable: false, cell }
    }

    const fn nullable(
        name: &'static str,
        kind: Kind,
        cell: for<'a> fn(&'a Charge<'_>, &'a str) -> Cell<'a>,
    ) -> Self {
        Self { name, name_1_3: None, kind, nullable: true, cell }
    }

    const fn named_in_1_3(self, name: &'static str) -> Self {
        Self { name_1_3: Some(name), ..self }
    }
}

const fn text(text: &str) -> Cell<'_> {
    Cell::Text(Cow::Borrowed(text))
}

fn maybe(value: Option<&str>) -> Cell<'_> {
    value.map_or(Cell::Null, text)
}

/// In FOCUS's alphabetical order, then ours. The second argument is who issues the invoice.
pub(super) const COLUMNS: &[Column] = &[
    Column::never_null("BilledCost", Kind::Cost, |charge, _| Cell::Number(charge.cost)),
    Column::never_null("BillingAccountId", Kind::Text, |charge, _| text(&charge.key.tenant)),
    Column::never_null("BillingAccountName", Kind::Text, |charge, _| text(&charge.key.tenant)),
    Column::never_null("BillingCurrency", Kind::Text, |charge, _| text(charge.currency)),
    Column::never_null("BillingPeriodEnd", Kind::Time, |charge, _| {
        Cell::Time(charge.billing_period.1)
    }),
    Column::never_null("BillingPeriodStart", Kind::Time, |charge, _| {
        Cell::Time(charge.billing_period.0)
    }),
    Column::never_null("ChargeCategory", Kind::Text, |_, _| text("Usage")),
    Column::nullable("ChargeClass", Kind::Text, |charge, _| {
        maybe(charge.key.correction.then_some("Correction"))
    }),
    Column::never_null("ChargeDescription", Kind::Text, |charge, _| {
        Cell::Text(description(charge).into())
    }),
    Column::never_null("ChargeFrequency", Kind::Text, |_, _| text("Usage-Based")),
    Column::never_null("ChargePeriodEnd", Kind::Time, |charge, _| {
        Cell::Time(
            charge
                .key
                .hour
                .saturating_add(SignedDuration::from_hours(1))
                .unwrap_or(charge.key.hour),
        )
    }),
    Column::never_null("ChargePeriodStart", Kind::Time, |charge, _| Cell::Time(charge.key.hour)),
    Column::never_null("ConsumedQuantity", Kind::Quantity, |charge, _| {
        Cell::Number(charge.consumed)
    }),
    Column::never_null("ConsumedUnit", Kind::Text, |charge, _| {
        Cell::Text(words::unit(&charge.line.unit).into())
    }),
    Column::never_null("ContractedCost", Kind::Cost, |charge, _| Cell::Number(charge.cost)),
    Column::never_null("ContractedUnitPrice", Kind::Price, |charge, _| {
        Cell::Number(charge.unit_price)
    }),
    Column::never_null("EffectiveCost", Kind::Cost, |charge, _| Cell::Number(charge.cost)),
    Column::nullable("InvoiceId", Kind::Text, |_, _| Cell::Null),
    Column::never_null("InvoiceIssuerName", Kind::Text, |_, issuer| text(issuer)),
    Column::never_null("ListCost", Kind::Cost, |charge, _| Cell::Number(charge.list_cost)),
    Column::never_null("ListUnitPrice", Kind::Price, |charge, _| {
        Cell::Number(charge.list_unit_price)
    }),
    Column::never_null("PricingCategory", Kind::Text, |_, _| text("Standard")),
    Column::never_null("PricingQuantity", Kind::Quantity, |charge, _| Cell::Number(charge.priced)),
    Column::never_null("PricingUnit", Kind::Text, |charge, _| Cell::Text(pricing_unit(charge))),
    Column::never_null("ProviderName", Kind::Text, |_, issuer| text(issuer))
        .named_in_1_3("ServiceProviderName"),
    Column::never_null("PublisherName", Kind::Text, |charge, _| text(&charge.key.provider))
        .named_in_1_3("HostProviderName"),
    Column::never_null("ServiceCategory", Kind::Text, |_, _| text("AI and Machine Learning")),
    Column::never_null("ServiceName", Kind::Text, |_, _| text("LLM Inference")),
    Column::never_null("ServiceSubcategory", Kind::Text, |_, _| text("Generative AI")),
    Column::never_null("SkuId", Kind::Text, |charge, _| Cell::Text(sku(charge).into())),
    Column::never_null("SkuMeter", Kind::Text, |charge, _| Cell::Text(sku_meter(charge).into())),
    Column::never_null("SkuPriceDetails", Kind::Text, |charge, _| {
        Cell::Text(price_details(charge).into())
    }),
    Column::never_null("SkuPriceId", Kind::Text, |charge, _| Cell::Text(sku_price(charge).into())),
    Column::never_null("SubAccountId", Kind::Text, |charge, _| text(&charge.key.tenant)),
    Column::never_null("SubAccountName", Kind::Text, |charge, _| text(&charge.key.tenant)),
    Column::nullable("Tags", Kind::Text, |charge, _| tags(charge)),
    Column::never_null("x_ConsumerId", Kind::Text, |charge, _| text(&charge.key.tenant)),
    Column::nullable("x_CredentialId", Kind::Text, |charge, _| maybe(charge.key.key_id.as_deref())),
    Column::nullable("x_Model", Kind::Text, |charge, _| maybe(model(charge))),
    Column::never_null("x_Operation", Kind::Text, |charge, _| text(&charge.key.operation)),
    Column::never_null("x_PriceId", Kind::Text, |charge, _| text(&charge.line.price_id)),
    Column::never_null("x_Provider", Kind::Text, |charge, _| text(&charge.key.provider)),
    Column::never_null("x_Route", Kind::Text, |charge, _| text(&charge.key.route)),
    Column::never_null("x_TokenSource", Kind::Text, |charge, _| text(charge.line.source.as_str())),
    Column::never_null("x_Upstream", Kind::Text, |charge, _| text(&charge.key.upstream)),
];

/// The model that did the work: of a further pass its own.
fn model<'a>(charge: &'a Charge<'_>) -> Option<&'a str> {
    charge.line.model.as_deref().or(charge.key.model.as_deref())
}

/// The model as the price book has it, which all names of a model share; of a further pass its own.
fn priced_model<'a>(charge: &'a Charge<'_>) -> &'a str {
    let row = charge.line.price_id.split_once('#').map(|(_, row)| row);
    charge.line.model.as_deref().or(row).unwrap_or(&charge.line.price_id)
}

fn sku_meter(charge: &Charge<'_>) -> String {
    words::meter(&charge.line.meter, &charge.line.unit)
}

/// Stays the same whatever the price is and whoever pays.
fn sku(charge: &Charge<'_>) -> String {
    format!("{}/{}", priced_model(charge), charge.line.meter)
}

/// The row of the price book, its meter and, since a row has prices by tier, by time and by
/// context, the list price.
fn sku_price(charge: &Charge<'_>) -> String {
    let LineKey { price_id, meter, model, .. } = charge.line;
    let pass = model.as_ref().map_or_else(String::new, |model| format!("/{model}"));
    format!("{price_id}{pass}/{meter}@{}", charge.list_unit_price)
}

fn description(charge: &Charge<'_>) -> String {
    format!("{} {}", model(charge).unwrap_or("unknown model"), sku_meter(charge).to_lowercase())
}

fn pricing_unit(charge: &Charge<'_>) -> Cow<'static, str> {
    match charge.line.unit.as_str() {
        "tokens" => "1000000 Tokens".into(),
        unit => words::unit(unit).into(),
    }
}

fn price_details(charge: &Charge<'_>) -> String {
    serde_json::json!({"x_Meter": charge.line.meter, "x_ModelId": priced_model(charge)}).to_string()
}

fn tags<'a>(charge: &Charge<'_>) -> Cell<'a> {
    if charge.key.labels.is_empty() {
        return Cell::Null;
    }
    let tags = serde_json::to_string(&charge.key.labels);
    tags.map_or(Cell::Null, |tags| Cell::Text(tags.into()))
}
