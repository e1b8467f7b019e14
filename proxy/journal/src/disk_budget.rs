//! Measures how full the data directory is, against its limit. A sidecar that fills its volume gets
//! its engine's pod evicted.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Between two looks.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// Parts of a thousand from which on files of the journal go early.
const NEARLY_FULL: u64 = 800;
/// Parts of a thousand from which on new requests are refused.
const FULL: u64 = 950;
/// Parts of a thousand below which a full directory is not full any more.
const FULL_UNTIL: u64 = 930;
/// What a block of a file is counted in, whatever the file system has (stat(2)).
const BLOCK_BYTES: u64 = 512;

/// The size of the data directory against its limit.
#[derive(Debug, Default)]
pub struct DiskBudget {
    /// 0 before the first look.
    bytes: AtomicU64,
    nearly_full: AtomicBool,
    full: AtomicBool,
}

impl DiskBudget {
    /// The size of the data directory in bytes; `None` before the first measurement.
    pub fn bytes(&self) -> Option<u64> {
        Some(self.bytes.load(Relaxed)).filter(|bytes| *bytes > 0)
    }

    /// Whether segments that are not needed should be removed early.
    pub fn is_nearly_full(&self) -> bool {
        self.nearly_full.load(Relaxed)
    }

    /// Whether the gateway should refuse new requests.
    pub fn is_full(&self) -> bool {
        self.full.load(Relaxed)
    }

    /// Notes that the directory takes `bytes` of `most`. Returns whether it became full, or stopped
    /// being full.
    fn note(&self, bytes: u64, most: Option<u64>) -> Option<Turn> {
        self.bytes.store(bytes, Relaxed);
        let most = most?;
        let part = bytes.saturating_mul(1_000) / most.max(1);
        self.nearly_full.store(part >= NEARLY_FULL, Relaxed);
        let is_full = part >= if self.is_full() { FULL_UNTIL } else { FULL };
        let was_full = self.full.swap(is_full, Relaxed);
        (is_full != was_full).then_some(if is_full { Turn::Full } else { Turn::Emptied })
    }
}

/// A change of the state of the data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// The directory is full: new requests are refused.
    Full,
    /// The directory has room again.
    Emptied,
}

/// Measures the size of `dir` for ever, against `most` bytes. It calls `on_change` with both
/// numbers when the directory becomes full, and when it has space again.
pub async fn watch(
    disk_budget: Arc<DiskBudget>,
    dir: PathBuf,
    most: Option<u64>,
    on_change: impl Fn(Turn, u64, u64),
) {
    let mut period = tokio::time::interval(LOOK_PERIOD);
    loop {
        period.tick().await;
        let dir = dir.clone();
        let bytes = tokio::task::spawn_blocking(move || taken(&dir)).await;
        // What cannot be looked at is as it was.
        if let Ok(Ok(bytes)) = bytes
            && let Some(turn) = disk_budget.note(bytes, most)
        {
            on_change(turn, bytes, most.unwrap_or_default());
        }
    }
}

/// The disk space that the files below a directory take, in bytes.
///
/// # Errors
/// A directory cannot be read. Files that go meanwhile take nothing.
fn taken(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += taken(&entry.path())?,
            Ok(metadata) => bytes += metadata.blocks() * BLOCK_BYTES,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_nearly_full_and_then_full_until_there_is_space_again() {
        let disk_budget = DiskBudget::default();
        assert_eq!(
            (disk_budget.bytes(), disk_budget.is_nearly_full(), disk_budget.is_full()),
            (None, false, false)
        );
        let seen = |bytes| {
            (
                disk_budget.note(bytes, Some(1_000)),
                disk_budget.is_nearly_full(),
                disk_budget.is_full(),
            )
        };
        assert_eq!(seen(799), (None, false, false));
        assert_eq!(seen(800), (None, true, false));
        assert_eq!(seen(950), (Some(Turn::Full), true, true));
        assert_eq!(seen(930), (None, true, true));
        assert_eq!(seen(929), (Some(Turn::Emptied), true, false));
        assert_eq!(seen(10), (None, false, false));
        assert_eq!(disk_budget.bytes(), Some(10));
    }

    #[test]
    fn without_a_maximum_it_is_never_full() {
        let disk_budget = DiskBudget::default();
        assert_eq!(disk_budget.note(u64::MAX, None), None);
        assert!(!disk_budget.is_nearly_full() && !disk_budget.is_full());
    }

    #[test]
    fn what_lies_in_folders_counts_too_and_a_file_that_takes_no_blocks_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("one"), vec![1; 100_000]).unwrap();
        let one = taken(dir.path()).unwrap();
        assert!((100_000..200_000).contains(&one), "{one}");
        fs::create_dir(dir.path().join("folder")).unwrap();
        fs::write(dir.path().join("folder/two"), vec![1; 100_000]).unwrap();
        fs::File::create(dir.path().join("sparse")).unwrap().set_len(1 << 30).unwrap();
        assert_eq!(taken(dir.path()).unwrap(), 2 * one);
        assert!(taken(&dir.path().join("nowhere")).is_err());
    }
}
