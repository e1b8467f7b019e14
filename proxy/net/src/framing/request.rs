//! Checks the head of a request byte by byte: its request line, and the names and values of its
//! fields.
//!
//! It refuses everything in a head that hyper would refuse, so that the refusal has a cause and a
//! readable answer.

use memchr::memchr;

use super::fault::FramingFault;

/// Longest target that hyper reads, in bytes.
const TARGET_BYTES_MAX: usize = 65_534;
/// All versions begin so; one digit follows.
const VERSION_START: &[u8] = b"HTTP/1.";
/// The only method whose target is a host.
const CONNECT: &[u8] = b"CONNECT";

/// Reads along with the head of one request.
#[derive(Debug, Default)]
pub(super) struct RequestHead {
    part: Part,
    /// Of the part so far, in bytes.
    len: usize,
    /// The beginning of the method, then the version.
    kept: [u8; 8],
    /// What its target is, as far as that has begun.
    form: Form,
    fields: usize,
}

/// Of a target (RFC 9112 §3.2).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Form {
    #[default]
    Path,
    /// `*`, of the whole server.
    Asterisk,
    /// Of CONNECT: a host, and behind its colon a port.
    Host,
    Port,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Part {
    #[default]
    Method,
    Target,
    Version,
    Name,
    Value,
}

impl RequestHead {
    /// The next piece of a line, without its end. Of fields there may be `fields_max`.
    pub(super) fn read(&mut self, piece: &[u8], fields_max: usize) -> Result<(), FramingFault> {
        let mut rest = piece;
        while !rest.is_empty() {
            let taken = match self.part {
                Part::Method => self.read_method(rest)?,
                Part::Target => self.read_target(rest)?,
                Part::Version => self.read_version(rest)?,
                Part::Name => self.read_name(rest, fields_max)?,
                Part::Value => read_value(rest)?,
            };
            rest = rest.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    /// The line has ended; whether the request is one of HTTP/1.0, where it was its first line.
    pub(super) fn line_ended(&mut self) -> Result<Option<bool>, FramingFault> {
        let old = match (self.part, self.len) {
            (Part::Method | Part::Target, 0) | (Part::Method, _) => {
                return Err(FramingFault::RequestLine);
            }
            (Part::Target, _) => return Err(FramingFault::Version),
            (Part::Version, 8) => Some(self.kept.last() == Some(&b'0')),
            (Part::Version, _) => return Err(FramingFault::Version),
            // Only the last line is empty.
            (Part::Name, 0) | (Part::Value, _) => None,
            (Part::Name, _) => return Err(FramingFault::HeaderName),
        };
        self.begin(Part::Name);
        Ok(old)
    }

    const fn begin(&mut self, part: Part) {
        (self.part, self.len) = (part, 0);
    }

    fn read_method(&mut self, rest: &[u8]) -> Result<usize, FramingFault> {
        let space = memchr(b' ', rest);
        let piece = rest.get(..space.unwrap_or(rest.len())).unwrap_or_default();
        if !piece.iter().all(is_token) {
            return Err(FramingFault::RequestLine);
        }
        self.keep(piece);
        if space.is_none() {
            return Ok(piece.len());
        }
        if self.len == 0 {
            return Err(FramingFault::RequestLine);
        }
        let connects = self.kept.get(..self.len) == Some(CONNECT);
        self.form = if connects { Form::Host } else { Form::Path };
        self.begin(Part::Target);
        Ok(piece.len() + 1)
    }

    fn read_target(&mut self, rest: &[u8]) -> Result<usize, FramingFault> {
        let space = memchr(b' ', rest);
        let piece = rest.get(..space.unwrap_or(rest.len())).unwrap_or_default();
        if self.len == 0 && self.form == Form::Path && piece.first() == Some(&b'*') {
            self.form = Form::Asterisk;
        }
        let is_good = match self.form {
            Form::Path => {
                (self.len > 0 || matches!(piece.first(), None | Some(b'/')))
                    && piece.iter().all(is_of_target)
            }
            Form::Asterisk => self.len + piece.len() == 1 || piece.is_empty(),
            Form::Host if self.len == 0 && piece.first() == Some(&b':') => false,
            Form::Host | Form::Port => piece.iter().all(|byte| self.is_of_authority(*byte)),
        };
        if !is_good {
            return Err(FramingFault::Target);
        }
        self.len += piece.len();
        if self.len > TARGET_BYTES_MAX {
            return Err(FramingFault::TargetTooLong);
        }
        if space.is_none() {
            return Ok(piece.len());
        }
        if self.len == 0 {
            return Err(FramingFault::RequestLine);
        }
        self.begin(Part::Version);
        Ok(piece.len() + 1)
    }

    /// Reads along with a host and a port, without what some read as something else: credentials, a
    /// path.
    fn is_of_authority(&mut self, byte: u8) -> bool {
        match (self.form, byte) {
            (Form::Host, b':') => {
                self.form = Form::Port;
                true
            }
            (Form::Port, _) => byte.is_ascii_digit(),
            _ => byte.is_ascii_alphanumeric() || b".-_".contains(&byte),
        }
    }

    fn read_version(&mut self, rest: &[u8]) -> Result<usize, FramingFault> {
        self.keep(rest);
        let kept = self.kept.get(..self.len).ok_or(FramingFault::Version)?;
        let (start, minor) = kept.split_at(kept.len().min(VERSION_START.len()));
        if VERSION_START.starts_with(start) && matches!(minor, [] | [b'0' | b'1']) {
            Ok(rest.len())
        } else {
            Err(FramingFault::Version)
        }
    }

    fn read_name(&mut self, rest: &[u8], fields_max: usize) -> Result<usize, FramingFault> {
        if self.len == 0 {
            if let Some(b' ' | b'\t') = rest.first() {
                // The value of the field before goes on, where there is one.
                let fault = match self.fields {
                    0 => FramingFault::HeaderName,
                    _ => FramingFault::HeaderValue,
                };
                return Err(fault);
            }
            self.fields += 1;
            if self.fields > fields_max {
                return Err(FramingFault::TooManyFields);
            }
        }
        let colon = memchr(b':', rest);
        let piece = rest.get(..colon.unwrap_or(rest.len())).unwrap_or_default();
        self.len += piece.len();
        if self.len == 0 || !piece.iter().all(is_token) {
            return Err(FramingFault::HeaderName);
        }
        if colon.is_none() {
            return Ok(piece.len());
        }
        self.begin(Part::Value);
        Ok(piece.len() + 1)
    }

    fn keep(&mut self, piece: &[u8]) {
        let free = self.kept.get_mut(self.len..).unwrap_or_default();
        for (kept, byte) in free.iter_mut().zip(piece) {
            *kept = *byte;
        }
        self.len += piece.len();
    }
}

/// To the end of what is there of a line.
fn read_value(rest: &[u8]) -> Result<usize, FramingFault> {
    // Without a way out early, so that many bytes are looked at together.
    let is_control = |&byte: &u8| byte < b' ' && byte != b'\t' || byte == 0x7f;
    let bad = rest.iter().fold(false, |bad, byte| bad | is_control(byte));
    if bad { Err(FramingFault::HeaderValue) } else { Ok(rest.len()) }
}

/// Whether a token may have a byte: all names of all heads are looked at.
static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut rest: &mut [bool] = &mut table;
    let mut byte = 0_u8;
    while let [is_token, others @ ..] = rest {
        *is_token = byte.is_ascii_alphanumeric() || is_sign(byte);
        byte = byte.wrapping_add(1);
        rest = others;
    }
    table
};

const fn is_sign(byte: u8) -> bool {
    let mut signs: &[u8] = b"!#$%&'*+-.^_`|~";
    while let [sign, others @ ..] = signs {
        if *sign == byte {
            return true;
        }
        signs = others;
    }
    false
}

fn is_token(&byte: &u8) -> bool {
    TOKEN.get(usize::from(byte)).is_some_and(|is_token| *is_token)
}

/// What a URI may have in it, and what browsers leave there. A fragment is no part of a target.
fn is_of_target(byte: &u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'#' | b'<' | b'>' | b'`')
}
