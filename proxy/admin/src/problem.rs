//! Why a question has no answer, as problem details (RFC 9457). The admin address's statuses exist
//! in this file alone.

use std::collections::BTreeMap;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use taximeter_billing::{BillError, PeriodError, TooLarge};
use taximeter_store::StoreError;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa::{IntoResponses, ToSchema, openapi};

/// What the types of problems begin with.
const TYPES: &str = "urn:taximeter:problem:";
/// The media type of RFC 9457.
pub(super) const PROBLEM_TYPE: &str = "application/problem+json";
/// Most of what was got that is said back, in characters.
const GOT_CHARS_MAX: usize = 200;
/// Both ways to show the token; browsers ask people for the first.
const CHALLENGES: [&str; 2] =
    ["Basic realm=\"taximeter\", charset=\"UTF-8\"", "Bearer realm=\"taximeter\""];

/// Why there is no answer; its text says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum Refused {
    /// A parameter cannot be read.
    #[error("{name} is {got:?}, and should be {allowed}")]
    Parameter {
        /// Its name.
        name: &'static str,
        /// What was given.
        got: String,
        /// What it may be.
        allowed: String,
    },
    /// A parameter that no answer depends on.
    #[error("there is no parameter {name:?} here; choose from {allowed}")]
    Unknown {
        /// What was given.
        name: String,
        /// All names, with commas.
        allowed: String,
    },
    /// A parameter that is there more than once.
    #[error("{name} is given twice; give it once")]
    Repeated {
        /// Its name.
        name: String,
    },
    /// A parameter that has to be there.
    #[error("{name} is missing, and should be {allowed}")]
    Missing {
        /// Its name.
        name: &'static str,
        /// What it may be.
        allowed: String,
    },
    /// The ends of the period do not fit together.
    #[error("{0}")]
    Period(#[from] PeriodError),
    /// Too many ends, or the wrong ones.
    #[error("write either month, or from and to, or from alone, or neither for this month")]
    Ends,
    /// No token, or a wrong one.
    #[error(
        "show the admin token: \"authorization: Bearer TOKEN\", or HTTP Basic with it as the \
         password (admin_token in the configuration), or a certificate, where admin_tls.client_ca \
         is there"
    )]
    Unauthorised,
    /// No certificate was shown where that is the only way in.
    #[error(
        "show a certificate that an authority of admin_tls.client_ca in the configuration has signed"
    )]
    Uncertified,
    /// The name of another host: a page of that host may be asking through a browser.
    #[error(
        "this address is asked as {0:?}; ask it by its IP address or as localhost, or set an \
         admin_token"
    )]
    Misdirected(String),
    /// Nothing is there.
    #[error("{0}")]
    NotFound(String),
    /// It can only be read.
    #[error("only GET and HEAD are answered here: nothing can be changed")]
    Method,
    /// The sums are none, or too many.
    #[error("{0}")]
    Bill(#[from] BillError),
    /// An amount is.
    #[error("{0}; ask for a shorter period")]
    TooLarge(#[from] TooLarge),
    /// More lines than an answer has.
    #[error("{lines} lines are more than {max}; group by less, or ask for a shorter period")]
    Lines {
        /// How many it would be.
        lines: usize,
        /// How many it may be.
        max: usize,
    },
    /// Enough is being done.
    #[error("{0}; try again when one has ended")]
    Busy(String),
    /// It took too long.
    #[error("no answer within {seconds} s; ask for a shorter period")]
    Slow {
        /// The limit.
        seconds: u64,
    },
    /// The store says no; later it may not.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// An export failed before its first byte.
    #[error("{0}")]
    Export(String),
    /// Our own fault.
    #[error("the answer failed; the gateway's log has more")]
    Internal,
}

/// Problem details for HTTP APIs (RFC 9457).
#[derive(Debug, Clone, Serialize, ToSchema)]
#[cfg_attr(test, derive(serde::Deserialize))]
pub(super) struct Problem {
    /// `urn:taximeter:problem:` and a word; stays the same from version to version.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// The same for people.
    pub(super) title: String,
    /// HTTP status.
    pub(super) status: u16,
    /// What happened here, and what to do.
    pub(super) detail: String,
    /// The parameter that is to blame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parameter: Option<String>,
    /// What it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) got: Option<String>,
    /// What it may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) allowed: Option<String>,
}

impl Refused {
    /// Status, word of the type, title.
    const fn facts(&self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::Parameter { .. }
            | Self::Unknown { .. }
            | Self::Repeated { .. }
            | Self::Missing { .. }
            | Self::Period(_)
            | Self::Ends => {
                (StatusCode::BAD_REQUEST, "invalid_parameter", "A query parameter is invalid")
            }
            Self::Unauthorised => {
                (StatusCode::UNAUTHORIZED, "unauthorized", "The admin token is missing or wrong")
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
            Self::Busy(_) => (StatusCode::SERVICE_UNAVAILABLE, "busy", "Too many requests at once"),
            Self::Slow { .. } => (StatusCode::SERVICE_UNAVAILABLE, "slow", "The store is too slow"),
            Self::Store(_) | Self::Export(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", "The store cannot answer")
            }
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        }
    }

    /// Its details.
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

    /// Which parameter, what it was, what it may be.
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

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let (status, ..) = self.facts();
        let problem = self.problem();
        // Its members are texts and a number: there is nothing that fails.
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

/// What any answer may be in place of what was asked for.
impl IntoResponses for Refused {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        let mut responses = problems([
            ("400", "A parameter is unknown, given twice, or cannot be read"),
            ("401", "The admin token is missing or wrong"),
            ("403", "No certificate was shown, and there is no admin token"),
            ("404", "Nothing is at this path, or no record has this id"),
            ("421", "Asked by the name of another host, and without an admin token"),
            ("422", "The sums cannot be made: two currencies, or too many lines"),
            ("500", "A fault of the gateway's own"),
            ("503", "Busy, too slow, or the store cannot answer; try again"),
        ]);
        responses.extend(Unchangeable::responses());
        responses
    }
}

/// What the answer of one that is always answered may be all the same.
pub(super) struct Unchangeable;

impl IntoResponses for Unchangeable {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        problems([("405", "Not GET or HEAD")])
    }
}

fn problems<const N: usize>(told: [(&str, &str); N]) -> BTreeMap<String, RefOr<openapi::Response>> {
    let problem = |description: &str| {
        let content = ContentBuilder::new().schema(Some(Ref::from_schema_name("Problem"))).build();
        let response = ResponseBuilder::new().description(description);
        response.content(PROBLEM_TYPE, content).build().into()
    };
    told.map(|(status, description)| (status.to_owned(), problem(description))).into()
}

#[cfg(test)]
mod reference;
