//! The identity of a ledger: a UUID in a file beside its segments, which each segment repeats.
//!
//! ```text
//! UUID
//! copied | copy of UUID
//! ```
//!
//! In a copy that `taximeter backup` has made, the second line is `copied`. The first process that
//! writes to such a journal makes a new UUID, and the file names the old one from then on. So
//! entries that the original and its copy get from then on belong to two ledgers. Who copies the
//! files in another way gets two ledgers with one identity.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use taximeter_ledger::LedgerId;
use uuid::Uuid;

use super::disk::{Disk, Kernel, is_without_room};
use super::files;

/// The file with the identity.
pub const LEDGER: &str = "ledger.id";

const COPIED: &str = "copied";
const COPY_OF: &str = "copy of ";

/// Bytes of the file that are read.
const BYTES_MAX: usize = 4096;
/// Ledgers of which one can be a copy of a copy.
const COPIES_MAX: usize = 32;

/// Which ledger it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its id.
    pub id: LedgerId,
    /// The ledgers that it is a copy of, the last one first.
    pub copy_of: Vec<LedgerId>,
}

/// The identity of a ledger that is written to.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) identity: Identity,
    /// There was no room for the file.
    is_unwritten: AtomicBool,
}

/// What the file says.
struct Known {
    identity: Identity,
    /// Nobody has written to the copy yet.
    is_copied: bool,
}

impl Known {
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let id = lines.next()?.trim_end().parse().ok().map(LedgerId)?;
        let mut known = Self { identity: Identity { id, copy_of: Vec::new() }, is_copied: false };
        for line in lines {
            known.is_copied |= line == COPIED;
            let of = line.strip_prefix(COPY_OF).and_then(|id| id.parse().ok());
            known.identity.copy_of.extend(of.map(LedgerId));
        }
        Some(known)
    }

    fn text(&self) -> String {
        let Identity { id, copy_of } = &self.identity;
        let copied = self.is_copied.then(|| COPIED.to_owned());
        let of = copy_of.iter().take(COPIES_MAX).map(|id| format!("{COPY_OF}{id}"));
        let lines = std::iter::once(id.to_string()).chain(copied).chain(of);
        lines.map(|line| line + "\n").collect()
    }
}

/// What the file of a ledger, which says `text`, says in a copy of the ledger.
#[must_use]
pub fn in_copy(text: &str) -> String {
    match Known::parse(text) {
        Some(known) => Known { is_copied: true, ..known }.text(),
        None => text.to_owned(),
    }
}

/// The identity of the journal in `dir`. `None` if nobody has opened it for writing yet.
///
/// # Errors
/// The file cannot be read.
pub fn identity(dir: &Path) -> io::Result<Option<Identity>> {
    Ok(known(dir, &Kernel)?.map(|known| known.identity))
}

impl Named {
    /// Writes the file if there was no room for it.
    pub(super) fn write(&self, dir: &Path, disk: &dyn Disk, synced: bool) -> io::Result<()> {
        if self.is_unwritten.load(Relaxed) {
            write(&self.identity, dir, disk, synced)?;
            self.is_unwritten.store(false, Relaxed);
        }
        Ok(())
    }
}

/// The identity of the ledger in `dir`, for who writes to it. It is made with the first segment. Its
/// file is written again from the segments if it is lost. If there is no room for it, it is written
/// before the next segment begins.
pub(super) fn own(dir: &Path, disk: &dyn Disk, synced: bool) -> io::Result<Named> {
    let identity = match known(dir, disk)? {
        Some(Known { identity, is_copied: false }) => {
            return Ok(Named { identity, is_unwritten: false.into() });
        }
        Some(Known { identity: Identity { id, copy_of }, .. }) => {
            let copy_of = std::iter::once(id).chain(copy_of).collect();
            Identity { id: LedgerId(Uuid::new_v4()), copy_of }
        }
        None => {
            let in_segment = |path: &Path| files::header(path, disk).ok().flatten();
            let segments = files::list(dir, disk)?;
            let written = segments.iter().rev().find_map(|(_, path)| in_segment(path));
            let id = written.map_or_else(|| LedgerId(Uuid::new_v4()), |header| header.ledger);
            Identity { id, copy_of: Vec::new() }
        }
    };
    let is_unwritten = match write(&identity, dir, disk, synced) {
        Err(error) if is_without_room(&error) => true,
        done => done.map(|()| false)?,
    };
    Ok(Named { identity, is_unwritten: is_unwritten.into() })
}

fn write(identity: &Identity, dir: &Path, disk: &dyn Disk, synced: bool) -> io::Result<()> {
    let known = Known { identity: identity.clone(), is_copied: false };
    let path = dir.join(LEDGER);
    let unnamed = path.with_extension("id.new");
    let file = files::create_anew(&unnamed, disk)?;
    files::append(&*file, known.text().as_bytes())?;
    if synced {
        file.sync()?;
    }
    disk.rename(&unnamed, &path)?;
    if synced { disk.sync_dir(dir) } else { Ok(()) }
}

/// What the file in `dir` says. `None` if there is no such file, or if a power cut has emptied it.
fn known(dir: &Path, disk: &dyn Disk) -> io::Result<Option<Known>> {
    match files::read(&dir.join(LEDGER), disk, BYTES_MAX) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => Ok(Known::parse(&String::from_utf8_lossy(&read?))),
    }
}
