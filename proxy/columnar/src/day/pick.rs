//! Finds single rows: by their id, and the first and last ones in the order of admission.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use taximeter_ledger::{Place, RequestId};
use twox_hash::XxHash64;

use super::file::{AdmissionKey, DayFile};
use super::scan::{Plan, Row};
use crate::error::ReadError;
use crate::kept::{ReadAt, RowFilter, RowRanges, batches, common, push};
use crate::record::place_of;

/// Bytes of a block of a Bloom filter.
const FILTER_BLOCK_BYTES: usize = 32;

/// Where a row is.
pub(super) type At = (usize, usize);

/// Keeps the least of what it is given.
pub(super) struct Least<K> {
    pub(super) heap: BinaryHeap<(K, At)>,
    pub(super) limit: usize,
}

impl<K: Ord> Least<K> {
    /// Whether one with a key from `key` on can still be among the least.
    pub(super) fn may_take(&self, key: &K) -> bool {
        self.heap.len() < self.limit || self.heap.peek().is_some_and(|(most, _)| key < most)
    }

    /// Whether there are enough, and the largest of them is as `is_before` says.
    fn is_full(&self, is_before: impl FnOnce(&K) -> bool) -> bool {
        self.heap.len() >= self.limit && self.heap.peek().is_none_or(|(most, _)| is_before(most))
    }

    pub(super) fn push(&mut self, key: K, at: At) {
        if self.limit > 0 && self.may_take(&key) {
            if self.heap.len() == self.limit {
                self.heap.pop();
            }
            self.heap.push((key, at));
        }
    }
}

impl<R: ReadAt + 'static> DayFile<R> {
    /// The request with this id: where its entry is, and in `payload` its complete payload.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn find(&self, id: RequestId, payload: &mut Vec<u8>) -> Result<Option<Place>, ReadError> {
        let id = id.0.as_bytes();
        for group in 0..self.kept.groups() {
            let may_be = self
                .kept
                .bounds(group, place_of("id"))?
                .is_none_or(|(least, most)| least <= id.as_slice() && id.as_slice() <= most);
            if !may_be || !self.filter_takes(group, id)? {
                continue;
            }
            if let Some(row) = self.row_of(group, id)? {
                let mut rows = BTreeMap::<usize, RowRanges>::new();
                push(rows.entry(group).or_default(), row..row + 1);
                let mut scan = self.plan(Plan::Rows(rows));
                if let Some(found) = scan.next_row()? {
                    payload.clear();
                    payload.extend_from_slice(found.payload);
                    return Ok(Some(found.place));
                }
            }
        }
        Ok(None)
    }

    /// Shows the first `limit` rows in order of admission that `filter` takes, from `from` on: where each
    /// one's entry is, and its complete payload.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn first(
        &self,
        filter: &RowFilter,
        from: Option<&AdmissionKey>,
        limit: usize,
        visit: &mut dyn FnMut(&AdmissionKey, Place, &[u8]),
    ) -> Result<(), ReadError> {
        let mut pages = self.pages_by_time(filter)?;
        pages.sort_by_key(|page| page.least);
        let mut least = Least { heap: BinaryHeap::new(), limit };
        for page in pages {
            if !least.may_take(&AdmissionKey { at: page.least, id: Vec::new() }) {
                break;
            }
            if from.is_some_and(|from| page.most < from.at) {
                continue;
            }
            self.keys(&page, filter, |at, id, row| {
                // Most rows are told by their time alone.
                if from.is_some_and(|from| at < from.at) || least.is_full(|most| most.at < at) {
                    return;
                }
                let key = AdmissionKey { at, id: id.to_vec() };
                if from.is_none_or(|from| key >= *from) {
                    least.push(key, row);
                }
            })?;
        }
        self.show(least.heap.into_sorted_vec(), visit)
    }

    /// Shows the last `limit` rows in order of admission that `filter` takes, before `before`, as
    /// [`first`](Self::first) does, the last one first.
    ///
    /// # Errors
    /// The file is damaged or cannot be read.
    pub fn last(
        &self,
        filter: &RowFilter,
        before: Option<&AdmissionKey>,
        limit: usize,
        visit: &mut dyn FnMut(&AdmissionKey, Place, &[u8]),
    ) -> Result<(), ReadError> {
        let mut pages = self.pages_by_time(filter)?;
        pages.sort_by_key(|page| Reverse(page.most));
        let mut least = Least { heap: BinaryHeap::new(), limit };
        for page in pages {
            let last = AdmissionKey { at: page.most, id: vec![0xff; 17] };
            if !least.may_take(&Reverse(last)) {
                break;
            }
            if before.is_some_and(|before| page.least > before.at) {
                continue;
            }
            self.keys(&page, filter, |at, id, row| {
                let is_late = before.is_some_and(|before| at > before.at);
                if is_late || least.is_full(|Reverse(most)| most.at > at) {
                    return;
                }
                let key = AdmissionKey { at, id: id.to_vec() };
                if before.is_none_or(|before| key < *before) {
                    least.push(Reverse(key), row);
                }
            })?;
        }
        let keys = least.heap.into_sorted_vec();
        self.show(keys.into_iter().map(|(Reverse(key), at)| (key, at)).collect(), visit)
    }

    /// Reads the rows with these keys, and shows them in this order.
    fn show(
        &self,
        keys: Vec<(AdmissionKey, At)>,
        visit: &mut dyn FnMut(&AdmissionKey, Place, &[u8]),
    ) -> Result<(), ReadError> {
        let mut sorted: Vec<_> =
            keys.iter().enumerate().map(|(order, (_, at))| (*at, order)).collect();
        sorted.sort_unstable();
        let mut rows = BTreeMap::<usize, RowRanges>::new();
        for ((group, row), _) in &sorted {
            push(rows.entry(*group).or_default(), *row..*row + 1);
        }
        let mut scan = self.plan(Plan::Rows(rows));
        let mut found = Vec::with_capacity(sorted.len());
        let mut payloads = Vec::new();
        for (_, order) in sorted {
            let Some(Row { place, payload, .. }) = scan.next_row()? else { break };
            found.push((order, place, payloads.len()..payloads.len() + payload.len()));
            payloads.extend_from_slice(payload);
        }
        found.sort_unstable_by_key(|(order, ..)| *order);
        for ((key, _), (_, place, payload)) in keys.iter().zip(found) {
            visit(key, place, payloads.get(payload).unwrap_or_default());
        }
        Ok(())
    }

    /// The pages in which rows are that `filter` may take.
    fn pages_by_time(&self, filter: &RowFilter) -> Result<Vec<TimePage>, ReadError> {
        let mut pages = Vec::new();
        for group in 0..self.kept.groups() {
            let candidates = self.kept.candidates(group, filter)?;
            if candidates.is_empty() {
                continue;
            }
            for (rows, least, most) in self.kept.times_of_pages(group)? {
                let rows = common(&candidates, &vec![rows]);
                if !rows.is_empty() {
                    pages.push(TimePage { group, rows, least, most });
                }
            }
        }
        Ok(pages)
    }

    /// The time, the id and the place of each row of a page that `filter` takes.
    fn keys(
        &self,
        page: &TimePage,
        filter: &RowFilter,
        mut visit: impl FnMut(i64, &[u8], At),
    ) -> Result<(), ReadError> {
        let group = page.group;
        let mut ids = self.cursor(group, "id")?;
        let mut times = self.cursor(group, "started_at")?;
        let mut tenants = self.cursor(group, "tenant")?;
        for batch in batches(&page.rows) {
            for cursor in [&mut ids, &mut times, &mut tenants] {
                cursor.read(batch.start, batch.len())?;
            }
            for row in batch {
                let at = times.next_value().and_then(|it| it.int().ok());
                let tenant = tenants.next_value().and_then(|it| it.bytes().ok());
                let id = ids.next_value().and_then(|it| it.bytes().ok());
                let ((at, tenant), id) = at
                    .zip(tenant)
                    .zip(id)
                    .ok_or_else(|| ReadError::group(group, "a row has no key"))?;
                if filter.takes_time(at) && filter.takes_tenant(tenant) {
                    visit(at, id, (group, row));
                }
            }
        }
        Ok(())
    }

    /// The row with an id, by the smallest and largest id of each page.
    fn row_of(&self, group: usize, id: &[u8]) -> Result<Option<usize>, ReadError> {
        let pages = self
            .kept
            .pages_between(group, place_of("id"), |least, most| least <= id && id <= most)?;
        let mut ids = self.cursor(group, "id")?;
        for batch in batches(&pages) {
            ids.read(batch.start, batch.len())?;
            for row in batch {
                if ids.next_value().and_then(|it| it.bytes().ok()) == Some(id) {
                    return Ok(Some(row));
                }
            }
        }
        Ok(None)
    }

    /// Whether the Bloom filter of a group may have an id. Only the block is read that the id is in.
    pub(super) fn filter_takes(&self, group: usize, id: &[u8]) -> Result<bool, ReadError> {
        let column = self.kept.column(group, place_of("id"))?;
        let range = column.bloom_filter_offset().zip(column.bloom_filter_length());
        let Some((start, length)) = range else { return Ok(true) };
        let number = |value: i64| u64::try_from(value).map_err(ReadError::footer);
        let (start, length) = (number(start)?, number(length.into())?);
        // The blocks are behind a header that is shorter than one of them.
        let blocks = length / FILTER_BLOCK_BYTES as u64;
        let header = length % FILTER_BLOCK_BYTES as u64;
        let hash = XxHash64::oneshot(0, id);
        let block = ((hash >> 32) * blocks) >> 32;
        let at = start + header + block * FILTER_BLOCK_BYTES as u64;
        Ok(takes(&self.kept.bytes(group, at, FILTER_BLOCK_BYTES)?, hash))
    }
}

/// Rows of a page of the times of admission, and the first and last time in it.
struct TimePage {
    group: usize,
    rows: Vec<Range<usize>>,
    least: i64,
    most: i64,
}

/// Whether a block of a Bloom filter has the bits of a hash. The numbers are those of Parquet's
/// specification.
fn takes(block: &[u8], hash: u64) -> bool {
    const SALT: [u32; 8] = [
        0x47b6_137b,
        0x4497_4d91,
        0x8824_ad5b,
        0xa2b7_289d,
        0x7054_95c7,
        0x2df1_424b,
        0x9efc_4947,
        0x5c6b_fb31,
    ];
    let [a, b, c, d, ..] = hash.to_le_bytes();
    let low = u32::from_le_bytes([a, b, c, d]);
    let (words, _) = block.as_chunks::<4>();
    words.len() == SALT.len()
        && words.iter().zip(SALT).all(|(word, salt)| {
            let bit = low.wrapping_mul(salt) >> 27;
            u32::from_le_bytes(*word) & (1 << bit) != 0
        })
}
