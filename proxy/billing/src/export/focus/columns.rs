//! The columns of a row, in order: FOCUS's own, then ours, which begin with `x_`.

use std::borrow::Cow;

use jiff::Timestamp;
use rust_decimal::Decimal;

use super::charge::{Charge, Of, Usage};
use super::words;
use crate::credit::Covered;
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
    value: Value,
}

/// What is written there.
enum Value {
    /// Of any charge, by an issuer of invoices.
    Any(for<'a> fn(&'a Charge<'_>, &'a str) -> Cell<'a>),
    /// Of what was used; null of a credit.
    Usage(for<'a> fn(&'a Usage<'_>) -> Cell<'a>),
}

impl Column {
    pub(super) fn name(&self, version: FocusVersion) -> &'static str {
        match version {
            FocusVersion::V1_2 => self.name,
            FocusVersion::V1_3 => self.name_1_3.unwrap_or(self.name),
        }
    }

    /// What `charge` has there; `issuer` sends the invoice.
    pub(super) fn cell<'a>(&self, charge: &'a Charge<'_>, issuer: &'a str) -> Cell<'a> {
        match self.value {
            Value::Any(cell) => cell(charge, issuer),
            Value::Usage(cell) => charge.usage().map_or(Cell::Null, cell),
        }
    }

    const fn never_null(
        name: &'static str,
        kind: Kind,
        cell: for<'a> fn(&'a Charge<'_>, &'a str) -> Cell<'a>,
    ) -> Self {
        Self { name, name_1_3: None, kind, nullable: false, value: Value::Any(cell) }
    }

    const fn nullable(
        name: &'static str,
        kind: Kind,
        cell: for<'a> fn(&'a Charge<'_>, &'a str) -> Cell<'a>,
    ) -> Self {
        Self { name, name_1_3: None, kind, nullable: true, value: Value::Any(cell) }
    }

    const fn of_usage(
        name: &'static str,
        kind: Kind,
        cell: for<'a> fn(&'a Usage<'_>) -> Cell<'a>,
    ) -> Self {
        Self { name, name_1_3: None, kind, nullable: true, value: Value::Usage(cell) }
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

/// In FOCUS's alphabetical order, then ours. The second argument is who issues the invoice.
pub(super) const COLUMNS: &[Column] = &[
    Column::never_null("BilledCost", Kind::Cost, |charge, _| Cell::Number(charge.cost)),
    Column::never_null("BillingAccountId", Kind::Text, |charge, _| text(charge.tenant)),
    Column::never_null("BillingAccountName", Kind::Text, |charge, _| text(charge.tenant)),
    Column::never_null("BillingCurrency", Kind::Text, |charge, _| text(charge.currency)),
    Column::never_null("BillingPeriodEnd", Kind::Time, |charge, _| {
        Cell::Time(charge.billing_period.1)
    }),
    Column::never_null("BillingPeriodStart", Kind::Time, |charge, _| {
        Cell::Time(charge.billing_period.0)
    }),
    Column::never_null("ChargeCategory", Kind::Text, |charge, _| match charge.of {
        Of::Usage(_) => text("Usage"),
        Of::Credit(_) => text("Credit"),
    }),
    // Of a month that was not over yet nothing had been invoiced that could be corrected.
    Column::of_usage("ChargeClass", Kind::Text, |usage| {
        maybe((usage.key.correction && usage.key.late).then_some("Correction"))
    }),
    Column::never_null("ChargeDescription", Kind::Text, |charge, _| owned(description(charge))),
    Column::never_null("ChargeFrequency", Kind::Text, |charge, _| match charge.of {
        Of::Usage(_) => text("Usage-Based"),
        Of::Credit(_) => text("Recurring"),
    }),
    Column::never_null("ChargePeriodEnd", Kind::Time, |charge, _| Cell::Time(charge.time.1)),
    Column::never_null("ChargePeriodStart", Kind::Time, |charge, _| Cell::Time(charge.time.0)),
    Column::of_usage("ConsumedQuantity", Kind::Quantity, |usage| Cell::Number(usage.consumed)),
    Column::of_usage("ConsumedUnit", Kind::Text, |usage| owned(words::unit(&usage.line.unit))),
    Column::never_null("ContractedCost", Kind::Cost, |charge, _| Cell::Number(charge.cost)),
    Column::of_usage("ContractedUnitPrice", Kind::Price, |usage| Cell::Number(usage.unit_price)),
    Column::never_null("EffectiveCost", Kind::Cost, |charge, _| Cell::Number(charge.cost)),
    Column::nullable("InvoiceId", Kind::Text, |_, _| Cell::Null),
    Column::never_null("InvoiceIssuerName", Kind::Text, |_, issuer| text(issuer)),
    Column::never_null("ListCost", Kind::Cost, |charge, _| Cell::Number(charge.list_cost)),
    Column::of_usage("ListUnitPrice", Kind::Price, |usage| Cell::Number(usage.list_unit_price)),
    Column::of_usage("PricingCategory", Kind::Text, |_| text("Standard")),
    Column::never_null("PricingCurrency", Kind::Text, |charge, _| text(charge.pricing_currency)),
    Column::of_usage("PricingCurrencyContractedUnitPrice", Kind::Price, |usage| {
        Cell::Number(usage.pricing_unit_price)
    }),
    Column::never_null("PricingCurrencyEffectiveCost", Kind::Cost, |charge, _| {
        Cell::Number(charge.pricing_cost)
    }),
    Column::of_usage("PricingCurrencyListUnitPrice", Kind::Price, |usage| {
        Cell::Number(usage.pricing_list_unit_price)
    }),
    Column::of_usage("PricingQuantity", Kind::Quantity, |usage| Cell::Number(usage.priced)),
    Column::of_usage("PricingUnit", Kind::Text, |usage| Cell::Text(pricing_unit(usage))),
    Column::never_null("ProviderName", Kind::Text, |_, issuer| text(issuer))
        .named_in_1_3("ServiceProviderName"),
    Column::never_null("PublisherName", Kind::Text, |charge, issuer| {
        text(charge.usage().map_or(issuer, |usage| &usage.key.provider))
    })
    .named_in_1_3("HostProviderName"),
    Column::never_null("ServiceCategory", Kind::Text, |_, _| text("AI and Machine Learning")),
    Column::never_null("ServiceName", Kind::Text, |_, _| text("LLM Inference")),
    Column::never_null("ServiceSubcategory", Kind::Text, |_, _| text("Generative AI")),
    Column::of_usage("SkuId", Kind::Text, |usage| owned(sku(usage))),
    Column::of_usage("SkuMeter", Kind::Text, |usage| owned(sku_meter(usage))),
    Column::of_usage("SkuPriceDetails", Kind::Text, |usage| owned(price_details(usage))),
    Column::of_usage("SkuPriceId", Kind::Text, |usage| owned(sku_price(usage))),
    Column::never_null("SubAccountId", Kind::Text, |charge, _| text(charge.tenant)),
    Column::never_null("SubAccountName", Kind::Text, |charge, _| text(charge.tenant)),
    Column::of_usage("Tags", Kind::Text, tags),
    Column::never_null("x_ConsumerId", Kind::Text, |charge, _| text(charge.tenant)),
    Column::of_usage("x_CredentialId", Kind::Text, |usage| maybe(usage.key.key_id.as_deref())),
    Column::of_usage("x_Model", Kind::Text, |usage| maybe(model(usage))),
    Column::of_usage("x_Operation", Kind::Text, |usage| text(&usage.key.operation)),
    Column::of_usage("x_PriceId", Kind::Text, |usage| text(&usage.line.price_id)),
    Column::of_usage("x_Provider", Kind::Text, |usage| text(&usage.key.provider)),
    Column::of_usage("x_Route", Kind::Text, |usage| text(&usage.key.route)),
    Column::of_usage("x_TokenSource", Kind::Text, |usage| text(usage.line.source.as_str())),
    Column::of_usage("x_Upstream", Kind::Text, |usage| text(&usage.key.upstream)),
];

/// The model that did the work: of a further pass its own.
fn model<'a>(usage: &'a Usage<'_>) -> Option<&'a str> {
    usage.line.model.as_deref().or(usage.key.model.as_deref())
}

/// The model as the price book has it, which all names of a model share; of a further pass its own.
fn priced_model<'a>(usage: &'a Usage<'_>) -> &'a str {
    let row = usage.line.price_id.split_once('#').map(|(_, row)| row);
    usage.line.model.as_deref().or(row).unwrap_or(&usage.line.price_id)
}

fn sku_meter(usage: &Usage<'_>) -> String {
    words::meter(&usage.line.meter, &usage.line.unit)
}

/// Stays the same whatever the price is and whoever pays.
fn sku(usage: &Usage<'_>) -> String {
    format!("{}/{}", priced_model(usage), usage.line.meter)
}

/// The row of the price book, its meter and, since a row has prices by tier, by time and by
/// context, the list price.
fn sku_price(usage: &Usage<'_>) -> String {
    let LineKey { price_id, meter, model, .. } = usage.line;
    let pass = model.as_ref().map_or_else(String::new, |model| format!("/{model}"));
    format!("{price_id}{pass}/{meter}@{}", usage.list_unit_price)
}

fn description(charge: &Charge<'_>) -> String {
    let usage = match &charge.of {
        Of::Usage(usage) => usage,
        Of::Credit(credit) => {
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

fn pricing_unit(usage: &Usage<'_>) -> Cow<'static, str> {
    match usage.line.unit.as_str() {
        "tokens" => "1000000 Tokens".into(),
        unit => words::unit(unit).into(),
    }
}

fn price_details(usage: &Usage<'_>) -> String {
    serde_json::json!({"x_Meter": usage.line.meter, "x_ModelId": priced_model(usage)}).to_string()
}

fn tags(usage: &Usage<'_>) -> Cell<'static> {
    if usage.key.labels.is_empty() {
        return Cell::Null;
    }
    let tags = serde_json::to_string(&usage.key.labels);
    tags.map_or(Cell::Null, owned)
}
