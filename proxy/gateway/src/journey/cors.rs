//! Decides what a web page of another origin may do here, and lets it read what it may.
//!
//! A browser asks before it sends what a page could not send without a script: the preflight. Where
//! the gateway adds a credential of its own and callers need no key, any page could spend it, so
//! nobody but the configuration (`cors`) says yes there.

use std::net::IpAddr;

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN, VARY,
};
use http::{HeaderMap, Method, Response, StatusCode, Uri};

use super::identify::tenant::Directory;
use crate::gateway::Gateway;

/// What a preflight is told of methods.
const METHODS: HeaderValue =
    HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
/// How long browsers remember it, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
/// Headers of answers that a page may read beside the usual ones.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "x-taximeter-request-id, x-taximeter-tokens, x-taximeter-cost, x-request-id",
);
/// Asked of a server in a private network by a page outside of it, and the answer.
static REQUEST_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-request-private-network");
static ALLOW_PRIVATE_NETWORK: HeaderName =
    HeaderName::from_static("access-control-allow-private-network");
/// The types of bodies that forms have, which need no preflight.
const TYPES_OF_FORMS: [&str; 3] =
    ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];

/// Who answers a preflight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answerer {
    /// The gateway, which allows it.
    Gateway,
    /// The engine, as it likes.
    Engine,
    /// Nobody: the browser takes it for a no.
    Nobody,
}

/// Who answers a preflight, given whether `cors` lists the origin (`None` without `cors`), whether
/// the gateway adds a credential of its own, and whether it serves nobody without a key.
const fn answerer(is_listed: Option<bool>, adds_credential: bool, asks_for_key: bool) -> Answerer {
    match (is_listed, adds_credential, asks_for_key) {
        (Some(true), ..) => Answerer::Gateway,
        (Some(false), ..) | (None, true, false) => Answerer::Nobody,
        (None, false, _) | (None, true, true) => Answerer::Engine,
    }
}

/// A web page of another origin that sends a request.
#[derive(Debug)]
pub(super) struct Page {
    origin: HeaderValue,
    answerer: Answerer,
}

impl Page {
    /// The page that a request comes from; `None` where that is no page, or one of the gateway's own
    /// origin.
    pub(super) fn of(
        gateway: &Gateway,
        peer: IpAddr,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<Self> {
        let origin = headers.get(ORIGIN).filter(|origin| !is_same(origin, uri, headers))?;
        let cors = gateway.config.cors.as_ref();
        let is_listed = cors.map(|cors| origin.to_str().is_ok_and(|origin| cors.allows(origin)));
        let upstreams = &gateway.config.upstreams;
        let adds_credential = upstreams.iter().any(|upstream| upstream.credential.is_some());
        let asks_for_key = gateway.directory.asks_for_key(peer);
        let answerer = answerer(is_listed, adds_credential, asks_for_key);
        Some(Self { origin: origin.clone(), answerer })
    }

    /// Who answers its preflights.
    pub(super) const fn answerer(&self) -> Answerer {
        self.answerer
    }

    /// Whether its request is not served: nobody would have allowed it, and the browser has not
    /// asked, because a form could send the same.
    pub(super) fn is_kept_out(
        &self,
        directory: &Directory,
        method: &Method,
        headers: &HeaderMap,
    ) -> bool {
        // No form can set such a header.
        let is_signed = || directory.is_signed(headers);
        self.answerer == Answerer::Nobody && needs_no_preflight(method, headers) && !is_signed()
    }

    /// The gateway's own answer to a preflight.
    pub(super) fn allowed(asked: &HeaderMap) -> Response<Bytes> {
        let mut answer = Response::new(Bytes::new());
        *answer.status_mut() = StatusCode::NO_CONTENT;
        let headers = answer.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        for names in asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.append(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
        }
        if asked.contains_key(&REQUEST_PRIVATE_NETWORK) {
            headers.insert(&ALLOW_PRIVATE_NETWORK, HeaderValue::from_static("true"));
        }
        answer
    }

    /// Lets the page read an answer, where that is ours to say.
    pub(super) fn mark(&self, headers: &mut HeaderMap, is_refusal: bool) {
        let is_ours = match self.answerer {
            Answerer::Gateway => true,
            Answerer::Engine => is_refusal,
            Answerer::Nobody => false,
        };
        if is_ours {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.origin.clone());
            headers.append(VARY, HeaderValue::from_static("origin"));
        }
        if headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
            headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
        }
    }
}

/// The method of the request that a preflight asks for.
pub(super) fn asked_method(headers: &HeaderMap) -> Method {
    let asked = headers.get(ACCESS_CONTROL_REQUEST_METHOD);
    asked.and_then(|asked| asked.as_bytes().try_into().ok()).unwrap_or(Method::POST)
}

/// Whether a page is of the origin that it sends a request to. Behind a proxy with TLS the schemes
/// may differ.
fn is_same(origin: &HeaderValue, uri: &Uri, headers: &HeaderMap) -> bool {
    let host = match uri.authority() {
        Some(authority) => Some(authority.as_str().as_bytes()),
        None => headers.get(HOST).map(HeaderValue::as_bytes),
    };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    let of_page = origin.filter(|(scheme, _)| matches!(*scheme, "http" | "https"));
    of_page.zip(host).is_some_and(|((_, page), host)| page.as_bytes().eq_ignore_ascii_case(host))
}

/// Whether a browser sends such a request of any page without asking first.
fn needs_no_preflight(method: &Method, headers: &HeaderMap) -> bool {
    let is_of_form = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or_default();
        let essence = text.split(';').next().unwrap_or_default().trim();
        TYPES_OF_FORMS.iter().any(|form| essence.eq_ignore_ascii_case(form))
    };
    matches!(*method, Method::GET | Method::HEAD | Method::POST)
        && headers.get_all(CONTENT_TYPE).iter().all(is_of_form)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_preflight_goes_to_the_engine_only_where_no_page_could_spend_our_credential() {
        for (is_listed, adds_credential, asks_for_key, expected) in [
            (None, false, false, Answerer::Engine),
            (None, false, true, Answerer::Engine),
            (None, true, true, Answerer::Engine),
            (None, true, false, Answerer::Nobody),
            (Some(true), false, false, Answerer::Gateway),
            (Some(true), false, true, Answerer::Gateway),
            (Some(true), true, true, Answerer::Gateway),
            (Some(true), true, false, Answerer::Gateway),
            (Some(false), false, false, Answerer::Nobody),
            (Some(false), false, true, Answerer::Nobody),
            (Some(false), true, true, Answerer::Nobody),
            (Some(false), true, false, Answerer::Nobody),
        ] {
            let found = answerer(is_listed, adds_credential, asks_for_key);
            assert_eq!(found, expected, "{is_listed:?} {adds_credential} {asks_for_key}");
        }
    }

    #[test]
    fn what_a_form_could_send_needs_no_preflight() {
        for (method, pairs, expected) in [
            (Method::GET, &[][..], true),
            (Method::HEAD, &[], true),
            (Method::POST, &[], true),
            (Method::POST, &[("content-type", "text/plain;charset=UTF-8")], true),
            (Method::POST, &[("content-type", "Multipart/Form-Data; boundary=a")], true),
            (Method::POST, &[("content-type", "application/x-www-form-urlencoded")], true),
            (Method::POST, &[("content-type", "application/json")], false),
            (Method::POST, &[("content-type", "text/plain, application/json")], false),
            (Method::DELETE, &[], false),
        ] {
            assert_eq!(
                needs_no_preflight(&method, &headers(pairs)),
                expected,
                "{method} {pairs:?}"
            );
        }
    }

    #[test]
    fn a_page_of_the_gateways_own_host_is_of_its_origin() {
        let same = |origin: &str, uri: &str, host: &[(&'static str, &str)]| {
            is_same(&origin.parse().unwrap(), &uri.parse().unwrap(), &headers(host))
        };
        let host = &[("host", "localhost:8080")][..];
        assert!(same("http://localhost:8080", "/", host));
        assert!(same("https://LOCALHOST:8080", "/", host));
        assert!(same("http://a:1", "http://a:1/v1", &[]));
        for origin in [
            "http://localhost",
            "http://localhost:8081",
            "null",
            "localhost:8080",
            "app://localhost:8080",
        ] {
            assert!(!same(origin, "/", host), "{origin}");
        }
        assert!(!same("http://a", "/", &[]));
    }

    #[test]
    fn an_answer_can_be_read_where_its_preflight_would_have_been_allowed() {
        let read = |answerer, is_refusal, engine: &[(&'static str, &str)]| {
            let page = Page { origin: HeaderValue::from_static("https://a.example"), answerer };
            let mut headers = headers(engine);
            page.mark(&mut headers, is_refusal);
            let all = |name: HeaderName| {
                let values = headers.get_all(name).iter();
                values.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
            };
            (all(ACCESS_CONTROL_ALLOW_ORIGIN), all(ACCESS_CONTROL_EXPOSE_HEADERS).len())
        };
        let any =
            &[("access-control-allow-origin", "*"), ("access-control-expose-headers", "a")][..];
        let ours = vec!["https://a.example".to_owned()];
        assert_eq!(read(Answerer::Gateway, true, &[]), (ours.clone(), 1));
        assert_eq!(read(Answerer::Gateway, false, any), (ours.clone(), 2));
        assert_eq!(read(Answerer::Engine, true, &[]), (ours, 1));
        assert_eq!(read(Answerer::Engine, false, &[]), (vec![], 0));
        assert_eq!(read(Answerer::Engine, false, any), (vec!["*".to_owned()], 2));
        assert_eq!(read(Answerer::Nobody, true, &[]), (vec![], 0));
    }

    #[test]
    fn an_allowed_preflight_may_send_what_it_asks_for() {
        let asked = headers(&[
            ("access-control-request-headers", "authorization,x-taximeter-key"),
            ("access-control-request-private-network", "true"),
        ]);
        let answer = Page::allowed(&asked);
        assert_eq!(answer.status(), 204);
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        assert_eq!(header("access-control-allow-headers"), Some("authorization,x-taximeter-key"));
        assert_eq!(header("access-control-allow-private-network"), Some("true"));
        assert!(
            header("access-control-allow-methods").is_some_and(|methods| methods.contains("POST"))
        );
        assert_eq!(asked_method(&asked), Method::POST);
        let asked = headers(&[("access-control-request-method", "DELETE")]);
        assert_eq!(asked_method(&asked), Method::DELETE);
    }
}
