//! The URL of an upstream, and the patterns of the models that it serves.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use taximeter_meter::Dialect;

use crate::forward::{Boundary, Forward, ForwardCredential};
use crate::mistake::Invalid;
use crate::model::{ModelPattern, Upstream, UpstreamUrl};

/// The longest URL or model pattern, in bytes.
const BYTES_MAX: usize = 1024;

/// Last labels of names that only one machine, network or cluster knows.
const PRIVATE_LABELS: [&str; 6] = ["localhost", "local", "internal", "svc", "lan", "test"];

impl Upstream {
    /// Whether this upstream serves `request_model`.
    #[must_use]
    pub fn serves(&self, request_model: &str) -> bool {
        self.models.iter().any(|pattern| pattern.matches(request_model))
    }

    /// Whether the client's own credential goes on to it.
    #[must_use]
    pub fn takes_clients_credential(&self) -> bool {
        self.credential.is_none() && self.forward_credential != ForwardCredential::Off
    }

    /// Says of the name of a header, in lower case, whether it stays behind: as this upstream has it,
    /// or else as `general` does.
    pub fn drops<'a>(&'a self, general: &'a Forward) -> impl Fn(&str) -> bool + 'a {
        let has_credential = self.credential.is_some();
        let boundary =
            Boundary { has_credential, is_public: has_credential && self.url.is_public() };
        let forward = self.forward.as_ref().unwrap_or(general);
        move |name| forward.drops(name, boundary)
    }

    /// Whether a credential crosses networks of others as it is: without TLS, to a public host.
    #[must_use]
    pub fn shows_credential_to_everyone(&self) -> bool {
        let is_sent = self.credential.is_some() || self.takes_clients_credential();
        is_sent && !self.url.tls && self.url.is_public()
    }

    /// Whether this upstream is meant for every model, so that a request may leave the choice to it.
    #[must_use]
    pub fn serves_every_model(&self) -> bool {
        self.models.iter().any(ModelPattern::is_any)
    }
}

impl ModelPattern {
    /// A pattern. Each `*` stands for any run of characters.
    ///
    /// Errors: empty, longer than 1024 bytes, or with control characters.
    pub fn new(pattern: &str) -> Result<Self, Invalid> {
        if pattern.is_empty() || pattern.len() > BYTES_MAX || pattern.contains(char::is_control) {
            return Err(Invalid::new(
                "is not a model name",
                "a model name, or `*` for every model",
            ));
        }
        Ok(Self(pattern.to_owned()))
    }

    /// The pattern that matches every model.
    pub(crate) fn any() -> Self {
        Self("*".to_owned())
    }

    /// The one model that it matches; `None` if it matches several.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        (!self.0.contains('*')).then_some(&self.0)
    }

    /// Whether the pattern matches every model.
    fn is_any(&self) -> bool {
        self.0.bytes().all(|byte| byte == b'*')
    }

    /// Whether `model` matches. Takes time linear in both lengths.
    #[must_use]
    pub fn matches(&self, model: &str) -> bool {
        let Some((first, others)) = self.0.split_once('*') else { return self.0 == model };
        let (middle, last) = others.rsplit_once('*').unwrap_or(("", others));
        let Some(mut rest) = model.strip_prefix(first) else { return false };
        // The leftmost match leaves the most text for the pieces behind it, so no other match needs
        // a try.
        for piece in middle.split('*') {
            match rest.split_once(piece) {
                Some((_, behind)) => rest = behind,
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

impl UpstreamUrl {
    /// `host[:port]` for the `host` header, without the scheme's default port.
    #[must_use]
    pub fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }

    /// The dialect of the hosted API at this host; `auto` if it is none that is known.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        Dialect::of_host(&self.host).unwrap_or(Dialect::Auto)
    }

    /// Whether the host may be anybody's. An address in a private network, a name without a dot and
    /// the names that machines and clusters use for themselves are not.
    #[must_use]
    pub fn is_public(&self) -> bool {
        is_public_host(&self.host)
    }

    /// Whether the host is the machine that asks.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => matches!(self.host.strip_suffix('.').unwrap_or(&self.host), "localhost"),
        }
    }

    /// Parses `http://host[:port][/prefix]` or `https://…`.
    ///
    /// Errors: another scheme, a missing host, an invalid port, credentials, a query, a fragment,
    /// or a path that ends with a route.
    pub fn parse(url: &str) -> Result<Self, Invalid> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| Invalid::new("has no scheme", "http://… or https://…"))?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(Invalid::new("has an unsupported scheme", "http://… or https://…")),
        };
        if url.len() > BYTES_MAX
            || !rest.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
        {
            return Err(Invalid::new(
                "has characters that a URL cannot have",
                "plain ASCII, at most 1024 bytes",
            ));
        }
        if rest.contains(['?', '#']) {
            return Err(Invalid::new("has a query or a fragment", "a URL that ends with its path"));
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err(Invalid::new(
                "has credentials in it",
                "the secret in the key `credential`",
            )
            .secret());
        }
        let (host, port) = host_and_port(authority)?;
        let port = match port {
            None if tls => 443,
            None => 80,
            Some(port) => port_number(port)?,
        };
        Ok(Self { tls, host, port, prefix: prefix(path)? })
    }
}

/// Whether a host may be anybody's: a name in lower case, or an address without brackets. See
/// [`UpstreamUrl::is_public`].
#[must_use]
pub fn is_public_host(host: &str) -> bool {
    match host.parse() {
        Ok(IpAddr::V4(address)) => is_public_v4(address),
        Ok(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
            Some(address) => is_public_v4(address),
            None => {
                !(address.is_loopback()
                    || address.is_unspecified()
                    || address.is_unique_local()
                    || address.is_unicast_link_local())
            }
        },
        Err(_) => {
            let name = host.strip_suffix('.').unwrap_or(host);
            let last = name.rsplit_once('.').map(|(_, last)| last);
            last.is_some_and(|last| !PRIVATE_LABELS.contains(&last))
                && !name.ends_with(".home.arpa")
        }
    }
}

/// Whether an address is outside of the networks that are private, local or shared with a carrier.
const fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, ..] = address.octets();
    let is_shared = first == 100 && second & 0xc0 == 64;
    !(address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_unspecified()
        || is_shared)
}

/// The parts of `host[:port]`, with an IPv6 address in brackets.
pub(crate) fn host_and_port(authority: &str) -> Result<(String, Option<&str>), Invalid> {
    let invalid =
        || Invalid::new("has no valid host", "a name, an IPv4 address, or an IPv6 address in [ ]");
    if let Some(bracketed) = authority.strip_prefix('[') {
        let (host, behind) = bracketed.split_once(']').ok_or_else(invalid)?;
        let address: Ipv6Addr = host.parse().map_err(|_| invalid())?;
        let port = match behind {
            "" => None,
            _ => Some(behind.strip_prefix(':').ok_or_else(invalid)?),
        };
        return Ok((address.to_string(), port));
    }
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    if !host.strip_suffix('.').unwrap_or(host).split('.').all(label) {
        return Err(invalid());
    }
    Ok((host.to_ascii_lowercase(), port))
}

/// A port from 1 on.
pub(crate) fn port_number(port: &str) -> Result<u16, Invalid> {
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse() {
        Ok(number) if digits && number > 0 => Ok(number),
        _ => Err(Invalid::new("has no valid port", "a port from 1 to 65535")),
    }
}

/// The path in front of the routes, without a final `/v1`: routes have it.
fn prefix(path: &str) -> Result<String, Invalid> {
    const ROUTES: [&str; 4] = ["completions", "responses", "embeddings", "messages"];
    let path = path.trim_end_matches('/');
    let mut segments: Vec<&str> = path.split('/').filter(|_| !path.is_empty()).collect();
    if segments.iter().any(|segment| matches!(*segment, "" | "." | "..")) {
        return Err(Invalid::new("has an empty path segment, or `.` or `..`", "a plain path"));
    }
    if segments.last().is_some_and(|last| ROUTES.contains(last)) {
        return Err(Invalid::new(
            "ends with a route",
            "the part before the route, such as https://host/v1",
        ));
    }
    segments.pop_if(|last| *last == "v1");
    Ok(segments.iter().flat_map(|segment| ["/", segment]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(url: &str) -> (bool, String, u16, String) {
        let url = UpstreamUrl::parse(url).unwrap_or_else(|why| panic!("{url}: {why}"));
        (url.tls, url.host, url.port, url.prefix)
    }

    #[test]
    fn a_url_is_taken_apart() {
        let plain = |host: &str, port, prefix: &str| (false, host.into(), port, prefix.to_owned());
        assert_eq!(parts("http://localhost"), plain("localhost", 80, ""));
        assert_eq!(parts("http://127.0.0.1:8000/"), plain("127.0.0.1", 8000, ""));
        assert_eq!(parts("http://127.0.0.1:8000/v1"), plain("127.0.0.1", 8000, ""));
        assert_eq!(parts("HTTP://Host.example./a/v1//"), plain("host.example.", 80, "/a"));
        assert_eq!(parts("http://[::1]:11434/v1beta"), plain("::1", 11434, "/v1beta"));
        assert_eq!(parts("https://r.openai.azure.com/openai/v1").3, "/openai");
        assert_eq!(parts("https://api.openai.com/v1").2, 443);
    }

    #[test]
    fn the_machine_itself_is_told_from_others() {
        let is_loopback =
            |host: &str| UpstreamUrl::parse(&format!("http://{host}")).unwrap().is_loopback();
        for host in ["127.0.0.1", "127.9.9.9:80", "[::1]", "[::ffff:127.0.0.1]", "LOCALHOST"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["10.0.0.1", "localhost.example.com", "128.0.0.1", "[::2]", "0.0.0.0"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_host_that_may_be_anybodys_is_public() {
        let is_public =
            |host: &str| UpstreamUrl::parse(&format!("http://{host}")).unwrap().is_public();
        for host in [
            "api.openai.com",
            "gateway.example",
            "8.8.8.8",
            "172.32.0.1",
            "100.128.0.1",
            "[2001:db8::1]",
            "[::ffff:8.8.8.8]",
            "localhost.example.com",
            "vllm.models",
        ] {
            assert!(is_public(host), "{host}");
        }
        for host in [
            "localhost",
            "vllm",
            "a.localhost",
            "vllm.models.svc",
            "vllm.models.svc.cluster.local.",
            "host.docker.internal",
            "127.0.0.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.1.1",
            "169.254.1.1",
            "100.64.0.1",
            "[::1]",
            "[fd00::1]",
            "[fe80::1]",
            "[::ffff:10.0.0.1]",
        ] {
            assert!(!is_public(host), "{host}");
        }
    }

    #[test]
    fn only_stars_fit_every_model() {
        let is_any = |pattern: &str| ModelPattern::new(pattern).expect("a pattern").is_any();
        assert!(is_any("*") && is_any("**") && ModelPattern::any().is_any());
        for pattern in ["gpt-*", "*-mini", "*/*", "m"] {
            assert!(!is_any(pattern), "{pattern}");
        }
    }

    #[test]
    fn what_is_no_upstream_is_refused() {
        for url in [
            "",
            "http://",
            "127.0.0.1:8000",
            "ws://host",
            "http:///path",
            "http://host:0",
            "http://host:65536",
            "http://host:+1",
            "http://host:",
            "http://me:secret@host",
            "http://host/?a=b",
            "http://host#a",
            "http://ho st",
            "http://host\\a",
            "http://[::1",
            "http://[::1]x",
            "http://::1",
            "http://a..b",
            "http://host/a/../b",
            "http://host//a",
            "http://host/v1/chat/completions",
            "http://hôst",
            "http://host/\n",
        ] {
            assert!(UpstreamUrl::parse(url).is_err(), "{url:?}");
        }
    }

    #[test]
    fn a_star_is_any_run_of_characters() {
        let fits = |pattern: &str, model: &str| ModelPattern::new(pattern).unwrap().matches(model);
        assert!(fits("*", "") && fits("*", "org/model:tag"));
        assert!(fits("gpt-4o", "gpt-4o") && !fits("gpt-4o", "gpt-4o-mini"));
        assert!(fits("gpt-*", "gpt-") && !fits("gpt-*", "xgpt-4"));
        assert!(fits("*-embed-*", "a-embed-b") && !fits("*-embed-*", "a-embedb"));
        assert!(fits("a*a", "aa") && !fits("a*a", "a"));
        let name = |pattern| ModelPattern::new(pattern).unwrap().name().map(str::to_owned);
        assert_eq!((name("gpt-4o").as_deref(), name("gpt-*")), (Some("gpt-4o"), None));
        assert!(fits("a**b", "ab") && fits("*b*c", "abbcc") && !fits("*bc*bc", "abc"));
    }

    /// The definition, in exponential time.
    fn slow(pattern: &[u8], model: &[u8]) -> bool {
        match pattern.split_first() {
            None => model.is_empty(),
            Some((b'*', rest)) => (0..=model.len()).any(|skip| slow(rest, &model[skip..])),
            Some((c, rest)) => model.first() == Some(c) && slow(rest, &model[1..]),
        }
    }

    proptest! {
        #[test]
        fn matching_follows_the_definition(pattern in "[ab*]{1,8}", model in "[ab]{0,8}") {
            let fast = ModelPattern::new(&pattern).unwrap().matches(&model);
            prop_assert_eq!(fast, slow(pattern.as_bytes(), model.as_bytes()));
        }

        #[test]
        fn any_url_is_taken_apart_or_refused(url in "(https?://)?.*") {
            let _ = UpstreamUrl::parse(&url);
        }
    }
}
