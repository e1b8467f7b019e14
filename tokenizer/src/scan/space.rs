//! Runs of white space: `\s*[\r\n]+|\s+(?!\S)|\s+`.

use super::class::Class;
use super::text::View;

/// What a pattern says of newlines within white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Newlines {
    /// They are white space like any other.
    Plain,
    /// A piece ends with the last of them.
    End,
    /// The same, but for white space at the end of the text, which is one piece.
    EndUnlessLast,
}

/// The end of the piece that begins with the white space at `at`; `at` if there is none.
///
/// The last blank before a word is left to it.
pub(super) fn space(text: &impl View, at: usize, newlines: Newlines) -> usize {
    let mut end = at;
    let mut last = at;
    let mut after_newline = at;
    let class = loop {
        let (class, len) = text.peek(end);
        if !class.is(Class::SPACE) {
            break class;
        }
        last = end;
        end += len;
        if class == Class::NEWLINE {
            after_newline = end;
        }
    };
    let at_end = class == Class::END;
    let cut = match newlines {
        Newlines::Plain => false,
        Newlines::End => true,
        Newlines::EndUnlessLast => !at_end,
    };
    if cut && after_newline > at {
        after_newline
    } else if at_end || last == at {
        end
    } else {
        last
    }
}
