//! Reads a segment of format 4 from its first byte to its last, and steps over what is damaged.

use std::path::Path;

use taximeter_ledger::format4::{
    self, FRAME_BYTES_MIN, OldEntry, Part, Reader, find_resume_point, last_mark,
};
use taximeter_ledger::{
    Digest, Digester, FORMAT_VERSION, Fault, HEADER_BYTES, Position, SegmentHeader,
};

use crate::disk::{Disk, How};
use crate::error::JournalError;
use crate::files;

/// Bytes read at once.
const PIECE_BYTES: usize = 64 << 10;

/// One segment, and where it belongs.
pub(super) struct OldSegment<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) path: &'a Path,
    /// The number of its first entry, by its name.
    pub(super) first: u64,
    /// The last entry before the next segment. What it has beyond that was written again there.
    pub(super) until: Option<u64>,
    /// The last entry of the segment before, if that has format 4.
    pub(super) before: Option<Position>,
}

/// What is found in a segment, in order.
pub(super) enum Found {
    Header(SegmentHeader),
    Entry(OldEntry),
    Left(Left),
}

/// A place that cannot be read.
pub(super) struct Left {
    pub(super) fault: Fault,
    /// The last entry before it.
    pub(super) last: Position,
    /// Where it goes on behind it.
    pub(super) next: Position,
    /// The bytes that are left out, if none of them was known to be on the disk.
    pub(super) torn_bytes: Option<u64>,
}

/// The end of a segment.
pub(super) struct End {
    pub(super) position: Position,
    /// Whether the last entry was read, and not left out.
    pub(super) is_read: bool,
    /// `None` if the digest is not known.
    pub(super) digest: Option<Digest>,
    /// How far the segment was read.
    pub(super) offset: u64,
}

/// Reads a segment while places in it are left out.
struct Walk<'a> {
    segment: &'a OldSegment<'a>,
    reader: Reader,
    /// Bytes that were read.
    fed: u64,
    header: Option<SegmentHeader>,
    /// Set when a place was left out.
    is_broken: bool,
}

impl OldSegment<'_> {
    /// Shows `visit` what is in the segment.
    ///
    /// # Errors
    /// `visit`'s. `Io`. `Segment` if it has another format, or belongs to another journal.
    pub(super) fn read(
        &self,
        visit: &mut dyn FnMut(Found) -> Result<(), JournalError>,
    ) -> Result<End, JournalError> {
        let reader = Reader::default();
        let mut walk = Walk { segment: self, reader, fed: 0, header: None, is_broken: false };
        let file =
            self.disk.open(self.path, How::Read).map_err(JournalError::io("open", self.path));
        let file = file?;
        let mut piece = vec![0; PIECE_BYTES];
        let (mut position, mut is_read) = (self.join(), true);
        loop {
            if self.until.is_some_and(|until| until <= position.seq) && walk.is_begun() {
                break;
            }
            let fault = match walk.reader.next_part() {
                Ok(Some(Part::Header(header))) => match self.fault_of(&header) {
                    Some(fault) => fault,
                    None => {
                        self.check_join(&header)?;
                        walk.header = Some(header.clone());
                        position = header.before;
                        visit(Found::Header(header))?;
                        continue;
                    }
                },
                Ok(Some(Part::Entry(entry))) => {
                    position = entry.position;
                    visit(Found::Entry(entry))?;
                    continue;
                }
                Ok(None) => {
                    let length = file.read_at(&mut piece, walk.fed);
                    let length = length.map_err(JournalError::io("read", self.path))?;
                    if length > 0 {
                        walk.fed += length as u64;
                        walk.reader.feed(piece.get(..length).unwrap_or_default());
                        continue;
                    }
                    match walk.end(position) {
                        Some(fault) => fault,
                        None => break,
                    }
                }
                Err(fault) => fault,
            };
            if !matches!(fault, Fault::Damaged { .. } | Fault::Torn { .. }) {
                return Err(JournalError::Segment { path: self.path.to_owned(), fault });
            }
            let (left, goes_on) = walk.leave_out(fault, position)?;
            is_read = goes_on || left.next == position;
            position = left.next;
            visit(Found::Left(left))?;
            if !goes_on {
                break;
            }
        }
        let digest = walk.reader.digester().filter(|_| !walk.is_broken).and_then(Digester::digest);
        Ok(End { position, is_read, digest, offset: walk.reader.offset() })
    }

    /// The position before its first entry, if that is not lost.
    fn join(&self) -> Position {
        let seq = self.first.saturating_sub(1);
        self.before.filter(|before| before.seq == seq).unwrap_or(Position { seq, chain: 0 })
    }

    /// What of a header does not fit to the name.
    fn fault_of(&self, header: &SegmentHeader) -> Option<Fault> {
        let (expected, found) = (self.first, header.first_seq());
        let what = "first sequence";
        (expected != found).then_some(Fault::Damaged { offset: 0, what, expected, found })
    }

    /// The frame before the segment must be the one that its header says.
    fn check_join(&self, header: &SegmentHeader) -> Result<(), JournalError> {
        let Some(before) = self.before.filter(|before| before.seq == header.before.seq) else {
            return Ok(());
        };
        if before.chain == header.before.chain {
            return Ok(());
        }
        let (expected, found) = (before.chain.into(), header.before.chain.into());
        let fault = Fault::Damaged { offset: 0, what: "joining chain", expected, found };
        Err(JournalError::Segment { path: self.path.to_owned(), fault })
    }
}

impl Walk<'_> {
    const fn is_begun(&self) -> bool {
        self.header.is_some() || self.is_broken
    }

    /// What is wrong with the end of the segment.
    fn end(&self, position: Position) -> Option<Fault> {
        let gap = |until| {
            let offset = self.reader.offset();
            Fault::Damaged { offset, what: "last sequence", expected: until, found: position.seq }
        };
        self.reader
            .finish()
            .err()
            .or_else(|| self.segment.until.filter(|until| position.seq < *until).map(gap))
    }

    /// Steps over what is damaged at `fault`, behind `last`. Whether there is more to read.
    fn leave_out(&mut self, fault: Fault, last: Position) -> Result<(Left, bool), JournalError> {
        let OldSegment { path, disk, until, .. } = *self.segment;
        let (Fault::Damaged { offset, .. } | Fault::Torn { offset, .. }) = fault else {
            return Err(JournalError::Segment { path: path.to_owned(), fault });
        };
        let is_torn = until.is_none() && matches!(fault, Fault::Torn { .. });
        let bytes = files::read(path, disk, usize::MAX).map_err(JournalError::io("read", path))?;
        let from = usize::try_from(offset).map_or(bytes.len(), |at| at.min(bytes.len()));
        let rest = bytes.get(from..).unwrap_or_default();
        let rest_bytes = rest.len() as u64;
        // A power cut may take any of what was not synced.
        let is_unsynced = is_torn
            || (until.is_none()
                && self.header.as_ref().is_some_and(|header| header.has_sync_marks)
                && last_mark(rest).is_none_or(|synced| synced <= last.seq));
        let found = find_resume_point(&bytes, offset, last)
            .filter(|found| !is_torn && until.is_none_or(|until| found.before.seq < until));
        self.is_broken = true;
        if let Some(found) = found {
            self.reader = Reader::resuming(found.before, found.offset);
            self.fed = found.offset;
            let torn_bytes = is_unsynced.then_some(found.offset - offset);
            return Ok((Left { fault, last, next: found.before, torn_bytes }, true));
        }
        let seq = match until {
            Some(until) => until,
            None if is_unsynced => last.seq,
            // Numbers that may have been given to so many bytes are not given again.
            None => last.seq + rest_bytes / FRAME_BYTES_MIN + 1,
        };
        let torn_bytes = is_unsynced.then_some(rest_bytes);
        Ok((Left { fault, last, next: Position { seq, ..last }, torn_bytes }, false))
    }
}

/// The header of the old segment at `path`, if it can be read.
pub(super) fn header(path: &Path, disk: &dyn Disk) -> Option<SegmentHeader> {
    let bytes = files::read(path, disk, HEADER_BYTES).ok()?;
    let mut reader = Reader::default();
    reader.feed(&bytes);
    match reader.next_part() {
        Ok(Some(Part::Header(header))) => Some(header),
        _ => None,
    }
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// It has format 4, or nobody can tell.
    Old,
    /// It has the format that is written.
    New,
    /// It says that the journal is being converted.
    Converting,
}

/// What the file at `path` is.
///
/// # Errors
/// `Segment` if it has yet another format; `Io`.
pub(super) fn form(path: &Path, disk: &dyn Disk) -> Result<Form, JournalError> {
    let read = |length| files::read(path, disk, length).map_err(JournalError::io("read", path));
    let header = read(HEADER_BYTES)?;
    let format = SegmentHeader::format(&header);
    if format == Some(format4::CONVERTING) {
        return Ok(Form::Converting);
    }
    // Where a bit of the header has flipped, the entries tell.
    let is_new = || -> Result<bool, JournalError> {
        let is_whole = files::header(path, disk).map_err(JournalError::io("read", path))?.is_some();
        Ok(is_whole || find_resume_point(&read(usize::MAX)?, 0, Position::START).is_none())
    };
    if format == Some(FORMAT_VERSION) && is_new()? {
        return Ok(Form::New);
    }
    let mut reader = Reader::default();
    reader.feed(&header);
    match reader.next_part() {
        Err(fault @ Fault::Format { .. }) => {
            Err(JournalError::Segment { path: path.to_owned(), fault })
        }
        _ => Ok(Form::Old),
    }
}
