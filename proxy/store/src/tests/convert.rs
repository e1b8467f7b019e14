//! Tests of the conversion of stores of formats 2 and 3, whose rows are JSON. Each one is made of a
//! store of today: the same rows in the tables of then.

mod cut;
mod postgres;
mod sqlite;

pub(super) use self::sqlite::TABLES_WITH_FORMS;

use jiff::SignedDuration;
use taximeter_ledger::{Correction, RecordUsage, TenantId};
use taximeter_pricing::Source;
use uuid::Uuid;

use super::hours::{changed, correction, entries as correction_entries};
use super::refusals::refusals;
use super::*;

/// The formats with such rows.
const FORMATS: [u32; 2] = [2, 3];

/// What a store has.
struct Content {
    records: Vec<Record>,
    corrections: Vec<Correction>,
    has_refusals: bool,
}

impl Content {
    /// So many requests, half of them a month later. The last one has used nothing. Four requests are
    /// corrected; one of them is not here.
    fn new(format: u32, count: u32) -> Self {
        let request = |number| {
            let mut record = record(number);
            if number >= count / 2 {
                record.started_at += SignedDuration::from_hours(24 * 30);
                record.ended_at += SignedDuration::from_hours(24 * 30);
                record.tenant = TenantId("quotes \" ' and \\ and ä".into());
            }
            record
        };
        let mut records: Vec<_> = (0..count).map(request).collect();
        let last = count as usize - 1;
        let usage = RecordUsage { source: Source::None, ..RecordUsage::default() };
        (records[last].cost, records[last].usage) = (None, usage);
        let elsewhere = record(count + 1);
        let of = [&records[0], &records[1], &records[last - 1], &elsewhere];
        let corrections = (1..).zip(of).map(|(n, of)| correction(n, of, of.cost.as_ref(), 3));
        Self { corrections: corrections.collect(), records, has_refusals: format > 2 }
    }

    fn fill(&self, store: &mut Store) {
        let posts = self.records.iter().map(|record| Entry::Post(Box::new(record.clone())));
        let counted = self.has_refusals.then(|| refusals(1, 0, [1, 2, 3, 4]));
        let requests = segment(1, posts.chain(counted));
        let corrections = correction_entries(&self.corrections);
        store.catch_up(&mut [feed(&requests), changed(&corrections)]).unwrap();
    }

    /// Each request's id and its JSON.
    fn records(&self) -> impl Iterator<Item = (Uuid, String)> {
        self.records.iter().map(|record| (record.id.0, serde_json::to_string(record).unwrap()))
    }

    /// Each correction's id and its JSON.
    fn corrections(&self) -> impl Iterator<Item = (Uuid, String)> {
        self.corrections.iter().map(|it| (it.id.0, serde_json::to_string(it).unwrap()))
    }

    fn all(&self) -> Rebuilt {
        let [kept_records, kept_corrections] =
            [self.records.len(), self.corrections.len()].map(|count| count as u64);
        Rebuilt { kept_records, kept_corrections, ..Rebuilt::default() }
    }
}
