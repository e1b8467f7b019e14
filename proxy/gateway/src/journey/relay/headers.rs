//! Filters headers in both directions: hop-by-hop fields stay on their hop, and names keep their
//! case.

use std::fmt::Write as _;

use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, Request, Uri, Version};
use taximeter_config::{Secret, Upstream};
use taximeter_framing::is_readable;
use taximeter_meter::Dialect;
use taximeter_net::fields::{API_KEY, KEEP_ALIVE, PROXY_CONNECTION, X_API_KEY, X_GOOG_API_KEY};
use taximeter_net::upstream::RequestBody;

use super::super::identify::strip_credential;
use super::super::route::Chosen;
use crate::gateway::Gateway;

/// Belong to one hop (RFC 9110 §7.6.1).
static HOP_BY_HOP: [&HeaderName; 7] = [
    &CONNECTION,
    &KEEP_ALIVE,
    &PROXY_CONNECTION,
    &PROXY_AUTHORIZATION,
    &TE,
    &TRANSFER_ENCODING,
    &UPGRADE,
];

/// The codings that an answer may come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Codings {
    /// Nobody reads it: whatever the client takes.
    AsAsked,
    /// It is read beside what passes: what the client takes, as far as we can undo it.
    Readable,
    /// Something is taken out of it or added: none.
    None,
}

/// The request as the engine gets it; takes the body out of `chosen`.
pub(super) fn request(
    gateway: &Gateway,
    head: Parts,
    chosen: &mut Chosen,
    codings: Codings,
) -> Request<RequestBody> {
    let upstream = gateway.upstream(chosen.index);
    let mut request = Request::new(std::mem::take(&mut chosen.body));
    *request.method_mut() = head.method;
    *request.version_mut() = Version::HTTP_11;
    *request.uri_mut() = target(upstream, &head.uri);
    // Carries the case of the client's header names.
    *request.extensions_mut() = head.extensions;
    let mut headers = head.headers;
    drop_hop_by_hop(&mut headers);
    headers.remove(EXPECT);
    leave_behind(&mut headers, upstream.drops(&gateway.config.forward));
    if !upstream.takes_clients_credential() {
        strip_credential(&mut headers);
    }
    if let Some(credential) = upstream.credential.as_ref().filter(|_| !chosen.is_preflight) {
        show(&mut headers, chosen.dialect, request.uri().path(), credential);
    }
    accept(&mut headers, codings);
    if let Some(host) = gateway.host(chosen.index) {
        headers.insert(HOST, host.clone());
    }
    let length = request.body().len();
    let announced = headers.remove(CONTENT_LENGTH).is_some();
    let reads = request.method() == Method::GET || request.method() == Method::HEAD;
    if length > 0 || announced && !reads {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    *request.headers_mut() = headers;
    request
}

/// Asks for no coding that must not come. What the client wrote stays as it is where all of it may.
fn accept(headers: &mut HeaderMap, codings: Codings) {
    let asked = headers.get_all(ACCEPT_ENCODING).iter().flat_map(|line| {
        // Text that is none names no coding that we know.
        line.to_str().unwrap_or("?").split(',').map(str::trim)
    });
    let may_come = |coding: &&str| {
        codings == Codings::Readable && is_readable(coding.split(';').next().unwrap_or_default())
    };
    let (may, must_not): (Vec<&str>, Vec<&str>) = asked.partition(may_come);
    if codings == Codings::AsAsked || must_not.is_empty() && !may.is_empty() {
        return;
    }
    let left = HeaderValue::try_from(may.join(", ")).ok().filter(|left| !left.is_empty());
    headers.insert(ACCEPT_ENCODING, left.unwrap_or(HeaderValue::from_static("identity")));
}

/// The engine's answer as the client gets it.
pub(super) fn answer(headers: &mut HeaderMap) {
    drop_hop_by_hop(headers);
}

fn drop_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .filter(|name| *name != CONTENT_LENGTH && *name != HOST)
        .collect();
    for name in named.iter().chain(HOP_BY_HOP) {
        headers.remove(name);
    }
}

/// Takes out the headers that an upstream must not see.
fn leave_behind(headers: &mut HeaderMap, drops: impl Fn(&str) -> bool) {
    let dropped: Vec<HeaderName> =
        headers.keys().filter(|name| drops(name.as_str())).cloned().collect();
    for name in dropped {
        headers.remove(name);
    }
}

/// Our credential in the header where this kind of engine looks for it.
fn show(headers: &mut HeaderMap, dialect: Dialect, path: &str, credential: &Secret) {
    strip_credential(headers);
    let (name, value) = match dialect {
        Dialect::Gemini if !path.contains("/openai/") => {
            (&X_GOOG_API_KEY, credential.expose().into())
        }
        Dialect::Anthropic => (&X_API_KEY, credential.expose().into()),
        Dialect::Azure => (&API_KEY, credential.expose().into()),
        _ => (&AUTHORIZATION, format!("Bearer {}", credential.expose())),
    };
    if let Ok(mut value) = HeaderValue::try_from(value) {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
}

/// Path and query as the client sent them, behind the upstream's prefix.
fn target(upstream: &Upstream, uri: &Uri) -> Uri {
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    if upstream.url.prefix.is_empty() {
        return uri.path_and_query().cloned().map_or_else(Uri::default, Uri::from);
    }
    let mut target = String::with_capacity(upstream.url.prefix.len() + path.len());
    // Writing to a string cannot fail.
    let _ = write!(target, "{}{path}", upstream.url.prefix);
    target.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_asked_for_in_codings_that_may_come() {
        let accepted = |codings: Codings, lines: &[&str]| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(ACCEPT_ENCODING, line.parse().unwrap());
            }
            accept(&mut headers, codings);
            let lines = headers.get_all(ACCEPT_ENCODING).iter();
            lines.map(|line| line.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        for as_it_is in
            ["gzip, deflate", "br;q=1.0,gzip;q=0.5", "ZSTD , identity", "identity;q=0", ""]
        {
            assert_eq!(accepted(Codings::Readable, &[as_it_is]), [as_it_is]);
        }
        assert_eq!(accepted(Codings::Readable, &["gzip", "br"]), ["gzip", "br"]);
        for (asked, left) in [
            ("gzip, dcb, br;q=0.5", "gzip, br;q=0.5"),
            ("gzip, *;q=0.1", "gzip"),
            ("*", "identity"),
            ("compress", "identity"),
        ] {
            assert_eq!(accepted(Codings::Readable, &[asked]), [left], "{asked}");
        }
        assert_eq!(accepted(Codings::Readable, &[]), ["identity"]);
        assert_eq!(accepted(Codings::None, &["gzip"]), ["identity"]);
        assert_eq!(accepted(Codings::AsAsked, &["*", "dcb"]), ["*", "dcb"]);
        assert_eq!(accepted(Codings::AsAsked, &[]), [""; 0]);
    }

    #[test]
    fn headers_of_one_hop_stay_on_it_with_those_they_name() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Private"),
            ("x-private", "1"),
            ("keep-alive", "timeout=5"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("te", "trailers"),
            ("x-kept", "1"),
            ("content-length", "3"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        answer(&mut headers);
        let mut left: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(left, ["content-length", "x-kept"]);
    }
}
