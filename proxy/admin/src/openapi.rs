//! `/openapi.json`: the OpenAPI description of the admin address, made from the handlers' code.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::header;
use axum::response::IntoResponse;
use utoipa::openapi::schema::{Object, Schema};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{OpenApi, RefOr};
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
        super::sessions::sessions,
        super::sessions::session,
        super::prices::prices,
        super::status::status,
        super::live::live,
        super::live::events,
        super::fleet::fleet,
        super::fleet::samples::samples,
        super::fleet::events::events,
        super::export::export,
        super::probes::alive,
        super::probes::ready,
        super::scrape::scrape,
        openapi,
    ),
    components(schemas(Problem)),
    modifiers(&Security, &Flattened),
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

/// Describes what is flattened as what it is in JSON: members like all others.
struct Flattened;

impl Modify for Flattened {
    fn modify(&self, document: &mut OpenApi) {
        let schemas = &mut document.components.get_or_insert_default().schemas;
        let named = schemas.clone();
        for schema in schemas.values_mut() {
            let RefOr::T(Schema::AllOf(parts)) = schema else { continue };
            let mut whole = Object::new();
            whole.description = parts.description.take();
            for part in &parts.items {
                if let Some(part) = object_of(part, &named) {
                    whole.properties.extend(part.properties.clone());
                    whole.required.extend(part.required.iter().cloned());
                }
            }
            *schema = RefOr::T(Schema::Object(whole));
        }
        // Nothing else has them.
        schemas.remove("Dimensions");
    }
}

/// The object that is flattened, by its name or as it is. It may be one that can be absent.
fn object_of<'a>(
    part: &'a RefOr<Schema>,
    named: &'a BTreeMap<String, RefOr<Schema>>,
) -> Option<&'a Object> {
    match part {
        RefOr::Ref(part) => match named.get(part.ref_location.rsplit('/').next()?)? {
            RefOr::T(Schema::Object(object)) => Some(object),
            _ => None,
        },
        RefOr::T(Schema::Object(object)) => Some(object),
        RefOr::T(Schema::OneOf(parts)) => {
            let mut parts = parts.items.iter().filter(|part| matches!(part, RefOr::Ref(_)));
            parts.find_map(|part| object_of(part, named))
        }
        RefOr::T(_) => None,
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
