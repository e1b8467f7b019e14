//! Open requests that a segment carries over from the segments before it, so that a start does not
//! need those.
//!
//! Before the checkpoint with which a segment begins stand the last entries of each request that is
//! open there: its reservation, and its last progress if there is one. They are frames of their own
//! kinds and no entries, so no sum counts them. The payload of such a frame is
//!
//! ```text
//! number u64 | index u32 | count u32 | complete payload of the entry        little endian
//! ```
//!
//! `number` is the sequence number of the entry. The `count` frames have the indexes from 1 on, so
//! a reader notices if one is missing.

use std::sync::Arc;

use crate::frame::{Head, Position};
use crate::framed::FramedEntry;
use crate::id::LedgerId;
use crate::kind::{CARRIED_PROGRESS, CARRIED_RESERVE, Kind};

/// Bytes before the payload of the entry.
const NUMBERS_BYTES: usize = 16;

/// An entry that is kept as its complete payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptEntry {
    pub(crate) seq: u64,
    pub(crate) payload: Arc<[u8]>,
}

/// What the journal has of a request that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarriedRequest {
    pub(crate) reserve: KeptEntry,
    pub(crate) progress: Option<KeptEntry>,
}

impl CarriedRequest {
    /// The frames with which a segment of `ledger` carries `requests` over, appended to `out`.
    pub fn append_all(mut requests: Vec<Self>, ledger: LedgerId, out: &mut Vec<u8>) {
        taximeter_collections::sort_by_key(&mut requests, |request| request.reserve.seq);
        let progress = requests.iter().filter(|request| request.progress.is_some()).count();
        let count = u32::try_from(requests.len() + progress).unwrap_or(u32::MAX);
        let seed = ledger.seed();
        let entries = requests.iter().flat_map(|request| {
            let progress = request.progress.iter().map(|progress| (CARRIED_PROGRESS, progress));
            [(CARRIED_RESERVE, &request.reserve)].into_iter().chain(progress)
        });
        let mut payload = Vec::new();
        for (index, (kind, entry)) in (1..=count).zip(entries) {
            payload.clear();
            payload.extend_from_slice(&entry.seq.to_le_bytes());
            payload.extend_from_slice(&index.to_le_bytes());
            payload.extend_from_slice(&count.to_le_bytes());
            payload.extend_from_slice(&entry.payload);
            let (head, _) = Head::of(kind, 0, &payload, seed).bytes(seed);
            out.extend_from_slice(&head);
            out.extend_from_slice(&payload);
        }
    }
}

/// Collects the carried entries that stand before a checkpoint.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    entries: Vec<FramedEntry>,
    count: usize,
}

impl Collector {
    /// Takes the payload of a frame of `kind` at `offset`. Ignores other kinds.
    pub(crate) fn take(&mut self, kind: u8, payload: &[u8], offset: u64, ledger: LedgerId) {
        let kind = match kind {
            CARRIED_RESERVE => Kind::Reserve,
            CARRIED_PROGRESS => Kind::Progress,
            _ => return,
        };
        let Some((numbers, payload)) = payload.split_first_chunk::<NUMBERS_BYTES>() else {
            return self.clear();
        };
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *numbers;
        let seq = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let index = u32::from_le_bytes([i, j, k, l]) as usize;
        let count = u32::from_le_bytes([m, n, o, p]) as usize;
        if index == 1 {
            self.clear();
            self.count = count;
        }
        if index != self.entries.len() + 1 || count != self.count {
            return self.clear();
        }
        self.entries.push(FramedEntry {
            seq,
            chain: Position::START.chain,
            offset,
            ledger,
            kind,
            payload: payload.into(),
            fault: None,
        });
    }

    /// All of the entries. `None` if one is missing.
    pub(crate) fn finish(&mut self) -> Option<Vec<FramedEntry>> {
        let is_whole = self.count > 0 && self.entries.len() == self.count;
        let entries = std::mem::take(&mut self.entries);
        self.count = 0;
        is_whole.then_some(entries)
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.count = 0;
    }
}
