//! The URL of metrics.

use std::borrow::Cow;

use crate::fleet::ScrapeUrl;
use crate::literal;
use crate::mistake::Invalid;
use crate::model::UpstreamUrl;
use crate::value::Value;

/// The path of metrics where a URL has none.
const METRICS: &str = "/metrics";

impl ScrapeUrl {
    /// The metrics of an engine at this address.
    #[must_use]
    pub fn of_engine(url: &UpstreamUrl) -> Self {
        let UpstreamUrl { tls, host, port, prefix } = url;
        let path = format!("{prefix}{METRICS}");
        Self { tls: *tls, host: host.clone(), port: *port, path }
    }

    /// Whose address it is; without the path.
    #[must_use]
    pub fn origin(&self) -> UpstreamUrl {
        let Self { tls, host, port, .. } = self;
        UpstreamUrl { tls: *tls, host: host.clone(), port: *port, prefix: String::new() }
    }

    /// Whether `url` is at the same address, so that its credential may go there.
    #[must_use]
    pub fn is_at(&self, url: &UpstreamUrl) -> bool {
        (self.tls, &self.host, self.port) == (url.tls, &url.host, url.port)
    }
}

impl std::fmt::Display for ScrapeUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.origin().authority(), self.path)
    }
}

impl Value for ScrapeUrl {
    const EXPECTED: &'static str = "a URL such as http://dcgm:9400/metrics";

    fn parse(text: &str) -> Result<Self, Invalid> {
        let scheme = text.find("://").map_or(0, |at| at + "://".len());
        let behind = text.get(scheme..).unwrap_or_default();
        let end = behind.find(['/', '?']).map_or(text.len(), |at| scheme + at);
        let (host, path) = text.split_at(end);
        let UpstreamUrl { tls, host, port, .. } = UpstreamUrl::parse(host)?;
        if !path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#') {
            let problem = "has a path with characters that a URL cannot have";
            return Err(Invalid::new(problem, Self::EXPECTED));
        }
        let path = match path {
            "" | "/" => METRICS.to_owned(),
            query if query.starts_with('?') => format!("{METRICS}{query}"),
            path => path.to_owned(),
        };
        Ok(Self { tls, host, port, path })
    }

    fn literal<'t>(text: &'t str, before: &str, _behind: &str) -> Cow<'t, str> {
        literal::in_url(text, before)
    }
}
