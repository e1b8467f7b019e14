//! Undoes the coding of an answer that is read beside what passes.

use taximeter_framing::{DecodeFault, Decoder, is_identity};

/// The body of one answer.
#[derive(Debug, Default)]
pub(super) struct PlainBody(Option<Box<Decoder>>);

/// It cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unreadable;

impl From<DecodeFault> for Unreadable {
    fn from(_: DecodeFault) -> Self {
        Self
    }
}

impl PlainBody {
    /// A body with these codings. It becomes at most `ratio_max` bytes per byte that comes.
    ///
    /// Errors: one of them is not known.
    pub(super) fn new(codings: Option<&str>, ratio_max: u32) -> Result<Self, Unreadable> {
        let codings = codings.unwrap_or_default();
        if codings.split(',').all(is_identity) {
            return Ok(Self(None));
        }
        Ok(Self(Some(Box::new(Decoder::new(codings, ratio_max)?))))
    }

    /// Whether it has a coding.
    pub(super) const fn is_encoded(&self) -> bool {
        self.0.is_some()
    }

    /// More of it has come. Hands it to `each`, decoded.
    ///
    /// Errors: it is not what its coding says, or becomes too large.
    pub(super) fn feed(
        &mut self,
        read: &[u8],
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Unreadable> {
        let Some(decoder) = &mut self.0 else {
            each(read);
            return Ok(());
        };
        decoder.feed(read, &mut |text| {
            each(text);
            Ok(())
        })
    }

    /// Whether its coding has said its end.
    pub(super) fn is_whole(&self) -> bool {
        self.0.as_ref().is_none_or(|decoder| decoder.is_whole())
    }
}
