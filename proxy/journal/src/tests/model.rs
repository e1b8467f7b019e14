//! Compares what a journal was given and has promised with what it contains.

use std::collections::BTreeMap;
use std::mem;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use rust_decimal::Decimal;
use taximeter_config::{Durability, OnDamage, OnUnavailable};
use taximeter_ledger::{
    Charge, Checkpoint, EncodedEntry, End, Entry, FramedEntry, Kind, OpenReservation, Payload,
    Progress, RecordCost, RecordUsage, Replay, RequestId,
};
use uuid::Uuid;

use super::super::error::Loss;
use super::super::files;
use super::super::read::Entries;
use super::super::{Journal, JournalError, Options, Recovery};
use super::bench::{post, reserve, void};
use super::memory::Memory;
use super::random::Random;
use super::run;

/// Where the journal is on the disk in memory.
pub(super) const DIR: &str = "/data/journal";

/// An entry, and what its frame carries.
#[derive(Debug)]
struct Appended {
    entry: Entry,
    payload: Payload,
}

/// What users rely on.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) memory: Memory,
    pub(super) durability: Durability,
    pub(super) segment_bytes: u64,
    /// What the journal took, by the place that it gave it.
    entries: BTreeMap<u64, Appended>,
    /// Reserved and not settled.
    open: Vec<u128>,
    requests: u128,
    /// The last one that was said to be written.
    pub(super) acknowledged: u64,
    /// The last one that is to survive a power cut.
    pub(super) synced: u64,
    /// Entries that were there no more when somebody looked.
    pub(super) gone: usize,
    /// Checkpoints that were looked at and carry over what is open.
    pub(super) carried: usize,
}

impl Model {
    pub(super) fn new(durability: Durability, segment_bytes: u64) -> Self {
        Self {
            memory: Memory::default(),
            durability,
            segment_bytes,
            entries: BTreeMap::new(),
            open: Vec::new(),
            requests: 0,
            acknowledged: 0,
            synced: 0,
            gone: 0,
            carried: 0,
        }
    }

    /// The last entry that was taken.
    pub(super) fn taken(&self) -> u64 {
        self.entries.last_key_value().map_or(0, |(seq, _)| *seq)
    }

    /// Opens the journal as it is.
    pub(super) fn start(&self) -> Result<(Journal, Recovery), JournalError> {
        let options = Options {
            gateway: "pod/0".to_owned(),
            durability: self.durability,
            recovery: OnDamage::Strict,
            unavailable: OnUnavailable::Refuse,
            queue_bytes_max: 1 << 20,
            segment_bytes: self.segment_bytes,
            now: Timestamp::default,
            tell: Box::new(|_| {}),
        };
        Journal::open_on(Path::new(DIR), options, &|_| Charge::default(), self.memory.mount())
    }

    /// Requests come, go on and end, as many steps as there are.
    pub(super) fn work(&mut self, journal: &Journal, steps: usize, random: &mut Random) {
        for _ in 0..steps {
            let open = (!self.open.is_empty()).then(|| random.index(self.open.len()));
            match (open, random.index(6)) {
                (Some(at), 0 | 1) => {
                    let request = self.open.swap_remove(at);
                    self.tell(journal, costly(request));
                }
                (Some(at), 2) => {
                    let request = self.open.swap_remove(at);
                    self.tell(journal, void(request));
                }
                (Some(at), 3) => self.tell(journal, progress(self.open[at])),
                _ => {
                    self.requests += 1;
                    let before = self.taken();
                    self.tell(journal, reserve(self.requests));
                    if self.taken() > before {
                        self.open.push(self.requests);
                    }
                }
            }
        }
    }

    fn tell(&mut self, journal: &Journal, entry: Entry) {
        let Ok(append) = journal.append(&entry) else {
            let may_be_refused = matches!(entry, Entry::Reserve(_) | Entry::Progress(_));
            assert!(may_be_refused, "only reservations, and what is said again, are refused");
            return;
        };
        let seq = append.seq;
        self.entries.insert(seq, Appended::new(entry));
        if let Ok(written) = run(append) {
            assert_eq!(written, seq);
            self.acknowledged = seq;
            if self.durability == Durability::Sync {
                self.synced = seq;
            }
        }
    }

    /// Opens what is left, after looking at it: all up to `promised` must be there, in order and
    /// once, and nothing that was never told.
    ///
    /// # Errors
    /// A disk that fails.
    pub(super) fn reopen(&mut self, promised: u64) -> Result<Journal, JournalError> {
        let (last, fault) = self.compare(promised);
        assert!(fault.is_none(), "{fault:?}");
        self.gone += self.entries.split_off(&(last + 1)).len();
        let open = self.still_open();
        let (journal, recovery) = self.start()?;
        let mut died: Vec<_> = recovery.died.iter().map(|record| number(record.id)).collect();
        died.sort_unstable();
        assert_eq!(died, open, "those who were open have died");
        // On a full volume their posts are written later.
        for mut record in recovery.died {
            let seq = mem::take(&mut record.seq);
            self.entries.insert(seq, Appended::new(Entry::Post(Box::new(record))));
        }
        let (last, fault) = self.compare(promised);
        assert!(fault.is_none(), "{fault:?}");
        assert!(self.still_open().is_empty());
        self.open.clear();
        // What a full volume took in part is cut off and written again.
        let last = last.min(journal.sequence());
        self.acknowledged = last;
        if self.durability != Durability::Os {
            self.synced = last;
        }
        Ok(journal)
    }

    /// Opens what a power cut has left that may write blocks in any order: all up to `promised` must
    /// be there, and of what is behind it as much as can be read, but for one that is damaged.
    /// How many entries are gone from between others, and how many were kept behind those.
    pub(super) fn reopen_with_holes(&mut self, promised: u64) -> (u64, u64) {
        let (last, fault) = self.compare(promised);
        assert!(fault.is_some(), "there is no hole");
        let (journal, recovery) = self.start().unwrap();
        let torn = |loss: &Loss| loss.torn_bytes.is_some() && loss.first_seq > last;
        assert!(!recovery.losses.is_empty() && recovery.losses.iter().all(torn), "{recovery:?}");
        assert!(recovery.torn_bytes > 0);
        journal.close().unwrap();
        let (mut gone, mut kept, mut next) = (0, 0, 1);
        let mut open = BTreeMap::new();
        for framed in Entries::new(self.memory.look(), Path::new(DIR), 1) {
            let framed = framed.unwrap();
            assert!(framed.seq == next || next > last, "a hole in what was whole");
            gone += framed.seq - next;
            next = framed.seq + 1;
            let entry = framed.entry().unwrap();
            match self.entries.get(&framed.seq) {
                Some(appended) if appended.payload == framed.payload => kept += u64::from(gone > 0),
                _ => drop(Appended::by_the_journal(&framed)),
            }
            match entry {
                Entry::Reserve(reserve) => drop(open.insert(reserve.id, framed.seq)),
                Entry::Post(record) => drop(open.remove(&record.id)),
                Entry::Void(void) => drop(open.remove(&void.id)),
                _ => {}
            }
        }
        assert!(open.is_empty(), "{open:?} are open");
        // From now on it is whole.
        let (_, recovery) = self.start().unwrap();
        assert!(recovery.losses.is_empty() && recovery.torn_bytes == 0, "{recovery:?}");
        (gone, kept)
    }

    /// Whether all of it can be read, up to a torn end.
    pub(super) fn is_sound(&self) -> bool {
        Entries::new(self.memory.look(), Path::new(DIR), 1).all(|framed| framed.is_ok())
    }

    /// All that was told is there.
    pub(super) fn assert_whole(&mut self) {
        let (_, fault) = self.compare(self.taken());
        assert!(fault.is_none(), "{fault:?}");
    }

    /// Reads what was not promised to survive, up to its end or a fault: there may be less than was
    /// told, also at its beginning, but nothing else.
    pub(super) fn assert_nothing_is_made_up(&self) -> Option<JournalError> {
        let entries = Entries::new(self.memory.look(), Path::new(DIR), 1);
        for framed in entries {
            match framed {
                // What it says of the others is checked where they are all there.
                Ok(framed) if framed.kind == Kind::Checkpoint => {}
                Ok(framed) => {
                    let appended = self.entries.get(&framed.seq).map(|appended| &appended.payload);
                    assert_eq!(Some(&framed.payload), appended, "{framed:?}");
                }
                Err(fault) => return Some(fault),
            }
        }
        None
    }

    /// Reads the journal, up to its end or a fault, and compares each entry.
    fn compare(&mut self, promised: u64) -> (u64, Option<JournalError>) {
        let disk = self.memory.look();
        let entries = Entries::new(Arc::clone(&disk), Path::new(DIR), 1);
        let mut entries = entries.digesting().carrying();
        let mut found = Replay::default();
        let mut last = 0;
        let fault = loop {
            let framed = match entries.next() {
                Some(Ok(framed)) => framed,
                Some(Err(fault)) => break Some(fault),
                None => break None,
            };
            assert_eq!(framed.seq, last + 1, "none is missing");
            last = framed.seq;
            let appended =
                self.entries.entry(last).or_insert_with(|| Appended::by_the_journal(&framed));
            assert!(framed.payload == appended.payload, "{:?} was told", appended.entry);
            found.apply(last, appended.entry.clone()).unwrap();
            if let Entry::Checkpoint(checkpoint) = &appended.entry {
                let Checkpoint { posts, voids, costs, .. } = &**checkpoint;
                assert_eq!((*posts, *voids), (found.posts(), found.voids()));
                assert_eq!(costs.values().sum::<Decimal>(), owed(&found));
                if let Some(carried) = entries.take_carried() {
                    assert_eq!(sorted(carried), sorted_open(&found), "what is carried is open");
                    self.carried += 1;
                }
            }
        };
        assert!(last >= promised, "{promised} were promised, {last} are there: {fault:?}");
        assert_eq!(owed(&found), self.owed_at(last), "sums");
        assert_eq!(entries.take_altered(), [], "each segment is what the next one says");
        for (first, path) in files::list(Path::new(DIR), &*disk).unwrap_or_default() {
            let header = files::header(&path, &*disk).unwrap();
            assert!(header.is_none_or(|header| header.follows.is_some() == (first > 1)));
        }
        (last, fault)
    }

    /// The sum of what was posted, counted apart from the ledger's own arithmetic.
    fn owed_at(&self, last: u64) -> Decimal {
        let posted =
            self.entries.range(..=last).filter_map(|(_, appended)| match &appended.entry {
                Entry::Post(record) if record.cost.is_some() => Some(number(record.id)),
                _ => None,
            });
        posted.map(Decimal::from).sum()
    }

    fn still_open(&self) -> Vec<u128> {
        let mut replay = Replay::default();
        for (seq, appended) in &self.entries {
            replay.apply(*seq, appended.entry.clone()).unwrap();
        }
        let mut open: Vec<_> =
            replay.open().into_iter().map(|open| number(open.reserve.id)).collect();
        open.sort_unstable();
        open
    }
}

impl Appended {
    fn new(entry: Entry) -> Self {
        let mut payload = Vec::new();
        EncodedEntry::new(&entry, &mut payload).unwrap();
        Self { entry, payload: (&*payload).into() }
    }

    /// What was open is posted at a start, and sums are written now and then; nothing else is said
    /// by nobody.
    fn by_the_journal(framed: &FramedEntry) -> Self {
        let entry = framed.entry().unwrap();
        let is_expected = match &entry {
            Entry::Post(record) => record.end == End::GatewayDied && record.cost.is_none(),
            Entry::Checkpoint(_) => true,
            _ => false,
        };
        assert!(is_expected, "{entry:?} was never told");
        Self { entry, payload: framed.payload.clone() }
    }
}

/// What a segment carries over, in an order of its own.
fn sorted(carried: Vec<FramedEntry>) -> Vec<String> {
    let entries = carried.iter().map(|framed| format!("{:?}", framed.entry().unwrap()));
    let mut entries: Vec<_> = entries.collect();
    entries.sort_unstable();
    entries
}

/// What a segment is to carry over.
fn sorted_open(replay: &Replay) -> Vec<String> {
    let mut entries = Vec::new();
    for OpenReservation { reserve, progress } in replay.open() {
        entries.push(format!("{:?}", Entry::Reserve(Box::new(reserve.clone()))));
        let progress = progress.clone().map(|progress| Entry::Progress(Box::new(progress)));
        entries.extend(progress.map(|progress| format!("{progress:?}")));
    }
    entries.sort_unstable();
    entries
}

fn owed(replay: &Replay) -> Decimal {
    replay.balances().values().flat_map(|balance| balance.posted.values()).sum()
}

fn number(id: RequestId) -> u128 {
    id.0.as_u128()
}

/// A post of as many dollars as the request's number.
fn costly(request: u128) -> Entry {
    let mut entry = post(request);
    if let Entry::Post(record) = &mut entry {
        let amount = Decimal::from(request);
        record.cost = Some(RecordCost {
            at_least: false,
            currency: "USD".to_owned(),
            amount,
            list_amount: amount,
            price_id: "1/m".to_owned(),
            price_match: None,
            lines: Vec::new(),
        });
    }
    entry
}

fn progress(request: u128) -> Entry {
    Entry::Progress(Box::new(Progress {
        id: RequestId(Uuid::from_u128(request)),
        at: Timestamp::UNIX_EPOCH,
        response_model: None,
        response_id: None,
        service_tier: None,
        usage: RecordUsage::counted(Some(3), u64::try_from(request).ok(), &[]),
    }))
}
