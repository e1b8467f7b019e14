//! Compares the metadata of files, to notice that a file was changed or replaced.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Entries of one folder that are looked at.
const ENTRIES_MAX: usize = 1_000;

/// The metadata of files and of the entries of folders. Links are followed, so a link that points
/// elsewhere is a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look(Vec<(PathBuf, Option<Stamp>)>);

/// Of one file. Two writes within one tick of the system's clock may leave all of it the same.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    file_id: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    /// Also told by a write that sets the time back.
    changed: (i64, i64),
}

impl Look {
    /// Reads the metadata of `paths`, and of the direct entries of folders.
    pub fn at(paths: &[PathBuf]) -> Self {
        let mut seen = Vec::new();
        for path in paths {
            let there = fs::metadata(path).ok();
            if there.as_ref().is_some_and(Metadata::is_dir) {
                seen.extend(entries(path));
            }
            seen.push((path.clone(), there.as_ref().map(Stamp::of)));
        }
        Self(seen)
    }

    /// Whether all paths exist.
    pub fn is_whole(&self) -> bool {
        self.0.iter().all(|(_, stamp)| stamp.is_some())
    }
}

impl Stamp {
    fn of(file: &Metadata) -> Self {
        Self {
            file_id: (file.dev(), file.ino()),
            bytes: file.len(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        }
    }
}

fn entries(folder: &Path) -> Vec<(PathBuf, Option<Stamp>)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.take(ENTRIES_MAX).filter_map(|entry| Some(entry.ok()?.path()));
    // One that is removed between two looks is not missed.
    let mut seen: Vec<_> = paths
        .filter_map(|path| Some((Stamp::of(&fs::metadata(&path).ok()?), path)))
        .map(|(stamp, path)| (path, Some(stamp)))
        .collect();
    seen.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    seen
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_change_a_replacement_and_a_link_that_moves_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let look = |name: &str| Look::at(&[path(name)]);
        fs::write(path("a"), "one").unwrap();
        let before = look("a");
        assert_eq!(look("a"), before);
        fs::write(path("a"), "longer").unwrap();
        let longer = look("a");
        assert_ne!(longer, before);
        fs::write(path("new"), "longer").unwrap();
        fs::rename(path("new"), path("a")).unwrap();
        assert_ne!(look("a"), longer);
        // As Kubernetes swaps what a ConfigMap shows.
        for version in ["v1", "v2"] {
            fs::create_dir(path(version)).unwrap();
            fs::write(path(version).join("file"), "same").unwrap();
        }
        symlink(path("v1"), path("data")).unwrap();
        symlink("data/file", path("shown")).unwrap();
        let shown = look("shown");
        fs::remove_file(path("data")).unwrap();
        assert!(shown.is_whole() && !look("shown").is_whole());
        symlink(path("v2"), path("data")).unwrap();
        assert_ne!(look("shown"), shown);
    }

    #[test]
    fn what_is_in_a_folder_belongs_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let look = || Look::at(&[folder.path().to_owned()]);
        let empty = look();
        fs::write(folder.path().join("prices.yaml"), "a").unwrap();
        let one = look();
        assert_ne!(one, empty);
        fs::write(folder.path().join("prices.yaml"), "ab").unwrap();
        assert_ne!(look(), one);
        assert!(look().is_whole() && !Look::at(&[folder.path().join("none")]).is_whole());
    }
}
