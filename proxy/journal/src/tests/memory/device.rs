//! The contents and names that a simulated device holds, and those that it has not stored yet.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::super::super::disk::{Identity, Status};
use super::super::random::Random;

/// What a device writes whole or not at all, in bytes.
const BLOCK_BYTES: usize = 512;

/// What a power cut does to what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Cut {
    /// All of it is gone.
    Lost,
    /// All of it had been written.
    Kept,
    /// A part of it had been written: the first bytes of files, the first changes of names.
    Begun,
    /// As `Begun`, but files are as long as they were, with zeros in place of what is missing.
    Zeros,
    /// Any blocks of it had been written, any changes of names; zeros where there was nothing.
    Shuffled,
    /// As `Shuffled`, but bytes of any kind where there was nothing.
    Garbled,
}

/// Files and directories by their name.
pub(super) type Names = BTreeMap<PathBuf, usize>;

#[derive(Debug, Clone)]
pub(super) enum Change {
    Added(PathBuf, usize),
    Renamed { from: PathBuf, to: PathBuf },
    Removed(PathBuf),
}

#[derive(Debug, Default)]
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    /// As the device has them.
    pub(super) synced: Vec<u8>,
    /// Bytes from the start that have not been touched since.
    pub(super) untouched: usize,
    /// Failed syncs: the kernel has forgotten that the device lacks these.
    pub(super) forgotten: Vec<Range<usize>>,
    /// The life in which a sync failed.
    pub(super) doubtful_in: Option<u32>,
    pub(super) locked_in: Option<u32>,
}

impl Change {
    pub(super) fn apply(&self, names: &mut Names) {
        match self {
            Self::Added(path, file) => {
                names.insert(path.clone(), *file);
            }
            Self::Renamed { from, to } => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                }
            }
            Self::Removed(path) => {
                names.remove(path);
            }
        }
    }

    pub(super) fn is_in(&self, dir: &Path) -> bool {
        let (Self::Added(path, _) | Self::Renamed { to: path, .. } | Self::Removed(path)) = self;
        path.parent() == Some(dir)
    }
}

impl File {
    /// What a power cut leaves of it.
    pub(super) fn after(&self, cut: Cut, random: &mut Random) -> Vec<u8> {
        let (untouched, whole) = (self.untouched, self.bytes.len());
        let mut bytes = match cut {
            Cut::Lost => self.synced.clone(),
            Cut::Kept => self.bytes.clone(),
            Cut::Begun | Cut::Zeros => {
                let written = untouched + random.index(whole - untouched + 1);
                let mut bytes = self.bytes[..written].to_vec();
                if cut == Cut::Zeros {
                    bytes.resize(whole, 0);
                }
                bytes
            }
            Cut::Shuffled | Cut::Garbled => {
                let mut bytes = self.bytes.clone();
                for at in untouched..whole {
                    let begins = at == untouched || at % BLOCK_BYTES == 0;
                    if begins && random.one_in(2) {
                        let end = whole.min((at / BLOCK_BYTES + 1) * BLOCK_BYTES);
                        match cut {
                            Cut::Shuffled => bytes[at..end].fill(0),
                            _ => bytes[at..end].fill_with(|| random.byte()),
                        }
                    }
                }
                bytes
            }
        };
        self.forget(&mut bytes);
        bytes
    }

    pub(super) fn forget(&self, bytes: &mut [u8]) {
        for range in &self.forgotten {
            let end = range.end.min(bytes.len());
            bytes[range.start.min(end)..end].fill(0);
        }
    }

    /// The device has it as it is.
    pub(super) fn settle(&mut self) {
        self.synced.clone_from(&self.bytes);
        self.untouched = self.bytes.len();
    }

    pub(super) fn status(&self, identity: usize) -> Status {
        Status { identity: Identity(0, identity as u64), length: self.bytes.len() as u64 }
    }
}
