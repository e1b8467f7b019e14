//! Reads the bytes of one segment: entries, or exactly what is wrong with them.

use crate::carried::Collector;
use crate::digest::Digester;
use crate::encoding::{END, Payload, StringTable};
use crate::frame::{ENTRY_BYTES_MAX, HEAD_BYTES, Head, Position};
use crate::framed::{Fault, FramedEntry};
use crate::id::LedgerId;
use crate::kind::{BLOCK, Kind, TABLE, is_chained, is_numbered};
use crate::segment::{FORMAT_VERSION, HEADER_BYTES, HeaderFault, SegmentHeader};
use crate::sync_mark::SyncMark;

/// Reads one segment in pieces. The pieces may be cut anywhere.
#[derive(Debug)]
pub struct Reader {
    /// The bytes from `start` to `end` are not read yet. What is behind them is room.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `start` in the segment.
    offset: u64,
    state: State,
    header: Option<SegmentHeader>,
    ledger: LedgerId,
    /// What the checks of its frames are seeded with.
    seed: u32,
    /// The last entry.
    position: Position,
    /// The chain value of the last frame, which may be behind the last entry.
    chain: u32,
    /// End of the last entry.
    entry_end: u64,
    strings: StringTable,
    /// The carried entries before the next checkpoint, if the caller wants them.
    carried: Option<Collector>,
    wants: fn(Kind) -> bool,
    /// The last entry, if the caller does not want it: its kind and its offset.
    passed: Option<(Kind, u64)>,
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
    pub fn new(after: Option<Position>, from: u64) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            state: State::Header,
            header: None,
            ledger: LedgerId::default(),
            seed: 0,
            position: Position::START,
            chain: 0,
            entry_end: 0,
            strings: StringTable::default(),
            carried: None,
            wants: |_| true,
            passed: None,
            after,
            from,
            is_digesting: false,
            digester: None,
        }
    }

    /// Reads frames of `ledger` behind `before`, without a header. `table` is the frame with the
    /// strings of the entries before them.
    #[must_use]
    pub fn resuming(ledger: LedgerId, before: Position, table: &[u8]) -> Self {
        let mut reader = Self::new(None, 0);
        reader.state = State::Frames;
        (reader.ledger, reader.seed) = (ledger, ledger.seed());
        (reader.position, reader.chain) = (before, before.chain);
        reader.feed(table);
        reader
    }

    /// Makes the reader compute the digest of the segment as well.
    #[must_use]
    pub const fn digesting(mut self) -> Self {
        self.is_digesting = true;
        self
    }

    /// Makes the reader keep the carried entries before a checkpoint.
    #[must_use]
    pub fn carrying(mut self) -> Self {
        self.carried = Some(Collector::default());
        self
    }

    /// The reservations and the last progress of the requests that were open at the checkpoint that
    /// was returned last. `None` if the segment does not have all of them.
    pub fn take_carried(&mut self) -> Option<Vec<FramedEntry>> {
        self.carried.as_mut().and_then(Collector::finish)
    }

    /// Makes the reader return only entries of these kinds, and the very first one that it would
    /// return.
    #[must_use]
    pub const fn only(mut self, kinds: fn(Kind) -> bool) -> Self {
        self.wants = kinds;
        self
    }

    /// The last entry, without its payload, if it was left out because of its kind.
    pub fn take_passed(&mut self) -> Option<FramedEntry> {
        let (kind, offset) = self.passed.take()?;
        let (Position { seq, chain }, ledger) = (self.position, self.ledger);
        let payload = Payload::default();
        Some(FramedEntry { seq, chain, offset, ledger, kind, payload, fault: None })
    }

    /// Takes the next bytes of the segment.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.take_fed(bytes.len());
    }

    /// Takes the next bytes of the segment from `read`, which puts up to `length` of them at the
    /// start of its argument. How many.
    /// # Errors
    /// Those of `read`.
    pub fn feed_from<E>(
        &mut self,
        length: usize,
        read: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let read = read(self.room(length))?.min(length);
        self.take_fed(read);
        Ok(read)
    }

    /// Room for so many bytes behind those that are not read yet.
    fn room(&mut self, length: usize) -> &mut [u8] {
        // Of a long frame nothing is read until its end is here.
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let end = self.end + length;
        if self.buffer.len() < end {
            // Zeroed memory comes from the allocator as it is. `resize` would write every byte once more.
            let mut larger = vec![0; end.max(2 * self.buffer.len())];
            let (to, from) = (larger.get_mut(..self.end), self.buffer.get(..self.end));
            to.unwrap_or_default().copy_from_slice(from.unwrap_or_default());
            self.buffer = larger;
        }
        self.buffer.get_mut(self.end..end).unwrap_or_default()
    }

    fn take_fed(&mut self, length: usize) {
        let fed = self.end..self.end + length;
        if let State::Zeros { fault, bytes: seen } = &mut self.state {
            *seen += length as u64;
            if self.buffer.get(fed).unwrap_or_default().iter().any(|&byte| byte != 0) {
                self.state = State::Failed(fault.clone());
            }
            return;
        }
        self.end = fed.end;
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

    /// End of the last whole entry and of the sync marks behind it, in bytes from the start of the
    /// segment. Frames that are not entries may follow it.
    #[must_use]
    pub const fn entry_end(&self) -> u64 {
        self.entry_end
    }

    /// The strings of the entries so far, as a frame that makes a segment readable that goes on
    /// behind them. Empty if there are none.
    #[must_use]
    pub fn table(&self) -> Vec<u8> {
        crate::frame::table_frame(self.seed, &self.strings.to_table())
    }

    /// Position of the last whole entry. Before the first entry, the position in the header.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// The last frame, which the next one is chained to. It may be behind the last entry.
    #[must_use]
    pub const fn last_frame(&self) -> Position {
        Position { seq: self.position.seq, chain: self.chain }
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
        self.buffer.get(self.start..self.end).unwrap_or_default()
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
                self.chain = header.before.chain;
                (self.ledger, self.seed) = (header.ledger, header.ledger.seed());
                self.header = Some(header);
                self.state = State::Frames;
                self.consume(HEADER_BYTES);
                self.entry_end = self.offset;
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
        let Some((bytes, rest)) = self.pending().split_first_chunk::<HEAD_BYTES>() else {
            return Ok(Step::More);
        };
        if SyncMark::has_head(bytes, self.seed) {
            return self.read_mark();
        }
        let (mut head, mut found, mut expected) = Head::read(bytes, self.chain);
        if !is_chained(head.kind) && found != expected {
            (head, found, expected) = Head::read(bytes, self.seed);
        }
        let seq = self.position.seq + u64::from(is_numbered(head.kind));
        let number = if is_chained(head.kind) { seq } else { 0 };
        if found != expected || head.seq_near(number) != number {
            let fault = if head.seq_near(number) == number {
                damaged("chain", u64::from(expected), u64::from(found))
            } else {
                damaged("sequence", number, head.seq_near(number))
            };
            return self.suspect(HEAD_BYTES, fault);
        }
        let length = head.length as usize;
        if length > ENTRY_BYTES_MAX {
            return Err(self.fail(offset, "length", ENTRY_BYTES_MAX as u64, length as u64));
        }
        let Some(payload) = rest.get(..length) else { return Ok(Step::More) };
        let check = crc32c::crc32c_append(self.seed, payload);
        if check != head.check {
            let fault = damaged("payload check", u64::from(head.check), u64::from(check));
            return self.suspect(HEAD_BYTES + length, fault);
        }
        let step = self.take(head.kind, seq, found, length)?;
        if let Some(digester) = &mut self.digester {
            let frame = self.buffer.get(self.start..).unwrap_or_default();
            let frame = frame.get(..HEAD_BYTES + length).unwrap_or_default();
            if is_numbered(head.kind) {
                digester.add(frame);
            } else {
                digester.hold(frame);
            }
        }
        self.consume(HEAD_BYTES + length);
        if is_chained(head.kind) {
            self.chain = found;
        }
        if is_numbered(head.kind) {
            self.position = Position { seq, chain: found };
            self.entry_end = self.offset;
            self.check_join(offset)?;
        }
        Ok(step)
    }

    fn read_mark(&mut self) -> Result<Step, Fault> {
        let (offset, pending) = (self.offset, self.pending());
        if pending.len() < SyncMark::BYTES {
            return Ok(Step::More);
        }
        let damaged = |what, expected, found| Fault::Damaged { offset, what, expected, found };
        let last = self.position.seq;
        let fault = match SyncMark::read(pending, self.seed) {
            Some(mark) if mark.synced <= last => {
                let is_behind_entry = self.entry_end == self.offset;
                self.consume(SyncMark::BYTES);
                if is_behind_entry {
                    self.entry_end = self.offset;
                }
                return Ok(Step::Passed);
            }
            Some(mark) => damaged("synced entry", last, mark.synced),
            None => damaged("whole mark", 1, 0),
        };
        self.suspect(SyncMark::BYTES, fault)
    }

    /// Takes the payload, of this length, of a whole frame: learns its strings, and makes an entry
    /// of it if the caller needs it.
    fn take(&mut self, kind: u8, seq: u64, chain: u32, length: usize) -> Result<Step, Fault> {
        let offset = self.offset;
        let payload = self.buffer.get(self.start + HEAD_BYTES..).unwrap_or_default();
        let payload = payload.get(..length).unwrap_or_default();
        if kind == BLOCK || kind == Kind::Checkpoint as u8 {
            self.strings.clear();
        }
        if let Some(carried) = &mut self.carried {
            if is_numbered(kind) && kind != Kind::Checkpoint as u8 {
                carried.clear();
            }
            carried.take(kind, payload, offset, self.ledger);
        }
        if kind == TABLE {
            let table = payload.strip_suffix(&[END]).unwrap_or(payload);
            let learned = self.strings.learn_table(table);
            return learned.map_or_else(
                |error| Err(Fault::Unreadable { offset, seq, reason: error.to_string() }),
                |()| Ok(Step::Passed),
            );
        }
        let is_passed = is_numbered(kind)
            && (seq < self.from || self.after.is_some_and(|after| seq <= after.seq));
        let Some(kind) = Kind::from_byte(kind).filter(|_| !is_passed) else {
            // A kind of another version has the strings of an entry, or none that others need.
            if kind != BLOCK && is_numbered(kind) {
                let _ = self.strings.pass(payload);
            }
            return Ok(Step::Passed);
        };
        let ledger = self.ledger;
        let entry = |payload, fault| {
            Step::Entry(FramedEntry { seq, chain, offset, ledger, kind, payload, fault })
        };
        if !(self.wants)(kind) && seq != self.from {
            let _ = self.strings.pass(payload);
            self.passed = Some((kind, offset));
            return Ok(Step::Passed);
        }
        self.passed = None;
        match self.strings.complete(payload) {
            Ok(whole) => Ok(entry(whole, None)),
            Err(error) => {
                // Others need the strings behind the one that is missing.
                let _ = self.strings.pass(payload);
                Ok(entry(Payload::unsplit(payload), Some(error.to_string())))
            }
        }
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

    /// A power cut can leave zeros in place of the end of a write. A payload does not end with a
    /// zero, and every other part is followed by a payload. So if a part ends with a zero byte and only zeros
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
