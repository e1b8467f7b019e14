//! Health probes: `/healthz` (liveness) and `/readyz` (readiness).

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use taximeter_gateway::gateway::Gateway;
use taximeter_system::clock;

use super::problem::ReadOnly;

/// Liveness: whether the threads that carry requests run
#[utoipa::path(get, path = "/healthz", tag = "status", responses(
    (status = 200, description = "All of them run", body = String, content_type = "text/plain"),
    (status = 503, description = "A thread that carries requests hangs or has died", body = String,
        content_type = "text/plain"),
    ReadOnly,
), security(()))]
pub(super) async fn alive(State(gateway): State<Arc<Gateway>>) -> (StatusCode, &'static str) {
    if gateway.heartbeat.is_felt(clock::now()) {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "a thread that carries requests hangs\n")
    }
}

/// Readiness: whether the gateway serves new requests
#[utoipa::path(get, path = "/readyz", tag = "status", responses(
    (status = 200, description = "It does", body = String, content_type = "text/plain"),
    (status = 503, description = "It drains, or it cannot write the ledger", body = String,
        content_type = "text/plain"),
    ReadOnly,
), security(()))]
pub(super) async fn ready(State(gateway): State<Arc<Gateway>>) -> (StatusCode, &'static str) {
    if gateway.is_leaving() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    } else if !gateway.takes_entries() {
        (StatusCode::SERVICE_UNAVAILABLE, "the ledger cannot be written\n")
    } else {
        (StatusCode::OK, "ready\n")
    }
}
