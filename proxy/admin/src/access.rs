//! Access control of the admin address. A client needs the admin token or a client certificate. If
//! the configuration has neither, the address is on loopback and only this machine may ask.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use taximeter_config::{Config, Secret};
use taximeter_gateway::gateway::Gateway;
use taximeter_net::serving::Caller;

use super::console;
use super::problem::ApiError;

/// Passes a request on if the client has the token or a certificate. Probes and the console's own
/// files need neither.
///
/// Without a token and a client CA, the address is on loopback. A web page in a browser on this
/// machine can still reach it through a DNS name that resolves to loopback. So only an IP address
/// or a name for this machine is allowed in `host`.
pub(super) async fn authorise(
    State(gateway): State<Arc<Gateway>>,
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let headers = request.headers();
    let Config { admin_token, admin_tls, .. } = &gateway.config;
    match admin_token {
        _ if is_open(request.uri().path()) || caller.is_certified => {}
        Some(token) if shows(headers, token) => {}
        Some(_) => return Err(ApiError::Unauthorised),
        None if admin_tls.as_ref().is_some_and(|tls| tls.client_ca.is_some()) => {
            return Err(ApiError::Uncertified);
        }
        None => match headers.get(header::HOST) {
            Some(host) if !is_local(host) => {
                let host = String::from_utf8_lossy(host.as_bytes()).into_owned();
                return Err(ApiError::Misdirected(host));
            }
            _ => {}
        },
    }
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

/// Whether a path says nothing about the gateway but that it runs.
fn is_open(path: &str) -> bool {
    matches!(path, "/healthz" | "/readyz") || path.starts_with(console::FILES)
}

/// Whether the headers have the token: as a bearer token, or as the password of any user.
fn shows(headers: &HeaderMap, token: &Secret) -> bool {
    let Some(shown) = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes) else {
        return false;
    };
    let Some((scheme, shown)) =
        shown.split_at_checked(shown.iter().take_while(|b| **b != b' ').count())
    else {
        return false;
    };
    let shown = shown.trim_ascii();
    if scheme.eq_ignore_ascii_case(b"Bearer") {
        return token.matches(shown);
    }
    scheme.eq_ignore_ascii_case(b"Basic")
        && BASE64_STANDARD.decode(shown).is_ok_and(|pair| {
            pair.iter()
                .position(|byte| *byte == b':')
                .and_then(|colon| pair.get(colon + 1..))
                .is_some_and(|password| token.matches(password))
        })
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

    #[test]
    fn the_token_is_a_bearers_or_a_password() {
        let config = "
upstreams: [{name: e, url: \"http://127.0.0.1:1\"}]
admin_token: correct-horse-battery
";
        let none = |_: &str| None;
        let no_file = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
        let config = taximeter_config::Config::from_yaml(config, "c", &none, &no_file).unwrap();
        let token = config.admin_token.unwrap();
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
            let value = HeaderValue::from_str(&value).unwrap();
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value.clone())]);
            assert_eq!(shows(&headers, &token), good, "{value:?}");
        }
        assert!(!shows(&HeaderMap::new(), &token));
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
