//! Writes what was read of an old segment to new files, which take its place when they are whole.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taximeter_ledger::format4::OldEntry;
use taximeter_ledger::{
    Digest, Digester, Fault, Framer, LedgerId, Position, SegmentHeader, SyncMark,
};

use super::walk::{Found, Left};
use crate::disk::{Disk, OpenFile};
use crate::error::JournalError;
use crate::files;

/// Bytes that are written at once.
const PIECE_BYTES: usize = 256 << 10;

/// The files that take the place of one old segment.
pub(super) struct Rewrite<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) dir: &'a Path,
    pub(super) ledger: LedgerId,
    /// The end of the segment before, as it is now. `None` if there is none.
    pub(super) last: Option<(Position, Option<Digest>)>,
    /// The header that was read last. A segment whose own cannot be read says the same.
    pub(super) header: SegmentHeader,
    /// Entries whose new position somebody wants to know.
    pub(super) watched: &'a [u64],
    pub(super) moved: Vec<(Position, Position)>,
    pub(super) written: Vec<Written>,
    pub(super) current: Option<Output>,
    pub(super) entries: u64,
    pub(super) payload: Vec<u8>,
}

/// A file that has no name yet.
pub(super) struct Written {
    unnamed: PathBuf,
    path: PathBuf,
    bytes: u64,
}

/// The file that is being written.
pub(super) struct Output {
    file: Arc<dyn OpenFile>,
    written: Written,
    framer: Framer,
    digester: Digester,
    before: Position,
    /// What is not in the file yet.
    pending: Vec<u8>,
}

impl Rewrite<'_> {
    /// Writes what was found. Why an entry cannot be read, if it cannot.
    ///
    /// # Errors
    /// `Io`. `Encode` if an entry is too long.
    pub(super) fn add(&mut self, found: &Found) -> Result<Option<Fault>, JournalError> {
        match found {
            Found::Header(header) => {
                self.header = header.clone();
                self.begin(header.clone())?;
            }
            Found::Entry(entry) => return self.add_entry(entry),
            Found::Left(Left { last, next, torn_bytes, .. }) => {
                let lost = next.seq - last.seq;
                let ends = self.current.is_none() && torn_bytes.is_some();
                if lost > 0 || (self.current.is_none() && !ends) {
                    self.begin(SegmentHeader { before: *next, lost, ..self.header.clone() })?;
                }
            }
        }
        Ok(None)
    }

    fn begin(&mut self, old: SegmentHeader) -> Result<(), JournalError> {
        let first = old.first_seq();
        let path = files::path(self.dir, first);
        match &self.current {
            // It has no entry: the first one is lost.
            Some(output) if output.written.path == path => self.current = None,
            _ => self.end_file()?,
        }
        let before = match self.last {
            Some((last, _)) if old.lost == 0 && last.seq == old.before.seq => last,
            _ => old.before,
        };
        let follows = match self.last {
            Some((last, digest)) => digest.filter(|_| last.seq + 1 == first),
            None => old.follows,
        };
        // All of it is synced before it has its name.
        let header =
            SegmentHeader { ledger: self.ledger, before, follows, has_sync_marks: true, ..old };
        let unnamed = files::unnamed(&path);
        let file = files::create_anew(&unnamed, self.disk);
        let file = file.map_err(JournalError::io("write", &unnamed))?;
        let mut pending = Vec::new();
        header.encode(&mut pending);
        let digester = header.digester(&pending);
        let framer = Framer::new(self.ledger, before);
        let written = Written { unnamed, path, bytes: 0 };
        self.current = Some(Output { file, written, framer, digester, before, pending });
        Ok(())
    }

    fn add_entry(&mut self, entry: &OldEntry) -> Result<Option<Fault>, JournalError> {
        let Some(output) = &mut self.current else { return Ok(None) };
        let (encoded, unreadable) = entry.encode(&mut self.payload)?;
        let at = output.pending.len();
        let position = output.framer.append(&encoded, &mut output.pending);
        output.digester.add(output.pending.get(at..).unwrap_or_default());
        if self.watched.contains(&position.seq) {
            self.moved.push((entry.position, position));
        }
        self.entries += 1;
        if output.pending.len() >= PIECE_BYTES {
            output.write().map_err(JournalError::io("write", &output.written.unnamed))?;
        }
        Ok(unreadable)
    }

    /// Ends the file that is being written. It is on the disk then.
    pub(super) fn end_file(&mut self) -> Result<(), JournalError> {
        let Some(mut output) = self.current.take() else { return Ok(()) };
        output.end(self.ledger).map_err(JournalError::io("write", &output.written.unnamed))?;
        self.last = Some((output.framer.last(), output.digester.digest()));
        self.written.push(output.written);
        Ok(())
    }

    /// Gives the files their names, and so removes the old segment. The last one comes first: until
    /// the first one has its name, the old segment is found and read again up to the others.
    ///
    /// # Errors
    /// The system refuses. The files that have no name yet are written again the next time.
    pub(super) fn name_files(&mut self) -> io::Result<u64> {
        let mut bytes = 0;
        while let Some(written) = self.written.pop() {
            self.disk.rename(&written.unnamed, &written.path)?;
            self.disk.sync_dir(self.dir)?;
            bytes += written.bytes;
        }
        Ok(bytes)
    }

    /// Removes files that have no name, after an error.
    pub(super) fn give_up(&mut self) {
        let current = self.current.take().map(|output| output.written);
        for written in current.into_iter().chain(self.written.drain(..)) {
            let _ = self.disk.remove(&written.unnamed);
        }
    }
}

impl Output {
    fn write(&mut self) -> io::Result<()> {
        files::append(&*self.file, &self.pending)?;
        self.written.bytes += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    fn end(&mut self, ledger: LedgerId) -> io::Result<()> {
        self.write()?;
        // The mark says that the entries are on the disk, so it comes after they are.
        self.file.sync()?;
        let synced = self.framer.last().seq;
        if synced > self.before.seq {
            SyncMark { synced }.append(ledger, &mut self.pending);
            self.write()?;
            self.file.sync()?;
        }
        Ok(())
    }
}
