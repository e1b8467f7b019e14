//! Which traces Taximeter keeps.

use std::time::Duration;

use crate::mistake::Invalid;

/// The random bits of a trace id: its last 56.
const RANDOM_BITS: u32 = 56;

/// A sampling ratio. It keeps the traces whose random bits reach a threshold, so all programs with
/// the same ratio keep the same traces.
///
/// Source: OpenTelemetry, trace/tracestate-probability-sampling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ratio {
    /// The least random number that it keeps.
    threshold: u64,
}

impl Ratio {
    /// Keeps all traces.
    pub const ALL: Self = Self { threshold: 0 };
    /// Keeps no trace.
    pub const NONE: Self = Self { threshold: 1 << RANDOM_BITS };

    /// Whether it keeps a trace with this id.
    #[must_use]
    pub const fn keeps(self, trace_id: [u8; 16]) -> bool {
        let [.., a, b, c, d, e, f, g] = trace_id;
        u64::from_be_bytes([0, a, b, c, d, e, f, g]) >= self.threshold
    }
}

impl Ratio {
    /// The ratio `part`, from 0 to 1; `None` beyond.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "the product is a whole number from 0 to 2^56, which a float holds exactly"
    )]
    pub(crate) fn of(part: f64) -> Option<Self> {
        let all = (1_u64 << RANDOM_BITS) as f64;
        let threshold = || ((1.0 - part) * all).round() as u64;
        (0.0..=1.0).contains(&part).then(|| Self { threshold: threshold() })
    }
}

/// `telemetry.traces` as the file has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceKeys {
    /// The part of the traces that begin here.
    pub ratio: Option<Ratio>,
    /// What is kept whatever the ratio says.
    pub always: Always,
}

/// Which traces Taximeter keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampling {
    /// The part of the traces that begin here.
    pub ratio: Ratio,
    /// Whether a trace that a caller has begun is kept exactly if the caller keeps it.
    pub heeds_parent: bool,
    /// What is kept whatever the ratio says.
    pub always: Always,
}

/// What is kept whatever the ratio and the caller say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Always {
    /// Requests that failed.
    pub errors: bool,
    /// Streams whose first token came later than this.
    pub slow_first_token: Duration,
    /// Streams with a longer gap between two tokens than this.
    pub stall: Duration,
}

impl Default for Always {
    fn default() -> Self {
        let slow = Duration::from_secs(5);
        Self { errors: true, slow_first_token: slow, stall: slow }
    }
}

/// The meaning of `OTEL_TRACES_SAMPLER` and its argument.
///
/// Errors: a sampler that the standard does not define.
pub(crate) fn sampler(name: &str, ratio: Ratio) -> Result<(Ratio, bool), Invalid> {
    Ok(match name {
        "always_on" => (Ratio::ALL, false),
        "always_off" => (Ratio::NONE, false),
        "traceidratio" => (ratio, false),
        "parentbased_always_on" => (Ratio::ALL, true),
        "parentbased_always_off" => (Ratio::NONE, true),
        "parentbased_traceidratio" => (ratio, true),
        _ => {
            let expected =
                "always_on, always_off, traceidratio, or one of them behind parentbased_";
            return Err(Invalid::new("is not a supported sampler", expected));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(last: u64) -> [u8; 16] {
        (u128::MAX << 64 | u128::from(last)).to_be_bytes()
    }

    #[test]
    fn a_ratio_keeps_its_part_by_the_end_of_the_id() {
        let half = Ratio::of(0.5).unwrap();
        assert!(half.keeps(id(0x0080_0000_0000_0000)));
        assert!(!half.keeps(id(0xff7f_ffff_ffff_ffff)));
        for last in [0, 1, u64::MAX] {
            assert!(Ratio::ALL.keeps(id(last)));
            assert!(!Ratio::NONE.keeps(id(last)));
        }
        assert_eq!(Ratio::of(1.0), Some(Ratio::ALL));
        assert_eq!(Ratio::of(0.0), Some(Ratio::NONE));
        for wrong in [-0.1, 1.1, f64::NAN] {
            assert_eq!(Ratio::of(wrong), None, "{wrong}");
        }
    }
}
