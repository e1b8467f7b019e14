//! `/openapi.json`: the OpenAPI description of the admin address, made from the handlers' code.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi as Described};

use super::problem::{ApiError, Problem};
use super::query::{NoParams, Params};

static TEXT: LazyLock<String> =
    LazyLock::new(|| Document::openapi().to_pretty_json().unwrap_or_default());

#[derive(Described)]
#[openapi(
    info(
        title = "Taximeter's admin address",
        description = "Usage, records, prices and the status of a gateway. Every route only reads. \
                       If the configuration has an admin_token, send it as a bearer token or as \
                       the password of HTTP Basic. If it has admin_tls with client_ca, a client \
                       certificate works as well. Without both, the address is on loopback and \
                       needs no credential. Errors are problem details (RFC 9457).",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
    ),
    paths(
        super::usage::usage,
        super::records::records,
        super::records::record,
        super::refusals::refusals,
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

/// This description of the admin address, in OpenAPI 3.1
#[utoipa::path(get, path = "/openapi.json", tag = "status", responses(
    (status = 200, description = "The OpenAPI document", body = serde_json::Value),
    ApiError,
))]
pub(super) async fn openapi(Params(NoParams {}): Params<NoParams>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], TEXT.as_str())
}
