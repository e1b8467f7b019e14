//! `/openapi.json`: what the admin address answers, from the code that answers it.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi as Described};

use super::problem::{Problem, Refused};
use super::query::{Asked, Nothing};

static TEXT: LazyLock<String> =
    LazyLock::new(|| Document::openapi().to_pretty_json().unwrap_or_default());

#[derive(Described)]
#[openapi(
    info(
        title = "Taximeter's admin address",
        description = "What the gateway has metered, and how it does. Everything is read-only. On \
                       loopback nothing is asked for; where the configuration has an admin_token, \
                       it is shown as a bearer's, or as the password of HTTP Basic. Where it has \
                       admin_tls with client_ca, a certificate does as well. Errors are problem \
                       details (RFC 9457).",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    paths(
        super::usage::usage,
        super::records::records,
        super::records::record,
        super::prices::prices,
        super::status::status,
        super::live::live,
        super::live::events,
        super::export::export,
        super::probes::alive,
        super::probes::ready,
        super::scrape::scrape,
        openapi,
    ),
    components(schemas(Problem)),
    modifiers(&Security),
    security((), ("bearer" = []), ("basic" = [])),
)]
pub(super) struct Document;

struct Security;

impl Modify for Security {
    fn modify(&self, document: &mut OpenApi) {
        let components = document.components.get_or_insert_default();
        for (name, scheme) in [("bearer", HttpAuthScheme::Bearer), ("basic", HttpAuthScheme::Basic)]
        {
            components.add_security_scheme(name, SecurityScheme::Http(Http::new(scheme)));
        }
    }
}

/// This description, in OpenAPI 3.1
#[utoipa::path(get, path = "/openapi.json", tag = "status", responses(
    (status = 200, description = "The description", body = serde_json::Value),
    Refused,
))]
pub(super) async fn openapi(Asked(Nothing {}): Asked<Nothing>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], TEXT.as_str())
}
