//! For machines that watch: is it alive, is it ready.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use taximeter_gateway::gateway::Gateway;
use taximeter_system::clock;

use super::problem::Unchangeable;

/// Whether the process answers, and its threads turn
#[utoipa::path(get, path = "/healthz", tag = "status", responses(
    (status = 200, description = "They do", body = String, content_type = "text/plain"),
    (status = 503, description = "A thread that carries requests hangs or has died", body = String,
        content_type = "text/plain"),
    Unchangeable,
), security(()))]
pub(super) async fn alive(State(gateway): State<Arc<Gateway>>) -> (StatusCode, &'static str) {
    if gateway.pulse.is_felt(clock::now()) {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "a thread that carries requests does not turn\n")
    }
}

/// Whether requests are served
#[utoipa::path(get, path = "/readyz", tag = "status", responses(
    (status = 200, description = "They are", body = String, content_type = "text/plain"),
    (status = 503, description = "Draining, or the ledger cannot be written", body = String,
        content_type = "text/plain"),
    Unchangeable,
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
