//! Azure: `REGION/MODEL` in price lists, and `azureml://registries/R/models/M/versions/V` for models
//! of the catalogue.

use super::parts::{Name, Region, behind};
use super::platform::Platform;
use super::tail;
use crate::rule::Rule;

/// Regions that price lists write before a model. Other regions have two letters.
const REGIONS: [&str; 5] = ["global", "global-standard", "apac", "us-gov", "datazone"];

/// Regions with the prices of a name without one.
const BASE: [&str; 2] = ["global", "global-standard"];

pub(super) fn read<'a>(name: Name<'a>, platform: Platform) -> Name<'a> {
    let Some(text) = name.borrowed() else { return name };
    if let Some(model) = catalogued(text) {
        return tail::read(name.spelled_as(model.into(), Rule::Path), platform);
    }
    let Some((word, model)) = text.split_once('/').filter(|(word, _)| is_region(word)) else {
        return tail::read(name, platform);
    };
    let word = word.to_ascii_lowercase();
    let is_base = BASE.contains(&word.as_str());
    let name = Name { region: Some(Region { word, is_base }), ..name };
    if tail::is_tuned(model) {
        return tail::read(name.spelled_as(model.into(), Rule::Region), platform);
    }
    let mut name = tail::read(name, platform);
    name.heads.cut(text.len().saturating_sub(model.len()), Rule::Region);
    name
}

fn is_region(word: &str) -> bool {
    let is_known = REGIONS.iter().any(|region| word.eq_ignore_ascii_case(region));
    is_known || word.len() == 2 && word.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// The model of a resource of the catalogue.
fn catalogued(text: &str) -> Option<&str> {
    let (_, model) = behind(text, "azureml://")?.split_once("/models/")?;
    model.split('/').next().filter(|model| !model.is_empty())
}
