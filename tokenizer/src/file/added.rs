//! Tokens that are found in a text before it is split: marks of roles and tools, and runs of blanks
//! that some vocabularies list separately.

use std::collections::HashSet;

use aho_corasick::{AhoCorasick, MatchKind};

use super::json::AddedToken;
use super::recipe::Unsupported;

/// Those tokens of a vocabulary that are looked for in the same text.
#[derive(Debug, Default)]
pub(crate) struct Added {
    /// Finds the longest of those that begin first.
    matcher: Option<AhoCorasick>,
    /// By the matcher's numbers.
    tokens: Vec<AddedToken>,
    /// Characters that stand side by side in some token.
    pairs: HashSet<(char, char)>,
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// One token.
    Token,
    /// To be split and merged; begins at this byte.
    Text(usize, &'a str),
}

impl Added {
    /// Errors: tokens that we cannot find as Hugging Face does.
    pub(super) fn new(tokens: Vec<AddedToken>) -> Result<Self, Unsupported> {
        if let Some(token) = tokens.iter().find(|token| token.single_word) {
            return Err(Unsupported(format!("added token {:?} is a single word", token.content)));
        }
        if tokens.is_empty() {
            return Ok(Self::default());
        }
        let matcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(tokens.iter().map(|token| &token.content))
            .map_err(|error| Unsupported(format!("added tokens: {error}")))?;
        let contents = tokens.iter().map(|token| token.content.chars());
        let pairs = contents.flat_map(|chars| chars.clone().zip(chars.skip(1))).collect();
        Ok(Self { matcher: Some(matcher), tokens, pairs })
    }

    /// Cuts `text` around the tokens in it; those that are special stay text unless `specials`.
    pub(crate) fn parts<'a>(
        &'a self,
        text: &'a str,
        specials: bool,
    ) -> impl Iterator<Item = Part<'a>> {
        let found = self.matcher.iter().flat_map(move |matcher| matcher.find_iter(text));
        let found = found.filter_map(move |found| {
            let token = self.tokens.get(found.pattern().as_usize())?;
            let (mut start, mut end) = (found.start(), found.end());
            if token.special && !specials {
                return None;
            }
            if token.lstrip {
                start = text.get(..start)?.trim_end().len();
            }
            if token.rstrip {
                end = text.len() - text.get(end..)?.trim_start().len();
            }
            Some((start, end, true))
        });
        let end = std::iter::once((text.len(), text.len(), false));
        let mut done = 0;
        found.chain(end).flat_map(move |(start, end, token)| {
            let start = start.max(done);
            let between = text.get(done..start).filter(|text| !text.is_empty());
            let between = between.map(|text| Part::Text(done, text));
            done = end.max(done);
            between.into_iter().chain(token.then_some(Part::Token))
        })
    }

    /// Whether some token takes blanks beside it.
    pub(crate) fn takes_blanks(&self) -> bool {
        self.tokens.iter().any(|token| token.lstrip || token.rstrip)
    }

    /// Whether some token has these two characters side by side.
    pub(crate) fn join(&self, before: char, after: char) -> bool {
        self.pairs.contains(&(before, after))
    }
}
