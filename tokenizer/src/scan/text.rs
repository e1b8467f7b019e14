//! A text that is asked for the classes of its characters.

use super::class::Class;

/// Something to scan. Places are byte offsets, and always between characters.
pub(super) trait View {
    /// Class and length of the character at `at`; [`Class::END`] and 0 at the end.
    fn peek(&self, at: usize) -> (Class, usize);

    /// The byte at `at`, if the view reaches that far.
    fn byte(&self, at: usize) -> Option<u8>;

    /// The end of the characters of `class` that begin at `at`.
    fn skip(&self, mut at: usize, class: Class) -> usize {
        loop {
            let (found, len) = self.peek(at);
            if !found.is(class) {
                return at;
            }
            at += len;
        }
    }
}

/// A whole text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a>(pub(super) &'a str);

impl View for Text<'_> {
    #[inline]
    fn peek(&self, at: usize) -> (Class, usize) {
        match self.0.as_bytes().get(at) {
            None => (Class::END, 0),
            Some(&byte) if byte.is_ascii() => (Class::of_ascii(byte), 1),
            Some(_) => self.char(at).map_or((Class::END, 0), |c| (Class::of(c), c.len_utf8())),
        }
    }

    #[inline]
    fn byte(&self, at: usize) -> Option<u8> {
        self.0.as_bytes().get(at).copied()
    }
}

impl Text<'_> {
    pub(super) fn char(&self, at: usize) -> Option<char> {
        self.0.get(at..)?.chars().next()
    }
}
