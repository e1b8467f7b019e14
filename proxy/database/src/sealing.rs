//! When requests leave the tables of a store for files, and when files of a day become one.

use jiff::Timestamp;

/// Bytes of a day, in tables and journal, that are sealed although the day is not over.
const PART_BYTES_MAX: u64 = 256 << 20;
/// So many parts of the room may be one day of tables and journal.
const ROOM_PARTS: u64 = 4;
/// Tables and journal have so many times what the tables have of a request.
const WITH_JOURNAL: u64 = 3;
/// Files of a day that is not closed from which on some are merged.
const FILES_MAX: usize = 16;
/// Most files that are merged at once: bounds the memory of their pages.
const MERGED_MAX: usize = 8;
/// Requests of a closed day that came late, from which on they are sealed at once. Fewer wait.
const LATE_MIN: u64 = 4096;
/// How long they wait, in microseconds.
const LATE_WAIT_MICROS: i64 = 86_400_000_000;

/// What decides when requests are sealed.
#[derive(Debug, Clone, Copy, Default)]
pub struct SealPolicy {
    /// Bytes that journal and store may take, if they are limited.
    pub room: Option<u64>,
    /// Bytes of it that may be used meanwhile.
    pub left: Option<u64>,
    /// What was admitted before this time is complete, but for what comes late.
    pub closed_until: Timestamp,
}

/// A day, as far as the store has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DayState {
    /// First instant, in microseconds since 1970.
    pub day: i64,
    /// First instant of the next day.
    pub end: i64,
    /// Requests in the tables.
    pub requests: u64,
    /// Those of them that may leave.
    pub may_leave: u64,
    /// About what they take there.
    pub bytes: u64,
    /// Its files.
    pub files: Vec<DayFileState>,
    /// One of them cannot be read: they stay as they are.
    pub is_damaged: bool,
}

/// A file of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayFileState {
    /// Its number in the list of files.
    pub number: i64,
    /// What it takes.
    pub bytes: u64,
    /// Whether the day is closed and the file has all of it.
    pub is_final: bool,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Requests of a day leave the tables.
    Seal {
        /// Its first instant, in microseconds since 1970.
        day: i64,
    },
    /// These files of a day become one.
    Merge {
        /// Its first instant, in microseconds since 1970.
        day: i64,
        /// Their numbers.
        files: Vec<i64>,
        /// Whether the result has all of the day.
        is_final: bool,
    },
}

/// The first thing that is due, if anything is.
#[must_use]
pub fn due(days: &[DayState], policy: &SealPolicy) -> Option<Step> {
    days.iter().find_map(|day| sealing(day, policy).or_else(|| merging(day, policy)))
}

fn sealing(day: &DayState, policy: &SealPolicy) -> Option<Step> {
    let closed_until = policy.closed_until.as_microsecond();
    let bytes_max = policy.room.map_or(PART_BYTES_MAX, |room| room / ROOM_PARTS);
    let is_large = day.bytes.saturating_mul(WITH_JOURNAL) >= bytes_max.min(PART_BYTES_MAX);
    let is_closed = closed_until >= day.end;
    let is_late = day.files.iter().any(|file| file.is_final);
    let waited = closed_until.saturating_sub(day.end) >= LATE_WAIT_MICROS;
    let is_due = match (is_closed, is_late) {
        (false, _) => is_large,
        (true, false) => true,
        (true, true) => is_large || waited || day.may_leave >= LATE_MIN,
    };
    (is_due && day.may_leave > 0).then_some(Step::Seal { day: day.day })
}

fn merging(day: &DayState, policy: &SealPolicy) -> Option<Step> {
    if day.is_damaged {
        return None;
    }
    let mut parts: Vec<_> = day.files.iter().filter(|file| !file.is_final).copied().collect();
    let is_late = parts.len() < day.files.len();
    let is_closed = policy.closed_until.as_microsecond() >= day.end;
    // Both the files and what they become are there for a while. What finds no room stays in parts.
    let merge = |parts: &[DayFileState], is_final| {
        let bytes = parts.iter().map(|part| part.bytes).sum::<u64>();
        let fits = policy.left.is_none_or(|left| bytes <= left);
        let files = parts.iter().map(|part| part.number).collect();
        fits.then_some(Step::Merge { day: day.day, files, is_final })
    };
    if is_closed && !is_late && day.requests == 0 && (1..=MERGED_MAX).contains(&parts.len()) {
        return merge(&parts, true);
    }
    let files_max = if is_closed { MERGED_MAX } else { FILES_MAX };
    if parts.len() <= files_max {
        return None;
    }
    // The smallest ones, so that no request is written again often.
    taximeter_collections::sort_by_key(&mut parts, |part| (part.bytes, part.number));
    parts.truncate(MERGED_MAX);
    merge(&parts, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000;

    fn policy(closed_days: i64) -> SealPolicy {
        let closed_until = Timestamp::from_microsecond(closed_days * DAY).unwrap();
        SealPolicy { closed_until, ..SealPolicy::default() }
    }

    /// Day 10, with so many requests in the tables, and files of so many bytes, of which the first one
    /// is final if its number is 0.
    fn day(requests: u64, bytes: u64, files: &[(i64, u64)]) -> DayState {
        let file = |&(number, bytes)| DayFileState { number, bytes, is_final: number == 0 };
        let files = files.iter().map(file).collect();
        let (day, end) = (10 * DAY, 11 * DAY);
        DayState { day, end, requests, may_leave: requests, bytes, files, is_damaged: false }
    }

    fn seal() -> Option<Step> {
        Some(Step::Seal { day: 10 * DAY })
    }

    fn merge(files: impl IntoIterator<Item = i64>, is_final: bool) -> Option<Step> {
        Some(Step::Merge { day: 10 * DAY, files: files.into_iter().collect(), is_final })
    }

    #[test]
    fn requests_are_sealed_when_they_are_many_or_their_day_is_closed() {
        let room = |room| SealPolicy { room: Some(room), ..policy(0) };
        for (state, policy, expected) in [
            (day(0, 0, &[]), policy(20), None),
            (day(9, 1 << 20, &[]), policy(10), None),
            (day(9, 1 << 20, &[]), policy(11), seal()),
            (day(9, 86 << 20, &[]), policy(10), seal()),
            (day(9, 85 << 20, &[]), policy(10), None),
            (day(9, 25 << 20, &[]), room(300 << 20), seal()),
            (day(9, 24 << 20, &[]), room(300 << 20), None),
            // More room than a part takes.
            (day(9, 86 << 20, &[]), room(100 << 30), seal()),
            // Nothing of it may leave yet.
            (DayState { may_leave: 0, ..day(9, 1 << 30, &[]) }, policy(11), None),
            // Late ones wait for more, but not for ever.
            (day(9, 1 << 20, &[(0, 5)]), policy(11), None),
            (day(4096, 1 << 20, &[(0, 5)]), policy(11), seal()),
            (day(9, 1 << 20, &[(0, 5)]), policy(12), seal()),
        ] {
            assert_eq!(
                due(std::slice::from_ref(&state), &policy),
                expected,
                "{state:?} {policy:?}"
            );
        }
    }

    #[test]
    fn files_of_a_closed_day_become_one_and_many_become_few() {
        let part = |number: i64| (number, 1000 - number.cast_unsigned());
        let parts = |count: i64| (1..=count).map(part).collect::<Vec<_>>();
        let smallest = |count: i64| (count - 7..=count).rev();
        for (state, policy, expected) in [
            (day(0, 0, &parts(1)), policy(10), None),
            (day(0, 0, &parts(1)), policy(11), merge([1], true)),
            (day(0, 0, &parts(8)), policy(11), merge(1..=8, true)),
            // They have 7,964 bytes.
            (
                day(0, 0, &parts(8)),
                SealPolicy { left: Some(7_964), ..policy(11) },
                merge(1..=8, true),
            ),
            (day(0, 0, &parts(8)), SealPolicy { left: Some(7_963), ..policy(11) }, None),
            (day(0, 0, &parts(9)), policy(11), merge(smallest(9), false)),
            (day(0, 0, &parts(16)), policy(10), None),
            (day(0, 0, &parts(17)), policy(10), merge(smallest(17), false)),
            // Some requests of the day are too young to leave.
            (DayState { may_leave: 0, ..day(1, 9, &parts(3)) }, policy(11), None),
            // What is final never changes.
            (day(0, 0, &[(0, 5)]), policy(20), None),
            (day(0, 0, &[(0, 5), (1, 1), (2, 1)]), policy(20), None),
            (day(0, 0, &[&[(0, 1)], &*parts(9)].concat()), policy(20), merge(smallest(9), false)),
        ] {
            assert_eq!(
                due(std::slice::from_ref(&state), &policy),
                expected,
                "{state:?} {policy:?}"
            );
        }
    }

    #[test]
    fn files_of_a_day_stay_if_one_cannot_be_read_and_others_go_on() {
        let damaged = |state: DayState| DayState { is_damaged: true, ..state };
        let later = DayState { day: 11 * DAY, end: 12 * DAY, ..day(0, 0, &[(3, 5)]) };
        let merged = Some(Step::Merge { day: 11 * DAY, files: vec![3], is_final: true });
        assert_eq!(due(&[damaged(day(0, 0, &[(1, 5), (2, 5)])), later], &policy(20)), merged);
        assert_eq!(due(&[damaged(day(9, 9, &[(1, 5)]))], &policy(20)), seal());
    }

    #[test]
    fn earlier_days_come_first() {
        let later = DayState { day: 11 * DAY, end: 12 * DAY, ..day(9, 9, &[]) };
        let merged = merge([1], true);
        assert_eq!(due(&[day(0, 0, &[(1, 5)]), later.clone()], &policy(20)), merged);
        assert_eq!(
            due(&[day(0, 0, &[(0, 5)]), later], &policy(20)),
            Some(Step::Seal { day: 11 * DAY })
        );
    }
}
