//! Counts with a vocabulary from a file: from text to pieces, from pieces to tokens.

use super::added::Part;
use super::joints::Joints;
use super::preparation::Preparation;
use super::recipe::{META_SPACE, Split};
use crate::bpe::{Bpe, Scratch};
use crate::scan;

/// A vocabulary that was read from a file.
pub(super) struct Ours {
    pub(super) preparation: Preparation,
    pub(super) bpe: Bpe,
    /// Empty where pieces are split by a pattern.
    pub(super) joints: Joints,
}

impl Ours {
    /// Tokens of `text`; with `specials`, marks of special tokens in it are these. Stops when there
    /// are more than `limit`.
    pub(super) fn count(&self, text: &str, specials: bool, limit: u64) -> u64 {
        let mut scratch = Scratch::default();
        let mut tokens = 0;
        self.preparation.parts(text, specials, &mut |part| {
            match part {
                Part::Token => tokens += 1,
                Part::Text(_, part) => self.merge(part, limit, &mut tokens, &mut scratch),
            }
            tokens <= limit
        });
        tokens
    }

    /// Whether a text may be cut between these two, and its parts be counted one by one.
    pub(super) fn is_boundary(&self, before: char, after: char) -> bool {
        self.preparation.is_boundary(before, after)
            && match self.preparation.recipe.split {
                Split::Whole | Split::MetaSpace => {
                    !self.joints.join(meta_spaced(before), meta_spaced(after))
                }
                Split::By(_) => scan::is_boundary(before, after),
            }
    }

    fn merge(&self, text: &str, limit: u64, tokens: &mut u64, scratch: &mut Scratch) {
        let mut at = 0;
        while at < text.len() && *tokens <= limit {
            let end = match self.preparation.recipe.split {
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
