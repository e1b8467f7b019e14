//! Cuts one string that arrives in pieces, at the end of a character or of an escape.

use crate::scan::quote_or_escape;

/// Length of `\u0000`.
const UNICODE_ESCAPE_BYTES: usize = 6;

/// Cuts one string.
#[derive(Debug)]
pub(super) struct StringCutter {
    /// Bytes that may be kept.
    room: usize,
    /// A string that begins with so many bytes without a blank, an escape or a character outside of
    /// ASCII is data and no text. No more of it is kept.
    data_bytes: usize,
    kept: usize,
    /// Neither a blank nor an escape nor a character outside of ASCII has come.
    is_data: bool,
    is_cut: bool,
    /// The unfinished escape.
    escape: [u8; UNICODE_ESCAPE_BYTES],
    escape_length: usize,
    /// What was kept last is the first half of a character.
    after_high_surrogate: bool,
    /// Bytes that are missing, as they are decoded.
    left_out: u64,
}

impl StringCutter {
    /// Keeps at most `room` bytes, and of data at most `data_bytes`.
    pub(super) const fn new(room: usize, data_bytes: usize) -> Self {
        Self {
            room,
            data_bytes,
            kept: 0,
            is_data: true,
            is_cut: false,
            escape: [0; UNICODE_ESCAPE_BYTES],
            escape_length: 0,
            after_high_surrogate: false,
            left_out: 0,
        }
    }

    /// Whether it is data and no text.
    pub(super) const fn is_data(&self) -> bool {
        self.is_data && self.kept >= self.data_bytes
    }

    /// Bytes that are missing, as they are decoded.
    pub(super) const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Reads on, and adds what is kept to `text`. Returns the index behind the closing quote.
    pub(super) fn push(&mut self, piece: &[u8], text: &mut Vec<u8>) -> Option<usize> {
        let mut at = 0;
        loop {
            let rest = piece.get(at..).filter(|rest| !rest.is_empty())?;
            if self.escape_length > 0 {
                at += self.escape(rest, text);
                continue;
            }
            let length = quote_or_escape(rest).unwrap_or(rest.len());
            let (characters, behind) = rest.split_at_checked(length)?;
            self.characters(characters, text);
            at += length + 1;
            match behind.first()? {
                b'"' => return Some(at),
                backslash => self.begin_escape(*backslash),
            }
        }
    }

    fn characters(&mut self, mut run: &[u8], text: &mut Vec<u8>) {
        while let [next, ..] = run
            && !self.is_cut
        {
            let is_undecided = self.is_data && self.kept < self.data_bytes;
            let until = if is_undecided { self.room.min(self.data_bytes) } else { self.room };
            let room = until.saturating_sub(self.kept);
            if room == 0 {
                self.cut(is_continuation(next), text);
                break;
            }
            let (part, rest) = run.split_at_checked(room).unwrap_or((run, &[]));
            text.extend_from_slice(part);
            self.kept += part.len();
            self.after_high_surrogate = false;
            if is_undecided {
                self.is_data = part.iter().all(u8::is_ascii_graphic);
                if self.is_data() {
                    self.room = self.data_bytes;
                }
            }
            run = rest;
        }
        self.left_out += run.len() as u64;
    }

    const fn begin_escape(&mut self, backslash: u8) {
        self.escape[0] = backslash;
        self.escape_length = 1;
    }

    /// Reads on in an escape; tells how many bytes.
    fn escape(&mut self, rest: &[u8], text: &mut Vec<u8>) -> usize {
        let Some(&byte) = rest.first() else { return 0 };
        let is_letter = self.escape_length == 1;
        let belongs = is_letter || byte.is_ascii_hexdigit();
        if belongs && let Some(slot) = self.escape.get_mut(self.escape_length) {
            *slot = byte;
            self.escape_length += 1;
        }
        let goes_on =
            belongs && (!is_letter || byte == b'u') && self.escape_length < UNICODE_ESCAPE_BYTES;
        if !goes_on {
            self.finish_escape(text);
        }
        belongs.into()
    }

    fn finish_escape(&mut self, text: &mut Vec<u8>) {
        let length = std::mem::take(&mut self.escape_length);
        let escape = self.escape.get(..length).unwrap_or_default();
        let unit = code_unit(escape);
        let has_room = self.kept + length <= self.room;
        if has_room && !self.is_cut {
            text.extend_from_slice(escape);
            self.kept += length;
            self.is_data = false;
            self.after_high_surrogate = matches!(unit, 0xd800..=0xdbff);
            return;
        }
        if !self.is_cut {
            self.cut(false, text);
        }
        self.left_out += decoded_length(unit);
    }

    /// Ends what is kept. `is_inside` says that what follows belongs to the last character.
    fn cut(&mut self, is_inside: bool, text: &mut Vec<u8>) {
        self.is_cut = true;
        let (written, decoded) = if self.after_high_surrogate {
            (UNICODE_ESCAPE_BYTES, decoded_length(0xd800))
        } else if is_inside {
            let written = begun_length(text);
            (written, written as u64)
        } else {
            (0, 0)
        };
        text.truncate(text.len().saturating_sub(written));
        self.left_out += decoded;
    }
}

/// Length of the unfinished character at the end of `text`.
fn begun_length(text: &[u8]) -> usize {
    let behind_first = text.iter().rev().take(2).take_while(|byte| is_continuation(byte)).count();
    let first = text.iter().rev().nth(behind_first);
    if first.is_some_and(|first| *first >= 0xc0) { behind_first + 1 } else { 0 }
}

/// Whether a byte of UTF-8 is behind the first of its character.
const fn is_continuation(byte: &u8) -> bool {
    *byte & 0xc0 == 0x80
}

/// What an escape of UTF-16 means. Every other escape means a byte.
fn code_unit(escape: &[u8]) -> u16 {
    let digits = escape.strip_prefix(b"\\u").and_then(|digits| str::from_utf8(digits).ok());
    digits.and_then(|digits| u16::from_str_radix(digits, 16).ok()).unwrap_or(0)
}

/// Bytes of UTF-8 for a code unit; half a pair has half of four.
const fn decoded_length(unit: u16) -> u64 {
    match unit {
        ..0x80 => 1,
        0x80..0x800 | 0xd800..=0xdfff => 2,
        _ => 3,
    }
}
