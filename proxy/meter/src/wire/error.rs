//! Reads errors inside answers, in every form that providers give them.
//!
//! Each wire format knows where its own errors stand. A gateway or a framework before the engine
//! answers in a form of its own. So an event or a document that says nothing else is searched for the
//! forms of all of them.

use crate::facts::Facts;
use crate::json::{Malformed, Reader};
use crate::provider_error::{ProviderError, name};

/// How deep an error may stand in another: some pass on what an upstream of theirs has said.
const DEPTH_MAX: u8 = 3;

/// Values that say nothing.
const BLANKS: [&[u8]; 7] = [b"null", b"false", b"0", b"\"\"", b"\"0\"", b"{}", b"[]"];

/// Codes and messages of success.
const SUCCESSES: [&[u8]; 4] = [b"0", b"200", b"ok", b"success"];

/// Words that something failed: types and states of answers, and reasons to finish.
const FAILURES: [&[u8]; 4] = [b"error", b"fail", b"failed", b"failure"];

/// Reads the value of an `error` member; `None` where that means no error (`null`, `false`, empty).
pub(super) fn read(value: &mut Reader<'_>) -> Result<Option<ProviderError>, Malformed> {
    read_nested(value, DEPTH_MAX)
}

/// Adds to what a format has read what it does not know: an error in a form of others, and names that
/// stand beside an error. `is_error` says that the event is called an error.
pub(crate) fn complete(facts: &mut Facts<'_>, data: &[u8], is_error: bool) {
    if is_error || facts.error.is_some() || facts.says_nothing() {
        facts.error = match (facts.error.take(), find(data)) {
            (Some(known), Some(found)) => Some(known.over(found)),
            (known, found) => known.or(found),
        };
    }
    let has_failed = || {
        let mut reasons = facts.finish_reasons.iter();
        reasons.any(|(_, reason)| is_one_of(&FAILURES, reason.decode().as_bytes()))
    };
    if facts.error.is_none() && (is_error || has_failed()) {
        facts.error = Some(ProviderError::default());
    }
}

/// The error that a document is, one object or a list of them; `None` where it is something else.
pub(crate) fn find(document: &[u8]) -> Option<ProviderError> {
    let mut found = None;
    let read = Reader::new(document).one_or_each(|value| {
        let error = Envelope::read(value, DEPTH_MAX)?.error();
        found = found.take().or(error);
        Ok(())
    });
    read.ok().and(found)
}

fn read_nested(value: &mut Reader<'_>, depth: u8) -> Result<Option<ProviderError>, Malformed> {
    match value.peek() {
        Some(b'{') if depth > 0 => {
            let mut envelope = Envelope::default();
            let mut says_something = false;
            value.object(|key, value| {
                says_something |= !is_blank(written(value)?);
                envelope.read_member(key, value, depth - 1)
            })?;
            Ok(says_something.then(|| envelope.all_names()))
        }
        Some(b'[') if depth > 0 => {
            let mut first = None;
            value.array(|value| {
                let error = read_nested(value, depth - 1)?;
                first = first.take().or(error);
                Ok(())
            })?;
            Ok(first)
        }
        _ => {
            let value = value.verbatim()?.raw();
            let code = word(value).filter(|_| !value.starts_with(b"\""));
            let code = code.and_then(name);
            Ok((!is_blank(value)).then(|| ProviderError { code, ..ProviderError::default() }))
        }
    }
}

/// What an object says that may be an error.
#[derive(Debug, Default)]
struct Envelope {
    /// The names that it has itself.
    names: ProviderError,
    /// The error that it holds.
    inner: Option<ProviderError>,
    /// It says that it is an error.
    is_error: bool,
    /// It says that it is none.
    is_success: bool,
    has_message: bool,
    /// It holds what was asked for.
    has_result: bool,
}

impl Envelope {
    fn read(value: &mut Reader<'_>, depth: u8) -> Result<Self, Malformed> {
        let mut envelope = Self::default();
        value.object(|key, value| envelope.read_member(key, value, depth))?;
        Ok(envelope)
    }

    /// The error that it is, if it is one.
    fn error(self) -> Option<ProviderError> {
        let says_so = self.is_error || self.inner.is_some();
        let fails = says_so || self.has_message && !self.is_success;
        (fails && !self.has_result).then(|| self.all_names())
    }

    /// The names of the error that it holds, and then its own.
    fn all_names(self) -> ProviderError {
        self.inner.unwrap_or_default().over(self.names)
    }

    fn read_member(
        &mut self,
        key: &[u8],
        value: &mut Reader<'_>,
        depth: u8,
    ) -> Result<(), Malformed> {
        match key {
            b"error" | b"Error" | b"errors" | b"detail" => {
                self.inner = read_nested(value, depth)?.or(self.inner.take());
            }
            // MiniMax
            b"base_resp" if depth > 0 => {
                let base = Self::read(value, depth - 1)?;
                let code = base.names.status.filter(|_| !base.is_success);
                self.is_error |= code.is_some();
                self.names.code = code.or(self.names.code.take());
            }
            // Tencent and Volcengine
            b"Response" | b"ResponseMetadata" if depth > 0 => {
                self.inner = Self::read(value, depth - 1)?.error().or(self.inner.take());
            }
            b"success" => {
                let is_success = value.is_true()?;
                self.is_success |= is_success;
                self.is_error |= !is_success;
            }
            b"choices" | b"candidates" | b"content" | b"output" | b"delta" | b"embeddings"
            | b"results" => self.has_result |= !is_blank(value.verbatim()?.raw()),
            _ => self.read_word(key, value.verbatim()?.raw()),
        }
        Ok(())
    }

    /// Reads a member that is a word.
    fn read_word(&mut self, key: &[u8], value: &[u8]) {
        let Some(said) = word(value) else {
            // The message of an answer is an object.
            self.has_result |= key == b"message" && value.starts_with(b"{");
            return;
        };
        match key {
            b"code" | b"Code" | b"error_code" | b"errorCode" | b"errcode" => {
                self.is_success |= is_one_of(&SUCCESSES, said);
                self.names.code = name(said);
            }
            b"status_code" | b"statusCode" => {
                self.is_success |= is_one_of(&SUCCESSES, said);
                self.names.status = name(said);
            }
            b"object" | b"type" | b"status" if is_one_of(&FAILURES, said) => self.is_error = true,
            b"status" => self.names.status = name(said),
            b"type" | b"Type" | b"error_type" | b"err_type" => self.names.error_type = name(said),
            // AWS, with a name space before it.
            b"__type" => {
                self.is_error = true;
                self.names.error_type = said.rsplit(|byte| *byte == b'#').next().and_then(name);
            }
            b"message" | b"Message" | b"msg" | b"errmsg" | b"error_msg" | b"error_message"
            | b"errorMessage" | b"status_msg" | b"title" => {
                self.is_success |= is_one_of(&SUCCESSES, said);
                self.has_message |= !said.is_empty();
            }
            _ => {}
        }
    }
}

/// A value as it is written, which is still to be read.
fn written<'a>(value: &Reader<'a>) -> Result<&'a [u8], Malformed> {
    value.clone().verbatim().map(|written| written.raw())
}

/// The inside of a text, or a number; `None` of any other value.
fn word(value: &[u8]) -> Option<&[u8]> {
    match value.first()? {
        b'"' => value.get(1..value.len().checked_sub(1)?),
        b'-' | b'0'..=b'9' => Some(value),
        _ => None,
    }
}

fn is_blank(value: &[u8]) -> bool {
    BLANKS.contains(&value)
}

fn is_one_of(words: &[&[u8]], said: &[u8]) -> bool {
    words.iter().any(|word| said.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests;
