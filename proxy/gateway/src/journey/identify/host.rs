//! Finds out whether a request is for a name of somebody else's. A web page can give its own name
//! the address of this machine (DNS rebinding), and is then of the same origin as the gateway.

use std::net::IpAddr;

use http::header::HOST;
use http::request::Parts;
use taximeter_config::{Config, UnknownCaller, is_public_host};

/// Whether whoever asks has come by an address that only this machine reaches, and need not show a
/// key. With TLS a browser checks the name itself.
pub(super) fn is_open_to(config: &Config, asker: IpAddr) -> bool {
    let mut addresses = config.listen.iter().map(|address| address.ip().to_canonical());
    asker.to_canonical().is_loopback()
        && !config.listen.iter().any(|address| address.ip().is_unspecified())
        && addresses.any(|address| address.is_loopback())
        && config.tls.is_none()
        && config.tenants.unknown != UnknownCaller::Refuse
}

/// The host that a request is for, if the name may be anybody's. An address is nobody's name.
pub(super) fn foreign(head: &Parts) -> Option<String> {
    let host = match head.uri.authority() {
        Some(authority) => authority.as_str().into(),
        None => String::from_utf8_lossy(head.headers.get(HOST)?.as_bytes()),
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => &host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    // No name ends with a number: `127.1` is an address too.
    let last = bare.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let is_number = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = !is_number && bare.parse::<IpAddr>().is_err();
    (is_name && is_public_host(&bare.to_ascii_lowercase())).then(|| host.clone().into_owned())
}

#[cfg(test)]
mod tests {
    use taximeter_config::Addresses;

    use super::*;

    #[test]
    fn a_name_that_may_be_anybodys_is_foreign() {
        let of = |host: &str| {
            let request = http::Request::builder().uri("/").header("host", host);
            foreign(&request.body(()).unwrap().into_parts().0)
        };
        for host in [
            "evil.example",
            "evil.example:8080",
            "Evil.Example.",
            "localhost.evil.example:8080",
            "127.0.0.1.evil.example",
            "evil.example@localhost",
            "localhost@evil.example",
            "evil.example:80:80x",
        ] {
            assert_eq!(of(host).as_deref(), Some(host));
        }
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "a.localhost:8080",
            "127.0.0.1:8080",
            "203.0.113.7",
            "127.1:8080",
            "127.0.0.1.",
            "[::1]:8080",
            "[::1]",
            "gateway",
            "host.docker.internal:8080",
            "taximeter.billing.svc:8080",
            "",
        ] {
            assert_eq!(of(host), None, "{host}");
        }
        let request = |uri: &str| http::Request::builder().uri(uri).body(()).unwrap();
        assert_eq!(foreign(&request("/").into_parts().0), None);
        let of_http2 = request("http://evil.example:8080/v1/models");
        assert_eq!(foreign(&of_http2.into_parts().0).as_deref(), Some("evil.example:8080"));
    }

    #[test]
    fn only_an_open_address_of_this_machine_looks_at_names() {
        let mut config = Config::zero("http://127.0.0.1:1").unwrap();
        let here: IpAddr = "127.0.0.1".parse().unwrap();
        let there: IpAddr = "10.0.0.7".parse().unwrap();
        assert!(is_open_to(&config, here));
        config.tenants.unknown = UnknownCaller::Refuse;
        assert!(!is_open_to(&config, here));
        config.tenants.unknown = UnknownCaller::Tenant("a".to_owned());
        for (listen, to_here) in [
            (&["0.0.0.0:8080"][..], false),
            (&["[::]:8080"], false),
            (&["10.0.0.5:8080"], false),
            (&["127.0.0.1:8080", "0.0.0.0:9090"], false),
            (&["[::1]:8080"], true),
            (&["127.1.2.3:1"], true),
            (&["[::ffff:127.0.0.1]:1"], true),
            (&["10.0.0.5:8080", "127.0.0.1:8080"], true),
        ] {
            let addresses: Vec<_> = listen.iter().map(|text| text.parse().unwrap()).collect();
            config.listen = Addresses::of(&addresses).unwrap();
            assert_eq!(is_open_to(&config, here), to_here, "{listen:?}");
            assert!(!is_open_to(&config, there), "{listen:?}");
        }
        let file = || "a.pem".into();
        config.tls = Some(taximeter_config::Tls { cert: file(), key: file(), client_ca: None });
        assert!(!is_open_to(&config, here));
    }
}
