//! The splits of OpenAI's vocabularies and of vocabularies that use the same splits.

use super::class::Class;
use super::space::{Newlines, space};
use super::text::{Text, View};

/// `[^\s\p{L}\p{N}]`
const SIGNS: Class = Class::SIGN.or(Class::MARK).or(Class::OTHER);
/// `[^\r\n\p{L}\p{N}]`: what a word may begin with, once.
const PREFIX: Class = SIGNS.or(Class::BLANK);
/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]`
const CAPITALS: Class = Class::UPPER.or(EITHER);
/// `[\p{Ll}\p{Lm}\p{Lo}\p{M}]`
const SMALLS: Class = Class::LOWER.or(EITHER);
/// What is in both.
const EITHER: Class = Class::UNCASED.or(Class::MARK);

/// `'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s`
pub(super) fn gpt2(text: Text<'_>, at: usize) -> usize {
    if let Some(end) = contraction(text, at, false) {
        return end;
    }
    let from = at + usize::from(text.byte(at) == Some(b' '));
    let (class, len) = text.peek(from);
    for run in [Class::LETTER, Class::NUMBER, SIGNS] {
        if class.is(run) {
            return text.skip(from + len, run);
        }
    }
    space(&text, at, Newlines::Plain)
}

/// `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|
/// \s*[\r\n]|\s+(?!\S)|\s`, or, without `whole_end`, `\s*[\r\n]+|\s+(?!\S)|\s+` at its end.
pub(super) fn cl100k(text: Text<'_>, at: usize, digits: usize, whole_end: bool) -> usize {
    let (class, len) = text.peek(at);
    if class.is(Class::LETTER) {
        return text.skip(at + len, Class::LETTER);
    }
    if class.is(PREFIX) {
        if let Some(end) = contraction(text, at, true) {
            return end;
        }
        let end = text.skip(at + len, Class::LETTER);
        if end > at + len {
            return end;
        }
    }
    if class.is(Class::NUMBER) {
        return number(&text, at + len, digits);
    }
    if let Some(end) = signs(&text, at) {
        return text.skip(end, Class::NEWLINE);
    }
    space(&text, at, if whole_end { Newlines::EndUnlessLast } else { Newlines::End })
}

/// `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|…)?|
/// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|…)?|
/// \p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`
pub(super) fn o200k(text: Text<'_>, at: usize, digits: usize, contractions: bool) -> usize {
    let (class, len) = text.peek(at);
    if let Some(end) = cased_word(text, at, class, len) {
        let suffix = contractions.then(|| contraction(text, end, true)).flatten();
        return suffix.unwrap_or(end);
    }
    if class.is(Class::NUMBER) {
        return number(&text, at + len, digits);
    }
    if let Some(mut end) = signs(&text, at) {
        while matches!(text.byte(end), Some(b'\r' | b'\n' | b'/')) {
            end += 1;
        }
        return end;
    }
    space(&text, at, Newlines::End)
}

/// A word of `o200k`, with what it may begin with, if there is one at `at`.
fn cased_word(text: Text<'_>, at: usize, class: Class, len: usize) -> Option<usize> {
    if class.is(Class::LETTER) {
        return capitals_then_smalls(text, at).map(|word| word.end);
    }
    if !class.is(PREFIX) {
        return None;
    }
    match capitals_then_smalls(text, at + len) {
        // A mark is a word by itself rather than the beginning of one in capitals.
        Some(word) if class == Class::MARK && !word.smalls => Some(at + len),
        Some(word) => Some(word.end),
        None => (class == Class::MARK).then_some(at + len),
    }
}

struct Word {
    end: usize,
    /// Whether it ends with small letters, or with what may stand for them.
    smalls: bool,
}

/// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`, and where that is not found,
/// capitals only.
///
/// Where no small letter follows, the last letter without case among the capitals stands for it:
/// that is what a regex finds when it goes back.
fn capitals_then_smalls(text: Text<'_>, at: usize) -> Option<Word> {
    let mut end = at;
    let mut after_either = at;
    let class = loop {
        let (class, len) = text.peek(end);
        if !class.is(CAPITALS) {
            break class;
        }
        end += len;
        if class.is(EITHER) {
            after_either = end;
        }
    };
    if class == Class::LOWER {
        return Some(Word { end: text.skip(end, SMALLS), smalls: true });
    }
    if after_either > at {
        return Some(Word { end: after_either, smalls: true });
    }
    (end > at).then_some(Word { end, smalls: false })
}

/// `\p{N}{1,digits}`, of which the first has been seen before `at`.
fn number(text: &impl View, mut at: usize, digits: usize) -> usize {
    for _ in 1..digits {
        let (class, len) = text.peek(at);
        if !class.is(Class::NUMBER) {
            break;
        }
        at += len;
    }
    at
}

/// ` ?[^\s\p{L}\p{N}]+`
fn signs(text: &impl View, at: usize) -> Option<usize> {
    let from = at + usize::from(text.byte(at) == Some(b' '));
    let end = text.skip(from, SIGNS);
    (end > from).then_some(end)
}

/// `'(?:[sdmt]|ll|ve|re)`, or with `any_case`, `'(?i:[sdmt]|ll|ve|re)`.
#[inline]
fn contraction(text: Text<'_>, at: usize, any_case: bool) -> Option<usize> {
    if text.byte(at) != Some(b'\'') {
        return None;
    }
    let letter = |at| {
        let byte = text.byte(at)?;
        Some(if any_case { byte.to_ascii_lowercase() } else { byte })
    };
    match (letter(at + 1)?, letter(at + 2)) {
        (b's' | b'd' | b'm' | b't', _) => Some(at + 2),
        (b'l', Some(b'l')) | (b'v' | b'r', Some(b'e')) => Some(at + 3),
        // U+017F, the long s, whose capital is S.
        (0xc5, Some(0xbf)) if any_case => Some(at + 3),
        _ => None,
    }
}
