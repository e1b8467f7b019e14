//! The frame of every page: head, navigation, footer and the content security policy.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::assets::{ICON, SCRIPT, STYLE};
use super::text::sentence;
use super::view::{Root, View};
use crate::problem::{ApiError, Problem};

/// The browser may load only the console's own files. Inline scripts and styles are forbidden.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

/// How long a page waits for its main part. After that, the frame is sent first.
const PATIENCE: Duration = Duration::from_millis(30);
/// The mark for the main part. No text of a page can contain it, because all text is escaped.
const MAIN_MARK: &str = "<!-- main -->";

/// The pages of the navigation.
pub(super) const OVERVIEW: &str = "/";
pub(super) const LIVE: &str = "/live";
pub(super) const REQUESTS: &str = "/requests";
pub(super) const SESSIONS: &str = "/sessions";
/// One session. Its name is a parameter and no part of the path: it may be `..`, or have a `/`.
pub(super) const SESSION: &str = "/session";
pub(super) const REFUSALS: &str = "/refusals";
pub(super) const USAGE: &str = "/usage";
pub(super) const BILL: &str = "/bill";
pub(super) const PRICES: &str = "/prices";
pub(super) const UPSTREAMS: &str = "/upstreams";
pub(super) const FLEET: &str = "/fleet";
/// The same over time.
pub(super) const FLEET_HISTORY: &str = "/fleet/history";
const PAGES: [(&str, &str); 10] = [
    (OVERVIEW, "Overview"),
    (LIVE, "Live"),
    (REQUESTS, "Requests"),
    (SESSIONS, "Sessions"),
    (REFUSALS, "Refusals"),
    (USAGE, "Usage"),
    (BILL, "Bill"),
    (PRICES, "Prices"),
    (UPSTREAMS, "Upstreams"),
    (FLEET, "Fleet"),
];

/// One page.
pub(super) struct Page<'a> {
    /// The title of the browser window.
    pub(super) title: &'a str,
    /// The path of its entry in the navigation.
    pub(super) at: &'static str,
    pub(super) view: &'a View,
    /// Seconds between two reloads in a browser without JavaScript. `None` means no reload.
    pub(super) reload_seconds: Option<u32>,
}

/// A page without its main part.
pub(super) struct Frame {
    before: String,
    after: String,
}

impl Page<'_> {
    /// The page with its main part.
    pub(super) fn with(&self, main: Markup) -> Response {
        answer(StatusCode::OK, self.document(main).into_string())
    }

    /// The page without its main part.
    pub(super) fn frame(&self) -> Frame {
        let document = self.document(PreEscaped(MAIN_MARK.to_owned())).into_string();
        let (before, after) = document.split_once(MAIN_MARK).unwrap_or((&document, ""));
        Frame { before: before.to_owned(), after: after.to_owned() }
    }

    fn document(&self, main: Markup) -> Markup {
        let nav = html! {
            @for (path, word) in PAGES {
                li {
                    a href=(self.view.to(path, &[]))
                        aria-current=[(path == self.at).then_some("page")] { (word) }
                }
            }
        };
        let root = self.view.root();
        let foot = html! {
            (self.view.zone_form())
            p {
                "Taximeter " (env!("CARGO_PKG_VERSION")) " · "
                a href=(root.to("/metrics")) { "metrics" } " · "
                a href=(root.to("/openapi.json")) { "API" }
            }
        };
        let head = html! {
            @if let Some(seconds) = self.reload_seconds {
                noscript { meta http-equiv="refresh" content=(seconds); }
            }
        };
        document(self.title, &root, head, Some(nav), main, foot)
    }
}

impl Frame {
    /// The page, while its main part is being made. If that takes long, the frame is sent first. A
    /// later error is shown inside the frame.
    ///
    /// Errors: the main part fails before the frame is sent.
    pub(super) async fn around(
        self,
        main: impl Future<Output = Result<Markup, ApiError>> + Send + 'static,
    ) -> Result<Response, ApiError> {
        let Self { before, after } = self;
        let mut main = Box::pin(main);
        if let Ok(main) = tokio::time::timeout(PATIENCE, &mut main).await {
            return Ok(answer(StatusCode::OK, before + &main?.into_string() + &after));
        }
        let main = main.map(|main| main.unwrap_or_else(|refused| explanation(&refused.problem())));
        let rest = stream::once(main.map(move |main| main.into_string() + &after));
        let pieces = stream::iter([before]).chain(rest).map(Ok::<_, Infallible>);
        Ok(answer(StatusCode::OK, Body::from_stream(pieces)))
    }
}

/// An error as a page, which was asked for at `path`.
pub(super) fn problem(path: &str, status: StatusCode, problem: &Problem) -> Response {
    let root = Root::from(path);
    let main = html! {
        (explanation(problem))
        @if status == StatusCode::UNAUTHORIZED {
            ol {
                li { "Reload this page. The browser asks for a name and a password." }
                li {
                    "Leave the name empty. The password is the " code { "admin_token" }
                    " in the gateway's configuration file."
                }
            }
        } @else {
            p { a href=(root.to(OVERVIEW)) { "Back to the overview" } }
        }
    };
    let foot = html! { p { "Status " (status.as_u16()) } };
    let document = document(&problem.title, &root, html! {}, None, main, foot);
    answer(status, document.into_string())
}

fn explanation(problem: &Problem) -> Markup {
    html! {
        h1 { (problem.title) }
        p.lead { (sentence(&problem.detail)) "." }
    }
}

fn document(
    title: &str,
    root: &Root,
    head: Markup,
    nav: Option<Markup>,
    main: Markup,
    foot: Markup,
) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                title { (title) " – Taximeter" }
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" type="image/svg+xml" href=(root.to(ICON));
                link rel="stylesheet" href=(root.to(STYLE));
                script src=(root.to(SCRIPT)) defer {}
                (head)
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top {
                    a.brand href=(root.to(OVERVIEW)) {
                        img src=(root.to(ICON)) alt="" width="22" height="22";
                        "Taximeter"
                    }
                    @if let Some(nav) = nav { nav aria-label="Pages" { ul { (nav) } } }
                }
                main #main tabindex="-1" { (main) }
                footer { (foot) }
            }
        }
    }
}

fn answer(status: StatusCode, document: impl Into<Body>) -> Response {
    let mut answer = (status, document.into()).into_response();
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}
