//! Shortens a JSON text that arrives in pieces, so that a text of any length is read in bounded
//! memory.
//!
//! The condensed text has the structure of the original. Where the original is too long, the
//! condensed text lacks, in this order:
//!
//! 1. the ends of strings that carry data, such as images in base64,
//! 2. the ends of all strings, and further elements of lists within lists,
//! 3. further elements of all lists,
//! 4. further members of objects.
//!
//! So the members behind a long string or a long list are still there. Blanks between values are one
//! blank. What is left out depends on the bytes alone, and not on where pieces end.

mod condensed;
mod string;

use crate::event::Container;
use crate::nesting::{Nesting, may_have_bracket};
use crate::scan::{below, mark_first};
pub use condensed::Condensed;
use string::StringCutter;

/// What is kept, by the length of the condensed text, in bytes.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Up to this length nothing but data is left out.
    details: usize,
    /// The same for elements of the outermost lists.
    elements: usize,
    /// The same for members of objects. Behind it only what is open is closed.
    members: usize,
    /// What every string may have: longer than names, kinds and reasons.
    string: usize,
    /// What a string of data has.
    data: usize,
}

const BOUNDS: Bounds =
    Bounds { details: 1 << 20, elements: 3 << 19, members: 2 << 20, string: 256, data: 4 << 10 };

/// What malformed JSON may add behind the bound for members, in bytes. Valid JSON adds less, unless
/// it has a number that is longer than any number needs to be.
const MALFORMED_BYTES_MAX: usize = 16 << 10;

/// Deepest nesting that is kept. A deeper object or list is empty.
const DEPTH_MAX: usize = 256;

/// Shortens one JSON text.
#[derive(Debug)]
pub struct Condenser {
    bounds: Bounds,
    condensed: Condensed,
    token: Token,
    open: Vec<Container>,
    /// How many of the open containers are lists.
    lists: usize,
}

/// What the condenser is inside of.
#[derive(Debug)]
enum Token {
    Between,
    String(StringCutter),
    /// The rest of a container, which is left out.
    Rest(Rest),
}

/// The rest of a container, up to its closing bracket.
#[derive(Debug)]
struct Rest {
    nesting: Nesting,
    commas: u64,
    is_blank: bool,
    /// There is more in it than numbers and literals.
    has_values: bool,
}

impl Default for Condenser {
    fn default() -> Self {
        Self::new()
    }
}

impl Condenser {
    /// A condenser of a text of which nothing has come.
    #[must_use]
    pub const fn new() -> Self {
        Self::within(BOUNDS)
    }

    const fn within(bounds: Bounds) -> Self {
        Self {
            bounds,
            condensed: Condensed::new(),
            token: Token::Between,
            open: Vec::new(),
            lists: 0,
        }
    }

    /// Adds the next piece of the text.
    pub fn push(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let taken = match &mut self.token {
                Token::Between => self.between(piece),
                Token::String(_) => self.string(piece),
                Token::Rest(_) => self.rest(piece),
            };
            piece = piece.get(taken..).unwrap_or_default();
        }
    }

    /// The condensed text of what has come.
    #[must_use]
    pub const fn condensed(&self) -> &Condensed {
        &self.condensed
    }

    /// Reads a bracket, a comma, the beginning of a string, or a stretch of other bytes; tells how
    /// many bytes.
    fn between(&mut self, piece: &[u8]) -> usize {
        let plain = self.plain_length(piece);
        if plain > 0 {
            self.condensed.text.extend_from_slice(piece.get(..plain).unwrap_or_default());
            return plain;
        }
        let Some(&byte) = piece.first() else { return 0 };
        match byte {
            b'"' => {
                self.put(byte);
                self.token = Token::String(StringCutter::new(self.string_room(), self.bounds.data));
            }
            b'{' => self.open(byte, Container::Object),
            b'[' => self.open(byte, Container::Array),
            b'}' | b']' => self.close(byte),
            b',' if self.is_full() => self.token = Token::Rest(Rest::new()),
            _ if byte.is_ascii_whitespace() && self.condensed.text.last().is_none_or(is_blank) => {}
            _ => self.put(byte),
        }
        1
    }

    /// Length of what is copied as it is, in whole words: it has no quote, bracket or blank, and no
    /// comma in it can be the last.
    fn plain_length(&self, piece: &[u8]) -> usize {
        let room = self.bounds.details.saturating_sub(self.condensed.text.len());
        let (words, _) = piece.get(..room).unwrap_or(piece).as_chunks();
        let is_plain = |word: &&[u8; 8]| {
            let word = u64::from_le_bytes(**word);
            let special = mark_first(b'"', word) | below(b'!', word);
            special == 0 && !may_have_bracket(word)
        };
        8 * words.iter().take_while(is_plain).count()
    }

    fn string(&mut self, piece: &[u8]) -> usize {
        let Token::String(string) = &mut self.token else { return 0 };
        let Some(behind) = string.push(piece, &mut self.condensed.text) else { return piece.len() };
        self.condensed.cut_string(string);
        self.put(b'"');
        self.token = Token::Between;
        behind
    }

    fn rest(&mut self, piece: &[u8]) -> usize {
        let Token::Rest(rest) = &mut self.token else { return 0 };
        let Some((behind, bracket)) = rest.push(piece) else { return piece.len() };
        if !rest.is_blank {
            match self.open.last() {
                Some(Container::Array) if !rest.has_values => {
                    self.condensed.leave_out(rest.commas + 1);
                }
                _ => self.condensed.lack_values(),
            }
        }
        self.token = Token::Between;
        self.close(bracket);
        behind
    }

    fn open(&mut self, bracket: u8, container: Container) {
        self.put(bracket);
        self.open.push(container);
        self.lists += usize::from(container == Container::Array);
        if self.is_full() {
            self.token = Token::Rest(Rest::new());
        }
    }

    fn close(&mut self, bracket: u8) {
        match self.open.pop() {
            Some(container) => {
                self.lists -= usize::from(container == Container::Array);
                self.condensed.text.push(bracket);
            }
            None => self.put(bracket),
        }
    }

    /// Writes a byte of JSON that may be malformed and without an end.
    fn put(&mut self, byte: u8) {
        if self.may_write() {
            self.condensed.text.push(byte);
        }
    }

    /// Whether the innermost container gets no more elements or members.
    fn is_full(&self) -> bool {
        let Bounds { details, elements, members, .. } = self.bounds;
        let lists_max = match self.condensed.text.len() {
            written if written < details => usize::MAX,
            written if written < elements => 1,
            written if written < members => 0,
            _ => return true,
        };
        let is_list = self.open.last() == Some(&Container::Array);
        is_list && self.lists > lists_max || self.open.len() > DEPTH_MAX
    }

    /// Bytes that a string may have that begins now.
    fn string_room(&self) -> usize {
        let left =
            self.bounds.details.saturating_sub(self.condensed.text.len()).max(self.bounds.string);
        if self.may_write() { left } else { 0 }
    }

    const fn may_write(&self) -> bool {
        self.condensed.text.len() < self.bounds.members + MALFORMED_BYTES_MAX
    }
}

impl Rest {
    fn new() -> Self {
        let mut nesting = Nesting::new();
        // The container itself is open.
        nesting.reach(b"[", 0);
        Self { nesting, commas: 0, is_blank: true, has_values: false }
    }

    /// Reads on; tells the index behind the closing bracket, and which it is.
    fn push(&mut self, piece: &[u8]) -> Option<(usize, u8)> {
        let end = self.nesting.reach(piece, 0);
        let (rest, bracket) = match piece.get(..end.unwrap_or(piece.len()))?.split_last() {
            Some((bracket, rest)) if end.is_some() => (rest, Some(*bracket)),
            _ => (piece, None),
        };
        self.is_blank = self.is_blank && rest.iter().all(is_blank);
        self.has_values = self.has_values || memchr::memchr3(b'"', b'{', b'[', rest).is_some();
        if !self.has_values {
            self.commas += memchr::memchr_iter(b',', rest).count() as u64;
        }
        end.zip(bracket)
    }
}

const fn is_blank(byte: &u8) -> bool {
    byte.is_ascii_whitespace()
}

#[cfg(test)]
mod tests;
