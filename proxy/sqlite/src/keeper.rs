//! Who may write a data directory: the user of its gateway. Files that others make there may be closed
//! to the gateway.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Access, access};
use rustix::process::geteuid;
use taximeter_database::error::StoreError;

/// The store's file in the data directory.
pub const STORE: &str = "store.sqlite";

/// Whether this process may feed the store in `data_dir`. Files that root makes beside a database get
/// its owner; a database that root makes does not.
pub fn may_write(data_dir: &Path) -> bool {
    let store = data_dir.join(STORE);
    let is_there = store.exists();
    let can_write = |path: &Path, how| access(path, how).is_ok();
    (is_keeper(data_dir) || (geteuid().is_root() && is_there))
        && can_write(data_dir, Access::WRITE_OK | Access::EXEC_OK)
        && (!is_there || can_write(&store, Access::READ_OK | Access::WRITE_OK))
}

/// Whether this process runs as the user of the gateway, whose files are open to it.
pub fn is_keeper(data_dir: &Path) -> bool {
    keeper(data_dir) == Some(geteuid().as_raw())
}

/// Errors: `Closed` where this is root, and `data_dir` belongs to another user. Everybody else has no
/// right to make files that are closed to the gateway.
pub fn check_keeper(data_dir: &Path) -> Result<(), StoreError> {
    match keeper(data_dir) {
        Some(user) if geteuid().is_root() && user != geteuid().as_raw() => {
            Err(StoreError::Closed { dir: data_dir.to_owned(), user })
        }
        _ => Ok(()),
    }
}

/// The user of the gateway. In Kubernetes the directory can belong to root, and what is in it to the
/// gateway.
fn keeper(data_dir: &Path) -> Option<u32> {
    let owner = |path: &Path| fs::metadata(path).map(|file| file.uid()).ok();
    owner(&data_dir.join(taximeter_journal::LOCK)).or_else(|| owner(data_dir))
}
