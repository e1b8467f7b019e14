//! Compares the counts of requests that have no record: those of the journal, and those of the store.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use taximeter_billing::Period;
use taximeter_ledger::{RefusalCount, RefusalKind, Refusals};

use super::findings::{CURE, Findings, TOLD_MAX};
use crate::{Store, StoreError};

/// Counts are compared by the day. A day here begins at a multiple of its length since 1970.
const DAY: SignedDuration = SignedDuration::from_hours(24);

/// What a journal counts, by day and kind.
#[derive(Debug, Default)]
pub(super) struct RefusalCounts(BTreeMap<(Timestamp, RefusalKind), u64>);

impl RefusalCounts {
    pub(super) fn add(&mut self, refusals: &Refusals) {
        for RefusalCount { kind, count } in &refusals.counts {
            let sum = self.0.entry((day_of(refusals.minute), kind.clone())).or_default();
            *sum = sum.saturating_add(*count);
        }
    }

    /// Tells which of these counts the store does not have. Where the journal `is_whole`, the store
    /// has no others.
    ///
    /// Errors: the store cannot be read.
    pub(super) fn compare(
        &self,
        store: &mut Store,
        is_whole: bool,
        findings: &mut Findings,
    ) -> Result<(), StoreError> {
        let Ok(all) = Period::new(Timestamp::MIN, Timestamp::MAX) else { return Ok(()) };
        let mut missing = self.0.clone();
        let (mut right, mut wrong) = (0_u64, Vec::new());
        store.refusals(all, None, DAY, |day, RefusalCount { kind, count: kept }| {
            let due = missing.remove(&(day, kind.clone())).unwrap_or(0);
            if kept < due || (is_whole && kept > due) {
                wrong.push(Wrong { day, kind, kept, due });
            } else {
                right += u64::from(due > 0);
            }
            Ok::<_, StoreError>(())
        })?;
        let missing = missing.into_iter();
        wrong.extend(missing.map(|((day, kind), due)| Wrong { day, kind, kept: 0, due }));
        if right > 0 {
            findings.hear(format!("store: {right} counts of refusals, each as written"));
        }
        let more = wrong.len().saturating_sub(TOLD_MAX);
        wrong.iter().take(TOLD_MAX).for_each(|wrong| findings.tell(wrong.to_string()));
        findings.tell_more(more);
        Ok(())
    }
}

fn day_of(minute: Timestamp) -> Timestamp {
    let day = i64::try_from(DAY.as_micros()).unwrap_or(i64::MAX);
    let minute = minute.as_microsecond();
    Timestamp::from_microsecond(minute - minute.rem_euclid(day)).unwrap_or_default()
}

/// A count of the store that is not the journal's.
struct Wrong {
    day: Timestamp,
    kind: RefusalKind,
    kept: u64,
    due: u64,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { day, kind, kept, due } = self;
        let tenant = match &kind.tenant {
            Some(tenant) => tenant.as_str(),
            None if kind.others => "other tenants",
            None => "no tenant",
        };
        let day = day.strftime("%Y-%m-%d");
        write!(
            f,
            "the store counts {kept} refusals `{}` of {tenant} on {day}, and the journal {due}: {}",
            kind.reason, CURE
        )
    }
}
