//! Reads a document that arrives in pieces, and checks all of it by RFC 8259.
//!
//! The outermost value must be an object. The reader reports the members of that object, and the
//! members of a value that the caller asks to follow. It checks deeper values without reporting
//! them. It keeps one short text, and one byte for each level of nesting.

use memchr::memchr2;

use crate::event::{Container, Event, Piece, Scalar, StreamFault};
use crate::number::Grammar;
use crate::scan::ascii_length;
use crate::text::{Text, simple_escape};
use crate::utf8::{NOT_UTF8, Utf8Check};

/// Deepest nesting by default, the outermost object included.
const DEPTH_MAX: usize = 256;

/// Longest text that is kept, in bytes.
const TEXT_BYTES_MAX: usize = 256;

/// The same with escapes: `\u0061` writes one byte as six.
const WRITTEN_TEXT_BYTES_MAX: usize = 6 * TEXT_BYTES_MAX;

/// Bytes of a string that are checked before the wide search starts. Most strings are shorter.
const NARROW_BYTES: usize = 32;

/// Bytes of a string that are searched and then checked in one step, so that they are still in the
/// cache.
const WIDE_BYTES: usize = 16 << 10;

/// What may come next, between tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Document,
    FirstKey,
    Key,
    Colon,
    FirstValue,
    Value,
    CommaOrClose,
    End,
}

/// The token that is being read.
#[derive(Debug, Clone, Copy)]
enum Token {
    Between,
    String,
    Escape,
    Hex { digits_left: u8 },
    Number(Grammar),
    Literal { kind: Scalar, rest: &'static [u8] },
}

/// Reads one document.
#[derive(Debug)]
pub struct StreamReader {
    token: Token,
    expect: Expect,
    open: Vec<Container>,
    /// Deepest nesting that is allowed.
    depth_max: usize,
    /// Deepest level whose members are reported.
    told_depth: usize,
    /// Whether the current string is a key.
    is_key: bool,
    /// Offset of the first byte of the current token.
    start: u64,
    bytes: Utf8Check,
    text: ShortText,
}

/// The result of a token, or of a part of it.
type Step = Result<Option<Event>, StreamFault>;

/// The text of a key, a string or a number, if it is short.
#[derive(Debug, Default)]
struct ShortText {
    /// Decoded up to its first `\u`. From there with its escapes, until it ends.
    bytes: Vec<u8>,
    /// Where that one is.
    escaped_from: Option<usize>,
    is_too_long: bool,
}

impl ShortText {
    #[inline]
    fn begin(&mut self) {
        self.bytes.clear();
        (self.escaped_from, self.is_too_long) = (None, false);
    }

    #[inline]
    fn keep(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > WRITTEN_TEXT_BYTES_MAX {
            self.is_too_long = true;
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Keeps a backslash and `letter`, which stand for `meant`.
    #[inline]
    fn keep_escape(&mut self, letter: u8, meant: Option<u8>) {
        match meant {
            Some(meant) if self.escaped_from.is_none() => self.keep(&[meant]),
            _ => {
                self.escaped_from.get_or_insert(self.bytes.len());
                self.keep(&[b'\\', letter]);
            }
        }
    }

    #[inline]
    fn end(&mut self) {
        if let Some(from) = self.escaped_from {
            self.decode(from);
        }
        self.is_too_long |= self.bytes.len() > TEXT_BYTES_MAX;
    }

    #[cold]
    fn decode(&mut self, from: usize) {
        let escaped = self.bytes.get(from..).unwrap_or_default();
        let text = Text::escaped(escaped).decode().into_owned();
        self.bytes.truncate(from);
        self.bytes.extend_from_slice(text.as_bytes());
    }
}

impl Default for StreamReader {
    fn default() -> Self {
        Self::new()
    }
}

impl StreamReader {
    /// Reads a document from its first byte.
    #[must_use]
    pub fn new() -> Self {
        Self {
            token: Token::Between,
            expect: Expect::Document,
            open: Vec::with_capacity(16),
            depth_max: DEPTH_MAX,
            told_depth: 1,
            is_key: false,
            start: 0,
            bytes: Utf8Check::default(),
            text: ShortText { bytes: Vec::with_capacity(TEXT_BYTES_MAX), ..ShortText::default() },
        }
    }

    /// Refuses nesting deeper than `depth_max` levels, the outermost object included.
    pub const fn nest(&mut self, depth_max: usize) {
        self.depth_max = depth_max;
    }

    /// The level of the last event: 1 for the members of the outermost object.
    #[must_use]
    pub const fn depth(&self) -> usize {
        self.open.len()
    }

    /// Reports the members of the object or array that the last event opened, until its end.
    pub const fn follow(&mut self) {
        self.told_depth = self.open.len();
    }

    /// Reports nothing more of what is inside the outermost object's members, not even its end.
    pub const fn leave(&mut self) {
        self.told_depth = 1;
    }

    /// Text of the last key, string or number. `None` if it is longer than 256 bytes.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        let ShortText { bytes, is_too_long, .. } = &self.text;
        if *is_too_long { None } else { str::from_utf8(bytes).ok() }
    }

    /// Reads until the next event. `None` if the piece ends first.
    ///
    /// # Errors
    /// The first wrong byte. The caller must not read on.
    #[inline]
    pub fn next(&mut self, piece: &mut Piece<'_>) -> Result<Option<Event>, StreamFault> {
        while let Some(&byte) = piece.rest.first() {
            let event = match self.token {
                Token::Between => self.between(byte, piece)?,
                Token::String => self.string(piece)?,
                Token::Escape => self.escape(byte, piece)?,
                Token::Hex { digits_left } => self.hex(byte, digits_left, piece)?,
                Token::Number(number) => self.number(number, piece)?,
                Token::Literal { kind, rest } => self.literal(kind, rest, byte, piece)?,
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// Checks the end of the document, at `offset`.
    ///
    /// # Errors
    /// The document ends too early.
    pub fn finish(&self, offset: u64) -> Result<(), StreamFault> {
        let what = match (self.token, self.expect) {
            (Token::Between, Expect::End) => return Ok(()),
            (Token::Between, Expect::Document) => "nothing was sent; send a JSON object",
            (Token::String | Token::Escape | Token::Hex { .. }, _) => "it ends inside a string",
            _ => "it ends before its object does",
        };
        Err(StreamFault::Invalid { offset, what })
    }

    #[inline]
    fn between(&mut self, byte: u8, piece: &mut Piece<'_>) -> Step {
        let at = piece.offset();
        let event = match (byte, self.expect) {
            (b' ' | b'\t' | b'\n' | b'\r', _) => None,
            (b'"', Expect::FirstKey | Expect::Key) => self.begin(Token::String, true, at),
            (b'"', Expect::FirstValue | Expect::Value) => self.begin(Token::String, false, at),
            (b':', Expect::Colon) => self.expecting(Expect::Value),
            (b',', Expect::CommaOrClose) => match self.open.last() {
                Some(Container::Object) => self.expecting(Expect::Key),
                _ => self.expecting(Expect::Value),
            },
            (b'{', Expect::Document | Expect::FirstValue | Expect::Value) => {
                self.open(Container::Object, at)?
            }
            (b'[', Expect::FirstValue | Expect::Value) => self.open(Container::Array, at)?,
            (b'}', Expect::FirstKey | Expect::CommaOrClose) => self.close(Container::Object, at)?,
            (b']', Expect::FirstValue | Expect::CommaOrClose) => {
                self.close(Container::Array, at)?
            }
            (_, Expect::FirstValue | Expect::Value) => self.begin_plain(byte, at)?,
            (_, expect) => return Err(unexpected(byte, expect, at)),
        };
        // The rules of numbers read the first byte of a number again.
        if !matches!(self.token, Token::Number(_)) {
            piece.advance(1);
        }
        Ok(event)
    }

    #[inline]
    fn expecting(&mut self, expect: Expect) -> Option<Event> {
        self.expect = expect;
        None
    }

    #[inline]
    fn begin(&mut self, token: Token, is_key: bool, at: u64) -> Option<Event> {
        (self.token, self.is_key, self.start) = (token, is_key, at);
        self.text.begin();
        None
    }

    #[inline]
    fn begin_plain(&mut self, byte: u8, at: u64) -> Step {
        let token = match byte {
            b'-' | b'0'..=b'9' => Token::Number(Grammar::Start),
            b't' => Token::Literal { kind: Scalar::True, rest: b"rue" },
            b'f' => Token::Literal { kind: Scalar::False, rest: b"alse" },
            b'n' => Token::Literal { kind: Scalar::Null, rest: b"ull" },
            _ => return Err(unexpected(byte, self.expect, at)),
        };
        Ok(self.begin(token, false, at))
    }

    #[inline]
    fn open(&mut self, container: Container, at: u64) -> Step {
        if self.open.len() >= self.depth_max {
            return Err(StreamFault::TooDeep { offset: at, depth_max: self.depth_max });
        }
        let told = self.is_told();
        self.open.push(container);
        self.expect = match container {
            Container::Object => Expect::FirstKey,
            Container::Array => Expect::FirstValue,
        };
        Ok(told.then_some(Event::Open { container, inside: at + 1 }))
    }

    #[inline]
    fn close(&mut self, container: Container, at: u64) -> Step {
        if self.open.last() != Some(&container) {
            let what = "the bracket closes what is not open";
            return Err(StreamFault::Invalid { offset: at, what });
        }
        let empty = matches!(self.expect, Expect::FirstKey | Expect::FirstValue);
        let told = self.is_told();
        self.open.pop();
        self.expect = if self.open.is_empty() { Expect::End } else { Expect::CommaOrClose };
        if told {
            self.told_depth = self.told_depth.min(self.open.len()).max(1);
        }
        Ok(told.then_some(Event::Close { empty }))
    }

    #[inline]
    fn is_told(&self) -> bool {
        self.open.len() <= self.told_depth
    }

    #[inline]
    fn end_scalar(&mut self, kind: Scalar, end: u64) -> Option<Event> {
        self.token = Token::Between;
        self.expect = Expect::CommaOrClose;
        self.is_told().then_some(Event::Scalar { kind, start: self.start, end })
    }

    #[inline]
    fn literal(
        &mut self,
        kind: Scalar,
        rest: &'static [u8],
        byte: u8,
        piece: &mut Piece<'_>,
    ) -> Step {
        match rest.split_first() {
            Some((&expected, rest)) if expected == byte => {
                piece.advance(1);
                if rest.is_empty() {
                    return Ok(self.end_scalar(kind, piece.offset()));
                }
                self.token = Token::Literal { kind, rest };
                Ok(None)
            }
            _ => Err(unexpected(byte, Expect::Value, piece.offset())),
        }
    }

    #[inline]
    fn string(&mut self, piece: &mut Piece<'_>) -> Step {
        if self.bytes.is_begun() {
            let completed = self.bytes.complete(piece.rest)?;
            self.keep(piece.rest.get(..completed).unwrap_or_default());
            piece.advance(completed);
        }
        let window = piece.rest.get(..WIDE_BYTES).unwrap_or(piece.rest);
        let narrow = ascii_length(window.get(..NARROW_BYTES).unwrap_or(window));
        let run_length = match window.get(narrow) {
            None | Some(b'"' | b'\\') => narrow,
            Some(_) => {
                let wide = window.get(narrow..).unwrap_or_default();
                narrow + memchr2(b'"', b'\\', wide).unwrap_or(wide.len())
            }
        };
        let run = window.get(..run_length).unwrap_or_default();
        if run_length > narrow {
            self.bytes.check(run, piece.offset(), run_length < window.len())?;
        }
        self.keep(run);
        piece.advance(run_length);
        if run_length == window.len() {
            return Ok(None);
        }
        let quote = piece.rest.first() == Some(&b'"');
        piece.advance(1);
        if quote {
            return Ok(self.end_string(piece.offset()));
        }
        self.token = Token::Escape;
        match piece.rest.first() {
            Some(&byte) => self.escape(byte, piece),
            None => Ok(None),
        }
    }

    #[inline]
    fn end_string(&mut self, end: u64) -> Option<Event> {
        if self.is_told() {
            self.text.end();
        }
        if !self.is_key {
            return self.end_scalar(Scalar::String, end);
        }
        self.token = Token::Between;
        self.expect = Expect::Colon;
        self.is_told().then_some(Event::Key)
    }

    fn escape(&mut self, letter: u8, piece: &mut Piece<'_>) -> Step {
        let meant = simple_escape(letter);
        self.token = match letter {
            b'u' => Token::Hex { digits_left: 4 },
            _ if meant.is_some() => Token::String,
            _ => return Err(piece.invalid("no such escape in a string")),
        };
        if self.is_told() {
            self.text.keep_escape(letter, meant);
        }
        piece.advance(1);
        Ok(None)
    }

    fn hex(&mut self, byte: u8, digits_left: u8, piece: &mut Piece<'_>) -> Step {
        if !byte.is_ascii_hexdigit() {
            return Err(piece.invalid("a \\u escape takes four hexadecimal digits"));
        }
        self.token = match digits_left {
            1 => Token::String,
            _ => Token::Hex { digits_left: digits_left - 1 },
        };
        self.keep(&[byte]);
        piece.advance(1);
        Ok(None)
    }

    /// Keeps a part of a text that is reported.
    #[inline]
    fn keep(&mut self, bytes: &[u8]) {
        if self.is_told() {
            self.text.keep(bytes);
        }
    }

    #[inline]
    fn number(&mut self, mut number: Grammar, piece: &mut Piece<'_>) -> Step {
        let mut length = 0;
        let mut next = None;
        for &byte in piece.rest {
            let Some(further) = number.then(byte) else {
                next = Some(byte);
                break;
            };
            number = further;
            length += 1;
        }
        let digits = piece.rest.get(..length).unwrap_or_default();
        self.keep(digits);
        piece.advance(length);
        self.token = Token::Number(number);
        match next {
            None => Ok(None),
            Some(_) if number.may_end() => {
                self.text.end();
                Ok(self.end_scalar(Scalar::Number, piece.offset()))
            }
            Some(_) => Err(piece.invalid("a digit is missing in the number")),
        }
    }
}

fn unexpected(byte: u8, expect: Expect, offset: u64) -> StreamFault {
    let what = match (byte, expect) {
        (0xef, Expect::Document) => "a byte order mark; send it without one",
        (0x00 | 0xfe | 0xff, _) => NOT_UTF8,
        (_, Expect::Document) => "it must be a JSON object",
        (_, Expect::FirstKey) => "expected a key in quotes or `}`",
        (_, Expect::Key) => "expected a key in quotes",
        (_, Expect::Colon) => "expected `:` after the key",
        (_, Expect::FirstValue) => "expected a value or `]`",
        (_, Expect::Value) => "expected a value",
        (_, Expect::CommaOrClose) => "expected `,` or the closing bracket",
        (_, Expect::End) => "bytes after the end of the object",
    };
    StreamFault::Invalid { offset, what }
}
