//! Upper bounds of the buckets of histograms. Where a convention recommends bounds, these are used.

/// Tokens per request (GenAI).
pub(super) const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// Durations of operations and of what comes between two chunks (GenAI), in seconds.
pub(super) const DURATIONS: &[f64] = &taximeter_meter::GapHistogram::BOUNDS_SECONDS;
/// Time per output token (GenAI), in seconds.
pub(super) const PER_TOKEN: &[f64] =
    &[0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5];
/// Time to the first token (GenAI), in seconds.
pub(super) const FIRST_TOKEN: &[f64] =
    &[0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
/// HTTP durations, in seconds.
pub(super) const HTTP: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
/// The gateway's own part of a request, in seconds.
pub(super) const OWN: &[f64] =
    &[0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0];
