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
mod platform;
mod tail;

use std::borrow::Cow;

use crate::rule::{PriceMatch, Rule};
use platform::{Grammar, Platform};

/// A name in its parts.
#[derive(Debug)]
pub(crate) struct Name<'a> {
    /// As it came.
    given: &'a str,
    /// The same without what only says where the model is, or as the platform's full name.
    text: Cow<'a, str>,
    /// The rules that led from the one to the other.
    spelled: PriceMatch,
    /// The region that serves it.
    region: Option<Region>,
    /// Where a form can begin in `text`.
    heads: Cuts,
    /// Where a form can end in `text`.
    tails: Cuts,
    kind: Kind,
}

/// The region in a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    /// In small letters: `eu`, `us-gov-west-1`.
    pub(crate) word: String,
    /// Whether the platform's plain names have the prices of this region.
    pub(crate) is_base: bool,
}

/// What else a name says about its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nothing else.
    Plain,
    /// A fine-tuned model of a customer.
    Tuned,
    /// A variant with a price of its own, behind a colon.
    Variant,
    /// A deployment of a customer. Its name does not say which model it is.
    Deployment,
}

/// One form of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form<'n> {
    /// The name that a row may have.
    pub(crate) text: &'n str,
    /// The rules that lead to it.
    pub(crate) rules: PriceMatch,
    /// Whether the form lacks the region of the name.
    pub(crate) lacks_region: bool,
}

/// Places in a text, each with the rules that lead there. The first one leaves the most.
#[derive(Debug, Default)]
struct Cuts {
    cuts: [(usize, PriceMatch); Self::MAX],
    count: usize,
}

impl Cuts {
    /// Most places. A Bedrock name has the most: `…-20250929-v1:0`.
    const MAX: usize = 5;

    fn one(at: usize, rules: PriceMatch) -> Self {
        let mut cuts = Self::default();
        cuts.push(at, rules);
        cuts
    }

    /// Adds a place that is reached by `rule` from the one before.
    fn cut(&mut self, at: usize, rule: Rule) {
        self.push(at, self.last().1.with(rule));
    }

    fn push(&mut self, at: usize, rules: PriceMatch) {
        if let Some(slot) = self.cuts.get_mut(self.count) {
            *slot = (at, rules);
            self.count += 1;
        }
    }

    fn all(&self) -> impl Iterator<Item = (usize, PriceMatch)> {
        self.cuts.iter().take(self.count).copied()
    }

    fn last(&self) -> (usize, PriceMatch) {
        self.all().last().unwrap_or_default()
    }
}

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

    /// The name without any shorter form.
    fn whole(given: &'a str, text: Cow<'a, str>) -> Self {
        Self {
            given,
            heads: Cuts::one(0, PriceMatch::EXACT),
            tails: Cuts::one(text.len(), PriceMatch::EXACT),
            text,
            spelled: PriceMatch::EXACT,
            region: None,
            kind: Kind::Plain,
        }
    }

    /// The same name with another text, by `rule`.
    fn spelled_as(self, text: Cow<'a, str>, rule: Rule) -> Self {
        Self {
            spelled: self.spelled.with(rule),
            region: self.region,
            ..Self::whole(self.given, text)
        }
    }

    /// The part of `given` that is `text`, where `text` was not put together anew.
    fn borrowed(&self) -> Option<&'a str> {
        match &self.text {
            Cow::Borrowed(text) => Some(text),
            Cow::Owned(_) => None,
        }
    }

    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) const fn region(&self) -> Option<&Region> {
        self.region.as_ref()
    }

    /// Every form, from the whole name to the shortest.
    pub(crate) fn forms(&self) -> impl Iterator<Item = Form<'_>> {
        let given = Form { text: self.given, rules: PriceMatch::EXACT, lacks_region: false };
        let shorter = self.heads.all().flat_map(move |(start, head)| {
            self.tails.all().filter_map(move |(end, tail)| {
                let rules = self.spelled.and(head).and(tail);
                let text = self.text.get(start..end).filter(|text| !text.is_empty())?;
                Some(Form { text, rules, lacks_region: rules.has(Rule::Region) })
            })
        });
        std::iter::once(given).chain(shorter.filter(|form| form.text != self.given))
    }

    /// The model itself, without all that the rules leave out.
    pub(crate) fn core(&self) -> &str {
        let start = self.heads.all().map(|(at, _)| at).max().unwrap_or_default();
        let core = self.text.get(start..self.tails.last().0).unwrap_or_default();
        match self.kind {
            Kind::Variant => core.split(':').next().unwrap_or(core),
            Kind::Tuned => core.get(tail::TUNED.len()..).unwrap_or(core),
            Kind::Plain | Kind::Deployment => core,
        }
    }

    /// Whether it says something that changes the price besides the model.
    const fn is_qualified(&self) -> bool {
        self.region.is_some() || !matches!(self.kind, Kind::Plain)
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

/// `text` behind `prefix`, in capitals or small letters.
fn behind<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// `text` before `suffix`, in capitals or small letters.
fn before<'a>(text: &'a str, suffix: &str) -> Option<&'a str> {
    let (head, tail) = text.split_at_checked(text.len().checked_sub(suffix.len())?)?;
    tail.eq_ignore_ascii_case(suffix).then_some(head)
}

#[cfg(test)]
mod tests;
