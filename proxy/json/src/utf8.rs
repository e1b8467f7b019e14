//! Checks the bytes inside a string, in pieces: UTF-8 without control characters.

use crate::event::StreamFault;

pub(crate) const NOT_UTF8: &str = "not UTF-8; send it as UTF-8";

/// Checks the bytes of a string between its escapes.
#[derive(Debug, Default)]
pub(crate) struct Utf8Check {
    /// The first bytes of a character that continues in the next piece.
    begun: [u8; 4],
    begun_length: usize,
    begun_at: u64,
}

impl Utf8Check {
    /// Whether the last piece ended inside a character.
    pub(crate) const fn is_begun(&self) -> bool {
        self.begun_length > 0
    }

    /// Number of bytes of `rest` that complete that character.
    pub(crate) fn complete(&mut self, rest: &[u8]) -> Result<usize, StreamFault> {
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
            match str::from_utf8(self.begun.get(..self.begun_length).unwrap_or_default()) {
                Ok(_) => self.begun_length = 0,
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(not_utf8(self.begun_at)),
            }
        }
        Ok(taken)
    }

    /// Checks `run`, which begins at `offset`. If `ended`, the last character must be whole.
    pub(crate) fn check(
        &mut self,
        run: &[u8],
        offset: u64,
        ended: bool,
    ) -> Result<(), StreamFault> {
        let well_formed = match str::from_utf8(run) {
            Ok(_) => run.len(),
            Err(error) => error.valid_up_to(),
        };
        let (characters, rest) = run.split_at_checked(well_formed).unwrap_or((run, &[]));
        // The fold has no early exit, so the compiler can check sixteen bytes at a time.
        if characters.iter().fold(false, |found, &byte| found | (byte < 0x20)) {
            let at = characters.iter().take_while(|&&byte| byte >= 0x20).count();
            let what = "a control character in a string; write it as an escape";
            return Err(StreamFault::Invalid { offset: offset + at as u64, what });
        }
        if rest.is_empty() {
            return Ok(());
        }
        let at = offset + well_formed as u64;
        let goes_on = str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
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

const fn not_utf8(offset: u64) -> StreamFault {
    StreamFault::Invalid { offset, what: NOT_UTF8 }
}
