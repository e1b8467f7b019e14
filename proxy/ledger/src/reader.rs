//! The bytes of one segment → its entries, or exactly what is wrong with them.

use crate::digest::Digester;
use crate::entry::Entry;
use crate::frame::{ENTRY_BYTES_MAX, HEAD_BYTES, Head, Kind, Position};
use crate::mark::Mark;
use crate::segment::{FORMAT_VERSION, HEADER_BYTES, HeaderFault, SegmentHeader};

/// One entry and where it stands; whole, and not decoded yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Framed {
    /// Sequence number.
    pub seq: u64,
    /// Tells it from an entry of another journal with the same number.
    pub chain: u32,
    /// First byte of its frame in its segment.
    pub offset: u64,
    /// What its payload is.
    pub kind: Kind,
    /// JSON, as it was written.
    pub payload: Vec<u8>,
}

impl Framed {
    /// Its place in the journal.
    #[must_use]
    pub const fn position(&self) -> Position {
        Position { seq: self.seq, chain: self.chain }
    }

    /// The entry; a post's record has its `seq` filled in.
    ///
    /// # Errors
    /// [`Fault::Unreadable`] when the payload is not what its kind says.
    pub fn entry(&self) -> Result<Entry, Fault> {
        let mut entry = match self.kind {
            Kind::Reserve => serde_json::from_slice(&self.payload).map(Entry::Reserve),
            Kind::Post => serde_json::from_slice(&self.payload).map(Entry::Post),
            Kind::Void => serde_json::from_slice(&self.payload).map(Entry::Void),
            Kind::Progress => serde_json::from_slice(&self.payload).map(Entry::Progress),
            Kind::Correction => serde_json::from_slice(&self.payload).map(Entry::Correction),
            Kind::Checkpoint => serde_json::from_slice(&self.payload).map(Entry::Checkpoint),
        }
        .map_err(|error| self.unreadable(&error))?;
        if let Entry::Post(record) = &mut entry {
            record.seq = self.seq;
        }
        Ok(entry)
    }

    /// For who reads the payload in another way, and cannot.
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
    /// The bytes end inside a frame, or only zeros follow: a write that was cut off.
    #[error("torn at byte {offset}: {bytes} bytes are not a whole entry")]
    Torn {
        /// End of the last whole frame.
        offset: u64,
        /// What follows it.
        bytes: u64,
    },
    /// A frame or the header was changed, removed or moved.
    #[error("damaged at byte {offset}: {what} is {found:#x}, expected {expected:#x}")]
    Damaged {
        /// Start of the frame, or 0 for the header.
        offset: u64,
        /// Which field.
        what: &'static str,
        /// What it should be.
        expected: u64,
        /// What it is.
        found: u64,
    },
    /// Whole, but not an entry that we know.
    #[error("entry {seq} at byte {offset} cannot be read: {reason}")]
    Unreadable {
        /// Start of the frame.
        offset: u64,
        /// Its sequence number.
        seq: u64,
        /// Why.
        reason: String,
    },
    /// Written by another version.
    #[error("format {found} is not {known}, the one that this version reads")]
    Format {
        /// Version of the segment.
        found: u16,
        /// Ours.
        known: u16,
    },
}

/// Reads one segment, fed in pieces. Where pieces begin and end carries no meaning.
#[derive(Debug)]
pub struct Reader {
    /// Bytes not read yet, from `start`.
    buffer: Vec<u8>,
    start: usize,
    /// Where `start` is in the segment.
    offset: u64,
    state: State,
    header: Option<SegmentHeader>,
    position: Position,
    after: Option<Position>,
    from: u64,
    is_digesting: bool,
    /// Of all up to `position`.
    digester: Option<Digester>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    Header,
    Frames,
    /// A fault whose last byte is zero: a write that was cut off if all that follows is zero too.
    Zeros {
        fault: Fault,
        bytes: u64,
    },
    Failed(Fault),
}

impl Reader {
    /// Yields the entries from `from` on; those before it are only checked.
    ///
    /// The segment must fit to `after`, the last entry that was read elsewhere, and what it repeats
    /// of those before is left out.
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

    /// The same; its digest is told too.
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

    /// The next entry; `None` when more bytes are needed.
    ///
    /// # Errors
    /// The first fault, then it again: nothing behind a fault is read.
    pub fn next_entry(&mut self) -> Result<Option<Framed>, Fault> {
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

    /// Closes the segment: its bytes have all been fed.
    ///
    /// # Errors
    /// [`Fault::Torn`] when bytes are left over; an earlier fault.
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

    /// The last whole frame; before the first one, the frame that the header names.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// The segment's header, once it has been read.
    #[must_use]
    pub const fn header(&self) -> Option<&SegmentHeader> {
        self.header.as_ref()
    }

    /// What has been read up to [`position`](Self::position), once the header has been, if it is to
    /// be digested.
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
        if Mark::read(head).is_some_and(|mark| mark.synced < seq) {
            return match Mark::is_followed_by(rest) {
                None => Ok(Step::More),
                Some(true) => {
                    self.consume(Mark::BYTES);
                    Ok(Step::Passed)
                }
                Some(false) => self.suspect(Mark::BYTES, damaged("whole mark", 1, 0)),
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
                Step::Entry(Framed { seq, chain: found, offset, kind, payload })
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

    /// Where the caller's last frame is reached, it must be the same one.
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

    /// A power cut leaves zeros where the end of a write should be. The payload ends in `}` and the
    /// parts before it are followed by one, so a zero byte that only zeros follow was never
    /// written.
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

/// What one read step came to.
enum Step {
    /// More bytes are needed.
    More,
    /// Something whole that is not for the caller.
    Passed,
    /// For the caller.
    Entry(Framed),
}
