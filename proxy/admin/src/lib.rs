//! The admin address: this crate serves health, metrics, the usage API and the console.
//!
//! Begin with this file: it lists the routes. Each route has a file of its own.
//!
//! # Invariants
//!
//! - The admin address changes nothing in the gateway or its ledger.
//! - It runs on the background runtime. It has its own limits, so no request of a client waits for
//!   it.
//! - A number on a page is the number of the API: pages call the API's functions or the same sums
//!   (`Terms::sums`, `Biller`, `Invoicer`). A rounded number has its exact value in `<data value>`.
//! - All text is escaped: `maud` escapes whatever is not markup.
//!
//! This crate knows no engines and no wire formats.
//!
//! # Shared parts
//!
//! - `access`: who may ask. It accepts the admin token or a client certificate.
//! - `query`: parameters. Each must be known, occur once and be readable.
//! - `problem`: errors as problem details (RFC 9457). All statuses of the admin address are in this
//!   file. Outside the API, a browser gets the problem as a page.
//! - `ask`: a question to the store. Each has a thread of its own; at most four run at once, for at
//!   most nine seconds.
//! - `compress`: gzip for whoever asks for it, piece by piece as it is read.
//! - `openapi`: the OpenAPI document. utoipa makes it from the routes and types. A unit test
//!   compares it with the routes, black-box tests compare every answer with its schema, and the API
//!   reference in `docs/` is made from it.
//!
//! Answers come from what the feeder has put into the store. They say how many entries of the
//! journal are still missing.
//!
//! # Console
//!
//! `console/` makes HTML pages. `console/charts` is pure: numbers in, SVG out. `view` reads the
//! time zone and makes links. `text` cuts and cleans names. `page` holds the frame and the content
//! security policy: a page may contain neither style nor script, so colours are classes and numbers
//! are attributes. `assets/live.js` fills rows that the page already has.
//!
//! The overview reads the daily sums once (and the month again if it is another period) and the
//! records of at most a thousand requests. A page does not wait for sums that take long: its frame
//! is sent first (`page::Frame`).

mod access;
mod ask;
mod compress;
mod console;
mod export;
mod fleet;
mod live;
mod openapi;
mod prices;
mod probes;
mod problem;
mod query;
mod records;
mod refusals;
mod scrape;
mod sessions;
mod state;
mod status;
mod usage;

use std::io;
use std::net::TcpListener;
use std::time::Duration;

use axum::body::Body;
use axum::error_handling::HandleErrorLayer;
use axum::http::{Request, Uri};
use axum::middleware;
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use axum::{BoxError, Router};
use hyper::body::Incoming;
use taximeter_gateway::gateway::Current;
use taximeter_net::listening::Listeners;
use taximeter_net::serving::{Bounds, Caller, HeadBounds, Server};
use taximeter_net::tls::Tls;
use tower::timeout::error::Elapsed;
use tower::{ServiceBuilder, ServiceExt as _};

pub use self::fleet::{claims, whereabouts};
use self::problem::ApiError;
use self::state::InForce;

/// Requests that the admin address answers at the same time. It answers further ones with 503.
const REQUESTS_AT_ONCE_MAX: usize = 64;
/// Longest time for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest life of a connection. An export takes less.
const CONNECTION_AGE_MAX: Duration = Duration::from_secs(3600);
/// Open connections from one IP address: half of all, so that health probes always find a free one.
const CONNECTIONS_PER_PEER_MAX: usize = 128;

/// Serves the admin address, on all of these sockets, until the runtime ends.
pub fn start(current: Current, listeners: Vec<TcpListener>, tls: Option<Tls>) {
    let gateway = current.get();
    let app = router(InForce(current.clone()));
    let heads = move || HeadBounds::of(&current.get().config.limits);
    gateway.background.spawn(async move {
        let listeners = listeners.into_iter().map(tokio::net::TcpListener::from_std);
        if let Ok(listeners) = listeners.collect::<io::Result<Vec<_>>>() {
            let answer = move |request, caller| answer(app.clone(), request, caller);
            let bounds = Bounds {
                connections_per_peer_max: Some(CONNECTIONS_PER_PEER_MAX),
                ..Bounds::of_age(CONNECTION_AGE_MAX)
            };
            Server::new(bounds).serve(Listeners::new(listeners), tls, heads, answer).await;
        }
    });
}

/// Answers one request. The request carries facts about its connection for `access`.
async fn answer(app: Router, request: Request<Incoming>, caller: Caller) -> Response {
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(caller);
    let Ok(answer) = app.oneshot(request).await;
    answer
}

/// Every route for programs, with its handler. `openapi` describes the same routes.
fn routes() -> [(&'static str, MethodRouter<InForce>); 18] {
    let permits = scrape::ScrapePermits::new();
    let scrape =
        move |state, caller, request| scrape::scrape(permits.clone(), state, caller, request);
    [
        ("/healthz", get(probes::alive)),
        ("/readyz", get(probes::ready)),
        ("/metrics", get(scrape)),
        ("/api/v1/usage", get(usage::usage)),
        ("/api/v1/records", get(records::records)),
        ("/api/v1/records/{id}", get(records::record)),
        ("/api/v1/refusals", get(refusals::refusals)),
        ("/api/v1/sessions", get(sessions::sessions)),
        ("/api/v1/sessions/{id}", get(sessions::session)),
        ("/api/v1/prices", get(prices::prices)),
        ("/api/v1/status", get(status::status)),
        ("/api/v1/live", get(live::live)),
        ("/api/v1/live/events", get(live::events)),
        ("/api/v1/fleet", get(fleet::fleet)),
        ("/api/v1/fleet/samples", get(fleet::samples::samples)),
        ("/api/v1/fleet/events", get(fleet::events::events)),
        ("/api/v1/export", get(export::export)),
        ("/openapi.json", get(openapi::openapi)),
    ]
}

fn router(current: InForce) -> Router {
    let limits = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(overloaded))
        .load_shed()
        .concurrency_limit(REQUESTS_AT_ONCE_MAX)
        .timeout(ANSWER_TIMEOUT);
    routes()
        .into_iter()
        .fold(Router::new(), |router, (path, method)| router.route(path, method))
        .merge(console::router())
        .fallback(unknown)
        .method_not_allowed_fallback(async || ApiError::Method)
        .layer(middleware::from_fn_with_state(current.clone(), access::authorise))
        .layer(limits)
        .layer(middleware::from_fn(console::problems_as_pages))
        .layer(middleware::from_fn(compress::compressed))
        .with_state(current)
}

async fn unknown(uri: Uri) -> ApiError {
    let path = uri.path();
    ApiError::NotFound(format!("the admin address has no {path}; /openapi.json lists its routes"))
}

async fn overloaded(fault: BoxError) -> ApiError {
    if fault.is::<Elapsed>() {
        ApiError::Slow { seconds: ANSWER_TIMEOUT.as_secs() }
    } else {
        ApiError::Busy(format!("the admin address already answers {REQUESTS_AT_ONCE_MAX} requests"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use utoipa::OpenApi as _;

    use super::*;

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let document = openapi::Document::openapi();
        let described: BTreeSet<_> = document.paths.paths.keys().map(String::as_str).collect();
        let answered: BTreeSet<_> = routes().iter().map(|(path, _)| *path).collect();
        assert_eq!(described, answered);
    }
}
