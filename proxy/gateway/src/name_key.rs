//! The key of hashed names, where the configuration has none: 64 hexadecimal digits in a file of
//! `data_dir` that only the gateway's user may read.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::OnceLock;

use taximeter_config::Config;
use taximeter_dimensions::Hasher;
use taximeter_telemetry::Telemetry;
use taximeter_telemetry::events::NameKeyMissing;

/// The file with the key.
pub const NAME_KEY: &str = "names.key";

/// Only its owner reads and writes it.
const MODE: u32 = 0o600;
/// Digits of a key.
const DIGITS: usize = 64;

/// The key that the gateway has made itself, once it is needed.
#[derive(Debug, Default)]
pub(crate) struct OwnNameKey(OnceLock<Option<Hasher>>);

impl OwnNameKey {
    /// What hashes names, with the key of the configuration or else with this one. `None` if nothing
    /// is hashed, or nothing can be.
    pub(crate) fn hasher(&self, config: &Config, telemetry: &Telemetry) -> Option<Hasher> {
        if !config.dimensions.hashes() {
            return None;
        }
        if let Some(secret) = &config.dimensions.secret {
            return Hasher::new(secret.expose().as_bytes()).ok();
        }
        let own = self.0.get_or_init(|| {
            let opened = open(&config.data_dir);
            opened.inspect_err(|error| telemetry.emit(&NameKeyMissing { error })).ok()
        });
        own.clone()
    }
}

/// The key in `dir`. `None` if there is none yet, or if a power cut has emptied its file.
///
/// # Errors
/// The file cannot be read.
pub fn read(dir: &Path) -> io::Result<Option<Hasher>> {
    let text = match fs::read_to_string(dir.join(NAME_KEY)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let key = text.trim_end();
    let is_key = key.len() == DIGITS && key.bytes().all(|digit| digit.is_ascii_hexdigit());
    Ok(is_key.then(|| Hasher::new(key.as_bytes()).ok()).flatten())
}

/// The key in `dir`, which is made if there is none.
///
/// # Errors
/// The file cannot be read or written.
pub fn open(dir: &Path) -> io::Result<Hasher> {
    if let Some(hasher) = read(dir)? {
        return Ok(hasher);
    }
    let [high, low] = [(); 2].map(|()| uuid::Uuid::new_v4().simple());
    let unnamed = dir.join(NAME_KEY).with_extension("key.new");
    let _ = fs::remove_file(&unnamed);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(&unnamed)?;
    writeln!(file, "{high}{low}")?;
    file.sync_all()?;
    fs::rename(&unnamed, dir.join(NAME_KEY))?;
    read(dir)?.ok_or_else(|| ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_only_its_owner_may_read_it() {
        let dir = tempfile::tempdir().unwrap();
        assert!(read(dir.path()).unwrap().is_none());
        let first = open(dir.path()).unwrap().end_user("anna");
        assert_eq!(open(dir.path()).unwrap().end_user("anna"), first);
        assert_eq!(read(dir.path()).unwrap().unwrap().end_user("anna"), first);
        let path = dir.path().join(NAME_KEY);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        fs::write(&path, "").unwrap();
        assert_ne!(open(dir.path()).unwrap().end_user("anna"), first);
        assert!(open(&dir.path().join("nowhere")).is_err());
    }
}
