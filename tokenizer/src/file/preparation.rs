//! Prepares a text before it is split and merged.

use std::borrow::Cow;

use unicode_normalization_alignments::{IsNormalized, UnicodeNormalization, is_nfc_quick};

use super::added::{Added, Part};
use super::json::AddedToken;
use super::recipe::{META_SPACE, Prepend, Recipe, Unsupported};

/// Cuts a text around added tokens, and normalizes what is between them.
pub(super) struct Preparation {
    pub(super) recipe: Recipe,
    /// Found in the text as it is.
    added: Added,
    /// Found in the normalized text.
    added_normalized: Added,
}

impl Preparation {
    /// Errors: added tokens that we cannot find as Hugging Face does.
    pub(super) fn new(recipe: Recipe, added: &[AddedToken]) -> Result<Self, Unsupported> {
        let none = Added::default;
        let mut made = Self { recipe, added: none(), added_normalized: none() };
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

    /// Whether a text may be cut between these two, for all that is done here.
    pub(super) fn is_boundary(&self, before: char, after: char) -> bool {
        let combines = self.recipe.nfc && after >= FIRST_COMBINING;
        let mut added = [&self.added, &self.added_normalized].into_iter();
        // The end of a part that is not the first would be a beginning.
        self.recipe.prepend == Prepend::Never
            && !combines
            && !added.any(|added| added.takes_blanks() || added.join(before, after))
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
}

/// The first character that may combine with the one before it.
const FIRST_COMBINING: char = '\u{300}';
