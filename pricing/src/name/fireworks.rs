//! Fireworks: `accounts/fireworks/models/MODEL`. Other accounts are of customers.

use std::borrow::Cow;

use super::parts::{Cuts, Kind, Name, behind};
use super::platform::Platform;
use super::tail;
use crate::rule::{PriceMatch, Rule};

/// Where Fireworks keeps the models that it serves for all.
const SHARED: &str = "accounts/fireworks/models/";

pub(super) fn read<'a>(name: Name<'a>, platform: Platform) -> Name<'a> {
    // `MODEL#DEPLOYMENT` runs on machines that a customer has rented.
    if name.text.contains('#') {
        return Name { kind: Kind::Deployment, ..name };
    }
    let is_full = behind(&name.text, SHARED).is_some();
    if !is_full && name.text.contains('/') {
        return tail::read(name, platform);
    }
    let full = match is_full {
        true => name.text.clone(),
        false => Cow::Owned(format!("{SHARED}{}", name.text)),
    };
    // As it came first, and then in the other way.
    let (first, other) = if is_full { (0, SHARED.len()) } else { (SHARED.len(), 0) };
    let mut heads = Cuts::one(first, PriceMatch::EXACT);
    heads.cut(other, Rule::Path);
    Name { heads, ..tail::read(Name { text: full, ..name }, platform) }
}
