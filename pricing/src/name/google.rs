//! Google: `models/M` of the Gemini API, `publishers/P/models/M` and `M@VERSION` of Vertex AI.

use std::borrow::Cow;

use super::parts::{Kind, Name, Region, behind};
use super::platform::Platform;
use super::tail;
use crate::rule::Rule;

const MODELS: &str = "models/";
const PUBLISHERS: &str = "publishers/";

/// The location with the prices of a name without one.
const GLOBAL: &str = "global";

/// Versions that stand for the one that is served without a version.
const DEFAULTS: [&str; 2] = ["@default", "@latest"];

/// A name of the Gemini API.
pub(super) fn read_gemini<'a>(name: Name<'a>, platform: Platform) -> Name<'a> {
    let Some(text) = name.borrowed() else { return name };
    if behind(text, "tunedModels/").is_some() {
        return Name { kind: Kind::Deployment, ..name };
    }
    let shared = behind(text, "publishers/google/").unwrap_or(text);
    match behind(shared, MODELS) {
        Some(model) => tail::read(name.spelled_as(model.into(), Rule::Path), platform),
        None => tail::read(name, platform),
    }
}

/// A name of Vertex AI.
pub(super) fn read_vertex(name: Name<'_>) -> Name<'_> {
    let Some(text) = name.borrowed() else { return name };
    let (resource, region) = located(text);
    let name = Name { region, ..name };
    let name = match published(resource) {
        Some(model) => name.spelled_as(Cow::Owned(model), Rule::Path),
        None if resource.len() != text.len() => return Name { kind: Kind::Deployment, ..name },
        None => match behind(text, MODELS) {
            Some(model) => name.spelled_as(model.into(), Rule::Path),
            None => name,
        },
    };
    let vendor = name.text.find('/');
    let mut name = with_versions(name);
    // The location is not a part of what is left, so every form lacks it.
    if name.region.is_some() {
        name.spelled = name.spelled.with(Rule::Region);
    }
    if let Some(vendor) = vendor {
        name.heads.cut(vendor.saturating_add(1), Rule::Vendor);
    }
    name
}

/// The part behind `projects/P/locations/L/`, and the location.
fn located(text: &str) -> (&str, Option<Region>) {
    let parts = || {
        let (_, rest) = behind(text, "projects/")?.split_once('/')?;
        let (location, resource) = behind(rest, "locations/")?.split_once('/')?;
        let word = location.to_ascii_lowercase();
        let is_base = word == GLOBAL;
        Some((resource, Region { word, is_base }))
    };
    parts().map_or((text, None), |(resource, region)| (resource, Some(region)))
}

/// `P/M` of `publishers/P/models/M`.
fn published(resource: &str) -> Option<String> {
    let (publisher, rest) = behind(resource, PUBLISHERS)?.split_once('/')?;
    let model = behind(rest, MODELS).filter(|model| !model.is_empty())?;
    Some(format!("{publisher}/{model}"))
}

fn with_versions(mut name: Name<'_>) -> Name<'_> {
    let text = &name.text;
    let shorter = |tail: &str| text.len().saturating_sub(tail.len());
    let version = text.rfind('@').and_then(|at| text.get(at..)).unwrap_or_default();
    let is_revision =
        version.len() == "@001".len() && version.bytes().skip(1).all(|byte| byte.is_ascii_digit());
    if is_revision || DEFAULTS.iter().any(|word| version.eq_ignore_ascii_case(word)) {
        name.tails.cut(shorter(version), Rule::Version);
    } else if tail::is_date(version, "@", "") {
        name.tails.cut(shorter(version), Rule::Date);
    } else if let Some(model) = tail::without_date(text) {
        name.tails.cut(model.len(), Rule::Date);
    }
    name
}
