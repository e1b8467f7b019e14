//! Errors of the admin address as problem details (RFC 9457). Every HTTP status other than 200 is in
//! this file.

use std::collections::BTreeMap;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use taximeter_billing::{BillError, PeriodError, TooLarge};
use taximeter_store::StoreError;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema, openapi};

/// The start of every problem's `type`.
const TYPES: &str = "urn:taximeter:problem:";
/// The media type of RFC 9457.
pub(super) const PROBLEM_TYPE: &str = "application/problem+json";
/// Longest part of a wrong value that a problem quotes, in characters.
const GOT_CHARS_MAX: usize = 200;
/// Both ways to send the token. A browser asks its user for the first one.
const CHALLENGES: [&str; 2] =
    ["Basic realm=\"taximeter\", charset=\"UTF-8\"", "Bearer realm=\"taximeter\""];

/// Why the admin address refuses a request. The text says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum ApiError {
    /// A parameter has a value that it cannot have.
    #[error("the parameter {name} is {got:?}; it must be {allowed}")]
    Parameter {
        /// The name of the parameter.
        name: &'static str,
        /// The value in the request.
        got: String,
        /// The values that it can have.
        allowed: String,
    },
    /// The route does not have this parameter.
    #[error("this route has no parameter {name:?}; it has {allowed}")]
    Unknown {
        /// The name in the request.
        name: String,
        /// The names of all parameters, with commas between them.
        allowed: String,
    },
    /// The request gives a parameter more than once.
    #[error("the request gives the parameter {name} twice; give it once")]
    Repeated {
        /// The name of the parameter.
        name: String,
    },
    /// The request lacks a parameter that it must have.
    #[error("the parameter {name} is missing; it must be {allowed}")]
    Missing {
        /// The name of the parameter.
        name: &'static str,
        /// The values that it can have.
        allowed: String,
    },
    /// The period is not valid.
    #[error("{0}")]
    Period(#[from] PeriodError),
    /// The parameters of the period do not fit together.
    #[error("give month alone, or from and to, or from alone, or none of them for this month")]
    PeriodParams,
    /// The request has no token, or a wrong one.
    #[error(
        "send admin_token or one of admin_tokens of the configuration, as \"authorization: Bearer TOKEN\" or as the \
         password of HTTP Basic; if admin_tls.client_ca is set, a client certificate works as well"
    )]
    Unauthorised,
    /// The token may not do this.
    #[error(
        "this token may not do it: use one of admin_tokens in the configuration that has {0:?} in \
         its `may`"
    )]
    NoRight(&'static str),
    /// A browser asks for a page of another origin.
    #[error("a web page of another origin may change nothing here; send the request without it")]
    ForeignOrigin,
    /// The client shows no certificate, and there is no token.
    #[error(
        "connect with a client certificate that an authority in admin_tls.client_ca of the \
         configuration has signed"
    )]
    Uncertified,
    /// The `host` header names another host. A web page of that host may have sent the request
    /// through a browser (DNS rebinding).
    #[error(
        "the host header is {0:?}; use the IP address or localhost, or set admin_token in the \
         configuration"
    )]
    Misdirected(String),
    /// The route or the record does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The method would change something.
    #[error("the admin address answers only GET and HEAD")]
    Method,
    /// The costs of the period cannot be added up.
    #[error("{0}")]
    Bill(#[from] BillError),
    /// An amount has too many digits.
    #[error("{0}; ask for a shorter period")]
    TooLarge(#[from] TooLarge),
    /// The answer would have too many lines.
    #[error(
        "the answer would have {lines} lines, and {max} is the limit; split by less, or ask for a \
         shorter period"
    )]
    Lines {
        /// The number of lines.
        lines: usize,
        /// The limit.
        max: usize,
    },
    /// The receiver of an export does not take all of its events.
    #[error("{0}")]
    Outside(String),
    /// Only sums by the hour are left of the time that was asked for.
    #[error("{0}")]
    DetailsGone(StoreError),
    /// Too many requests run at the same time.
    #[error("{0}; try again")]
    Busy(String),
    /// The answer took too long.
    #[error("there was no answer within {seconds} s; ask for a shorter period")]
    Slow {
        /// The limit, in seconds.
        seconds: u64,
    },
    /// The store cannot answer now. A later try may succeed.
    #[error("{0}")]
    Store(StoreError),
    /// An export failed before its first byte.
    #[error("{0}")]
    Export(String),
    /// A bug in the gateway.
    #[error("the gateway failed to make the answer; its log says more")]
    Internal,
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            error @ StoreError::DetailsGone { .. } => Self::DetailsGone(error),
            error => Self::Store(error),
        }
    }
}

/// Problem details for HTTP APIs (RFC 9457).
#[derive(Debug, Clone, Serialize, ToSchema)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub(super) struct Problem {
    /// `urn:taximeter:problem:` and a word. It stays the same in later versions.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// A short text for people.
    pub(super) title: String,
    /// The HTTP status.
    pub(super) status: u16,
    /// What happened, and what to do.
    pub(super) detail: String,
    /// The parameter that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parameter: Option<String>,
    /// Its value in the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) got: Option<String>,
    /// The values that it can have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) allowed: Option<String>,
}

impl ApiError {
    /// The status, the word of the type, and the title.
    const fn facts(&self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::Parameter { .. }
            | Self::Unknown { .. }
            | Self::Repeated { .. }
            | Self::Missing { .. }
            | Self::Period(_)
            | Self::PeriodParams => {
                (StatusCode::BAD_REQUEST, "invalid_parameter", "A query parameter is invalid")
            }
            Self::Unauthorised => {
                (StatusCode::UNAUTHORIZED, "unauthorized", "The admin token is missing or wrong")
            }
            Self::NoRight(_) => (StatusCode::FORBIDDEN, "no_right", "The token may not do this"),
            Self::ForeignOrigin => {
                (StatusCode::FORBIDDEN, "foreign_origin", "The page is of another origin")
            }
            Self::Uncertified => {
                (StatusCode::FORBIDDEN, "certificate_needed", "A client certificate is required")
            }
            Self::Misdirected(_) => {
                (StatusCode::MISDIRECTED_REQUEST, "misdirected", "The host name is not allowed")
            }
            Self::NotFound(_) => (StatusCode::NOT_FOUND, "not_found", "Not found"),
            Self::Method => {
                (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "The method is not allowed")
            }
            Self::Bill(_) | Self::TooLarge(_) | Self::Lines { .. } => {
                (StatusCode::UNPROCESSABLE_ENTITY, "no_sum", "The sum cannot be made")
            }
            Self::Outside(_) => (
                StatusCode::UNPROCESSABLE_ENTITY,
                "outside_window",
                "The receiver takes some events no more",
            ),
            Self::DetailsGone(_) => (StatusCode::GONE, "details_gone", "Single requests are gone"),
            Self::Busy(_) => (StatusCode::SERVICE_UNAVAILABLE, "busy", "Too many requests at once"),
            Self::Slow { .. } => (StatusCode::SERVICE_UNAVAILABLE, "slow", "The store is too slow"),
            Self::Store(_) | Self::Export(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", "The store cannot answer")
            }
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        }
    }

    /// The problem details.
    pub(super) fn problem(&self) -> Problem {
        let (status, word, title) = self.facts();
        let (parameter, got, allowed) = self.parameter();
        Problem {
            kind: format!("{TYPES}{word}"),
            title: title.to_owned(),
            status: status.as_u16(),
            detail: self.to_string(),
            parameter,
            got,
            allowed,
        }
    }

    /// The parameter that is wrong, its value, and the values that it can have.
    fn parameter(&self) -> (Option<String>, Option<String>, Option<String>) {
        match self {
            Self::Parameter { name, got, allowed } => {
                (Some((*name).to_owned()), Some(shown(got)), Some(allowed.clone()))
            }
            Self::Unknown { name, allowed } => (Some(shown(name)), None, Some(allowed.clone())),
            Self::Repeated { name } => (Some(name.clone()), None, None),
            Self::Missing { name, allowed } => {
                (Some((*name).to_owned()), None, Some(allowed.clone()))
            }
            _ => (None, None, None),
        }
    }
}

fn shown(got: &str) -> String {
    got.chars().take(GOT_CHARS_MAX).collect()
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, ..) = self.facts();
        let problem = self.problem();
        // Texts and a number: this cannot fail.
        let body = serde_json::to_string(&problem).unwrap_or_default();
        let mut answer = (status, [(header::CONTENT_TYPE, PROBLEM_TYPE)], body).into_response();
        answer.extensions_mut().insert(problem);
        let headers = answer.headers_mut();
        match self {
            Self::Unauthorised => {
                for challenge in CHALLENGES {
                    headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
                }
            }
            Self::Method => {
                headers.insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            }
            Self::Busy(_) | Self::Slow { .. } => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        answer
    }
}

/// The errors that any route can answer.
impl IntoResponses for ApiError {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        let mut responses = problems([
            ("400", "A parameter is unknown, repeated, missing or not valid"),
            ("401", "The admin token is missing or wrong"),
            (
                "403",
                "The client has no certificate, and the gateway has no admin token; or the token may \
                 not read",
            ),
            ("404", "The route or the record does not exist"),
            ("421", "The `host` header names another host, and the gateway has no admin token"),
            (
                "422",
                "The sums cannot be made: two currencies, or too many lines; or a strict export has events \
                 that the receiver takes no more",
            ),
            ("500", "A bug in the gateway"),
            ("503", "The gateway is busy, took too long, or the store cannot answer; try again"),
        ]);
        responses.extend(ReadOnly::responses());
        responses
    }
}

/// The error of a route that answers every GET: another method.
pub(super) struct ReadOnly;

impl IntoResponses for ReadOnly {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        problems([("405", "The method is not GET or HEAD")])
    }
}

fn problems<const N: usize>(
    texts: [(&str, &str); N],
) -> BTreeMap<String, RefOr<openapi::Response>> {
    let problem = |description: &str| {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        let response = ResponseBuilder::new().description(description);
        response.content(PROBLEM_TYPE, content).build().into()
    };
    texts.map(|(status, description)| (status.to_owned(), problem(description))).into()
}

#[cfg(test)]
mod reference;
