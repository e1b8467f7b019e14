//! The destination of an export: a folder, or a bucket of an object store.

use std::fs::{self, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use tempfile::{Builder, NamedTempFile};

use super::objects::{ObjectFault, Objects};

/// Bytes written to a file at once.
const BUFFER_BYTES: usize = 128 << 10;
/// What anyone may do with a file whom the umask lets.
const FILE_MODE: u32 = 0o666;

/// Where the files of an export go.
#[derive(Debug)]
pub enum Destination {
    /// A folder; made where it is not there.
    Folder(PathBuf),
    /// A bucket, below a path.
    Objects(Objects),
}

/// Why files cannot go there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DestinationFault {
    /// The file system says no.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The object store says no.
    #[error(transparent)]
    Objects(#[from] ObjectFault),
}

/// A file that is written under a name of its own until it is whole. Dropped before, it is gone.
pub struct Draft {
    file: BufWriter<NamedTempFile>,
    sha256: Sha256,
    bytes: u64,
}

/// A file that is where it belongs.
#[derive(Debug)]
pub struct Published {
    /// Its size.
    pub bytes: u64,
    /// Of its bytes, hexadecimal.
    pub sha256: String,
}

impl Destination {
    /// A file to be written. In a folder it lies on the same file system as it will at the end.
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

    /// Puts a whole file where it belongs, in one step: whoever looks sees all of it or none.
    /// `name` may have folders in it, with `/` between them.
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
