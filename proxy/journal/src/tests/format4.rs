//! Writes journals as the program of format 4 wrote them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use taximeter_ledger::{
    Checkpoint, Correction, Digester, Entry, PendingRequest, Position, RecordCost, RefusalCount,
    RefusalKind, Refusals, RequestId, SegmentHeader, TenantId, format4,
};
use uuid::Uuid;

use super::super::disk::{Disk, How};
use super::super::files;
use super::bench::{post, progress, reserve, void};

const HEADER_BYTES: usize = 512;

/// The journal that is being written.
pub(super) struct OldWriter {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    pub(super) last: Position,
    follows: [u8; 32],
    /// The file that is being written.
    segment: Option<(PathBuf, Vec<u8>)>,
}

impl OldWriter {
    pub(super) fn new(dir: &Path, disk: Arc<dyn Disk>) -> Self {
        files::create_dir(dir, &*disk, true).unwrap();
        let dir = dir.to_owned();
        Self { disk, dir, last: Position::START, follows: [0; 32], segment: None }
    }

    /// Begins a segment in place of so many lost entries.
    pub(super) fn begin(&mut self, lost: u64, gateway: &str) {
        self.end();
        let first = self.last.seq + 1;
        self.last.seq += lost;
        let mut bytes = b"taxi-tlj\x04\0".to_vec();
        bytes.extend(u16::try_from(gateway.len()).unwrap().to_le_bytes());
        bytes.extend((self.last.seq + 1).to_le_bytes());
        bytes.extend(self.last.chain.to_le_bytes());
        bytes.extend(created(first).as_microsecond().to_le_bytes());
        bytes.extend(gateway.as_bytes());
        bytes.resize(HEADER_BYTES - 45, 0);
        bytes.extend(self.follows);
        bytes.push(1);
        bytes.extend(lost.to_le_bytes());
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        self.segment = Some((files::path(&self.dir, first), bytes));
    }

    /// Appends a frame.
    pub(super) fn frame(&mut self, kind: u8, json: &[u8]) {
        let position = Position { seq: self.last.seq + 1, ..self.last };
        self.last = Position { chain: self.write(kind, position, json), ..position };
    }

    pub(super) fn entry(&mut self, entry: &Entry) {
        let mut json = serde_json::to_value(entry).unwrap();
        json.as_object_mut().unwrap().remove("entry");
        self.frame(kind(entry), json.to_string().as_bytes());
    }

    /// Says that all of it is on the disk.
    pub(super) fn mark(&mut self) {
        self.write(7, Position { chain: 0, ..self.last }, b"{}");
    }

    fn write(&mut self, kind: u8, Position { seq, chain }: Position, json: &[u8]) -> u32 {
        let (_, bytes) = self.segment.as_mut().unwrap();
        let mut head = u32::try_from(json.len()).unwrap().to_le_bytes().to_vec();
        head.extend(seq.to_le_bytes());
        head.push(kind);
        head.extend(crc32c::crc32c(json).to_le_bytes());
        let chain = crc32c::crc32c_append(chain, &head);
        head.extend(chain.to_le_bytes());
        bytes.extend([&head, json].concat());
        chain
    }

    /// Ends the segment. Its path.
    pub(super) fn end(&mut self) -> Option<PathBuf> {
        let (path, bytes) = self.segment.take()?;
        let file = self.disk.open(&path, How::Create).unwrap();
        assert_eq!(file.append(&bytes).unwrap(), bytes.len());
        file.sync().unwrap();
        self.disk.sync_dir(&self.dir).unwrap();
        self.follows = digest(&bytes);
        Some(path)
    }
}

/// The time of the segment that begins with this entry.
pub(super) fn created(first: u64) -> Timestamp {
    Timestamp::from_microsecond(1_700_000_000_000_000 + first.cast_signed()).unwrap()
}

/// The digest of a segment. Only a reader that reads sync marks leaves them out.
fn digest(segment: &[u8]) -> [u8; 32] {
    let mut reader = format4::Reader::default();
    reader.feed(segment);
    while reader.next_part().unwrap().is_some() {}
    let digest = reader.digester().and_then(Digester::digest);
    let mut bytes = [0; 32];
    if let Some(digest) = digest {
        for (byte, digits) in bytes.iter_mut().zip(digest.to_string().as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap();
        }
    }
    bytes
}

pub(super) const fn kind(entry: &Entry) -> u8 {
    match entry {
        Entry::Reserve(_) => 1,
        Entry::Post(_) => 2,
        Entry::Void(_) => 3,
        Entry::Progress(_) => 4,
        Entry::Correction(_) => 5,
        Entry::Checkpoint(_) => 6,
        Entry::Refusals(_) => 7,
    }
}

/// The header of a segment that is not old.
pub(super) fn header(path: &Path, disk: &dyn Disk) -> SegmentHeader {
    files::header(path, disk).unwrap().unwrap()
}

/// One entry of each kind.
pub(super) fn each_kind() -> Vec<Entry> {
    let amount = "0.00012340".parse().unwrap();
    let cost = RecordCost {
        at_least: false,
        currency: "USD".to_owned(),
        amount,
        list_amount: amount,
        price_id: "test@1#m".to_owned(),
        price_match: Some("date".into()),
        lines: Vec::new(),
    };
    let tenant = TenantId::new("Grüße \"AG\"").unwrap();
    let Entry::Post(mut record) = post(2) else { panic!() };
    record.cost = Some(cost.clone());
    record.seq = 5;
    let checkpoint = Checkpoint {
        at: created(1),
        posts: 1,
        voids: 1,
        corrections: 7,
        costs: BTreeMap::from([("USD".to_owned(), amount)]),
        unknown_cost: 3,
        oldest_open: Some(1),
        pending: vec![pending(tenant.clone())],
        settled: None,
    };
    let correction = Correction {
        id: id(8),
        corrects: id(2),
        started_at: created(2),
        tenant: tenant.clone(),
        made_at: created(8),
        reason: "a price\nchanged".to_owned(),
        before: Some(cost),
        after: None,
        completion: None,
        completed: None,
    };
    let kind = RefusalKind {
        tenant: Some(tenant),
        others: false,
        reason: "rate_limited".into(),
        status: Some(429),
        admitted: false,
    };
    let refusals = Refusals {
        id: id(9),
        gateway: "pod/0".to_owned(),
        at: created(9),
        minute: created(8),
        counts: vec![RefusalCount { kind, count: 12 }],
    };
    vec![
        reserve(1),
        reserve(2),
        progress(1, 5),
        void(3),
        Entry::Post(record),
        Entry::Correction(Box::new(correction)),
        Entry::Checkpoint(Box::new(checkpoint)),
        Entry::Refusals(Box::new(refusals)),
    ]
}

fn id(number: u128) -> RequestId {
    RequestId(Uuid::from_u128(number))
}

fn pending(tenant: TenantId) -> PendingRequest {
    PendingRequest {
        id: id(3),
        started_at: created(3),
        tenant,
        upstream: "local".to_owned(),
        response_id: "resp_1".to_owned(),
        operation: "chat".to_owned(),
        route: "/v1/responses".to_owned(),
        provider: "openai".to_owned(),
        request_model: Some("m".to_owned()),
        response_model: None,
        service_tier: None,
        conditions: BTreeMap::new(),
    }
}
