//! Sets up a journal in a folder of its own, on a disk that fails on demand.

use std::collections::BTreeMap;
use std::fs::TryLockError;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use jiff::Timestamp;
use rust_decimal::Decimal;
use taximeter_config::{Durability, OnDamage, OnUnavailable};
use taximeter_ledger::{
    Charge, Entry, FramedEntry, Identity, Kind, Progress, Record, RecordCost, RecordUsage,
    RequestId, Reserve, TenantId, Void, VoidReason, gateway_died_record,
};
use tempfile::TempDir;
use uuid::Uuid;

use super::super::disk::{Disk, How, Kernel, OpenFile, Status};
use super::super::files;
use super::super::{Journal, JournalError, Options, Recovery, read};

/// Long enough for one segment.
pub(super) const SEGMENT_BYTES: u64 = 64 << 20;

/// A thousandth for each token of output.
pub(super) fn price(record: &Record) -> Charge {
    let Some(tokens) = record.usage.output_tokens else { return Charge::default() };
    let amount = Decimal::new(tokens.cast_signed(), 3);
    let cost = RecordCost {
        at_least: false,
        currency: "USD".to_owned(),
        amount,
        list_amount: amount,
        price_id: "test".to_owned(),
        price_match: None,
        lines: Vec::new(),
    };
    Charge { cost: Some(cost), ..Charge::default() }
}

/// A disk that does what the test says.
#[derive(Debug, Default)]
pub(super) struct Scripted {
    script: Mutex<Script>,
    changed: Condvar,
}

#[derive(Debug, Default)]
pub(super) struct Script {
    /// Writes reach the disk up to this many bytes, then it is full.
    pub(super) full_after: Option<usize>,
    /// No file can be made.
    pub(super) has_no_inodes: bool,
    /// After this many writes, the next one waits.
    pub(super) stuck_after: Option<usize>,
    /// Writes so far.
    writes: usize,
    /// A write is waiting.
    waiting: bool,
    /// Syncs so far.
    syncs: usize,
    /// So many syncs fail.
    pub(super) failing_syncs: usize,
}

impl Scripted {
    pub(super) fn set(&self, change: impl FnOnce(&mut Script)) {
        let mut script = self.script.lock().unwrap();
        script.waiting = false;
        change(&mut script);
        drop(script);
        self.changed.notify_all();
    }

    pub(super) fn writes(&self) -> usize {
        self.script.lock().unwrap().writes
    }

    pub(super) fn syncs(&self) -> usize {
        self.script.lock().unwrap().syncs
    }

    pub(super) fn wait_for_syncs(&self, count: usize) {
        let script = self.script.lock().unwrap();
        drop(self.changed.wait_while(script, |script| script.syncs < count).unwrap());
    }

    pub(super) fn wait_until_stuck(&self) {
        let script = self.script.lock().unwrap();
        drop(self.changed.wait_while(script, |script| !script.waiting).unwrap());
    }
}

/// The kernel's disk, but for what the script says.
#[derive(Debug)]
pub(super) struct ScriptedDisk(Arc<Scripted>);

#[derive(Debug)]
struct ScriptedFile {
    scripted: Arc<Scripted>,
    file: Arc<dyn OpenFile>,
}

impl Disk for ScriptedDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        Kernel.create_dir(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        Kernel.list(dir)
    }

    fn open(&self, path: &Path, how: How) -> io::Result<Arc<dyn OpenFile>> {
        let makes_file = matches!(how, How::Create | How::AppendOrCreate) && !path.exists();
        if makes_file && self.0.script.lock().unwrap().has_no_inodes {
            return Err(ErrorKind::StorageFull.into());
        }
        let (scripted, file) = (Arc::clone(&self.0), Kernel.open(path, how)?);
        Ok(Arc::new(ScriptedFile { scripted, file }))
    }

    fn status(&self, path: &Path) -> io::Result<Status> {
        Kernel.status(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Kernel.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Kernel.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        Kernel.sync_dir(dir)
    }
}

impl OpenFile for ScriptedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let Scripted { script, changed } = &*self.scripted;
        let mut script = script.lock().unwrap();
        while script.stuck_after == Some(0) {
            script.waiting = true;
            changed.notify_all();
            script = changed.wait(script).unwrap();
        }
        script.stuck_after = script.stuck_after.map(|writes| writes - 1);
        script.writes += 1;
        let bytes = match &mut script.full_after {
            Some(0) => return Err(ErrorKind::StorageFull.into()),
            Some(room) => {
                let written = bytes.len().min(*room);
                *room -= written;
                &bytes[..written]
            }
            None => bytes,
        };
        self.file.append(bytes)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        let mut script = self.scripted.script.lock().unwrap();
        script.syncs += 1;
        self.scripted.changed.notify_all();
        match script.failing_syncs.checked_sub(1) {
            Some(left) => {
                script.failing_syncs = left;
                Err(io::Error::other("the device lost it"))
            }
            None => self.file.sync(),
        }
    }

    fn status(&self) -> io::Result<Status> {
        self.file.status()
    }

    fn try_lock(&self) -> Result<(), TryLockError> {
        self.file.try_lock()
    }
}

pub(super) struct Bench {
    pub(super) dir: TempDir,
    pub(super) disk: Arc<Scripted>,
    pub(super) durability: Durability,
    pub(super) recovery: OnDamage,
    pub(super) unavailable: OnUnavailable,
    pub(super) segment_bytes: u64,
    pub(super) queue_bytes_max: usize,
    pub(super) events: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    pub(super) fn new(durability: Durability) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            disk: Arc::default(),
            durability,
            recovery: OnDamage::Strict,
            unavailable: OnUnavailable::Refuse,
            segment_bytes: SEGMENT_BYTES,
            queue_bytes_max: 1 << 20,
            events: Arc::default(),
        }
    }

    pub(super) fn try_open(&self) -> Result<(Journal, Recovery), JournalError> {
        self.try_open_as(self.recovery)
    }

    pub(super) fn try_open_as(
        &self,
        recovery: OnDamage,
    ) -> Result<(Journal, Recovery), JournalError> {
        let disk = Arc::new(self.scripted());
        Journal::open_on(self.dir.path(), self.options(recovery), &price, disk)
    }

    /// The disk as its script has it.
    pub(super) fn scripted(&self) -> ScriptedDisk {
        ScriptedDisk(Arc::clone(&self.disk))
    }

    pub(super) fn options(&self, recovery: OnDamage) -> Options {
        let events = Arc::clone(&self.events);
        Options {
            gateway: "pod/0".to_owned(),
            durability: self.durability,
            recovery,
            unavailable: self.unavailable,
            queue_bytes_max: self.queue_bytes_max,
            segment_bytes: self.segment_bytes,
            now: Timestamp::default,
            tell: Box::new(move |event| {
                let event = format!("{event:?}");
                let name = event.split([' ', '{', '(']).next().unwrap_or_default().to_owned();
                events.lock().unwrap().push(name);
            }),
        }
    }

    pub(super) fn open(&self) -> (Journal, Recovery) {
        self.try_open().unwrap()
    }

    pub(super) fn open_as(&self, recovery: OnDamage) -> (Journal, Recovery) {
        self.try_open_as(recovery).unwrap()
    }

    pub(super) fn read(&self, from: u64) -> Vec<FramedEntry> {
        read(self.dir.path(), from).map(Result::unwrap).collect()
    }

    /// What the entries are about, in order, after checking that none is missing; checkpoints are
    /// about nothing.
    pub(super) fn requests(&self) -> Vec<u128> {
        let framed = self.read(1);
        assert!(framed.iter().map(|framed| framed.seq).eq(1..=framed.len() as u64));
        framed.iter().filter(|framed| is_of_a_request(framed)).map(number).collect()
    }

    pub(super) fn segments(&self) -> Vec<PathBuf> {
        let listed = files::list(self.dir.path(), &Kernel).unwrap();
        listed.into_iter().map(|(_, path)| path).collect()
    }

    /// The segment that has an entry.
    pub(super) fn segment_of(&self, seq: u64) -> PathBuf {
        let listed = files::list(self.dir.path(), &Kernel).unwrap();
        listed.into_iter().rfind(|(first, _)| *first <= seq).unwrap().1
    }

    pub(super) fn last_segment(&self) -> PathBuf {
        self.segments().pop().unwrap()
    }

    pub(super) fn events(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }
}

pub(super) fn reserve(number: u128) -> Entry {
    Entry::Reserve(Box::new(Reserve {
        id: RequestId(Uuid::from_u128(number)),
        request_id: format!("req-{number}"),
        started_at: Timestamp::UNIX_EPOCH,
        tenant: TenantId::new("acme").unwrap(),
        key_id: None,
        identity: Identity::Unknown,
        labels: BTreeMap::new(),
        dimensions: None,
        operation: "chat".to_owned(),
        route: "/v1/chat/completions".to_owned(),
        stream: true,
        upstream: "local".to_owned(),
        provider: "vllm".to_owned(),
        request_model: Some("m".to_owned()),
        service_tier: None,
        amount: None,
        input_tokens: None,
        output_tokens: None,
        context: false,
        background: false,
    }))
}

pub(super) fn post(number: u128) -> Entry {
    match reserve(number) {
        Entry::Reserve(reserve) => {
            Entry::Post(Box::new(gateway_died_record(&reserve, None, reserve.started_at, "pod/0")))
        }
        other => other,
    }
}

pub(super) fn void(number: u128) -> Entry {
    Entry::Void(Void {
        id: RequestId(Uuid::from_u128(number)),
        reason: VoidReason::NotSent,
        ended_at: Timestamp::UNIX_EPOCH,
    })
}

pub(super) fn is_of_a_request(framed: &FramedEntry) -> bool {
    framed.kind != Kind::Checkpoint
}

pub(super) fn number(framed: &FramedEntry) -> u128 {
    let id = match framed.entry().unwrap() {
        Entry::Reserve(reserve) => reserve.id,
        Entry::Post(record) => record.id,
        Entry::Void(void) => void.id,
        Entry::Progress(progress) => progress.id,
        Entry::Correction(correction) => correction.id,
        Entry::Checkpoint(_) | Entry::Refusals(_) => panic!("it is of no request"),
    };
    id.0.as_u128()
}

/// What a request says that runs: ten tokens in, so many out.
pub(super) fn progress(number: u128, output_tokens: u64) -> Entry {
    Entry::Progress(Box::new(Progress {
        id: RequestId(Uuid::from_u128(number)),
        at: Timestamp::UNIX_EPOCH,
        response_model: None,
        response_id: None,
        service_tier: None,
        usage: RecordUsage::counted(Some(10), Some(output_tokens), &[]),
    }))
}
