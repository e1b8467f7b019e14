//! Hugging Face's own tokenizer. It is the fallback, and the reference that our counts are checked
//! against.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// A tokenizer of Hugging Face's library.
pub(crate) struct HuggingFace(Mutex<tokenizers::Tokenizer>);

impl HuggingFace {
    /// Reads a `tokenizer.json`.
    ///
    /// Errors: what the library says is wrong with it.
    pub(super) fn from_json(bytes: &[u8]) -> Result<Self, String> {
        let read = catch_unwind(|| tokenizers::Tokenizer::from_bytes(bytes));
        match read {
            Ok(Ok(tokenizer)) => Ok(Self(Mutex::new(tokenizer))),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("its reader panicked".to_owned()),
        }
    }

    /// Tokens of `text`; with `specials`, marks of special tokens in it are these. `None` when the
    /// library gives up.
    pub(crate) fn count(&self, text: &str, specials: bool) -> Option<u64> {
        let mut tokenizer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tokenizer.set_encode_special_tokens(!specials);
        // Its panics are its own: the lock is let go of, and the next call sets what it needs.
        let encoded = catch_unwind(AssertUnwindSafe(|| tokenizer.encode_fast(text, false)));
        Some(encoded.ok()?.ok()?.len() as u64)
    }

    /// Tokens that a plain prompt is put between.
    pub(super) fn framing_tokens(&self) -> u64 {
        let tokenizer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tokenizer
            .get_post_processor()
            .map_or(0, |processor| tokenizers::PostProcessor::added_tokens(processor, false) as u64)
    }
}

impl std::fmt::Debug for HuggingFace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HuggingFace")
    }
}
