//! What emits: the attributes of the OpenTelemetry resource.

use std::collections::BTreeMap;

use opentelemetry_semantic_conventions::resource::{
    SERVICE_INSTANCE_ID, SERVICE_VERSION, TELEMETRY_SDK_LANGUAGE, TELEMETRY_SDK_NAME,
    TELEMETRY_SDK_VERSION,
};

/// The instrumentation scope of everything, and the name of what records it.
pub(crate) const SCOPE: &str = "taximeter";
/// Its version.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What is configured, and what this gateway knows of itself where it is not.
pub(super) fn resource(
    configured: &BTreeMap<String, String>,
    gateway: &str,
) -> BTreeMap<String, String> {
    let mut resource: BTreeMap<String, String> = [
        (SERVICE_INSTANCE_ID, gateway),
        (SERVICE_VERSION, VERSION),
        (TELEMETRY_SDK_LANGUAGE, "rust"),
        (TELEMETRY_SDK_NAME, SCOPE),
        (TELEMETRY_SDK_VERSION, VERSION),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    resource.extend(configured.clone());
    resource
}
