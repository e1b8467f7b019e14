//! Access control of the admin address. A client needs a token or a client certificate. If the
//! configuration has neither, the address is on loopback and only this machine may ask.
//!
//! Who changes something needs a token that may do so, wherever the address is, and no web page of
//! another origin can use it.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::middleware::Next;
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use taximeter_config::{AdminRight, Config};
use taximeter_gateway::gateway::Gateway;
use taximeter_net::serving::Caller;

use super::console;
use super::problem::ApiError;

/// Passes a request on if the client may do what it asks for. Probes, the console's own files and the
/// pages about alerts are for everybody.
pub(super) async fn authorise(
    State(gateway): State<Arc<Gateway>>,
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let (headers, config) = (request.headers(), &gateway.config);
    if !request.method().is_safe() {
        if is_foreign(request.uri(), headers) {
            return Err(ApiError::ForeignOrigin);
        }
        with_token(config, headers, AdminRight::Change)?;
    } else if !is_open(request.uri().path()) && !caller.is_certified {
        may_read(config, headers)?;
    }
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

/// Whether a client without a certificate may read.
///
/// Without tokens and a client CA, the address is on loopback. A web page in a browser on this
/// machine can still reach it through a DNS name that resolves to loopback. So only an IP address
/// or a name for this machine is allowed in `host`.
fn may_read(config: &Config, headers: &HeaderMap) -> Result<(), ApiError> {
    if config.reading_needs_token() {
        return with_token(config, headers, AdminRight::Read);
    }
    if config.admin_tls.as_ref().is_some_and(|tls| tls.client_ca.is_some()) {
        return Err(ApiError::Uncertified);
    }
    match headers.get(header::HOST) {
        Some(host) if !is_local(host) => {
            let host = String::from_utf8_lossy(host.as_bytes()).into_owned();
            Err(ApiError::Misdirected(host))
        }
        _ => Ok(()),
    }
}

/// Whether the request has a token that may do something.
fn with_token(config: &Config, headers: &HeaderMap, right: AdminRight) -> Result<(), ApiError> {
    let shown = shown(headers).ok_or(ApiError::Unauthorised)?;
    if config.admin_token.as_ref().is_some_and(|token| token.matches(&shown)) {
        return match right {
            AdminRight::Read => Ok(()),
            AdminRight::Ingest | AdminRight::Change => Err(ApiError::NoRight(right.as_str())),
        };
    }
    match config.admin_tokens.iter().find(|token| token.matches(&shown)) {
        Some(token) if token.may(right) => Ok(()),
        Some(_) => Err(ApiError::NoRight(right.as_str())),
        None => Err(ApiError::Unauthorised),
    }
}

/// Whether a browser sends the request for a page of another origin than this address.
fn is_foreign(uri: &Uri, headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(HeaderValue::as_bytes);
    let by_site = text("sec-fetch-site").is_some_and(|site| {
        !site.eq_ignore_ascii_case(b"same-origin") && !site.eq_ignore_ascii_case(b"none")
    });
    let host = uri.authority().map(|host| host.as_str().as_bytes()).or(text("host"));
    let by_origin = headers.get_all(header::ORIGIN).iter().any(|origin| {
        let origin = origin.as_bytes();
        let behind = |scheme: &[u8]| origin.strip_prefix(scheme);
        let own = behind(b"https://").or_else(|| behind(b"http://")).zip(host);
        !own.is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host))
    });
    by_site || by_origin
}

/// Whether a path says nothing about the gateway but that it runs.
fn is_open(path: &str) -> bool {
    let open = [console::FILES, console::RUNBOOKS];
    matches!(path, "/healthz" | "/readyz") || open.iter().any(|open| path.starts_with(open))
}

/// The token in the headers: a bearer token, or the password of any user.
fn shown(headers: &HeaderMap) -> Option<Cow<'_, [u8]>> {
    let shown = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, shown) =
        shown.split_at_checked(shown.iter().take_while(|b| **b != b' ').count())?;
    let shown = shown.trim_ascii();
    if scheme.eq_ignore_ascii_case(b"Bearer") {
        return Some(shown.into());
    }
    if !scheme.eq_ignore_ascii_case(b"Basic") {
        return None;
    }
    let pair = BASE64_STANDARD.decode(shown).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair.get(colon + 1..)?.to_vec().into())
}

/// Whether a host is an IP address, or a name that always means this machine (RFC 6761).
fn is_local(host: &HeaderValue) -> bool {
    let Ok(host) = host.to_str() else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let lower = name.trim_end_matches('.').to_ascii_lowercase();
    bare.parse::<IpAddr>().is_ok() || lower == "localhost" || lower.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(tokens: &str) -> Config {
        let text = format!("upstreams: [{{name: e, url: \"http://127.0.0.1:1\"}}]\n{tokens}");
        let none = |_: &str| None;
        let no_file = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
        Config::from_yaml(&text, "c", &none, &no_file).unwrap()
    }

    fn with(value: &str) -> HeaderMap {
        let value = HeaderValue::from_str(value).unwrap();
        HeaderMap::from_iter([(header::AUTHORIZATION, value)])
    }

    #[test]
    fn the_token_is_a_bearers_or_a_password() {
        let config = config("admin_token: correct-horse-battery");
        let basic = |pair: &str| format!("Basic {}", BASE64_STANDARD.encode(pair));
        for (value, good) in [
            ("Bearer correct-horse-battery".to_owned(), true),
            ("bearer correct-horse-battery".to_owned(), true),
            (basic("anyone:correct-horse-battery"), true),
            (basic(":correct-horse-battery"), true),
            ("Bearer".to_owned(), false),
            ("Bearer wrong".to_owned(), false),
            (basic("correct-horse-battery"), false),
            (basic("correct-horse-battery:x"), false),
            ("Basic !!!".to_owned(), false),
            ("correct-horse-battery".to_owned(), false),
            (String::new(), false),
        ] {
            let is_let_in = with_token(&config, &with(&value), AdminRight::Read).is_ok();
            assert_eq!(is_let_in, good, "{value:?}");
        }
        assert!(with_token(&config, &HeaderMap::new(), AdminRight::Read).is_err());
    }

    #[test]
    fn each_token_may_do_what_it_says_and_nothing_else() {
        use AdminRight::{Change, Ingest, Read};
        // SHA-256 of `one` and `two`.
        let config = config(
            "admin_token: correct-horse-battery
admin_tokens:
  - id: one
    sha256: 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed
    may: [read, change]
  - id: two
    sha256: 3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3
    may: [ingest]",
        );
        for (token, rights) in [
            ("one", &[Read, Change][..]),
            ("two", &[Ingest]),
            ("correct-horse-battery", &[Read]),
            ("three", &[]),
        ] {
            for right in [Read, Ingest, Change] {
                let outcome = with_token(&config, &with(&format!("Bearer {token}")), right);
                assert_eq!(outcome.is_ok(), rights.contains(&right), "{token} {right:?}");
                let is_unknown = matches!(outcome, Err(ApiError::Unauthorised));
                assert_eq!(is_unknown, rights.is_empty(), "{token} {right:?}");
            }
        }
    }

    #[test]
    fn a_page_of_another_origin_is_foreign_and_a_program_is_not() {
        for (headers, foreign) in [
            (&[][..], false),
            (&[("origin", "http://localhost:9464")], false),
            (&[("origin", "https://LOCALHOST:9464")], false),
            (&[("sec-fetch-site", "same-origin"), ("origin", "http://localhost:9464")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("origin", "http://localhost:3000")], true),
            (&[("origin", "http://evil.example")], true),
            (&[("origin", "http://localhost:9464.evil.example")], true),
            (&[("origin", "null")], true),
            (&[("origin", "")], true),
            (&[("sec-fetch-site", "cross-site")], true),
            (&[("sec-fetch-site", "same-site")], true),
            (&[("origin", "http://localhost:9464"), ("origin", "http://evil.example")], true),
        ] {
            let mut all = HeaderMap::new();
            all.insert("host", HeaderValue::from_static("localhost:9464"));
            for (name, value) in headers {
                all.append(*name, HeaderValue::from_static(value));
            }
            assert_eq!(is_foreign(&Uri::from_static("/"), &all), foreign, "{headers:?}");
        }
    }

    #[test]
    fn only_names_of_this_machine_are_local() {
        for (host, local) in [
            ("localhost", true),
            ("LOCALHOST:9464", true),
            ("taximeter.localhost:9464", true),
            ("127.0.0.1:9464", true),
            ("10.1.2.3", true),
            ("[::1]:9464", true),
            ("[::1]", true),
            ("evil.example", false),
            ("localhost.evil.example:9464", false),
            ("127.0.0.1.evil.example", false),
            ("notlocalhost", false),
            ("", false),
        ] {
            assert_eq!(is_local(&HeaderValue::from_str(host).unwrap()), local, "{host}");
        }
    }
}
