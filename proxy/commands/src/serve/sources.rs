//! What a configuration rests on: its files, and what tells one content of theirs from another.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use taximeter_collections::Gather as _;
use taximeter_config::Config;
use taximeter_fleet::{EventKind, Fact};

use crate::hex::hex;
use crate::load;

/// Longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// So many digits tell one content from another.
const DIGITS: usize = 16;

/// The configuration in `file`, its prices, and its secrets: `files` are all that it is read from. Nothing
/// where nobody compares them.
pub(super) fn facts(file: &Path, files: &[PathBuf], config: &Config) -> Vec<Fact> {
    if config.fleet.is_none() {
        return Vec::new();
    }
    let named: BTreeSet<_> = load::named_by(config).into_iter().gather_set();
    let prices = load::prices_of(config);
    let secrets = files.iter().filter(|path| *path != file && !named.contains(*path));
    let fact = |(kind, path, is_secret): (EventKind, &Path, bool)| {
        let fact = Fact::new(kind, &path.display().to_string(), &digest(path)?, Vec::new());
        Some(Fact { is_secret, ..fact })
    };
    let own = std::iter::once((EventKind::Configuration, file, false));
    let prices = prices.iter().map(|path| (EventKind::Prices, path.as_path(), false));
    let secrets = secrets.map(|path| (EventKind::Configuration, path.as_path(), true));
    own.chain(prices).chain(secrets).filter_map(fact).collect()
}

/// What tells the content of a file from another one. `None` if it cannot be read.
fn digest(path: &Path) -> Option<String> {
    let mut text = Vec::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut text).ok()?;
    Some(hex(&Sha256::digest(&text)).chars().take(DIGITS).collect())
}
