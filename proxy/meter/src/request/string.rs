//! The bytes inside a JSON string: UTF-8 without control characters, in any pieces.

use super::fault::RequestFault;

pub(super) const NOT_UTF8: &str = "not UTF-8; send the body as UTF-8";

/// Checks the bytes of a string between its escapes.
#[derive(Debug, Default)]
pub(super) struct StringBytes {
    /// The first bytes of a character whose last ones are in the next piece.
    begun: [u8; 4],
    begun_length: usize,
    begun_at: u64,
}

impl StringBytes {
    /// How many bytes of `rest` complete the character that the piece before began.
    pub(super) fn complete(&mut self, rest: &[u8]) -> Result<usize, RequestFault> {
        let mut taken = 0;
        for &byte in rest {
            if self.begun_length == 0 {
                break;
            }
            if let Some(slot) = self.begun.get_mut(self.begun_length) {
                *slot = byte;
            }
            self.begun_length += 1;
            taken += 1;
            match std::str::from_utf8(self.begun.get(..self.begun_length).unwrap_or_default()) {
                Ok(_) => self.begun_length = 0,
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(not_utf8(self.begun_at)),
            }
        }
        Ok(taken)
    }

    /// Check `run`, which begins at `offset`; `ended` when none of its characters goes on behind
    /// it.
    pub(super) fn check(
        &mut self,
        run: &[u8],
        offset: u64,
        ended: bool,
    ) -> Result<(), RequestFault> {
        let well_formed = match std::str::from_utf8(run) {
            Ok(_) => run.len(),
            Err(error) => error.valid_up_to(),
        };
        let (characters, rest) = run.split_at_checked(well_formed).unwrap_or((run, &[]));
        // A fold without an early end is done sixteen bytes at a time.
        if characters.iter().fold(false, |found, &byte| found | (byte < 0x20)) {
            let at = characters.iter().take_while(|&&byte| byte >= 0x20).count();
            return Err(control_character(offset + at as u64));
        }
        if rest.is_empty() {
            return Ok(());
        }
        let at = offset + well_formed as u64;
        let goes_on = std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
        if ended || !goes_on {
            return Err(not_utf8(at));
        }
        self.begun_at = at;
        self.begun_length = rest.len();
        for (slot, &byte) in self.begun.iter_mut().zip(rest) {
            *slot = byte;
        }
        Ok(())
    }
}

/// How many bytes of `window` in front are ASCII without quote, backslash and control characters.
pub(super) fn plain_length(window: &[u8]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const TOP: u64 = 0x8080_8080_8080_8080;
    // Marks the top bit of each byte that is zero; one behind a marked one may be marked wrongly.
    let zero = |word: u64| word.wrapping_sub(EACH) & !word & TOP;
    let (words, rest) = window.as_chunks::<8>();
    let mut length = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        let quotes = zero(word ^ (EACH * b'"' as u64)) | zero(word ^ (EACH * b'\\' as u64));
        let controls = word.wrapping_sub(EACH * 0x20) & !word & TOP;
        let found = quotes | controls | (word & TOP);
        if found != 0 {
            return length + found.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let plain = |byte: &&u8| matches!(byte, b' ' | b'!' | b'#'..=b'[' | b']'..=0x7f);
    length + rest.iter().take_while(plain).count()
}

fn not_utf8(offset: u64) -> RequestFault {
    RequestFault::InvalidJson { offset, what: NOT_UTF8 }
}

fn control_character(offset: u64) -> RequestFault {
    let what = "a control character in a string; write it as an escape";
    RequestFault::InvalidJson { offset, what }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::plain_length;

    proptest! {
        #[test]
        fn plain_bytes_end_at_the_first_that_is_not(
            plain in "[ !#-\\[\\]-\u{7f}]{0,40}",
            rest: Vec<u8>,
            other in prop_oneof![0..0x20u8, Just(b'"'), Just(b'\\'), 0x80..=0xffu8],
        ) {
            prop_assert_eq!(plain_length(plain.as_bytes()), plain.len());
            let window = [plain.as_bytes(), &[other], &rest].concat();
            prop_assert_eq!(plain_length(&window), plain.len());
        }
    }
}
