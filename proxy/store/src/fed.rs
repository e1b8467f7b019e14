//! A note in the data directory that says which other store the gateway feeds. So no command makes
//! a bill from the incomplete data in the directory.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The file in the data directory.
const FILE: &str = "fed-store.json";

/// A store that several gateways can share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FedStore {
    /// Its URL without the password.
    pub store: String,
    /// The name of the gateway in it.
    pub gateway: String,
}

impl FedStore {
    /// Reads the note in `data_dir`; `None` if the gateway feeds the store in the directory.
    ///
    /// Errors: the word is there, and cannot be read.
    pub fn of(data_dir: &Path) -> io::Result<Option<Self>> {
        match fs::read(data_dir.join(FILE)) {
            Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Leaves word of `fed`, or takes the word away.
    ///
    /// Errors: the directory cannot be written.
    pub(super) fn say(fed: Option<&Self>, data_dir: &Path) -> io::Result<()> {
        let path = data_dir.join(FILE);
        let Some(fed) = fed else {
            return match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        };
        // Whoever reads it meanwhile reads all of it.
        let whole = path.with_extension("new");
        fs::write(&whole, serde_json::to_vec(fed)?)?;
        fs::rename(whole, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn word_is_left_read_and_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(FedStore::of(dir.path()).unwrap(), None);
        FedStore::say(None, dir.path()).unwrap();
        let (store, gateway) = ("postgres://me@db:5432/bills".to_owned(), "pod/0 /data".to_owned());
        let fed = FedStore { store, gateway };
        FedStore::say(Some(&fed), dir.path()).unwrap();
        assert_eq!(FedStore::of(dir.path()).unwrap(), Some(fed));
        FedStore::say(None, dir.path()).unwrap();
        assert_eq!(FedStore::of(dir.path()).unwrap(), None);
        fs::write(dir.path().join(FILE), "{").unwrap();
        assert!(FedStore::of(dir.path()).is_err());
    }
}
