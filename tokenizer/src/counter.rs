//! Counts a text that arrives in parts.
//!
//! The counter counts what has arrived up to the last place where every split of the text begins a
//! new piece, whatever follows. The rest waits. So each byte is counted about once, however the
//! text was cut, and the sum is that of the whole text.

use crate::{Count, Tokenizer};

/// Bytes that wait before some are counted: enough to make a count worth its start.
const FOLD_BYTES: usize = 512;

/// Most bytes that [`Counter::push`] counts at once. A longer text without a certain boundary waits
/// for [`Counter::finish`], which takes longer.
const FOLD_BYTES_MAX: usize = 64 << 10;

/// Counts a text that arrives in parts, cut anywhere, in the middle of a character too.
///
/// Bytes that are not UTF-8 count as U+FFFD, as [`String::from_utf8_lossy`] has it.
#[derive(Debug, Clone)]
pub struct Counter {
    tokenizer: Tokenizer,
    /// Of all that is no longer in `tail`.
    counted: Count,
    /// Not counted yet.
    tail: String,
    /// The beginning of a character whose end has not come.
    partial: Vec<u8>,
    /// Length of `tail` at which to count next.
    fold_at: usize,
    /// Bytes that found no room in `tail`.
    beyond: u64,
}

impl Counter {
    pub(crate) const fn new(tokenizer: Tokenizer) -> Self {
        Self {
            tokenizer,
            counted: Count { tokens: 0, estimated: false },
            tail: String::new(),
            partial: Vec::new(),
            fold_at: FOLD_BYTES,
            beyond: 0,
        }
    }

    /// Takes the next part of the text.
    ///
    /// Cheap enough for the threads that carry streams: it never loads the vocabulary, and counts
    /// at most 64 KiB at once.
    pub fn push(&mut self, part: &[u8]) {
        if self.partial.is_empty() {
            self.decode(part);
        } else {
            let mut joined = std::mem::take(&mut self.partial);
            joined.extend_from_slice(part);
            self.decode(&joined);
        }
        if self.tail.len() >= self.fold_at {
            self.fold();
        }
    }

    /// Tokens that are counted for certain: never more than [`Counter::finish`] will return.
    #[must_use]
    pub const fn so_far(&self) -> u64 {
        self.counted.tokens
    }

    /// Bytes that wait for [`Counter::finish`].
    #[must_use]
    pub const fn waiting_bytes(&self) -> usize {
        self.tail.len()
    }

    /// Tokens of the whole text. What exceeds the tokenizer's maximum is estimated.
    ///
    /// Counts what still waits: for a text without blanks this may be all of it, so keep it off the
    /// threads that carry streams.
    #[must_use]
    pub fn finish(mut self) -> Count {
        if !self.partial.is_empty() {
            self.append("\u{fffd}");
        }
        let mut count = self.counted;
        count.add(self.tokenizer.count([&self.tail]));
        count.add(Count::by_bytes(self.beyond));
        count
    }

    fn decode(&mut self, bytes: &[u8]) {
        if let Ok(text) = str::from_utf8(bytes) {
            return self.append(text);
        }
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.append(chunk.valid());
            match str::from_utf8(chunk.invalid()) {
                Ok(_) => {}
                Err(error) if error.error_len().is_none() && chunks.peek().is_none() => {
                    self.partial = chunk.invalid().to_vec();
                }
                Err(_) => self.append("\u{fffd}"),
            }
        }
    }

    /// Once something found no room, nothing more is taken: a gap would join what it parts.
    fn append(&mut self, text: &str) {
        if self.beyond > 0 || self.tail.len() + text.len() > self.tokenizer.bytes_max {
            self.beyond += text.len() as u64;
        } else {
            self.tail.push_str(text);
        }
    }

    fn fold(&mut self) {
        if self.tail.len() > FOLD_BYTES_MAX {
            self.fold_at = usize::MAX;
            return;
        }
        let cut = self.tokenizer.loaded().and_then(|vocabulary| {
            let at = vocabulary.last_boundary(&self.tail)?;
            let (head, _) = self.tail.split_at_checked(at)?;
            Some((at, vocabulary.count(head).tokens))
        });
        if let Some((at, tokens)) = cut {
            self.counted.tokens += tokens;
            self.tail.drain(..at);
        }
        // Twice what is left: a tail without a boundary is not searched again at every part.
        self.fold_at = FOLD_BYTES.max(2 * self.tail.len());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokenizer() -> Tokenizer {
        Tokenizer::for_model("gpt-5").tokenizer
    }

    fn count_in_parts<'p>(
        tokenizer: &Tokenizer,
        parts: impl IntoIterator<Item = &'p [u8]>,
    ) -> Count {
        let mut counter = tokenizer.counter();
        parts.into_iter().for_each(|part| counter.push(part));
        let so_far = counter.so_far();
        let count = counter.finish();
        assert!(so_far <= count.tokens, "{so_far} of {count:?}");
        count
    }

    /// Bytes in which characters are whole, torn and wrong.
    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        let some = prop_oneof![
            4 => "[a-z 'A\n1!日é🙂\u{301}]{1,40}".prop_map(String::into_bytes),
            1 => prop::collection::vec(any::<u8>(), 1..4),
        ];
        prop::collection::vec(some, 0..120).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn parts_add_up_to_the_whole(bytes in any_bytes(), lens in prop::collection::vec(1..30usize, 1..40)) {
            for model in ["gpt-5", "gpt-4", "davinci"] {
                let tokenizer = Tokenizer::for_model(model).tokenizer;
                let (mut rest, mut lens) = (&bytes[..], lens.iter().cycle());
                let parts = std::iter::from_fn(|| {
                    let (part, behind) = rest.split_at((*lens.next()?).min(rest.len()));
                    rest = behind;
                    (!part.is_empty()).then_some(part)
                });
                let whole = tokenizer.count([String::from_utf8_lossy(&bytes)]);
                prop_assert_eq!(count_in_parts(&tokenizer, parts), whole);
            }
        }
    }

    #[test]
    fn prose_is_counted_while_it_arrives() {
        let prose = "The meter runs; nobody doubts it. ".repeat(100);
        let mut counter = tokenizer().counter();
        tokenizer().load();
        prose.as_bytes().chunks(4).for_each(|part| counter.push(part));
        assert!(counter.so_far() > counter.clone().finish().tokens / 2);
        assert!(counter.tail.len() < 2 * FOLD_BYTES);
    }

    #[test]
    fn a_text_without_blanks_waits_and_is_counted_exactly() {
        let run = "x1y2Z3".repeat(FOLD_BYTES_MAX / 4);
        let text = format!("{} then prose again", run.replace('1', "y").replace(['2', '3'], "z"));
        let whole = tokenizer().count([&text]);
        assert_eq!(count_in_parts(&tokenizer(), text.as_bytes().chunks(1_000)), whole);
        assert!(!whole.estimated);
    }

    #[test]
    fn what_waits_beyond_the_limit_is_estimated() {
        for bytes_max in [1_000, FOLD_BYTES_MAX + 1, crate::COUNT_BYTES_MAX] {
            let tokenizer = tokenizer().within(bytes_max);
            let most = "a".repeat(bytes_max);
            let mut expected = tokenizer.count([&most]);
            assert!(!expected.estimated);
            assert_eq!(count_in_parts(&tokenizer, [most.as_bytes()]), expected);
            expected.add(Count::by_bytes(18));
            let parts = [most.as_bytes(), b"taximeter", b" and more"];
            assert_eq!(count_in_parts(&tokenizer, parts), expected);
            assert!(expected.estimated);
        }
    }

    #[test]
    fn a_character_that_never_ends_counts_as_replaced() {
        let euro = "€".as_bytes();
        let expected = tokenizer().count(["\u{fffd}"]);
        assert_eq!(count_in_parts(&tokenizer(), [&euro[..1], &euro[1..2]]), expected);
        assert_eq!(count_in_parts(&tokenizer(), euro.chunks(1)), tokenizer().count(["€"]));
    }

    #[test]
    fn only_the_end_loads_the_vocabulary() {
        let tokenizer = Tokenizer::unloaded();
        let mut counter = tokenizer.counter();
        let prose = "The meter runs. ".repeat(100);
        counter.push(prose.as_bytes());
        assert!(!tokenizer.is_loaded());
        assert_eq!(counter.finish(), Tokenizer::for_model("davinci").tokenizer.count([prose]));
        assert!(tokenizer.is_loaded());
    }
}
