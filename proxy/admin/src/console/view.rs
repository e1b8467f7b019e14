//! What all pages have in their address: the time zone. Links to other pages keep it.
//!
//! Every link is relative to the page it is on, so that a proxy may serve the console under a prefix of
//! its own.

use std::fmt::Write as _;

use axum::extract::{FromRequestParts, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use jiff::Timestamp;
use maud::{Markup, html};
use serde::de::DeserializeOwned;
use taximeter_billing::Zone;
use taximeter_config::Config;
use utoipa::IntoParams;

use crate::problem::ApiError;
use crate::query::{self, Params};
use crate::state::InForce;

/// The parameter that every page has.
const ZONE: &str = "zone";

/// The parameters of a page. A form also sends its empty fields. They count as absent.
pub(super) struct PageParams<P> {
    pub(super) asked: P,
    pub(super) view: View,
}

/// The address of a page: its path, its parameters and its time zone.
pub(super) struct View {
    /// The parameters of the request, without the time zone.
    pub(super) given: Vec<(String, String)>,
    path: String,
    zone: Zone,
    /// Whether the request names a time zone. If not, `billing.zone` of the configuration applies.
    has_own_zone: bool,
}

impl<P: DeserializeOwned + IntoParams> FromRequestParts<InForce> for PageParams<P> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, current: &InForce) -> Result<Self, ApiError> {
        let view = View::read(parts, &current.0.get().config)?;
        let Params(asked) = Params::from_request_parts(parts, current).await?;
        Ok(Self { asked, view })
    }
}

impl View {
    /// Removes the time zone and all empty parameters from a request.
    ///
    /// Errors: the time zone is not valid, or comes twice.
    fn read(parts: &mut Parts, config: &Config) -> Result<Self, ApiError> {
        let Query(given) = Query::<Vec<(String, String)>>::try_from_uri(&parts.uri)
            .unwrap_or_else(|_| Query(Vec::new()));
        let filled = given.into_iter().filter(|(_, value)| !value.is_empty());
        let (zones, given): (Vec<_>, Vec<_>) = filled.partition(|(name, _)| name == ZONE);
        if zones.len() > 1 {
            return Err(ApiError::Repeated { name: ZONE.to_owned() });
        }
        let own = zones.first().map(|(_, zone)| zone.as_str());
        let (zone, has_own_zone) = (query::zone(own, config)?, own.is_some());
        let path = parts.uri.path().to_owned();
        let pairs = given.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        if let Ok(uri) = link(&path, pairs).parse::<Uri>() {
            parts.uri = uri;
        }
        Ok(Self { given, path, zone, has_own_zone })
    }

    /// A link to the page at `path` with these parameters, in this time zone.
    pub(super) fn to(&self, path: &str, parameters: &[(&str, &str)]) -> String {
        let parameters = parameters.iter().copied();
        self.plain(path, parameters.chain(self.own_zone()))
    }

    /// A link to what is at `path`, with these parameters and no others.
    pub(super) fn plain<'a>(
        &self,
        path: &str,
        parameters: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> String {
        link(&self.root().to(path), parameters)
    }

    /// The way to the root of the admin address from this page.
    pub(super) fn root(&self) -> Root {
        Root::from(&self.path)
    }

    /// A link to this page with one parameter changed, or removed.
    pub(super) fn with(&self, name: &str, value: Option<&str>) -> String {
        let rest = self.given.iter().filter(|(other, _)| other != name);
        let pairs: Vec<_> = rest
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .chain(value.map(|value| (name, value)))
            .collect();
        self.to(&self.path, &pairs)
    }

    /// The page at `path`, for the same period and tenant as this page, split by `by`.
    pub(super) fn same_span(&self, path: &str, by: &str) -> String {
        let kept = |(name, _): &&(String, String)| {
            matches!(name.as_str(), "span" | "from" | "to" | "tenant")
        };
        let given = self.given.iter().filter(kept);
        let pairs = given.map(|(name, value)| (name.as_str(), value.as_str()));
        self.to(path, &pairs.chain([("by", by)]).collect::<Vec<_>>())
    }

    /// The time zone.
    pub(super) const fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The view of a request for `uri`.
    #[cfg(test)]
    pub(super) fn of(uri: &str) -> Self {
        let request = axum::http::Request::builder().uri(uri).body(()).unwrap();
        let (mut parts, ()) = request.into_parts();
        Self::read(&mut parts, &Config::zero("http://127.0.0.1:1").unwrap()).unwrap()
    }

    fn own_zone(&self) -> Option<(&'static str, &str)> {
        self.has_own_zone.then(|| (ZONE, self.zone.name()))
    }

    /// Its name.
    pub(super) fn zone_name(&self) -> &str {
        self.zone.name()
    }

    /// The hidden field that keeps the time zone when a form is sent.
    pub(super) fn keep_zone(&self) -> Markup {
        html! {
            @if let Some((name, zone)) = self.own_zone() {
                input type="hidden" name=(name) value=(zone);
            }
        }
    }

    /// A form that changes the time zone and nothing else.
    pub(super) fn zone_form(&self) -> Markup {
        html! {
            form.zone method="get" action=(self.root().to(&self.path)) {
                @for (name, value) in &self.given {
                    input type="hidden" name=(name) value=(value);
                }
                label for="zone" { "Time zone" }
                input #zone name=(ZONE) value=(self.zone.name()) list="zones" size="18"
                    autocomplete="off" spellcheck="false";
                datalist #zones {
                    @for zone in SUGGESTED { option value=(zone) {} }
                }
                button { "Set" }
            }
        }
    }

    /// A time, to the second.
    pub(super) fn time(&self, at: Timestamp) -> Markup {
        self.shown(at, "%Y-%m-%d %H:%M:%S")
    }

    /// A time, to the millisecond.
    pub(super) fn precise_time(&self, at: Timestamp) -> Markup {
        self.shown(at, "%Y-%m-%d %H:%M:%S.%3f")
    }

    fn shown(&self, at: Timestamp, form: &str) -> Markup {
        html! { time datetime=(at) { (self.text(at, form)) } }
    }

    /// A time as `strftime` writes it.
    pub(super) fn text(&self, at: Timestamp, form: &str) -> String {
        self.zone.civil(at).strftime(form).to_string()
    }
}

/// Time zones that the form suggests.
const SUGGESTED: [&str; 14] = [
    "UTC",
    "America/Los_Angeles",
    "America/Chicago",
    "America/New_York",
    "America/Sao_Paulo",
    "Europe/London",
    "Europe/Berlin",
    "Europe/Helsinki",
    "Asia/Dubai",
    "Asia/Kolkata",
    "Asia/Singapore",
    "Asia/Shanghai",
    "Asia/Tokyo",
    "Australia/Sydney",
];

/// The way from a page to the root of the admin address, as `./` or some `../`.
#[derive(Debug)]
pub(super) struct Root(String);

impl Root {
    /// From the page at `path`.
    pub(super) fn from(path: &str) -> Self {
        let folders = path.bytes().filter(|byte| *byte == b'/').count().saturating_sub(1);
        Self(if folders == 0 { "./".to_owned() } else { "../".repeat(folders) })
    }

    /// The way on to `path`, which begins at the root.
    pub(super) fn to(&self, path: &str) -> String {
        format!("{}{}", self.0, path.trim_start_matches('/'))
    }
}

/// A path with a query.
fn link<'a>(path: &str, parameters: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut link = path.to_owned();
    for (index, (name, value)) in parameters.into_iter().enumerate() {
        link.push(if index == 0 { '?' } else { '&' });
        encode(&mut link, name);
        link.push('=');
        encode(&mut link, value);
    }
    link
}

/// One segment of a path.
pub(super) fn segment(text: &str) -> String {
    let mut out = String::new();
    encode(&mut out, text);
    out
}

/// Percent-encoding of all that RFC 3986 reserves.
fn encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, IntoParams)]
    struct TestParams {
        tenant: Option<String>,
        model: Option<String>,
    }

    async fn chosen(uri: &str) -> Result<PageParams<TestParams>, ApiError> {
        let (mut parts, ()) = Request::builder().uri(uri).body(()).unwrap().into_parts();
        let view = View::read(&mut parts, &Config::zero("http://127.0.0.1:1").unwrap())?;
        let Params(asked) = Params::from_request_parts(&mut parts, &()).await?;
        Ok(PageParams { asked, view })
    }

    #[tokio::test]
    async fn empty_fields_are_not_given_and_links_keep_the_zone() {
        let chosen = chosen("/p?tenant=a%26b&model=&zone=Europe%2FBerlin").await.unwrap();
        assert_eq!((chosen.asked.tenant.as_deref(), chosen.asked.model), (Some("a&b"), None));
        let view = chosen.view;
        assert_eq!(
            view.with("model", Some("ü")),
            "./p?tenant=a%26b&model=%C3%BC&zone=Europe%2FBerlin"
        );
        assert_eq!(view.with("tenant", None), "./p?zone=Europe%2FBerlin");
        let usage = view.same_span("/usage", "label:a,b");
        assert_eq!(usage, "./usage?tenant=a%26b&by=label%3Aa%2Cb&zone=Europe%2FBerlin");
        assert_eq!(view.text("2026-07-01T00:00:00Z".parse().unwrap(), "%H:%M"), "02:00");
    }

    #[tokio::test]
    async fn what_is_no_parameter_or_zone_is_refused() {
        assert!(matches!(chosen("/p?colour=red").await, Err(ApiError::Unknown { .. })));
        for zone in ["zone=Mars", "zone=../../etc/passwd", "zone=%00"] {
            let refused = chosen(&format!("/p?{zone}")).await;
            assert!(matches!(refused, Err(ApiError::Parameter { .. })), "{zone}");
        }
        let twice = chosen("/p?zone=UTC&zone=Asia%2FTokyo").await;
        assert!(matches!(twice, Err(ApiError::Repeated { .. })));
    }

    #[test]
    fn links_lead_up_to_the_root_and_down_again() {
        for (page, to, link) in [
            ("/", "/", "./"),
            ("/", "/live", "./live"),
            ("/live", "/console/icon.svg", "./console/icon.svg"),
            ("/requests/id", "/requests", "../requests"),
            ("/requests/id", "/", "../"),
            ("/no/such/page", "/usage", "../../usage"),
            ("/no/such/", "/usage", "../../usage"),
        ] {
            assert_eq!(Root::from(page).to(to), link, "{page} {to}");
        }
    }
}
