//! The parts of a name, and the forms that leave some of them out.

use std::borrow::Cow;

use crate::rule::{PriceMatch, Rule};

/// Before the base of a fine-tuned model.
pub(super) const TUNED: &str = "ft:";

/// A name in its parts.
#[derive(Debug)]
pub(crate) struct Name<'a> {
    /// As it came.
    pub(super) given: &'a str,
    /// The same without what only says where the model is, or as the platform's full name.
    pub(super) text: Cow<'a, str>,
    /// The rules that led from the one to the other.
    pub(super) spelled: PriceMatch,
    /// The region that serves it.
    pub(super) region: Option<Region>,
    /// Where a form can begin in `text`.
    pub(super) heads: Cuts,
    /// Where a form can end in `text`.
    pub(super) tails: Cuts,
    pub(super) kind: Kind,
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
pub(super) struct Cuts {
    cuts: [(usize, PriceMatch); Self::MAX],
    pub(super) count: usize,
}

impl Cuts {
    /// Most places. A Bedrock name has the most: `…-20250929-v1:0`.
    const MAX: usize = 5;

    pub(super) fn one(at: usize, rules: PriceMatch) -> Self {
        let mut cuts = Self::default();
        cuts.push(at, rules);
        cuts
    }

    /// Adds a place that is reached by `rule` from the one before.
    pub(super) fn cut(&mut self, at: usize, rule: Rule) {
        self.push(at, self.last().1.with(rule));
    }

    pub(super) fn push(&mut self, at: usize, rules: PriceMatch) {
        if let Some(slot) = self.cuts.get_mut(self.count) {
            *slot = (at, rules);
            self.count += 1;
        }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (usize, PriceMatch)> {
        self.cuts.iter().take(self.count).copied()
    }

    pub(super) fn last(&self) -> (usize, PriceMatch) {
        self.all().last().unwrap_or_default()
    }
}

impl<'a> Name<'a> {
    /// The name without any shorter form.
    pub(super) fn whole(given: &'a str, text: Cow<'a, str>) -> Self {
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
    pub(super) fn spelled_as(self, text: Cow<'a, str>, rule: Rule) -> Self {
        Self {
            spelled: self.spelled.with(rule),
            region: self.region,
            ..Self::whole(self.given, text)
        }
    }

    /// The part of `given` that is `text`, where `text` was not put together anew.
    pub(super) fn borrowed(&self) -> Option<&'a str> {
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
            Kind::Tuned => core.get(TUNED.len()..).unwrap_or(core),
            Kind::Plain | Kind::Deployment => core,
        }
    }

    /// Whether it says something that changes the price besides the model.
    pub(super) const fn is_qualified(&self) -> bool {
        self.region.is_some() || !matches!(self.kind, Kind::Plain)
    }
}

/// `text` behind `prefix`, in capitals or small letters.
pub(super) fn behind<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// `text` before `suffix`, in capitals or small letters.
pub(super) fn before<'a>(text: &'a str, suffix: &str) -> Option<&'a str> {
    let (head, tail) = text.split_at_checked(text.len().checked_sub(suffix.len())?)?;
    tail.eq_ignore_ascii_case(suffix).then_some(head)
}
