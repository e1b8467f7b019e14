//! AWS Bedrock: `[GEOGRAPHY.]VENDOR.MODEL[-DATE][-vN[:M]]`, ARNs of models and inference profiles,
//! and `REGION/…` in price lists.

use std::borrow::Cow;

use super::parts::{Kind, Name, Region, before, behind};
use super::tail;
use crate::rule::Rule;

/// Geographies of inference profiles. Others have two letters, `us`, `eu`, `jp`, or stand before a
/// vendor.
const GEOGRAPHIES: [&str; 3] = ["global", "apac", "us-gov"];

/// The vendor with a number in its name.
const NUMBERED_VENDOR: &str = "ai21";

/// The geography and the regions with the prices of a name without one.
const BASE: [&str; 5] = ["global", "us-east-1", "us-east-2", "us-west-1", "us-west-2"];

/// Ways to ask for a model that LiteLLM writes before its name.
const WAYS: [&str; 3] = ["invoke/", "converse/", "converse_like/"];

pub(super) fn read(name: Name<'_>) -> Name<'_> {
    let Some(text) = name.borrowed() else { return name };
    let model = WAYS.iter().find_map(|way| behind(text, way)).unwrap_or(text);
    if behind(model, "arn:").is_some() {
        return match of_arn(model) {
            Some(model) => parted(name.spelled_as(model, Rule::Path), 0),
            None => Name { kind: Kind::Deployment, ..name },
        };
    }
    parted(name, text.len().saturating_sub(model.len()))
}

/// The model that an ARN names, with the region of the ARN where that serves it. `None` for what is
/// a customer's own: an application inference profile, provisioned throughput, a custom model.
fn of_arn(arn: &str) -> Option<Cow<'_, str>> {
    let mut fields = arn.splitn(6, ':').skip(3);
    let (region, _account, resource) = (fields.next()?, fields.next()?, fields.next()?);
    let (kind, id) = resource.split_once('/')?;
    match kind.to_ascii_lowercase().as_str() {
        "foundation-model" if region.is_empty() => Some(id.into()),
        "foundation-model" => Some(format!("{region}/{id}").into()),
        // One that AWS defines names its geography and model.
        "inference-profile" if geography(id).is_some() => Some(id.into()),
        _ => None,
    }
}

/// The parts of a name behind a way of so many bytes.
fn parted(mut name: Name<'_>, way: usize) -> Name<'_> {
    let text = name.text.clone();
    let mut rest = text.get(way..).unwrap_or_default();
    let start = |rest: &str| text.len().saturating_sub(rest.len());
    if way > 0 {
        name.heads.cut(way, Rule::Path);
    }
    while let Some((word, behind)) = region(rest).or_else(|| geography(rest)) {
        let word = word.to_ascii_lowercase();
        let is_base = BASE.contains(&word.as_str());
        name.region = Some(Region { word, is_base });
        name.heads.cut(start(behind), Rule::Region);
        rest = behind;
    }
    if let Some((vendor, model)) = rest.split_once('.')
        && vendor.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && !model.is_empty()
    {
        name.heads.cut(start(model), Rule::Vendor);
    }
    with_versions(name, &text)
}

/// A region of AWS before a `/`.
fn region(text: &str) -> Option<(&str, &str)> {
    let (word, rest) = text.split_once('/')?;
    let mut parts = word.split('-');
    let (land, number) = (parts.next()?, parts.next_back()?);
    let fits = land.len() == 2
        && parts.next().is_some()
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && number.len() == 1
        && number.bytes().all(|byte| byte.is_ascii_digit());
    fits.then_some((word, rest))
}

/// A geography before a `.`.
fn geography(text: &str) -> Option<(&str, &str)> {
    let (word, rest) = text.split_once('.')?;
    let is_known = GEOGRAPHIES.iter().any(|known| word.eq_ignore_ascii_case(known));
    let is_word = word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    // A geography that is new must not be taken for a vendor, which costs nothing to leave out.
    let precedes_vendor = || rest.split_once('.').is_some_and(|(vendor, _)| is_vendor(vendor));
    let fits = is_known || is_word && (word.len() == 2 || precedes_vendor());
    (fits && !rest.is_empty()).then_some((word, rest))
}

fn is_vendor(word: &str) -> bool {
    let is_word = word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    is_word || word.eq_ignore_ascii_case(NUMBERED_VENDOR)
}

/// `-DATE-vN:M`, `-v1:0`, `-v1`, `-1:0` and `:0` can be left out. Of other versions only a `:0` can:
/// `titan-embed-text-v2` is another model than `-v1`.
fn with_versions<'a>(mut name: Name<'a>, text: &str) -> Name<'a> {
    // `:200k` behind the version: a model with provisioned throughput.
    if text.matches(':').count() > 1 {
        return Name { kind: Kind::Variant, ..name };
    }
    let mut model = text;
    if let Some(version) = model.strip_suffix(":0") {
        name.tails.cut(version.len(), Rule::Version);
        model = version;
    }
    let numbered = before(model, "-v1");
    let revised = model.strip_suffix("-1").filter(|_| model.len() != text.len());
    if let Some(unversioned) = dated(model).or(numbered).or(revised) {
        name.tails.cut(unversioned.len(), Rule::Version);
        model = unversioned;
    }
    if let Some(day) = dateless(model) {
        name.tails.cut(day.len(), Rule::Date);
    }
    name
}

/// `…-DATE` of `…-DATE-vN` and `…-DATE-vN:M`.
fn dated(text: &str) -> Option<&str> {
    let (model, version) = text.rsplit_once('-')?;
    let version = behind(version, "v")?;
    let is_version =
        !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    (is_version && dateless(model).is_some()).then_some(model)
}

fn dateless(text: &str) -> Option<&str> {
    let (model, day) = text.rsplit_once('@').unwrap_or_default();
    match tail::is_date(day, "", "") && !model.is_empty() {
        true => Some(model),
        false => tail::without_date(text),
    }
}
