//! The attributes of the OpenTelemetry resource: who emits the telemetry.

use std::collections::BTreeMap;

use opentelemetry_semantic_conventions::resource::{
    SERVICE_INSTANCE_ID, SERVICE_VERSION, TELEMETRY_SDK_LANGUAGE, TELEMETRY_SDK_NAME,
    TELEMETRY_SDK_VERSION,
};
use taximeter_config::GenAi;
use taximeter_ledger::LedgerId;

/// The instrumentation scope of everything, and the name of what records it.
pub(crate) const SCOPE: &str = "taximeter";
/// Its version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The conventions that the resource's attributes follow.
pub(crate) const RESOURCE_SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.44.0";
/// The last ones that define GenAI themselves.
const V1_41_SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.41.1";
/// Those of GenAI's own repository, which has no release yet.
const LATEST_SCHEMA_URL: &str = "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev";

/// The conventions that the scope's names follow; none where it follows two of them at once.
pub(super) const fn schema_url(genai: GenAi) -> &'static str {
    match genai {
        GenAi::V1_41 => V1_41_SCHEMA_URL,
        GenAi::Latest => LATEST_SCHEMA_URL,
        GenAi::Both => "",
    }
}

/// What is configured, and what this gateway knows of itself where it is not. Its instance is its
/// ledger: a host may have several gateways, and each of them counts for itself.
pub(super) fn resource(
    configured: &BTreeMap<String, String>,
    ledger: Option<LedgerId>,
) -> BTreeMap<String, String> {
    let mut resource: BTreeMap<String, String> = [
        (SERVICE_VERSION, VERSION),
        (TELEMETRY_SDK_LANGUAGE, "rust"),
        (TELEMETRY_SDK_NAME, SCOPE),
        (TELEMETRY_SDK_VERSION, VERSION),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    resource.extend(ledger.map(|ledger| (SERVICE_INSTANCE_ID.to_owned(), ledger.to_string())));
    resource.extend(configured.clone());
    resource
}
