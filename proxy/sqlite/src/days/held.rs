//! Requests in memory, with few allocations.

use std::ops::Range;

use taximeter_database::database::AdmissionKey;
use taximeter_ledger::Place;

use crate::ask::KeyedRow;

/// Bytes of an id.
const ID_BYTES: usize = 16;

/// Requests with their complete payloads.
#[derive(Default)]
pub(super) struct Held {
    payloads: Vec<u8>,
    rows: Vec<Row>,
}

struct Row {
    at: i64,
    id: [u8; ID_BYTES],
    place: Place,
    payload: Range<usize>,
}

impl Row {
    /// As the keys of admission are ordered.
    fn key(&self) -> (i64, &[u8]) {
        (self.at, &self.id)
    }
}

impl Held {
    pub(super) fn bytes(&self) -> usize {
        self.payloads.len() + size_of_val(self.rows.as_slice())
    }

    /// When the first one was admitted, of those that are sorted.
    pub(super) fn first_at(&self) -> Option<i64> {
        self.rows.first().map(|row| row.at)
    }

    /// Adds a request that was admitted at this time and has this id.
    pub(super) fn push(&mut self, at: i64, id: &[u8], place: Place, payload: &[u8]) {
        let start = self.payloads.len();
        self.payloads.extend_from_slice(payload);
        let mut whole = [0; ID_BYTES];
        whole.iter_mut().zip(id).for_each(|(to, from)| *to = *from);
        self.rows.push(Row { at, id: whole, place, payload: start..self.payloads.len() });
    }

    /// The time that as many are before as from it on.
    pub(super) fn middle(&self) -> i64 {
        let mut times: Vec<_> = self.rows.iter().map(|row| row.at).collect();
        let middle = times.len() / 2;
        if times.is_empty() { i64::MIN } else { *times.select_nth_unstable(middle).1 }
    }

    /// Keeps those with such a key. They must not be sorted yet.
    pub(super) fn retain(&mut self, is_kept: impl Fn((i64, &[u8])) -> bool) {
        let Self { payloads, rows } = self;
        let mut end = 0;
        rows.retain_mut(|row| {
            let keeps = is_kept(row.key());
            if keeps {
                let length = row.payload.len();
                payloads.copy_within(row.payload.clone(), end);
                row.payload = end..end + length;
                end += length;
            }
            keeps
        });
        payloads.truncate(end);
    }

    pub(super) fn sort(&mut self) {
        self.rows.sort_unstable_by(|a, b| a.key().cmp(&b.key()));
    }

    /// At most `limit` of them from `start` on. They must be sorted.
    pub(super) fn from(
        &self,
        start: &AdmissionKey,
        limit: usize,
    ) -> impl ExactSizeIterator<Item = KeyedRow> {
        let first = self.rows.partition_point(|row| row.key() < (start.at, start.id.as_slice()));
        self.rows.get(first..).unwrap_or_default().iter().take(limit).map(|row| KeyedRow {
            key: AdmissionKey { at: row.at, id: row.id.to_vec() },
            place: row.place,
            payload: self.payloads.get(row.payload.clone()).unwrap_or_default().to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use taximeter_ledger::LedgerId;

    use super::*;

    #[test]
    fn what_is_kept_keeps_its_payload() {
        let mut held = Held::default();
        for number in [5_u8, 2, 8, 1, 9, 3] {
            let place = Place { ledger: LedgerId::UNKNOWN, seq: number.into() };
            held.push(number.into(), &[number; ID_BYTES], place, &vec![number; number.into()]);
        }
        assert_eq!(held.middle(), 5);
        held.retain(|(at, _)| at < 5);
        held.sort();
        let all = AdmissionKey { at: i64::MIN, id: Vec::new() };
        let found: Vec<_> = held.from(&all, 2).map(|row| (row.key.at, row.payload)).collect();
        assert_eq!(found, [(1, vec![1]), (2, vec![2; 2])]);
        let behind = AdmissionKey { at: 2, id: vec![2; ID_BYTES] }.next();
        let found: Vec<_> = held.from(&behind, 9).map(|row| row.payload).collect();
        assert_eq!(found, [vec![3; 3]]);
        assert_eq!(held.bytes(), 6 + 3 * size_of::<Row>());
    }
}
