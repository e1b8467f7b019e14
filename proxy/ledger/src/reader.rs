//! Reads the bytes of one segment: entries, or exactly what is wrong with them.

use crate::digest::Digester;
use crate::entry::Entry;
use crate::frame::{ENTRY_BYTES_MAX, HEAD_BYTES, Head, Kind, Position};
use crate::segment::{FORMAT_VERSION, HEADER_BYTES, HeaderFault, SegmentHeader};
use crate::sync_mark::SyncMark;

/// One entry with its position in a segment, not decoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FramedEntry {
    /// Sequence number.
    pub seq: u64,
    /// Chain value. It tells this entry from an entry of another journal with the same number.
    pub chain: u32,
    /// Offset of the frame in its segment.
    pub offset: u64,
    /// Kind of the entry.
    pub kind: Kind,
    /// The JSON of the entry, as it was written.
    pub payload: Vec<u8>,
}

impl FramedEntry {
    /// Position of the entry in the journal.
    #[must_use]
    pub const fn position(&self) -> Position {
        Position { seq: self.seq, chain: self.chain }
    }

    /// Decodes the entry. The record of a post gets its `seq`.
    /// # Errors
    /// [`Fault::Unreadable`] if the payload does not fit its kind.
    pub fn entry(&self) -> Result<Entry, Fault> {
        let mut entry = match self.kind {
            Kind::Reserve => serde_json::from_slice(&self.payload).map(Entry::Reserve),
            Kind::Post => serde_json::from_slice(&self.payload).map(Entry::Post),
            Kind::Void => serde_json::from_slice(&self.payload).map(Entry::Void),
            Kind::Progress => serde_json::from_slice(&self.payload).map(Entry::Progress),
            Kind::Correction => serde_json::from_slice(&self.payload).map(Entry::Correction),
            Kind::Checkpoint => serde_json::from_slice(&self.payload).map(Entry::Checkpoint),
            Kind::Refusals => serde_json::from_slice(&self.payload).map(Entry::Refusals),
        }
        .map_err(|error| self.unreadable(&error))?;
        if let Entry::Post(record) = &mut entry {
            record.seq = self.seq;
        }
        Ok(entry)
    }

    /// The fault for a caller that cannot read the payload with a parser of its own.
    #[must_use]
    pub fn unreadable(&self, reason: &impl ToString) -> Fault {
        let Self { seq, offset, .. } = *self;
        Fault::Unreadable { offset, seq, reason: reason.to_string() }
    }
}

/// What is wrong with the bytes of a segment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The bytes end inside a frame, or only zeros follow. The last write was cut off.
    #[error("torn at byte {offset}: {bytes} bytes are not a whole entry")]
    Torn {
        /// End of the last whole frame.
        offset: u64,
        /// Number of bytes after it.
        bytes: u64,
    },
    /// A frame or the header was changed, removed or moved.
    #[error("damaged at byte {offset}: {what} is {found:#x}, expected {expected:#x}")]
    Damaged {
        /// Start of the frame, or 0 for the header.
        offset: u64,
        /// The field that is wrong.
        what: &'static str,
        /// The expected value.
        expected: u64,
        /// The value in the bytes.
        found: u64,
    },
    /// The frame is whole, but its entry cannot be read.
    #[error("entry {seq} at byte {offset} cannot be read: {reason}")]
    Unreadable {
        /// Start of the frame.
        offset: u64,
        /// Sequence number of the entry.
        seq: u64,
        /// The reason.
        reason: String,
    },
    /// The segment has another format.
    #[error("format {found} is not {known}, the one that this version reads")]
    Format {
        /// Format of the segment.
        found: u16,
        /// The format that this version reads.
        known: u16,
    },
}

/// Reads one segment in pieces. The pieces may be cut anywhere.
#[derive(Debug)]
pub struct Reader {
    /// The bytes from `start` on are not read yet.
    buffer: Vec<u8>,
    start: usize,
    /// Offset of `start` in the segment.
    offset: u64,
    state: State,
    header: Option<SegmentHeader>,
    position: Position,
    after: Option<Position>,
    from: u64,
    is_digesting: bool,
    /// Digest of all bytes up to `position`.
    digester: Option<Digester>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Header,
    Frames,
    /// A fault whose last byte is zero. If only zeros follow, the last write was cut off.
    Zeros {
        fault: Fault,
        bytes: u64,
    },
    Failed(Fault),
}

impl Reader {
    /// Returns the entries from number `from` on. It only checks the entries before them.
    ///
    /// `after` is the last entry that the caller has read elsewhere. The segment must fit to it.
    /// The reader does not return entries up to `after` again.
    #[must_use]
    pub const fn new(after: Option<Position>, from: u64) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            state: State::Header,
            header: None,
            position: Position::START,
            after,
            from,
            is_digesting: false,
            digester: None,
        }
    }

    /// Makes the reader compute the digest of the segment as well.
    #[must_use]
    pub const fn digesting(mut self) -> Self {
        self.is_digesting = true;
        self
    }

    /// Takes the next bytes of the segment.
    pub fn feed(&mut self, bytes: &[u8]) {
        if let State::Zeros { fault, bytes: seen } = &mut self.state {
            *seen += bytes.len() as u64;
            if bytes.iter().any(|&byte| byte != 0) {
                self.state = State::Failed(fault.clone());
            }
            return;
        }
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next entry. `None` if more bytes are needed.
    /// # Errors
    /// The first fault. Every later call returns the same fault.
    pub fn next_entry(&mut self) -> Result<Option<FramedEntry>, Fault> {
        loop {
            let step = match &self.state {
                State::Header => self.read_header()?,
                State::Frames => self.read_frame()?,
                State::Zeros { .. } => Step::More,
                State::Failed(fault) => return Err(fault.clone()),
            };
            match step {
                Step::More => return Ok(None),
                Step::Passed => {}
                Step::Entry(framed) => return Ok(Some(framed)),
            }
        }
    }

    /// Checks the end of the segment, after all bytes were fed.
    /// # Errors
    /// [`Fault::Torn`] if bytes are left over, or an earlier fault.
    pub fn finish(&self) -> Result<(), Fault> {
        let bytes = match &self.state {
            State::Failed(fault) => return Err(fault.clone()),
            State::Zeros { bytes, .. } => *bytes,
            State::Header | State::Frames => self.pending().len() as u64,
        };
        match (bytes, &self.header) {
            (0, Some(_)) => Ok(()),
            _ => Err(Fault::Torn { offset: self.offset, bytes }),
        }
    }

    /// End of the last whole frame, in bytes from the start of the segment.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Position of the last whole frame. Before the first frame, the position in the header.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// The header of the segment, once it has been read.
    #[must_use]
    pub const fn header(&self) -> Option<&SegmentHeader> {
        self.header.as_ref()
    }

    /// The digest of everything up to [`position`](Self::position). `None` before the header, and
    /// if the reader does not compute digests.
    #[must_use]
    pub const fn digester(&self) -> Option<&Digester> {
        self.digester.as_ref()
    }

    fn pending(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    fn read_header(&mut self) -> Result<Step, Fault> {
        let Some(bytes) = self.pending().first_chunk::<HEADER_BYTES>() else {
            return Ok(Step::More);
        };
        match SegmentHeader::decode(bytes) {
            Ok(header) => {
                let first = header.first_seq();
                if let Some(after) = self.after.filter(|after| after.seq + 1 < first) {
                    return Err(self.fail(0, "first sequence", after.seq + 1, first));
                }
                self.digester = self.is_digesting.then(|| header.digester(bytes));
                self.position = header.before;
                self.header = Some(header);
                self.state = State::Frames;
                self.consume(HEADER_BYTES);
                self.check_join(0)?;
                Ok(Step::Passed)
            }
            Err(HeaderFault::Differs { what, expected, found }) => {
                let fault = Fault::Damaged { offset: 0, what, expected, found };
                self.suspect(HEADER_BYTES, fault)
            }
            Err(HeaderFault::Format { found }) => {
                let fault = Fault::Format { found, known: FORMAT_VERSION };
                self.state = State::Failed(fault.clone());
                Err(fault)
            }
        }
    }

    fn read_frame(&mut self) -> Result<Step, Fault> {
        let offset = self.offset;
        let damaged = |what, expected, found| Fault::Damaged { offset, what, expected, found };
        let Some((head, rest)) = self.pending().split_first_chunk::<HEAD_BYTES>() else {
            return Ok(Step::More);
        };
        let seq = self.position.seq + 1;
        if SyncMark::read(head).is_some_and(|mark| mark.synced < seq) {
            return match SyncMark::is_followed_by(rest) {
                None => Ok(Step::More),
                Some(true) => {
                    self.consume(SyncMark::BYTES);
                    Ok(Step::Passed)
                }
                Some(false) => self.suspect(SyncMark::BYTES, damaged("whole mark", 1, 0)),
            };
        }
        let (head, found, expected) = Head::read(head, self.position);
        if found != expected || head.seq != seq {
            let fault = if head.seq == seq {
                damaged("chain", u64::from(expected), u64::from(found))
            } else {
                damaged("sequence", seq, head.seq)
            };
            return self.suspect(HEAD_BYTES, fault);
        }
        let length = head.length as usize;
        if length > ENTRY_BYTES_MAX {
            return Err(self.fail(offset, "length", ENTRY_BYTES_MAX as u64, length as u64));
        }
        let Some(payload) = rest.get(..length) else { return Ok(Step::More) };
        let check = crc32c::crc32c(payload);
        if check != head.check {
            let fault = damaged("payload check", u64::from(head.check), u64::from(check));
            return self.suspect(HEAD_BYTES + length, fault);
        }
        let known = seq < self.from || self.after.is_some_and(|after| seq <= after.seq);
        let step = match Kind::from_byte(head.kind) {
            _ if known => Step::Passed,
            Some(kind) => {
                let payload = payload.to_vec();
                Step::Entry(FramedEntry { seq, chain: found, offset, kind, payload })
            }
            None => {
                let reason = format!("entries of kind {} are not known", head.kind);
                let fault = Fault::Unreadable { offset, seq, reason };
                self.state = State::Failed(fault.clone());
                return Err(fault);
            }
        };
        if let Some(digester) = &mut self.digester {
            let frame = self.buffer.get(self.start..).unwrap_or_default();
            digester.add(frame.get(..HEAD_BYTES + length).unwrap_or_default());
        }
        self.position = Position { seq, chain: found };
        self.consume(HEAD_BYTES + length);
        self.check_join(offset)?;
        Ok(step)
    }

    /// When the reader reaches the caller's last frame, it must be the same frame.
    fn check_join(&mut self, offset: u64) -> Result<(), Fault> {
        match self.after {
            Some(after) if after.seq == self.position.seq && after != self.position => {
                let (expected, found) = (after.chain, self.position.chain);
                Err(self.fail(offset, "joining chain", u64::from(expected), u64::from(found)))
            }
            _ => Ok(()),
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    fn fail(&mut self, offset: u64, what: &'static str, expected: u64, found: u64) -> Fault {
        let fault = Fault::Damaged { offset, what, expected, found };
        self.state = State::Failed(fault.clone());
        fault
    }

    /// A power cut can leave zeros in place of the end of a write. A payload ends with `}`, and
    /// every other part is followed by a payload. So if a part ends with a zero byte and only zeros
    /// follow, its end was never written.
    fn suspect(&mut self, span: usize, fault: Fault) -> Result<Step, Fault> {
        let pending = self.pending();
        let tail = pending.get(span.saturating_sub(1)..).unwrap_or_default();
        if tail.iter().all(|&byte| byte == 0) {
            self.state = State::Zeros { fault, bytes: pending.len() as u64 };
            Ok(Step::More)
        } else {
            self.state = State::Failed(fault.clone());
            Err(fault)
        }
    }
}

/// The result of one step of reading.
enum Step {
    /// More bytes are needed.
    More,
    /// A whole part that the caller does not need.
    Passed,
    /// An entry for the caller.
    Entry(FramedEntry),
}
