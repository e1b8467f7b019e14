//! The console: HTML pages that show what the API answers. The browser loads nothing from other
//! hosts. Every page works without JavaScript; the script only updates live figures.

mod assets;
mod bill;
mod charts;
mod fleet;
mod latency;
mod live;
mod overview;
mod page;
mod prices;
mod refusals;
mod request;
mod requests;
mod runbooks;
mod session;
mod sessions;
mod span;
mod spend;
mod sums;
mod text;
mod upstreams;
mod usage;
mod view;

use axum::Router;
use axum::extract::Request;
use axum::http::header;
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::get;

use super::problem::Problem;
use super::state::InForce;

/// The path of the console's own files. They need no token.
pub(super) const FILES: &str = "/console/";

/// The path of the pages about alerts. They need none either.
pub(super) const RUNBOOKS: &str = "/runbooks/";

/// The pages and their files.
pub(super) fn router() -> Router<InForce> {
    Router::new()
        .route(page::OVERVIEW, get(overview::overview))
        .route(page::LIVE, get(live::live))
        .route(page::REQUESTS, get(requests::requests))
        .route("/requests/{id}", get(request::request))
        .route(page::SESSIONS, get(sessions::sessions))
        .route(page::SESSION, get(session::session))
        .route(page::REFUSALS, get(refusals::refusals))
        .route(page::USAGE, get(usage::usage))
        .route(page::BILL, get(bill::bill))
        .route(page::PRICES, get(prices::prices))
        .route(page::UPSTREAMS, get(upstreams::upstreams))
        .route(page::FLEET, get(fleet::fleet))
        .route(page::FLEET_HISTORY, get(fleet::history))
        .route("/runbooks/{page}", get(runbooks::page))
        .route(assets::STYLE, get(assets::style))
        .route(assets::SCRIPT, get(assets::script))
        .route(assets::ICON, get(assets::icon))
}

/// Shows an error as a page if the client asks for HTML. The API always answers JSON.
pub(super) async fn problems_as_pages(request: Request, next: Next) -> Response {
    let accepted = request.headers().get(header::ACCEPT).map(|accept| accept.as_bytes());
    let is_person = accepted.is_some_and(|accept| accept.starts_with(b"text/html"))
        && !request.uri().path().starts_with("/api/");
    let path = request.uri().path().to_owned();
    let answer = next.run(request).await;
    let Some(problem) = answer.extensions().get::<Problem>().filter(|_| is_person) else {
        return answer;
    };
    let mut page = page::problem(&path, answer.status(), problem);
    for name in [header::WWW_AUTHENTICATE, header::ALLOW, header::RETRY_AFTER] {
        for value in answer.headers().get_all(&name) {
            page.headers_mut().append(&name, value.clone());
        }
    }
    page
}
