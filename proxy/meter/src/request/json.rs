//! A push reader for JSON by RFC 8259, strict.
//!
//! Reads a document whose outermost value is an object and tells of its members; what lies deeper
//! is checked and passed over, except inside a member that the caller asks to follow. Keeps no more
//! than one short text and one byte per level of nesting.

use memchr::memchr2;

use super::fault::RequestFault;
use super::number::Number;
use super::string::{NOT_UTF8, StringBytes, plain_length};
use super::text::Text;

/// Deepest nesting that is read where nothing else is said, the outermost object included.
pub(crate) const JSON_DEPTH_MAX: usize = 256;

/// Bytes of a string that are looked at before the wide search starts: most keys and short values
/// end before it would pay.
const NARROW_BYTES: usize = 32;

/// Bytes of a string that are searched and then checked in one go, so that they are still in the
/// cache.
const WIDE_BYTES: usize = 16 << 10;

/// What the reader came across, at a level that it tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// A key; its text is in [`Reader::text`].
    Key,
    /// A whole value without parts, `start..end` in the body; a string's or number's text is in
    /// [`Reader::text`].
    Scalar { kind: Scalar, start: u64, end: u64 },
    /// An object or array begins; `inside` is the offset behind its bracket.
    Open { container: Container, inside: u64 },
    /// The container that was followed ends; it has no members if `empty`.
    Close { empty: bool },
}

/// Kinds of values without parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    String,
    Number,
    True,
    False,
    Null,
}

/// Kinds of values with parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Object,
    Array,
}

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

/// The token that the reader is inside of.
#[derive(Debug, Clone, Copy)]
enum Token {
    Between,
    String,
    Escape,
    Hex { digits_left: u8, code: u16 },
    Number(Number),
    Literal { kind: Scalar, rest: &'static [u8] },
}

/// The unread rest of a piece, and where in the body it ends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Piece<'a> {
    pub(super) rest: &'a [u8],
    pub(super) end: u64,
}

impl Piece<'_> {
    fn offset(&self) -> u64 {
        self.end - self.rest.len() as u64
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }
}

/// The push reader.
#[derive(Debug)]
pub(super) struct Reader {
    token: Token,
    expect: Expect,
    open: Vec<Container>,
    /// Deepest nesting that is read.
    depth_max: usize,
    /// Deepest level whose members are told of.
    told_depth: usize,
    /// Whether the current string is a key.
    is_key: bool,
    /// Offset of the current token's first byte.
    start: u64,
    bytes: StringBytes,
    text: Text,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self {
            token: Token::Between,
            expect: Expect::Document,
            open: Vec::with_capacity(16),
            depth_max: JSON_DEPTH_MAX,
            told_depth: 1,
            is_key: false,
            start: 0,
            bytes: StringBytes::default(),
            text: Text::default(),
        }
    }

    /// Reads what is nested so deep, the outermost object included, and nothing deeper.
    pub(super) const fn nest(&mut self, depth_max: usize) {
        self.depth_max = depth_max;
    }

    /// The level of the last event: 1 for the members of the outermost object.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    /// Tell of the members of the container that the last event opened, up to its end.
    pub(super) fn follow(&mut self) {
        self.told_depth = self.open.len();
    }

    /// Text of the last key, string or number; `None` when it is too long to be kept.
    pub(super) fn text(&self) -> Option<&str> {
        self.text.get()
    }

    /// Read on to the next event; `None` at the end of the piece.
    pub(super) fn next(&mut self, piece: &mut Piece<'_>) -> Result<Option<Event>, RequestFault> {
        while let Some(&byte) = piece.rest.first() {
            let event = match self.token {
                Token::Between => self.between(byte, piece)?,
                Token::String => self.string(piece)?,
                Token::Escape => self.escape(byte, piece)?,
                Token::Hex { digits_left, code } => self.hex(byte, digits_left, code, piece)?,
                Token::Number(number) => self.number(number, piece)?,
                Token::Literal { kind, rest } => self.literal(kind, rest, byte, piece)?,
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// Close the document, which ends at `offset`.
    pub(super) fn finish(&self, offset: u64) -> Result<(), RequestFault> {
        let what = match (self.token, self.expect) {
            (Token::Between, Expect::End) => return Ok(()),
            (Token::Between, Expect::Document) => "the body is empty; send a JSON object",
            (Token::String | Token::Escape | Token::Hex { .. }, _) => "the body ends in a string",
            _ => "the body ends before its object does",
        };
        Err(RequestFault::InvalidJson { offset, what })
    }

    fn between(&mut self, byte: u8, piece: &mut Piece<'_>) -> Result<Option<Event>, RequestFault> {
        let at = piece.offset();
        let event = match (byte, self.expect) {
            (b' ' | b'\t' | b'\n' | b'\r', _) => None,
            (b'"', Expect::FirstKey | Expect::Key) => self.begin_string(at, true),
            (b'"', Expect::FirstValue | Expect::Value) => self.begin_string(at, false),
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
        // A number's first byte is read again by the number's own rules.
        if !matches!(self.token, Token::Number(_)) {
            piece.advance(1);
        }
        Ok(event)
    }

    fn expecting(&mut self, expect: Expect) -> Option<Event> {
        self.expect = expect;
        None
    }

    fn begin_string(&mut self, at: u64, is_key: bool) -> Option<Event> {
        self.token = Token::String;
        self.is_key = is_key;
        self.begin_text(at);
        None
    }

    fn begin_text(&mut self, at: u64) {
        self.start = at;
        self.text.clear();
    }

    fn begin_plain(&mut self, byte: u8, at: u64) -> Result<Option<Event>, RequestFault> {
        self.token = match byte {
            b'-' | b'0'..=b'9' => Token::Number(Number::Start),
            b't' => Token::Literal { kind: Scalar::True, rest: b"rue" },
            b'f' => Token::Literal { kind: Scalar::False, rest: b"alse" },
            b'n' => Token::Literal { kind: Scalar::Null, rest: b"ull" },
            _ => return Err(unexpected(byte, self.expect, at)),
        };
        self.begin_text(at);
        Ok(None)
    }

    fn open(&mut self, container: Container, at: u64) -> Result<Option<Event>, RequestFault> {
        if self.open.len() >= self.depth_max {
            return Err(RequestFault::TooDeep { offset: at, depth_max: self.depth_max });
        }
        let told = self.is_told();
        self.open.push(container);
        self.expect = match container {
            Container::Object => Expect::FirstKey,
            Container::Array => Expect::FirstValue,
        };
        Ok(told.then_some(Event::Open { container, inside: at + 1 }))
    }

    fn close(&mut self, container: Container, at: u64) -> Result<Option<Event>, RequestFault> {
        if self.open.last() != Some(&container) {
            let what = "the bracket closes what is not open";
            return Err(RequestFault::InvalidJson { offset: at, what });
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

    fn is_told(&self) -> bool {
        self.open.len() <= self.told_depth
    }

    fn end_scalar(&mut self, kind: Scalar, end: u64) -> Option<Event> {
        self.token = Token::Between;
        self.expect = Expect::CommaOrClose;
        self.is_told().then_some(Event::Scalar { kind, start: self.start, end })
    }

    fn literal(
        &mut self,
        kind: Scalar,
        rest: &'static [u8],
        byte: u8,
        piece: &mut Piece<'_>,
    ) -> Result<Option<Event>, RequestFault> {
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

    fn string(&mut self, piece: &mut Piece<'_>) -> Result<Option<Event>, RequestFault> {
        let completed = self.bytes.complete(piece.rest)?;
        self.keep(piece.rest.get(..completed).unwrap_or_default());
        piece.advance(completed);
        let window = piece.rest.get(..WIDE_BYTES).unwrap_or(piece.rest);
        let narrow = plain_length(window.get(..NARROW_BYTES).unwrap_or(window));
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

    fn end_string(&mut self, end: u64) -> Option<Event> {
        self.text.end_surrogate();
        if !self.is_key {
            return self.end_scalar(Scalar::String, end);
        }
        self.token = Token::Between;
        self.expect = Expect::Colon;
        self.is_told().then_some(Event::Key)
    }

    fn escape(&mut self, byte: u8, piece: &mut Piece<'_>) -> Result<Option<Event>, RequestFault> {
        let plain = match byte {
            b'"' | b'\\' | b'/' => byte,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                self.token = Token::Hex { digits_left: 4, code: 0 };
                piece.advance(1);
                return Ok(None);
            }
            _ => {
                let what = "no such escape in a string";
                return Err(RequestFault::InvalidJson { offset: piece.offset(), what });
            }
        };
        self.keep(&[plain]);
        self.token = Token::String;
        piece.advance(1);
        Ok(None)
    }

    fn hex(
        &mut self,
        byte: u8,
        digits_left: u8,
        code: u16,
        piece: &mut Piece<'_>,
    ) -> Result<Option<Event>, RequestFault> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            _ => {
                let what = "a \\u escape takes four hexadecimal digits";
                return Err(RequestFault::InvalidJson { offset: piece.offset(), what });
            }
        };
        let code = (code << 4) | u16::from(digit);
        self.token = match digits_left {
            1 => {
                if self.is_told() {
                    self.text.keep_code_unit(code);
                }
                Token::String
            }
            _ => Token::Hex { digits_left: digits_left - 1, code },
        };
        piece.advance(1);
        Ok(None)
    }

    /// Keep what belongs to a text that is told of.
    fn keep(&mut self, bytes: &[u8]) {
        if self.is_told() {
            self.text.keep(bytes);
        }
    }

    fn number(
        &mut self,
        mut number: Number,
        piece: &mut Piece<'_>,
    ) -> Result<Option<Event>, RequestFault> {
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
            Some(_) if number.is_whole() => Ok(self.end_scalar(Scalar::Number, piece.offset())),
            Some(_) => {
                let what = "a digit is missing in the number";
                Err(RequestFault::InvalidJson { offset: piece.offset(), what })
            }
        }
    }
}

fn unexpected(byte: u8, expect: Expect, offset: u64) -> RequestFault {
    let what = match (byte, expect) {
        (0xef, Expect::Document) => "a byte order mark; send the body without it",
        (0x00 | 0xfe | 0xff, _) => NOT_UTF8,
        (_, Expect::Document) => "the body must be a JSON object",
        (_, Expect::FirstKey) => "expected a key in quotes or `}`",
        (_, Expect::Key) => "expected a key in quotes",
        (_, Expect::Colon) => "expected `:` after the key",
        (_, Expect::FirstValue) => "expected a value or `]`",
        (_, Expect::Value) => "expected a value",
        (_, Expect::CommaOrClose) => "expected `,` or the closing bracket",
        (_, Expect::End) => "bytes after the end of the object",
    };
    RequestFault::InvalidJson { offset, what }
}
