//! Counts by minute and kind, of which only so many are told apart.

use std::collections::{BTreeMap, HashMap};

use jiff::{Timestamp, TimestampRound, Unit};
use taximeter_ledger::{RefusalCount, RefusalKind};

/// Kinds of one minute that are told apart.
const KINDS_MAX: usize = 256;
/// Kinds of one minute that are told apart beyond these, without their tenants.
const OTHERS_MAX: usize = 128;
/// Minutes that are counted while the journal takes none.
const MINUTES_MAX: usize = 4;
/// The reason of requests that are told apart by nothing.
const OTHER: &str = "other";

/// Counts that are not written yet.
#[derive(Debug, Default)]
pub(super) struct Tally(BTreeMap<Timestamp, HashMap<RefusalKind, u64>>);

impl Tally {
    /// Adds requests that ended at `at`.
    pub(super) fn add(&mut self, at: Timestamp, kind: RefusalKind, count: u64) {
        let mut minute = minute_of(at);
        if !self.0.contains_key(&minute) && self.0.len() >= MINUTES_MAX {
            // The journal takes nothing, or the clock was set.
            minute = self.0.last_key_value().map_or(minute, |(last, _)| *last);
        }
        let kinds = self.0.entry(minute).or_default();
        let kind = kept(kinds, kind);
        let sum = kinds.entry(kind).or_default();
        *sum = sum.saturating_add(count);
    }

    /// Takes out the minutes that are over `now`, or all of them.
    pub(super) fn take(&mut self, now: Option<Timestamp>) -> Vec<(Timestamp, Vec<RefusalCount>)> {
        let running = match now {
            Some(now) => self.0.split_off(&minute_of(now)),
            None => BTreeMap::new(),
        };
        let over = std::mem::replace(&mut self.0, running);
        over.into_iter().map(|(minute, kinds)| (minute, counts(&kinds))).collect()
    }

    /// All of it, by the first instant of its minute.
    pub(super) fn counts(&self) -> Vec<(Timestamp, RefusalCount)> {
        let of_minute = |(minute, kinds): (&Timestamp, &HashMap<_, _>)| {
            let minute = *minute;
            counts(kinds).into_iter().map(move |count| (minute, count))
        };
        self.0.iter().flat_map(of_minute).collect()
    }
}

/// The kind under which such requests are counted.
fn kept(kinds: &HashMap<RefusalKind, u64>, kind: RefusalKind) -> RefusalKind {
    if kinds.len() < KINDS_MAX || kinds.contains_key(&kind) {
        return kind;
    }
    let others = RefusalKind { tenant: None, others: true, ..kind };
    if kinds.len() < KINDS_MAX + OTHERS_MAX || kinds.contains_key(&others) {
        return others;
    }
    RefusalKind { reason: OTHER.into(), status: None, ..others }
}

/// In one order always.
fn counts(kinds: &HashMap<RefusalKind, u64>) -> Vec<RefusalCount> {
    let counts =
        kinds.iter().map(|(kind, count)| RefusalCount { kind: kind.clone(), count: *count });
    let mut counts: Vec<_> = counts.collect();
    taximeter_collections::sort_by(&mut counts, |a, b| a.kind.cmp(&b.kind));
    counts
}

fn minute_of(at: Timestamp) -> Timestamp {
    let floor = TimestampRound::new().smallest(Unit::Minute).mode(jiff::RoundMode::Floor);
    at.round(floor).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use taximeter_ledger::{EncodedEntry, Entry, Refusals, RequestId, TENANT_BYTES_MAX, TenantId};
    use uuid::Uuid;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_764_133_200 + seconds).unwrap()
    }

    fn kind(tenant: &str, reason: &'static str) -> RefusalKind {
        RefusalKind {
            tenant: Some(TenantId(tenant.into())),
            others: false,
            reason: reason.into(),
            status: Some(429),
            admitted: false,
        }
    }

    fn sum(counts: &[RefusalCount]) -> u64 {
        counts.iter().map(|count| count.count).sum()
    }

    #[test]
    fn a_minute_that_is_over_is_taken_once_and_the_running_one_stays() {
        let mut tally = Tally::default();
        for second in [0, 59, 60] {
            tally.add(at(second), kind("acme", "invalid_api_key"), 1);
        }
        let taken = tally.take(Some(at(61)));
        let expected = RefusalCount { kind: kind("acme", "invalid_api_key"), count: 2 };
        assert_eq!(taken, [(at(0), vec![expected])]);
        assert_eq!(tally.take(Some(at(119))), []);
        let rest: Vec<_> =
            tally.counts().into_iter().map(|(minute, it)| (minute, it.count)).collect();
        assert_eq!(rest, [(at(60), 1)]);
        assert_eq!(tally.take(None).len(), 1);
        assert_eq!(tally.take(None), []);
    }

    #[test]
    fn any_number_of_tenants_and_reasons_fits_into_one_entry_and_none_is_lost() {
        let mut tally = Tally::default();
        let reasons: Vec<String> = (0..1000).map(|reason| format!("reason_{reason}")).collect();
        for (number, reason) in (0..).zip(reasons.iter().cycle().take(20_000)) {
            let tenant = format!("{}{number:05}", "\"".repeat(TENANT_BYTES_MAX - 5));
            let kind = RefusalKind { reason: reason.clone().into(), ..kind(&tenant, "") };
            tally.add(at(0), kind, 1);
        }
        tally.add(at(0), kind("late", "late"), 1);
        let mut taken = tally.take(None);
        let (minute, counts) = taken.pop().unwrap();
        assert_eq!(sum(&counts), 20_001);
        assert!(counts.len() <= KINDS_MAX + OTHERS_MAX + 1, "{}", counts.len());
        assert!(counts.iter().any(|count| count.kind.others && count.kind.reason == OTHER));
        let (id, gateway) = (RequestId(Uuid::nil()), "pod/0".to_owned());
        let entry = Entry::Refusals(Box::new(Refusals { id, gateway, at: minute, minute, counts }));
        assert!(EncodedEntry::new(&entry, &mut Vec::new()).is_ok());
    }

    #[test]
    fn while_the_journal_takes_nothing_few_minutes_are_told_apart() {
        let mut tally = Tally::default();
        for minute in 0..100 {
            tally.add(at(60 * minute), kind("acme", "draining"), 1);
        }
        let taken = tally.take(None);
        assert_eq!(taken.len(), MINUTES_MAX);
        assert_eq!(taken.iter().map(|(_, counts)| sum(counts)).sum::<u64>(), 100);
    }
}
