//! Holds the one short text that the JSON reader keeps.

/// Longest text that is kept, in bytes after its escapes are resolved.
pub(super) const TEXT_BYTES_MAX: usize = 256;

/// Text of a key, a string or a number while it is read.
#[derive(Debug, Default)]
pub(super) struct Text {
    bytes: Vec<u8>,
    too_long: bool,
    /// The high half of a surrogate pair whose low half is still to come.
    high_surrogate: Option<u16>,
}

impl Text {
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.too_long = false;
        self.high_surrogate = None;
    }

    /// The text; `None` when it is longer than [`TEXT_BYTES_MAX`].
    pub(super) fn get(&self) -> Option<&str> {
        if self.too_long { None } else { std::str::from_utf8(&self.bytes).ok() }
    }

    /// Keep bytes as they stand in the body.
    pub(super) fn keep(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.end_surrogate();
        self.push(bytes);
    }

    /// Keep the code unit of a `\u` escape; a half without its other half becomes U+FFFD.
    pub(super) fn keep_code_unit(&mut self, unit: u16) {
        if let Some(high) = self.high_surrogate
            && let Some(Ok(pair)) = char::decode_utf16([high, unit]).next()
        {
            self.high_surrogate = None;
            self.push_char(pair);
            return;
        }
        self.end_surrogate();
        if matches!(unit, 0xd800..=0xdbff) {
            self.high_surrogate = Some(unit);
        } else {
            self.push_char(char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
    }

    /// A half that still waits has no other half.
    pub(super) fn end_surrogate(&mut self) {
        if self.high_surrogate.take().is_some() {
            self.push_char(char::REPLACEMENT_CHARACTER);
        }
    }

    fn push_char(&mut self, char: char) {
        self.push(char.encode_utf8(&mut [0; 4]).as_bytes());
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.bytes.len() + bytes.len() > TEXT_BYTES_MAX {
            self.too_long = true;
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }
}
