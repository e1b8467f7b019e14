//! Reads the body of a form (`multipart/form-data`, RFC 7578) while it passes.
//!
//! The reader looks at the names of the parts and at a few short values, and skips files. It
//! refuses what two readers could read differently: a part without one clear name, or a field given
//! twice.

use memchr::memchr;

use crate::json_reader::{Limit, MODEL_REQUIREMENT, RequestFacts, RequestFault};
use taximeter_meter::Wire;

/// Longest head of a part, in bytes.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// Longest value that is kept, in bytes.
const VALUE_BYTES_MAX: usize = 256;

/// Longest boundary (RFC 2046).
const BOUNDARY_BYTES_MAX: usize = 70;

/// What stands before every boundary; the first has no line end before it.
const BEFORE_BOUNDARY: &[u8] = b"\r\n--";
const LINE_END_BYTES: usize = 2;

/// Reads one form.
#[derive(Debug)]
pub(crate) struct FormReader {
    /// What ends a value: a line end, two hyphens, the boundary.
    delimiter: Vec<u8>,
    /// Bytes of the delimiter that have just passed.
    matched: usize,
    /// The next byte may be the first of a value, and the line end before it the delimiter's.
    is_first: bool,
    offset: u64,
    state: FormState,
    /// Head of the current part, or what follows a delimiter.
    head: Vec<u8>,
    /// The field that the current part is, if it is one that we act on.
    field: Option<FormField>,
    value: Vec<u8>,
    /// Fields that were there, one bit each.
    seen: u8,
    facts: RequestFacts,
}

/// Where in the form the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormState {
    Start,
    BehindDelimiter,
    Head,
    Value,
    End,
}

/// Fields that we act on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormField {
    Model,
    Stream,
    Choices,
    User,
}

impl FormReader {
    /// A reader for a body of `content_type` on `wire`; `None` when that is no form, or one whose
    /// boundary or text is not clear.
    pub(crate) fn new(wire: Wire, content_type: &str) -> Option<Self> {
        let mut parameters = Parameters(content_type);
        if !parameters.next()?.0.eq_ignore_ascii_case("multipart/form-data") {
            return None;
        }
        let mut boundary = None;
        for (name, value) in parameters {
            let is_known = match name.to_ascii_lowercase().as_str() {
                "boundary" => boundary.replace(value).is_none(),
                "charset" => value.eq_ignore_ascii_case("utf-8"),
                _ => true,
            };
            if !is_known {
                return None;
            }
        }
        let boundary = boundary.filter(|boundary| is_boundary(boundary))?;
        Some(Self {
            delimiter: [BEFORE_BOUNDARY, boundary.as_bytes()].concat(),
            // As if a line had just ended.
            matched: LINE_END_BYTES,
            is_first: false,
            offset: 0,
            state: FormState::Start,
            head: Vec::new(),
            field: None,
            value: Vec::new(),
            seen: 0,
            facts: RequestFacts::nothing(wire),
        })
    }

    /// Reads on, to the first fault.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<(), RequestFault> {
        let end = self.offset + bytes.len() as u64;
        let mut rest = bytes;
        while let Some((&byte, tail)) = rest.split_first() {
            let at = end - rest.len() as u64;
            match self.state {
                FormState::Start if self.delimiter.get(self.matched) != Some(&byte) => {
                    return Err(invalid(at, "it does not begin with its boundary"));
                }
                FormState::Start => {
                    self.step_delimiter();
                }
                FormState::BehindDelimiter => self.behind_delimiter(at, byte)?,
                FormState::Head => self.head(at, byte)?,
                FormState::Value => {
                    rest = self.value(at, rest)?;
                    continue;
                }
                FormState::End if matches!(byte, b'\r' | b'\n') => {}
                FormState::End => return Err(invalid(at, "bytes behind its last boundary")),
            }
            rest = tail;
        }
        self.offset = end;
        Ok(())
    }

    /// Close the body; `InvalidForm` when it ends too early.
    pub(crate) fn finish(self) -> Result<RequestFacts, RequestFault> {
        if self.state != FormState::End {
            return Err(invalid(self.offset, "it ends before its last boundary"));
        }
        Ok(self.facts)
    }

    /// One more byte of the delimiter; tells whether it was the last.
    fn step_delimiter(&mut self) -> bool {
        self.matched += 1;
        let is_whole = self.matched == self.delimiter.len();
        if is_whole {
            self.matched = 0;
            self.head.clear();
            self.state = FormState::BehindDelimiter;
        }
        is_whole
    }

    fn behind_delimiter(&mut self, at: u64, byte: u8) -> Result<(), RequestFault> {
        self.head.push(byte);
        self.state = match self.head.as_slice() {
            [_] => return Ok(()),
            b"\r\n" => FormState::Head,
            b"--" => FormState::End,
            _ => return Err(invalid(at, "bytes behind a boundary")),
        };
        self.head.clear();
        Ok(())
    }

    fn head(&mut self, at: u64, byte: u8) -> Result<(), RequestFault> {
        self.head.push(byte);
        if self.head.len() > HEAD_BYTES_MAX {
            return Err(invalid(at, "the head of a part is too long"));
        }
        if self.head == b"\r\n" || self.head.ends_with(b"\r\n\r\n") {
            self.field = self.named().map_err(|what| invalid(at, what))?;
            if let Some(field) = self.field {
                let bit = 1 << field as u8;
                if self.seen & bit != 0 {
                    return Err(RequestFault::DuplicateKey { key: field.name() });
                }
                self.seen |= bit;
            }
            self.value.clear();
            self.state = FormState::Value;
            self.matched = LINE_END_BYTES;
            self.is_first = true;
        }
        Ok(())
    }

    /// The field that the head names, if it is one that we act on.
    fn named(&self) -> Result<Option<FormField>, &'static str> {
        const UNCLEAR: &str = "a part without one clear name";
        let head = String::from_utf8_lossy(&self.head);
        let mut disposition = None;
        let mut is_plain = true;
        for line in head.split("\r\n").filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').ok_or(UNCLEAR)?;
            match name.to_ascii_lowercase().as_str() {
                "content-disposition" if disposition.replace(value).is_none() => {}
                "content-transfer-encoding" => {
                    let codings = ["binary", "8bit", "7bit"];
                    is_plain &= codings.iter().any(|c| value.trim().eq_ignore_ascii_case(c));
                }
                name if name == "content-disposition" || name.trim() != name => {
                    return Err(UNCLEAR);
                }
                _ => {}
            }
        }
        // A quote behind a backslash ends the text for some, and does not for others.
        let disposition = disposition.filter(|value| !value.contains("\\\"")).ok_or(UNCLEAR)?;
        let mut parameters = Parameters(disposition);
        let is_form = parameters.next().is_some_and(|(kind, _)| kind == "form-data");
        let mut name = None;
        for (key, value) in parameters {
            match key.to_ascii_lowercase().as_str() {
                "name" if name.replace(value).is_none() => {}
                "name" | "name*" => return Err(UNCLEAR),
                key if key.starts_with("filename") => is_plain = false,
                _ => {}
            }
        }
        let name = name.filter(|name| is_form && !name.contains('\\')).ok_or(UNCLEAR)?;
        match FormField::named(name) {
            Some(_) if !is_plain => Err("a field that is no plain text"),
            field => Ok(field),
        }
    }

    /// Reads on in a value; the rest that is not read yet.
    fn value<'b>(&mut self, at: u64, rest: &'b [u8]) -> Result<&'b [u8], RequestFault> {
        if self.matched == 0 {
            let plain = memchr(b'\r', rest).unwrap_or(rest.len());
            let (value, rest) = rest.split_at_checked(plain).unwrap_or((rest, &[]));
            self.keep(value);
            self.matched = usize::from(!rest.is_empty());
            return Ok(rest.get(self.matched..).unwrap_or_default());
        }
        let (next, tail) = rest.split_first().unzip();
        if self.delimiter.get(self.matched) != next {
            // No line end stands inside a delimiter, so none of this begins another.
            let before = if std::mem::take(&mut self.is_first) { LINE_END_BYTES } else { 0 };
            let passed = self.delimiter.get(before..self.matched).unwrap_or_default().to_vec();
            self.keep(&passed);
            self.matched = 0;
            return Ok(rest);
        }
        if self.step_delimiter() {
            if self.is_first {
                return Err(invalid(at, "a value that begins with the boundary"));
            }
            self.finish_value(at)?;
        }
        Ok(tail.unwrap_or_default())
    }

    /// Keeps one byte more than may be kept, to tell a value that is too long.
    fn keep(&mut self, bytes: &[u8]) {
        if self.field.is_some() {
            let room = (VALUE_BYTES_MAX + 1).saturating_sub(self.value.len());
            self.value.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        }
    }

    fn finish_value(&mut self, at: u64) -> Result<(), RequestFault> {
        let Some(field) = self.field.take() else { return Ok(()) };
        let text = std::str::from_utf8(&self.value);
        let text = text.map_err(|_| invalid(at, "not UTF-8; send the fields as UTF-8"))?;
        let is_kept = text.len() <= VALUE_BYTES_MAX;
        let wrong = |what| RequestFault::InvalidValue { param: field.name(), what };
        match field {
            FormField::Model if text.is_empty() => {}
            FormField::Model if is_kept && !text.chars().any(char::is_control) => {
                self.facts.model = Some(text.to_owned());
            }
            FormField::Model => return Err(wrong(MODEL_REQUIREMENT)),
            FormField::Stream => {
                self.facts.stream = flag(text).ok_or_else(|| wrong("true or false"))?;
            }
            // The engine judges any other value. The gateway makes no limit of it.
            FormField::Choices => {
                if let Some(limit) = Limit::read(text) {
                    self.facts.count_choices(limit);
                }
            }
            FormField::User => self.facts.user = is_kept.then(|| text.to_owned()),
        }
        Ok(())
    }
}

impl FormField {
    fn named(name: &str) -> Option<Self> {
        [Self::Model, Self::Stream, Self::Choices, Self::User]
            .into_iter()
            .find(|field| field.name() == name)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Stream => "stream",
            Self::Choices => "n",
            Self::User => "user",
        }
    }
}

/// The words that engines written in Python take for true and false.
fn flag(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "on" | "yes" | "t" | "y" => Some(true),
        "false" | "0" | "off" | "no" | "f" | "n" | "" => Some(false),
        _ => None,
    }
}

fn invalid(offset: u64, what: &'static str) -> RequestFault {
    RequestFault::InvalidForm { offset, what }
}

fn is_boundary(boundary: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"'()+_,-./:=? ".contains(&byte);
    (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len())
        && boundary.bytes().all(is_allowed)
        && !boundary.ends_with(' ')
}

/// Parts of a header value between semicolons, as name and value; the first has no value.
struct Parameters<'a>(&'a str);

impl<'a> Iterator for Parameters<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let rest = self.0.trim_start_matches([' ', '\t', ';']);
        if rest.is_empty() {
            return None;
        }
        let mut is_quoted = false;
        let end = rest.find(|character| {
            is_quoted ^= character == '"';
            character == ';' && !is_quoted
        });
        let (one, rest) = rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or((rest, ""));
        self.0 = rest;
        let (name, value) = one.split_once('=').unwrap_or((one, ""));
        let value = value.trim();
        let unquoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        Some((name.trim(), unquoted.unwrap_or(value)))
    }
}

#[cfg(test)]
mod tests;
