//! Opens a journal: reads the part that matters, cuts off a torn end, and settles the requests that
//! were open when the process died.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use taximeter_config::OnDamage;
use taximeter_ledger::{
    Change, Checkpoint, Digester, EncodedEntry, Entry, Fault, FramedEntry, Framer, Kind, Position,
    Record, RequestId, RunningTotals, gateway_died_record,
};
use taximeter_system::clock;

use super::Price;
use super::disk::{self, Disk};
use super::error::{JournalError, Loss};
use super::files::{self, Segment};
use super::held::HeldDisk;
use super::identity::{self, Identity};
use super::lock::Lock;
use super::options::{Event, Options};
use super::promise;
use super::queue::{Frames, Queue};
use super::read::{Entries, Tail, digester, last_checkpoint};
use super::retain::AgeWait;
use super::salvage;
use super::write::{JournalDir, Writer};

/// Damaged places that one start steps over.
const SALVAGES_MAX: usize = 1000;
/// Entries that one start rejects.
const REJECTED_MAX: usize = 1000;

/// What a start found in the journal.
#[derive(Debug, Default)]
pub struct Recovery {
    /// Which ledger it is.
    pub identity: Identity,
    /// The sequence number from which the start read.
    pub from_seq: u64,
    /// Entries read.
    pub entries: u64,
    /// All requests that were posted before.
    pub posts: u64,
    /// All requests that were voided before.
    pub voids: u64,
    /// Entries that settle a request that was not open. `taximeter verify` names them.
    pub strays: u64,
    /// Bytes at the end that are left out, because they were being written or were not synced when
    /// the power failed.
    pub torn_bytes: u64,
    /// Damage that is left out.
    pub losses: Vec<Loss>,
    /// Entries that are intact but cannot be understood. They change nothing, and the start
    /// continues.
    pub rejected: Vec<(FramedEntry, Fault)>,
    /// Records of the requests that were open. They are posted, with their `seq`.
    pub died: Vec<Record>,
    /// The sequence number of the next entry.
    pub next_seq: u64,
    /// The time of the newest entry that was read. `None` if there was none.
    pub newest: Option<Timestamp>,
    /// What time it is, for what is given up because of its age.
    pub(super) ages: Arc<AgeWait>,
}

/// Reads the journal in `dir` as far as it matters, cuts off a torn end and posts what was open.
pub(super) fn open(
    dir: &Path,
    options: Options,
    price: &Price<'_>,
    disk: Arc<dyn Disk>,
) -> Result<(Arc<Queue>, Writer, Recovery), JournalError> {
    files::create_dir(dir, &*disk, options.is_synced()).map_err(JournalError::io("create", dir))?;
    let lock = Arc::new(Lock::take(dir, &*disk)?);
    files::check_format(dir, &*disk)?;
    let named = identity::own(dir, &*disk, options.is_synced())
        .map_err(JournalError::io("write the identity of the ledger in", dir))?;
    let mut recovery = Recovery { identity: named.identity.clone(), ..Recovery::default() };
    let (dir, named) = (dir.to_owned(), Arc::new(named));
    let journal_dir = JournalDir { dir, disk, ledger: named.identity.id, named, lock };
    let (mut found, held) = recovery.read_or_hold(&journal_dir, &options)?;
    let before = found.end;
    recovery.torn_bytes += found.tail.as_ref().map_or(0, |tail| tail.torn_bytes);
    // A segment whose header was cut off is none.
    let has_header = found.tail.as_ref().is_some_and(|tail| tail.header.is_some());
    let (held, full) = held.unzip();
    let disk: Arc<dyn Disk> = match &held {
        Some(held) => Arc::clone(held) as _,
        None => Arc::clone(&journal_dir.disk),
    };
    let digester = digester(&disk, &journal_dir.dir, before.seq + u64::from(has_header))?;
    let digest = digester.as_ref().and_then(Digester::digest);
    let (path, segment) = match full {
        Some(error) => {
            found.sync_last(&options, &*disk)?;
            (journal_dir.dir.clone(), Err(error))
        }
        None => found.last_segment(&journal_dir, &options, digester)?,
    };
    let (mut segment, mut no_room) = match segment {
        Err(error) if disk::is_without_room(&error) => (None, Some(error)),
        segment => (Some(segment.map_err(JournalError::io("write", &path))?), None),
    };
    // Whether there is room is known once an entry could be written.
    found.is_checked &= segment.is_some();
    let at = (clock::now(), (options.now)());
    recovery.ages = Arc::new(AgeWait::begin(&journal_dir.dir, recovery.newest, at));
    let (bytes, framer, tally) = recovery.close_open(found, &journal_dir, &options, price)?;
    if let Some(segment) = &mut segment {
        no_room = journal_dir
            .append(&options, segment, &bytes, framer.last())
            .map_err(JournalError::io("write", &path))?;
    }
    let length = segment.as_ref().map_or(0, Segment::length);
    let tally = (tally, Arc::clone(&recovery.ages));
    let frames = Frames::new(framer, tally, length, options.segment_bytes);
    let frames = match no_room {
        Some(_) => frames.not_written(bytes, before),
        None => frames,
    };
    let queue = Arc::new(Queue::new(options, frames));
    if let Some(error) = no_room {
        queue.fail(&path, &error);
    }
    let writer = Writer::new((journal_dir, held), Arc::clone(&queue), segment, digest);
    Ok((queue, writer, recovery))
}

/// What a start has read.
#[derive(Default)]
struct Found {
    tally: RunningTotals,
    open: HashMap<RequestId, OpenRequest>,
    last_sign_of_life: Timestamp,
    /// The last entry is a checkpoint, or there is none.
    is_checked: bool,
    end: Position,
    tail: Option<Tail>,
}

/// A reservation that is not settled, and the last that was said of it.
struct OpenRequest {
    reserve: FramedEntry,
    progress: Option<FramedEntry>,
}

/// The disk that holds what there is no room for, and why there is none.
type WithoutRoom = (Arc<HeldDisk>, io::Error);

impl Recovery {
    /// Reads the journal. Where the volume has no room for what comes in place of damage, that is held
    /// in memory.
    fn read_or_hold(
        &mut self,
        journal_dir: &JournalDir,
        options: &Options,
    ) -> Result<(Found, Option<WithoutRoom>), JournalError> {
        match self.read(journal_dir, options) {
            Err(JournalError::Io { source, .. }) if disk::is_without_room(&source) => {
                let held = Arc::new(HeldDisk::new(Arc::clone(&journal_dir.disk)));
                let disk: Arc<dyn Disk> = Arc::clone(&held) as _;
                let on_held = JournalDir { disk, ..journal_dir.clone() };
                Ok((self.read(&on_held, options)?, Some((held, source))))
            }
            read => Ok((read?, None)),
        }
    }

    /// Reads the journal; steps over what is damaged where that is wanted, or where nothing was
    /// promised.
    fn read(&mut self, journal_dir: &JournalDir, options: &Options) -> Result<Found, JournalError> {
        loop {
            let (path, fault) = match self.read_sound(journal_dir) {
                Err(JournalError::Segment { path, fault }) if self.losses.len() < SALVAGES_MAX => {
                    (path, fault)
                }
                read => return read,
            };
            let is_unsynced =
                promise::is_behind_all_synced(&*journal_dir.disk, &journal_dir.dir, &path, &fault)?;
            if !is_unsynced && options.recovery == OnDamage::Strict {
                return Err(JournalError::Segment { path, fault });
            }
            let loss = salvage::leave_out(journal_dir, options, &path, fault, is_unsynced)?;
            (options.tell)(&Event::Salvaged(&loss));
            self.torn_bytes += loss.torn_bytes.unwrap_or(0);
            self.losses.push(loss);
        }
    }

    /// Begins where all is known from on that the last checkpoint does not say.
    fn read_sound(&mut self, journal_dir: &JournalDir) -> Result<Found, JournalError> {
        let JournalDir { dir, disk, .. } = journal_dir;
        let checkpoint = last_checkpoint(disk, dir)?;
        self.from_seq = checkpoint.as_ref().map_or(1, |last| last.from);
        (self.entries, self.strays) = (0, 0);
        self.rejected.clear();
        let mut entries = Entries::new(Arc::clone(disk), dir, self.from_seq).carrying();
        let mut found = Found { is_checked: true, ..Found::default() };
        while let Some(framed) = entries.next().transpose()? {
            self.entries += 1;
            if framed.kind == Kind::Checkpoint {
                found.carry_over(entries.take_carried().unwrap_or_default());
            }
            let fits = match found.add(framed) {
                Ok(fits) => fits,
                Err((framed, fault)) => {
                    self.reject(*framed, fault).map_err(|fault| entries.fault(fault))?;
                    continue;
                }
            };
            match &checkpoint {
                Some(last) if entries.position().seq == last.seq => {
                    found.tally.restore(&last.checkpoint);
                }
                Some(last) if entries.position().seq < last.seq => {}
                _ => self.strays += u64::from(!fits),
            }
        }
        // Of what is open, all is needed that it says.
        for (framed, fault) in found.drop_unreadable() {
            let seq = framed.seq;
            self.reject(framed, fault).map_err(|fault| unreadable(journal_dir, seq, fault))?;
        }
        let Checkpoint { posts, voids, .. } = found.tally.checkpoint(found.last_sign_of_life);
        (self.posts, self.voids) = (posts, voids);
        self.newest = Some(found.last_sign_of_life).filter(|at| *at > Timestamp::default());
        (found.end, found.tail) = (entries.position(), entries.tail());
        match &found.tail {
            // Its name must be the next, or more is gone.
            Some(Tail { header: None, path, torn_bytes: bytes, .. })
                if *path != files::path(dir, found.end.seq + 1) =>
            {
                let fault = Fault::Torn { offset: 0, bytes: *bytes };
                Err(JournalError::Segment { path: path.clone(), fault })
            }
            _ => Ok(found),
        }
    }

    /// Leaves out an entry; too many of them are the fault of more than an entry.
    fn reject(&mut self, framed: FramedEntry, fault: Fault) -> Result<(), Fault> {
        if self.rejected.len() == REJECTED_MAX {
            return Err(fault);
        }
        self.rejected.push((framed, fault));
        Ok(())
    }

    /// Records of what was open, a checkpoint, and their frames. The records end when the gateway
    /// was last known to live: a later time could move the charge into another month.
    fn close_open(
        &mut self,
        found: Found,
        journal_dir: &JournalDir,
        options: &Options,
        price: &Price<'_>,
    ) -> Result<(Vec<u8>, Framer, RunningTotals), JournalError> {
        let Found { mut tally, open, last_sign_of_life: at, is_checked, end, .. } = found;
        let (mut frames, mut payload) = (Vec::new(), Vec::new());
        let mut framer = Framer::new(journal_dir.ledger, end);
        let mut open: Vec<_> = open.into_values().collect();
        taximeter_collections::sort_by_key(&mut open, |open| open.reserve.seq);
        // What it has used may have been in an entry that is lost.
        let is_whole = self.losses.is_empty() && self.rejected.is_empty();
        for open in open {
            let invalid = |fault| unreadable(journal_dir, open.reserve.seq, fault);
            let record = open.died(at, &options.gateway, is_whole).map_err(invalid)?;
            let Some(mut record) = record else { continue };
            // The usage of a pending one is not known yet.
            if !record.is_pending() {
                record.charge(price(&record));
            }
            let entry = Entry::Post(Box::new(record));
            let last = framer.append(&EncodedEntry::new(&entry, &mut payload)?, &mut frames);
            tally.add(last.seq, &Change::of(&entry));
            if let Entry::Post(mut record) = entry {
                record.seq = last.seq;
                self.died.push(*record);
            }
        }
        if !is_checked || !self.died.is_empty() {
            if let Some(time) = self.ages.time() {
                tally.drop_old_pending(time);
            }
            let checkpoint = Entry::Checkpoint(Box::new(tally.checkpoint((options.now)())));
            framer.append(&EncodedEntry::new(&checkpoint, &mut payload)?, &mut frames);
        }
        self.next_seq = framer.last().seq + 1;
        Ok((frames, framer, tally))
    }
}

impl Found {
    /// The segment that is gone on with, and its path: the last one, or a new one. `digester` has
    /// the last one.
    fn last_segment(
        &self,
        journal_dir: &JournalDir,
        options: &Options,
        digester: Option<Digester>,
    ) -> Result<(PathBuf, io::Result<Segment>), JournalError> {
        let JournalDir { dir, disk, ledger, .. } = journal_dir;
        let follows = digester.as_ref().and_then(Digester::digest);
        if let (Some(Tail { header: Some(header), path, offset, .. }), Some(digester)) =
            (&self.tail, digester)
        {
            let is_ours = header.has_sync_marks == options.is_synced() && header.ledger == *ledger;
            if is_ours && !files::is_compressed(path) {
                let opened = Segment::open(path, (*offset, digester), *ledger, &**disk);
                return Ok((path.clone(), Ok(opened.map_err(JournalError::io("open", path))?)));
            }
            // One segment, one promise and one ledger. And a compressed one is closed.
            self.sync_last(options, &**disk)?;
        }
        let begun = journal_dir.begin(options, self.end, follows, (&[], &[]));
        Ok((files::path(dir, self.end.seq + 1), begun))
    }

    /// Syncs the last segment, because another one follows, which says that all of it is there.
    fn sync_last(&self, options: &Options, disk: &dyn Disk) -> Result<(), JournalError> {
        match &self.tail {
            Some(Tail { header: Some(_), path, .. }) if options.is_synced() => {
                files::sync(path, disk).map_err(JournalError::io("sync", path))
            }
            _ => Ok(()),
        }
    }

    /// Adds an entry. Whether it fits to those before.
    ///
    /// Errors: it cannot be read; nothing is changed.
    fn add(&mut self, framed: FramedEntry) -> Result<bool, (Box<FramedEntry>, Fault)> {
        let (at, change) = match framed.change() {
            Ok(read) => read,
            Err(fault) => return Err((Box::new(framed), fault)),
        };
        self.last_sign_of_life = self.last_sign_of_life.max(at);
        self.is_checked = framed.kind == Kind::Checkpoint;
        let fits = self.tally.add(framed.seq, &change);
        let Some(id) = change.request() else { return Ok(fits) };
        match framed.kind {
            Kind::Reserve => {
                self.open.entry(id).or_insert(OpenRequest { reserve: framed, progress: None });
            }
            Kind::Progress => {
                if let Some(open) = self.open.get_mut(&id) {
                    open.progress = Some(framed);
                }
            }
            Kind::Post | Kind::Void => {
                self.open.remove(&id);
            }
            Kind::Correction | Kind::Checkpoint | Kind::Refusals => {}
        }
        Ok(fits)
    }

    /// Adds the entries of requests that a segment carries over. Those that were read before are the
    /// same.
    fn carry_over(&mut self, carried: Vec<FramedEntry>) {
        for framed in carried {
            let Ok((at, change)) = framed.change() else { continue };
            self.last_sign_of_life = self.last_sign_of_life.max(at);
            match change {
                Change::Reserve(id, started_at) => {
                    self.tally.add(framed.seq, &Change::Reserve(id, started_at));
                    let open = || OpenRequest { reserve: framed, progress: None };
                    self.open.entry(id).or_insert_with(open);
                }
                Change::Progress(id) => {
                    if let Some(open) = self.open.get_mut(&id) {
                        open.progress = Some(framed);
                    }
                }
                _ => {}
            }
        }
    }

    /// Takes out what is open and cannot be read: a reservation, or what was last said of one.
    fn drop_unreadable(&mut self) -> Vec<(FramedEntry, Fault)> {
        let Self { tally, open, .. } = self;
        let mut dropped = Vec::new();
        open.retain(|id, open| {
            if let Some(progress) = open.progress.take_if(|progress| progress.entry().is_err())
                && let Err(fault) = progress.entry()
            {
                dropped.push((progress, fault));
            }
            let Err(fault) = open.reserve.entry() else { return true };
            tally.drop_reservation(id);
            dropped.push((open.reserve.clone(), fault));
            false
        });
        taximeter_collections::sort_by_key(&mut dropped, |(framed, _)| framed.seq);
        dropped
    }
}

impl OpenRequest {
    /// The record of a request that was open when the gateway died: what was last said of it. Where
    /// nothing was and the journal `is_whole`, it had used nothing more than at its admission.
    fn died(&self, at: Timestamp, gateway: &str, is_whole: bool) -> Result<Option<Record>, Fault> {
        let progress = self.progress.as_ref().map(FramedEntry::entry).transpose()?;
        let Entry::Reserve(reserve) = self.reserve.entry()? else { return Ok(None) };
        let progress = match progress {
            Some(Entry::Progress(progress)) => Some(*progress),
            _ => is_whole.then(|| reserve.admitted()),
        };
        Ok(Some(gateway_died_record(&reserve, progress.as_ref(), at, gateway)))
    }
}

/// Says in which file entry `seq` is.
fn unreadable(journal_dir: &JournalDir, seq: u64, fault: Fault) -> JournalError {
    let segments = files::list(&journal_dir.dir, &*journal_dir.disk).unwrap_or_default();
    let segment = segments.into_iter().rfind(|(first, _)| *first <= seq);
    let path = segment.map_or_else(|| journal_dir.dir.clone(), |(_, path)| path);
    JournalError::Segment { path, fault }
}
