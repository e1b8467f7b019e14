//! Where the usage of a request is known from, and why it is not what the engine reported.

use taximeter_ledger::{End, RecordUsage};
use taximeter_pricing::{Flag, Source};

/// Flags that say why, the plainest first, and their words.
const FLAGS: [(Flag, &str); 5] = [
    (Flag::Context, "context"),
    (Flag::Invalid, "invalid"),
    (Flag::Zero, "zero"),
    (Flag::TokenIds, "token_ids"),
    (Flag::MaybeUnsent, "maybe_unsent"),
];
/// The answer was not read to its end.
const UNREAD: usize = FLAGS.len();
/// The answer has not ended as it should: the end of the request is the reason.
const ENDED: usize = UNREAD + 1;
/// The engine has not said it.
const NOT_REPORTED: usize = ENDED + 1;

/// The source of a usage, and the reason for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UsageSource {
    source: usize,
    reason: usize,
}

impl UsageSource {
    const SOURCES: [&str; 4] = ["reported", "counted", "estimated", "unknown"];
    const REPORTED: usize = 0;
    /// How many there are.
    pub(super) const COUNT: usize = Self::SOURCES.len() * (NOT_REPORTED + 1);

    /// Of a request that ended so; `None` if it has used nothing. `is_unread` says that a part of its
    /// answer could not be read.
    pub(super) fn of(usage: &RecordUsage, end: Option<End>, is_unread: bool) -> Option<Self> {
        let is_estimated = usage.flags.contains(&Flag::Estimated);
        let source = match usage.source {
            Source::None => return None,
            Source::Unknown => 3,
            Source::Reported | Source::Counted if is_estimated => 2,
            Source::Counted => 1,
            // Nearly all of them: there is no reason to look for.
            Source::Reported => return Some(Self { source: Self::REPORTED, reason: 0 }),
        };
        let flagged = FLAGS.iter().position(|(flag, _)| usage.flags.contains(flag));
        let is_cut = end.is_some_and(|end| end != End::Complete);
        let reason = match flagged {
            Some(reason) => reason,
            None if is_unread => UNREAD,
            None if is_cut => ENDED,
            None => NOT_REPORTED,
        };
        Some(Self { source, reason })
    }

    /// Its place among all of them.
    pub(super) const fn index(self) -> usize {
        self.source * (NOT_REPORTED + 1) + self.reason
    }

    /// The word for the source.
    pub(super) fn source(self) -> &'static str {
        Self::SOURCES.get(self.source).copied().unwrap_or_default()
    }

    /// The word for the reason, of a request that ended so. `None` if the engine reported all of it.
    pub(super) fn reason(self, end: Option<End>) -> Option<&'static str> {
        if self.source == Self::REPORTED {
            return None;
        }
        let flag = FLAGS.get(self.reason).map(|(_, word)| *word);
        flag.or(match self.reason {
            UNREAD => Some("unread"),
            ENDED => end.map(End::as_str),
            _ => Some("not_reported"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_has_one_source_and_the_plainest_reason() {
        let of = |source, flags: &[Flag], end, is_unread| {
            let flags = flags.to_vec();
            let usage = RecordUsage { source, flags, ..RecordUsage::default() };
            let found = UsageSource::of(&usage, end, is_unread)?;
            assert!(found.index() < UsageSource::COUNT);
            Some((found.source(), found.reason(end)))
        };
        let (complete, left) = (Some(End::Complete), Some(End::ClientLeft));
        for (source, flags, end, is_unread, expected) in [
            (Source::Reported, &[Flag::Hidden][..], complete, false, ("reported", None)),
            (Source::Counted, &[Flag::Missing], complete, false, ("counted", Some("not_reported"))),
            (Source::Counted, &[Flag::Missing], left, false, ("counted", Some("client_left"))),
            (
                Source::Counted,
                &[Flag::Estimated, Flag::Zero],
                left,
                true,
                ("estimated", Some("zero")),
            ),
            (Source::Unknown, &[Flag::Missing], complete, true, ("unknown", Some("unread"))),
            (Source::Unknown, &[Flag::Context], None, false, ("unknown", Some("context"))),
            (Source::Unknown, &[], None, false, ("unknown", Some("not_reported"))),
        ] {
            assert_eq!(of(source, flags, end, is_unread), Some(expected), "{source:?} {flags:?}");
        }
        assert_eq!(of(Source::None, &[], complete, false), None);
    }
}
