//! The splits of DeepSeek V3, one after the other: numbers of up to three digits, runs of kana and
//! ideographs, and words and signs in what these leave.

use super::class::Class;
use super::space::{Newlines, space};
use super::text::{Text, View};

/// A run between two cuts of the first two splits: the last one sees nothing beyond it.
struct Segment<'a> {
    text: Text<'a>,
    east_asian: bool,
}

impl View for Segment<'_> {
    fn peek(&self, at: usize) -> (Class, usize) {
        let (class, len) = self.text.peek(at);
        if class == Class::NUMBER || is_east_asian(self.text, at) != self.east_asian {
            return (Class::END, 0);
        }
        (class, len)
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.byte(at).filter(|_| self.peek(at).1 == 1)
    }
}

/// `[一-龥぀-ゟ゠-ヿ]+`, the second split.
fn is_east_asian(text: Text<'_>, at: usize) -> bool {
    text.byte(at).is_some_and(|byte| !byte.is_ascii())
        && matches!(text.char(at), Some('一'..='龥' | '\u{3040}'..='\u{30ff}'))
}

const WORD: Class = Class::LETTER.or(Class::MARK);
/// `[^\r\n\p{L}\p{P}\p{S}]`, marks left out: they are part of a word anyway.
const PREFIX: Class = Class::BLANK.or(Class::OTHER);

/// `\p{N}{1,3}`, and within the rest, kana and ideographs apart:
/// `[!-/:-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|
/// \s+(?!\S)|\s+`; what none of them takes is a piece as long as it lasts.
pub(super) fn v3(text: Text<'_>, at: usize) -> usize {
    let mut end = at;
    for _ in 0..3 {
        let (class, len) = text.peek(end);
        if class != Class::NUMBER {
            break;
        }
        end += len;
    }
    if end > at {
        return end;
    }
    let segment = Segment { text, east_asian: is_east_asian(text, at) };
    if let Some(end) = word_or_signs(&segment, at) {
        return end;
    }
    while segment.peek(end).0 == Class::OTHER && word_or_signs(&segment, end).is_none() {
        end += segment.peek(end).1;
    }
    end
}

fn word_or_signs(text: &Segment<'_>, at: usize) -> Option<usize> {
    let (class, len) = text.peek(at);
    if class == Class::SIGN && text.byte(at).is_some() {
        let mut end = at + 1;
        while text.byte(end).is_some_and(|byte| byte.is_ascii_alphabetic()) {
            end += 1;
        }
        if end > at + 1 {
            return Some(end);
        }
    }
    if class.is(WORD) {
        return Some(text.skip(at + len, WORD));
    }
    if class.is(PREFIX) {
        let end = text.skip(at + len, WORD);
        if end > at + len {
            return Some(end);
        }
    }
    let from = at + usize::from(text.byte(at) == Some(b' '));
    let end = text.skip(from, Class::SIGN);
    if end > from {
        return Some(text.skip(end, Class::NEWLINE));
    }
    let end = space(text, at, Newlines::End);
    (end > at).then_some(end)
}
