//! Finds where the messages of an HTTP/1 connection begin and end, strictly by RFC 9112.
//!
//! Bytes that two readers could understand in two ways are a fault. hyper reads the same bytes
//! afterwards and is more lenient: it accepts a bare LF as the end of a line, accepts a repeated
//! equal length, and ignores a length next to a transfer coding.
//!
//! The caller passes bytes as they come. Bodies are skipped by counting, and only the beginning of
//! a line is kept.

mod fault;
mod request;
#[cfg(test)]
mod tests;

use memchr::memchr2;

use request::RequestHead;

pub use fault::FramingFault;

/// Kept of a line, in bytes: a status line, a length or a coding is shorter.
const LINE_BYTES_KEPT: usize = 64;
/// Digits of a chunk's size.
const CHUNK_SIZE_DIGITS_MAX: usize = 16;
/// Longest body that a length may announce, in bytes.
const LENGTH_MAX: u64 = 1 << 63;

/// A fault, and how many bytes before it are correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken {
    /// Offset of the first byte that is at fault.
    pub at: usize,
    /// What is wrong.
    pub fault: FramingFault,
}

/// Reads the messages of one direction of a connection.
#[derive(Debug)]
pub struct Framing {
    kind: Direction,
    head_bytes_max: usize,
    fields_max: usize,
    state: State,
    line: Line,
    head: Head,
    request: RequestHead,
    /// How the request begins.
    first_line: Line,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Requests,
    Answers,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// A request begins with the next byte; of answers none is expected, and what comes is not
    /// looked at.
    #[default]
    Between,
    FirstLine,
    Fields,
    ChunkSize {
        digits: usize,
        size: u64,
    },
    /// Behind a chunk's size.
    ChunkStart(u64),
    /// In data, with so many bytes to come.
    Data(u64),
    /// Behind a chunk's data.
    ChunkEnd,
    Trailers,
    UntilClose,
}

/// The only transfer coding that is read.
const CHUNKED: &[u8] = b"chunked";
/// Before the first digit of a chunk's size.
const CHUNK: State = State::ChunkSize { digits: 0, size: 0 };

/// What a head says of its message's end.
#[derive(Debug, Default)]
struct Head {
    /// The answer to HEAD: it has no body whatever it says.
    to_head: bool,
    /// Of it so far, and of the interim heads before it.
    bytes: usize,
    http10: bool,
    status: u16,
    length: Option<u64>,
    chunked: bool,
}

/// The line being read.
#[derive(Debug, Clone, Copy)]
struct Line {
    kept: [u8; LINE_BYTES_KEPT],
    /// Of the whole line, without its end.
    len: usize,
    /// Its CR has come.
    ending: bool,
}

impl Framing {
    /// For requests, one after the other, with limits on the bytes and the fields of their heads.
    pub fn requests(head_bytes_max: usize, fields_max: usize) -> Self {
        Self::new(Direction::Requests, head_bytes_max, fields_max)
    }

    /// For answers, with a limit on the bytes of their heads. No answer is expected yet.
    pub fn answers(head_bytes_max: usize) -> Self {
        // How many fields they have is hyper's to judge.
        Self::new(Direction::Answers, head_bytes_max, usize::MAX)
    }

    fn new(kind: Direction, head_bytes_max: usize, fields_max: usize) -> Self {
        let (state, line, head, request, first_line) = Default::default();
        Self { kind, head_bytes_max, fields_max, state, line, head, request, first_line }
    }

    /// The beginning of the first line of the current message, as far as it is kept.
    pub fn first_line(&self) -> &[u8] {
        match self.state {
            State::FirstLine => self.line.kept(),
            _ => self.first_line.kept(),
        }
    }

    /// Whether what is being read belongs to a body, trailers included, and not to a head.
    pub const fn is_in_body(&self) -> bool {
        !matches!(self.state, State::Between | State::FirstLine | State::Fields)
    }

    /// Notes that a request was sent. Its answer begins with the next byte.
    pub fn expect(&mut self, to_head: bool) {
        self.begin();
        self.head.to_head = to_head;
    }

    fn begin(&mut self) {
        let new = Self::new(self.kind, self.head_bytes_max, self.fields_max);
        *self = Self { state: State::FirstLine, ..new };
    }

    /// Reads the next bytes, which may be cut anywhere.
    ///
    /// Errors: what came is not one message only; nothing after it can be read.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.state == State::Between && self.kind == Direction::Requests {
                self.begin();
            }
            let taken = match self.state {
                State::Between | State::UntilClose => return Ok(()),
                State::Data(left) => Ok(self.skip(left, rest.len())),
                State::ChunkSize { digits, size } => self.read_size(digits, size, rest),
                State::FirstLine | State::Fields => self.read_head(rest),
                // Nearly all lines in a body are so, and there are two a chunk.
                state if self.line.is_new() && rest.starts_with(b"\r\n") => {
                    self.state = state.after_line();
                    Ok(2)
                }
                _ => self.read_line(rest),
            };
            let at = bytes.len() - rest.len();
            let taken = taken.map_err(|fault| Broken { at, fault })?;
            rest = rest.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    fn skip(&mut self, left: u64, there: usize) -> usize {
        let taken = usize::try_from(left).map_or(there, |left| left.min(there));
        self.state = match left - taken as u64 {
            0 if self.head.chunked => State::ChunkEnd,
            0 => State::Between,
            left => State::Data(left),
        };
        taken
    }

    fn read_size(
        &mut self,
        mut digits: usize,
        mut size: u64,
        rest: &[u8],
    ) -> Result<usize, FramingFault> {
        let before = digits;
        for &byte in rest {
            let digit = char::from(byte).to_digit(16).filter(|_| digits < CHUNK_SIZE_DIGITS_MAX);
            let Some(digit) = digit else {
                match byte {
                    b'\r' | b'\n' | b';' if digits > 0 => self.state = State::ChunkStart(size),
                    _ if digits == before => return Err(FramingFault::ChunkSize),
                    _ => self.state = State::ChunkSize { digits, size },
                }
                return Ok(digits - before);
            };
            (digits, size) = (digits + 1, size << 4 | u64::from(digit));
        }
        self.state = State::ChunkSize { digits, size };
        Ok(rest.len())
    }

    fn read_head(&mut self, rest: &[u8]) -> Result<usize, FramingFault> {
        let left = self.head_bytes_max - self.head.bytes;
        let part = rest.get(..left).unwrap_or(rest);
        if part.is_empty() {
            return Err(FramingFault::HeadTooLarge);
        }
        let taken = self.read_line(part)?;
        self.head.bytes += taken;
        Ok(taken)
    }

    /// Up to the line's CR, or the LF after it.
    fn read_line(&mut self, rest: &[u8]) -> Result<usize, FramingFault> {
        match (self.line.ending, rest.first()) {
            (true, Some(b'\n')) => {
                self.state = self.line_ended()?;
                (self.line.len, self.line.ending) = (0, false);
                return Ok(1);
            }
            (true, _) | (false, Some(b'\n')) => return Err(FramingFault::LineEnd),
            (false, _) => {}
        }
        let end = memchr2(b'\r', b'\n', rest).unwrap_or(rest.len());
        if self.state == State::ChunkEnd && end > 0 {
            return Err(FramingFault::ChunkEnd);
        }
        let piece = rest.get(..end).unwrap_or_default();
        self.line.keep(piece);
        self.line.ending = rest.get(end) == Some(&b'\r');
        if self.kind == Direction::Requests
            && matches!(self.state, State::FirstLine | State::Fields)
        {
            self.request.read(piece, self.fields_max)?;
            // Empty lines before a request mean nothing (RFC 9112 §2.2).
            if self.line.ending && (self.state == State::Fields || self.line.len > 0) {
                let old = self.request.line_ended()?;
                self.head.http10 = old.unwrap_or(self.head.http10);
            }
        }
        Ok(end + usize::from(self.line.ending))
    }

    fn line_ended(&mut self) -> Result<State, FramingFault> {
        let line = self.line.kept();
        match self.state {
            State::FirstLine if self.kind == Direction::Requests && line.is_empty() => {
                Ok(State::FirstLine)
            }
            State::FirstLine if self.kind == Direction::Requests => {
                self.first_line = self.line;
                Ok(State::Fields)
            }
            State::FirstLine => {
                self.head.status_line(line).ok_or(FramingFault::StatusLine)?;
                Ok(State::Fields)
            }
            State::Fields if line.is_empty() => Ok(self.head_ended()),
            State::Fields => {
                self.head.field(self.kind, line, self.line.is_whole())?;
                Ok(State::Fields)
            }
            State::Trailers if !line.is_empty() => Ok(State::Trailers),
            state => Ok(state.after_line()),
        }
    }

    /// What follows a head (RFC 9112 §6.3).
    fn head_ended(&mut self) -> State {
        let head = &self.head;
        let requests = self.kind == Direction::Requests;
        match (head.status, head.length) {
            (101, _) => State::UntilClose,
            (100..200, _) => {
                self.head = Head { to_head: head.to_head, bytes: head.bytes, ..Head::default() };
                State::FirstLine
            }
            (204 | 304, _) | (_, Some(0)) => State::Between,
            _ if head.to_head => State::Between,
            (_, Some(length)) => State::Data(length),
            (_, None) if head.chunked => CHUNK,
            (_, None) if requests => State::Between,
            (_, None) => State::UntilClose,
        }
    }
}

impl State {
    /// Behind a line of a body, which is empty where trailers end.
    const fn after_line(self) -> Self {
        match self {
            Self::ChunkStart(0) => Self::Trailers,
            Self::ChunkStart(size) => Self::Data(size),
            Self::ChunkEnd => CHUNK,
            Self::Trailers => Self::Between,
            state => state,
        }
    }
}

impl Head {
    /// `HTTP/1.1 200 OK`, with any reason or none.
    fn status_line(&mut self, line: &[u8]) -> Option<()> {
        let (&minor, rest) = line.strip_prefix(b"HTTP/1.")?.split_first()?;
        let (status, reason) = rest.strip_prefix(b" ")?.split_at_checked(3)?;
        let digits = status.iter().all(u8::is_ascii_digit);
        (digits && reason.first().is_none_or(|&byte| byte == b' ')).then_some(())?;
        self.http10 = minor == b'0';
        self.status = std::str::from_utf8(status).ok()?.parse().ok()?;
        Some(())
    }

    fn field(&mut self, kind: Direction, line: &[u8], whole: bool) -> Result<(), FramingFault> {
        // Most fields begin with neither.
        if !matches!(line.first(), Some(b'C' | b'c' | b'T' | b't')) {
            return Ok(());
        }
        let colon = line.iter().position(|&byte| byte == b':');
        let Some((name, value)) = colon.and_then(|at| line.split_at_checked(at)) else {
            return Ok(());
        };
        let value = value.strip_prefix(b":").unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = length(value).filter(|_| whole && self.length.is_none());
            self.length = Some(length.ok_or(FramingFault::ContentLength)?);
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let alone = whole && !self.chunked && !self.http10;
            match value {
                chunked if alone && chunked.eq_ignore_ascii_case(CHUNKED) => self.chunked = true,
                codings if alone && kind == Direction::Requests && is_encoded(codings) => {
                    return Err(FramingFault::Encoded);
                }
                _ => return Err(FramingFault::TransferEncoding),
            }
        }
        if self.chunked && self.length.is_some() { Err(FramingFault::ClTe) } else { Ok(()) }
    }
}

impl Line {
    fn keep(&mut self, part: &[u8]) {
        let free = self.kept.get_mut(self.len..).unwrap_or_default();
        let fits = free.len().min(part.len());
        if let (Some(free), Some(part)) = (free.get_mut(..fits), part.get(..fits)) {
            free.copy_from_slice(part);
        }
        self.len = self.len.saturating_add(part.len());
    }

    fn kept(&self) -> &[u8] {
        self.kept.get(..self.len).unwrap_or(&self.kept)
    }

    const fn is_new(&self) -> bool {
        self.len == 0 && !self.ending
    }

    const fn is_whole(&self) -> bool {
        self.len <= LINE_BYTES_KEPT
    }
}

impl Default for Line {
    fn default() -> Self {
        Self { kept: [0; LINE_BYTES_KEPT], len: 0, ending: false }
    }
}

/// Whether these are transfer codings of RFC 9112 §7, in the order that it wants: a body that could be
/// read in one way, by whoever undoes them.
fn is_encoded(codings: &[u8]) -> bool {
    const OTHERS: [&[u8]; 5] = [b"gzip", b"x-gzip", b"deflate", b"compress", b"x-compress"];
    let mut codings = codings.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let last = codings.next_back();
    last.is_some_and(|coding| coding.eq_ignore_ascii_case(CHUNKED))
        && codings.all(|coding| OTHERS.iter().any(|other| coding.eq_ignore_ascii_case(other)))
}

/// A length: digits and nothing else.
fn length(value: &[u8]) -> Option<u64> {
    let digits = value.iter().all(u8::is_ascii_digit).then_some(value)?;
    let length = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (length <= LENGTH_MAX).then_some(length)
}
