//! The destination of an export: a folder, or a bucket of an object store.

use std::fs::{self, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tempfile::{Builder, NamedTempFile};

use crate::objects::{ObjectFault, Objects};

/// Bytes written to a file at once.
const BUFFER_BYTES: usize = 128 << 10;
/// What anyone may do with a file whom the umask lets.
const FILE_MODE: u32 = 0o666;

/// The destination of an export's files.
#[derive(Debug)]
pub enum Destination {
    /// A folder. It is created if it does not exist.
    Folder(PathBuf),
    /// A path in a bucket.
    Objects(Objects),
}

/// Why files cannot be written to the destination.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DestinationFault {
    /// The file system refused.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The object store refused.
    #[error(transparent)]
    Objects(#[from] ObjectFault),
}

/// A file under a temporary name until it is complete. It is removed if it is dropped before.
pub struct Draft {
    file: BufWriter<NamedTempFile>,
    sha256: Sha256,
    bytes: u64,
}

/// A file under its final name.
#[derive(Debug)]
pub struct Published {
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its content, in hexadecimal.
    pub sha256: String,
}

impl Destination {
    /// Starts a file. In a folder it is on the same file system as the final file.
    pub fn draft(&self) -> Result<Draft, DestinationFault> {
        let mut builder = Builder::new();
        builder.prefix(".taximeter-").suffix(".partial");
        let file = match self {
            Self::Folder(folder) => fs::create_dir_all(folder).and_then(|()| {
                builder.permissions(Permissions::from_mode(FILE_MODE)).tempfile_in(folder)
            }),
            Self::Objects(_) => builder.tempfile(),
        };
        let file = file.map_err(|source| self.fault("", source))?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Draft { file, sha256: Sha256::new(), bytes: 0 })
    }

    /// Gives a complete file its final name in one step. Readers see all of it or nothing. `name`
    /// may contain folders, separated by `/`.
    pub fn publish(&self, draft: Draft, name: &str) -> Result<Published, DestinationFault> {
        let Draft { file, sha256, bytes } = draft;
        let fault = |source| self.fault(name, source);
        let file = file.into_inner().map_err(|error| fault(error.into_error()))?;
        match self {
            Self::Folder(folder) => keep(file, &folder.join(name)).map_err(fault)?,
            Self::Objects(objects) => objects.put(file.as_file(), bytes, name)?,
        }
        Ok(Published { bytes, sha256: hex(&sha256.finalize()) })
    }

    fn fault(&self, name: &str, source: io::Error) -> DestinationFault {
        let path = match self {
            Self::Folder(folder) => folder.join(name),
            Self::Objects(_) => std::env::temp_dir(),
        };
        DestinationFault::File { path, source }
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.sha256.update(bytes.get(..written).unwrap_or_default());
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// On the disk first, then under its name.
fn keep(file: NamedTempFile, path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Two lower-case digits for each byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
