//! The admin address: health, readiness, metrics, exports. Its own runtime, its own limits, no writes.

mod export;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::error_handling::HandleErrorLayer;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{BoxError, Router};
use tower::ServiceBuilder;

use crate::gateway::Gateway;
use crate::telemetry::LedgerState;

/// Scrapes and questions at once; more are answered 503.
const REQUESTS_AT_ONCE_MAX: usize = 64;
/// Time for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The text exposition format that every Prometheus reads.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves the admin address until the runtime ends; the address that was bound.
///
/// Errors: the address cannot be bound.
pub(crate) fn start(gateway: &Arc<Gateway>) -> io::Result<SocketAddr> {
    let listener = std::net::TcpListener::bind(gateway.config.admin)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let app = router(gateway.clone());
    gateway.background.spawn(async move {
        if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
            // Ends with the runtime; accept errors are retried inside.
            let _ = axum::serve(listener, app).await;
        }
    });
    Ok(address)
}

fn router(gateway: Arc<Gateway>) -> Router {
    let limits = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(|_: BoxError| async { StatusCode::SERVICE_UNAVAILABLE }))
        .load_shed()
        .concurrency_limit(REQUESTS_AT_ONCE_MAX)
        .timeout(ANSWER_TIMEOUT);
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/api/v1/export", get(export::answer))
        .route_layer(middleware::from_fn_with_state(gateway.clone(), authorise))
        .layer(limits)
        .with_state(gateway)
}

/// The token, where one is configured. Probes go without.
async fn authorise(
    State(gateway): State<Arc<Gateway>>,
    request: Request,
    next: Next,
) -> Result<Response, StatusCode> {
    let probe = matches!(request.uri().path(), "/healthz" | "/readyz");
    if let Some(token) = gateway.config.admin_token.as_ref().filter(|_| !probe) {
        let shown = request
            .headers()
            .get(header::AUTHORIZATION)
            .and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        if !shown.is_some_and(|shown| token.matches(shown)) {
            return Err(StatusCode::UNAUTHORIZED);
        }
    }
    Ok(next.run(request).await)
}

async fn ready(State(gateway): State<Arc<Gateway>>) -> (StatusCode, &'static str) {
    if gateway.is_draining() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    } else if !gateway.journal.is_open() {
        (StatusCode::SERVICE_UNAVAILABLE, "the ledger cannot be written\n")
    } else {
        (StatusCode::OK, "ready\n")
    }
}

async fn metrics(State(gateway): State<Arc<Gateway>>) -> impl IntoResponse {
    let ledger =
        LedgerState { entries: gateway.journal.sequence(), healthy: gateway.journal.is_healthy() };
    ([(header::CONTENT_TYPE, METRICS_TYPE)], gateway.telemetry.metrics.render(&ledger))
}
