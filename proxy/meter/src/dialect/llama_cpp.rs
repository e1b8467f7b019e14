//! llama.cpp's server. Its `timings` count the tokens where there is no usage object.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct LlamaCpp;

impl Habits for LlamaCpp {
    fn provider(&self) -> &'static str {
        "llama_cpp"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }

    fn marks(&self) -> &'static [Mark] {
        &[
            Mark::Engine("llamacpp"),
            Mark::HeaderIs("server", "llama.cpp"),
            Mark::Member(&["timings", "predicted_per_token_ms"]),
            Mark::Fingerprint(is_build),
        ]
    }
}

/// `b6123-9a96389f`: the number of a build and its commit.
fn is_build(fingerprint: &str) -> bool {
    let parts = fingerprint.strip_prefix('b').and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(number, commit)| {
        !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && commit.len() >= 7
            && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
