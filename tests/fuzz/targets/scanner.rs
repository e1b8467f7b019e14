//! Any text, whole and in any deltas: nothing panics, both count the same, and a token is a byte at
//! least.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use taximeter_tokenizer::Tokenizer;

static TOKENIZERS: LazyLock<[Tokenizer; 3]> = LazyLock::new(|| {
    ["gpt-4o", "gpt-4", "text-davinci-003"].map(|model| Tokenizer::for_model(model).tokenizer)
});

fuzz_target!(|data: &[u8]| {
    let Some((&step, text)) = data.split_last() else { return };
    let whole = String::from_utf8_lossy(text);
    for tokenizer in TOKENIZERS.iter() {
        let count = tokenizer.count([&whole]);
        assert!(count.tokens <= whole.len() as u64);
        assert!(!count.estimated);
        let mut counter = tokenizer.counter();
        for delta in text.chunks(usize::from(step) % 37 + 1) {
            counter.push(delta);
        }
        assert_eq!(counter.finish(), count, "{}", tokenizer.name());
        assert_eq!(tokenizer.count_until(&whole, count.tokens), Some(count.tokens));
        if let Some(fewer) = count.tokens.checked_sub(1) {
            assert_eq!(tokenizer.count_until(&whole, fewer), None);
        }
    }
});
