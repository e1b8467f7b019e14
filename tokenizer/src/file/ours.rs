//! A vocabulary that was read from a file: from text to pieces, from pieces to tokens.

use std::borrow::Cow;

use unicode_normalization_alignments::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::added::{Added, Part};
use super::joints::Joints;
use super::json::AddedToken;
use super::recipe::{META_SPACE, Prepend, Recipe, Split, Unsupported};
use crate::bpe::{Bpe, Scratch};
use crate::scan;

/// A vocabulary that was read from a file.
pub(super) struct Ours {
    pub(super) recipe: Recipe,
    pub(super) bpe: Bpe,
    /// Empty where pieces are split by a pattern.
    pub(super) joints: Joints,
    /// Found in the text as it is.
    pub(super) added: Added,
    /// Found in the normalized text.
    pub(super) added_normalized: Added,
}

impl Ours {
    /// Errors: added tokens that we cannot find as Hugging Face does.
    pub(super) fn new(
        recipe: Recipe,
        (bpe, joints): (Bpe, Joints),
        added: &[AddedToken],
    ) -> Result<Self, Unsupported> {
        let none = Added::default;
        let mut made = Self { recipe, bpe, joints, added: none(), added_normalized: none() };
        let added = added.iter().filter(|token| !token.content.is_empty()).cloned();
        let (mut normalized, plain): (Vec<_>, Vec<_>) = added.partition(|token| token.normalized);
        for token in &mut normalized {
            if made.recipe.meta_space
                && (token.content.contains([' ', META_SPACE])
                    || made.recipe.prepend == Prepend::Always)
            {
                return Err(Unsupported(format!("added token {:?} with blanks", token.content)));
            }
            token.content = made.normalized(&token.content).into_owned();
        }
        made.added = Added::new(plain)?;
        made.added_normalized = Added::new(normalized)?;
        Ok(made)
    }

    /// Tokens of `text`; with `specials`, marks of special tokens in it are these. Stops when there
    /// are more than `limit`.
    pub(super) fn count(&self, text: &str, specials: bool, limit: u64) -> u64 {
        let mut scratch = Scratch::default();
        let mut tokens = 0;
        self.parts(text, specials, &mut |part| {
            match part {
                Part::Token => tokens += 1,
                Part::Text(_, part) => self.merge(part, limit, &mut tokens, &mut scratch),
            }
            tokens <= limit
        });
        tokens
    }

    /// Hands out the added tokens in `text`, and what is between them as it is to be merged, for as
    /// long as `each` wants more.
    pub(super) fn parts(
        &self,
        text: &str,
        specials: bool,
        each: &mut impl FnMut(Part<'_>) -> bool,
    ) {
        for part in self.added.parts(text, specials) {
            let Part::Text(start, part) = part else {
                if !each(Part::Token) {
                    return;
                }
                continue;
            };
            let normal = self.normalized(part);
            for part in self.added_normalized.parts(&normal, specials) {
                let more = match part {
                    Part::Token => each(part),
                    Part::Text(behind, part) => {
                        let at = start + behind;
                        each(Part::Text(at, &self.spaced(part, at == 0)))
                    }
                };
                if !more {
                    return;
                }
            }
        }
    }

    /// Whether a text may be cut between these two, and its parts be counted one by one.
    pub(super) fn is_boundary(&self, before: char, after: char) -> bool {
        let recipe = &self.recipe;
        // The end of a part that is not the first would be a beginning.
        let plain = recipe.prepend == Prepend::Never
            && !self.added.takes_blanks()
            && !self.added_normalized.takes_blanks();
        plain
            && !(recipe.nfc && after >= FIRST_COMBINING)
            && match recipe.split {
                Split::Whole | Split::MetaSpace => {
                    !self.joints.join(meta_spaced(before), meta_spaced(after))
                }
                Split::By(_) => scan::is_boundary(before, after),
            }
            && !self.added.join(before, after)
            && !self.added_normalized.join(before, after)
    }

    fn normalized<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // Below it nothing combines with what stands before, and most of what is above does not.
        let above = text.chars().filter(|char| *char >= FIRST_COMBINING);
        if self.recipe.nfc && is_nfc_quick(above) != IsNormalized::Yes {
            Cow::Owned(text.nfc().map(|(char, _)| char).collect())
        } else {
            Cow::Borrowed(text)
        }
    }

    fn spaced<'a>(&self, text: &'a str, at_start: bool) -> Cow<'a, str> {
        if !self.recipe.meta_space {
            return Cow::Borrowed(text);
        }
        let missing = !text.starts_with([' ', META_SPACE]);
        let prepend = match self.recipe.prepend {
            Prepend::Never => false,
            Prepend::Always => true,
            Prepend::Missing => missing,
            Prepend::MissingAtStart => missing && at_start,
        };
        let mut spaced = String::with_capacity(text.len() + text.len() / 2);
        spaced.extend(prepend.then_some(META_SPACE));
        for (between, word) in text.split(' ').enumerate() {
            spaced.extend((between > 0).then_some(META_SPACE));
            spaced.push_str(word);
        }
        Cow::Owned(spaced)
    }

    fn merge(&self, text: &str, limit: u64, tokens: &mut u64, scratch: &mut Scratch) {
        let mut at = 0;
        while at < text.len() && *tokens <= limit {
            let end = match self.recipe.split {
                Split::By(pattern) => pattern.piece_end(text, at),
                Split::Whole => cut(text, at, |before, after| !self.joints.join(before, after)),
                Split::MetaSpace => cut(text, at, |before, after| {
                    after == META_SPACE || !self.joints.join(before, after)
                }),
            };
            *tokens += self.bpe.count(text, at, end, scratch);
            at = end.max(at + 1);
        }
    }
}

/// The first character that may combine with the one before it.
const FIRST_COMBINING: char = '\u{300}';

const fn meta_spaced(char: char) -> char {
    if char == ' ' { META_SPACE } else { char }
}

/// Where the piece ends that begins at `at`: before the next character that `cut` parts from the one
/// before it.
fn cut(text: &str, at: usize, cut: impl Fn(char, char) -> bool) -> usize {
    let mut chars = text.get(at..).unwrap_or_default().char_indices();
    let Some((_, mut before)) = chars.next() else { return text.len() };
    let end = chars.find(|&(_, after)| {
        let found = cut(before, after);
        before = after;
        found
    });
    end.map_or(text.len(), |(end, _)| at + end)
}
