//! Reads the bytes of one segment: entries, or exactly what is wrong with them.

use super::entry::OldEntry;
use super::frame::{HEAD_BYTES, Head, MARK_BYTES, is_marks_payload, mark};
use super::header;
use crate::digest::Digester;
use crate::frame::{ENTRY_BYTES_MAX, Position};
use crate::framed::Fault;
use crate::kind::Kind;
use crate::segment::{HEADER_BYTES, SegmentHeader};

/// A part of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// The header. Its ledger has no identity.
    Header(SegmentHeader),
    /// An entry.
    Entry(OldEntry),
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
    position: Position,
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

impl Default for Reader {
    fn default() -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            state: State::Header,
            position: Position::START,
            digester: None,
        }
    }
}

impl Reader {
    /// Goes on behind the frame `before`, at this offset.
    #[must_use]
    pub fn resuming(before: Position, offset: u64) -> Self {
        Self { state: State::Frames, position: before, offset, ..Self::default() }
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

    /// The next part. `None` if more bytes are needed.
    ///
    /// # Errors
    /// The first fault. Every later call returns the same fault.
    pub fn next_part(&mut self) -> Result<Option<Part>, Fault> {
        loop {
            let step = match &self.state {
                State::Header => self.read_header(),
                State::Frames => self.read_frame(),
                State::Zeros { .. } => return Ok(None),
                State::Failed(fault) => return Err(fault.clone()),
            };
            match step {
                Ok(Step::More) => return Ok(None),
                Ok(Step::Passed) => {}
                Ok(Step::Part(part)) => return Ok(Some(part)),
                Err(Wrong { fault, span }) => self.suspect(span, fault)?,
            }
        }
    }

    /// Checks the end of the segment, after all bytes were fed.
    ///
    /// # Errors
    /// [`Fault::Torn`] if bytes are left over, or an earlier fault.
    pub fn finish(&self) -> Result<(), Fault> {
        let bytes = match &self.state {
            State::Failed(fault) => return Err(fault.clone()),
            State::Zeros { bytes, .. } => *bytes,
            State::Frames if self.pending().is_empty() => return Ok(()),
            State::Header | State::Frames => self.pending().len() as u64,
        };
        Err(Fault::Torn { offset: self.offset, bytes })
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

    /// The digest of everything up to [`position`](Self::position). `None` without a header.
    #[must_use]
    pub const fn digester(&self) -> Option<&Digester> {
        self.digester.as_ref()
    }

    fn pending(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    fn read_header(&mut self) -> Result<Step, Wrong> {
        let Some(bytes) = self.pending().first_chunk::<HEADER_BYTES>() else {
            return Ok(Step::More);
        };
        let header =
            header::decode(bytes).map_err(|fault| Wrong { fault, span: Some(HEADER_BYTES) })?;
        self.digester = Some(header.digester(bytes));
        self.position = header.before;
        self.state = State::Frames;
        self.consume(HEADER_BYTES);
        Ok(Step::Part(Part::Header(header)))
    }

    fn read_frame(&mut self) -> Result<Step, Wrong> {
        let offset = self.offset;
        let wrong = |span, what, expected, found| Wrong {
            fault: Fault::Damaged { offset, what, expected, found },
            span,
        };
        let Some((head, rest)) = self.pending().split_first_chunk::<HEAD_BYTES>() else {
            return Ok(Step::More);
        };
        let seq = self.position.seq + 1;
        if mark(head).is_some_and(|synced| synced < seq) {
            return match is_marks_payload(rest) {
                None => Ok(Step::More),
                Some(false) => Err(wrong(Some(MARK_BYTES), "whole mark", 1, 0)),
                Some(true) => {
                    self.consume(MARK_BYTES);
                    Ok(Step::Passed)
                }
            };
        }
        let (head, found, expected) = Head::read(head, self.position.chain);
        if head.seq != seq {
            return Err(wrong(Some(HEAD_BYTES), "sequence", seq, head.seq));
        }
        if found != expected {
            let (expected, found) = (u64::from(expected), u64::from(found));
            return Err(wrong(Some(HEAD_BYTES), "chain", expected, found));
        }
        let length = head.length as usize;
        if length > ENTRY_BYTES_MAX {
            return Err(wrong(None, "length", ENTRY_BYTES_MAX as u64, length as u64));
        }
        let Some(payload) = rest.get(..length) else { return Ok(Step::More) };
        let check = crc32c::crc32c(payload);
        if check != head.check {
            let (expected, found) = (u64::from(head.check), u64::from(check));
            return Err(wrong(Some(HEAD_BYTES + length), "payload check", expected, found));
        }
        let Some(kind) = Kind::from_byte(head.kind) else {
            let reason = format!("entries of kind {} are not known", head.kind);
            return Err(Wrong { fault: Fault::Unreadable { offset, seq, reason }, span: None });
        };
        let position = Position { seq, chain: found };
        let part = Part::Entry(OldEntry { position, offset, kind, json: payload.to_vec() });
        let frame = self.buffer.get(self.start..).unwrap_or_default();
        if let Some(digester) = &mut self.digester {
            digester.add(frame.get(..HEAD_BYTES + length).unwrap_or_default());
        }
        self.position = position;
        self.consume(HEAD_BYTES + length);
        Ok(Step::Part(part))
    }

    fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// A power cut can leave zeros in place of the end of a write. A payload ends with `}`, and
    /// every other part is followed by a payload. So if a part ends with a zero byte and only zeros
    /// follow, its end was never written.
    fn suspect(&mut self, span: Option<usize>, fault: Fault) -> Result<(), Fault> {
        let pending = self.pending();
        let tail = span.and_then(|span| pending.get(span.saturating_sub(1)..));
        if tail.is_some_and(|tail| tail.iter().all(|&byte| byte == 0)) {
            self.state = State::Zeros { fault, bytes: pending.len() as u64 };
            Ok(())
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
    /// A part for the caller.
    Part(Part),
}

/// A fault, and the length of the part that has it if the end of that part may be missing.
struct Wrong {
    fault: Fault,
    span: Option<usize>,
}
