//! Hugging Face text-generation-inference. Its usage object has three numbers and no details.

use super::habits::{Habits, Mark, StreamUsage};

pub(super) struct Tgi;

impl Habits for Tgi {
    fn provider(&self) -> &'static str {
        "tgi"
    }

    fn stream_usage(&self) -> StreamUsage {
        StreamUsage::WhenAsked
    }

    fn marks(&self) -> &'static [Mark] {
        &[
            Mark::Header("x-validation-time"),
            Mark::Header("x-generated-tokens"),
            Mark::Fingerprint(is_build),
        ]
    }
}

/// `3.3.5-sha-1234567` or `3.3.5-native`: a version and how it was built.
fn is_build(fingerprint: &str) -> bool {
    fingerprint.split_once('-').is_some_and(|(version, build)| {
        version.split('.').count() == 3
            && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            && (build == "native" || build.starts_with("sha-"))
    })
}
