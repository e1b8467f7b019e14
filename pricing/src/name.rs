//! How platforms spell the names of models, and the shorter forms in which the book may have them.
//!
//! A platform's name has parts around the model itself: where it is served, who made it, which
//! version and snapshot it is. Each form leaves out parts from the beginning or the end of the name
//! and says by which rules. Which parts a name can have depends on the platform alone, never on the
//! book. What no rule names stays in the name: `:free`, `-fast` and `-2507` cost what their own row
//! says.

mod azure;
mod bedrock;
mod fireworks;
mod google;
mod parts;
mod platform;
mod tail;

use std::borrow::Cow;

use crate::rule::{PriceMatch, Rule};
pub(crate) use parts::{Form, Kind, Name, Region};
use platform::{Grammar, Platform};

impl<'a> Name<'a> {
    /// Reads the name that a model has on a platform, `gen_ai.provider.name`.
    pub(crate) fn of(provider: &str, given: &'a str) -> Self {
        let platform = Platform::of(provider);
        let (text, spelled) = match platform.without_provider(provider, given) {
            Some(rest) => (rest, Rule::Provider.into()),
            None => (given, PriceMatch::EXACT),
        };
        let name = Name { spelled, ..Name::whole(given, Cow::Borrowed(text)) };
        match platform.grammar {
            Grammar::Plain => tail::read(name, platform),
            Grammar::Azure => azure::read(name, platform),
            Grammar::Bedrock => bedrock::read(name),
            Grammar::Vertex => google::read_vertex(name),
            Grammar::Gemini => google::read_gemini(name, platform),
            Grammar::Fireworks => fireworks::read(name, platform),
        }
    }
}

/// Whether both names are of the same model on a platform, and `more` has a region, a variant or an
/// owner that `less` lacks.
pub(crate) fn says_more(provider: &str, more: &str, less: &str) -> bool {
    if !Platform::of(provider).may_qualify(more) {
        return false;
    }
    let (more, less) = (Name::of(provider, more), Name::of(provider, less));
    more.is_qualified() && !less.is_qualified() && more.core().eq_ignore_ascii_case(less.core())
}

#[cfg(test)]
mod tests;
