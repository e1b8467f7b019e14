//! `taximeter backup`: copies the ledger, also while a gateway writes it. A gateway can start from
//! the copy.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context as _, ensure};
use clap::Args;
use tar::{Builder, Header};
use taximeter_journal::{LEDGER, in_copy};
use taximeter_store::{DAYS, HOURS, HeldStore, StoreError};

use super::failure::Failure;
use super::ledger::data_dir;
use super::load;

/// The argument for a tar archive on stdout.
const STDOUT: &str = "-";

/// What is behind the name of a journal file that was compressed.
const COMPRESSED: &str = ".zst";

const EXAMPLES: &str = "\
Examples:
  taximeter backup /backups/monday --config taximeter.yaml     into an empty folder
  taximeter backup - --config taximeter.yaml > monday.tar      as a tar archive
  taximeter verify --store sqlite --data-dir /backups/monday   check the copy

The command works while the gateway runs, and without it. The gateway serves requests meanwhile; only
its store waits. To restore, start a gateway with the copy as its data_dir. The copy does not include
a PostgreSQL store: use pg_dump for that.";

/// Copies the ledger at one moment: journal, corrections and SQLite store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BackupArgs {
    /// New or empty folder for the copy. - writes a tar archive to stdout
    #[arg(value_name = "DIR")]
    to: PathBuf,

    /// Configuration of the gateway, which has the path of the ledger
    #[arg(long, value_name = "FILE", env = "TAXIMETER_CONFIG")]
    config: Option<PathBuf>,

    /// Data directory of the gateway [default: data_dir of the configuration, else ./taximeter-data]
    #[arg(long, value_name = "DIR", env = "TAXIMETER_DATA_DIR")]
    data_dir: Option<PathBuf>,
}

/// Copies the ledger to the folder or to `out`, and prints the number of files and bytes to `err`.
///
/// Errors: the ledger cannot be read; the copy cannot be written. The copy is not complete then.
pub(crate) fn run(
    args: &BackupArgs,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<()> {
    let config = args.config.as_deref().map(load::config).transpose().map_err(Failure::from)?;
    let dir = data_dir(args.data_dir.as_deref(), config.as_ref());
    if !dir.is_dir() {
        return Err(Failure::from(StoreError::NoDataDir(dir)).into());
    }
    let mut copy = if args.to == Path::new(STDOUT) {
        Copy { to: To::Archive(Builder::new(out)), files: 0, bytes: 0 }
    } else {
        Copy { to: To::folder(&args.to)?, files: 0, bytes: 0 }
    };
    // The store comes first. Its entries are then in the journal or older than it. Where the store is
    // locked, no journal file is deleted meanwhile.
    let store = HeldStore::begin(&dir).map_err(Failure::from)?;
    for (name, file) in store.iter().flat_map(HeldStore::files) {
        copy.add(name, file)?;
    }
    store.iter().try_for_each(HeldStore::check).map_err(Failure::from)?;
    copy.all_below(&dir, "")?;
    drop(store);
    let Copy { to, files, bytes } = copy;
    to.finish()?;
    writeln!(err, "{files} files, {bytes} bytes")?;
    Ok(())
}

/// Whether a file is not a part of the ledger, or is copied separately.
fn is_left_out(name: &str) -> bool {
    let is_own = matches!(name, "journal.lock" | DAYS | HOURS);
    is_own || name.starts_with("store.sqlite") || name.ends_with(".new")
}

/// The destination of a copy.
enum To<'a, W: Write> {
    Folder(PathBuf),
    Archive(Builder<&'a mut W>),
}

/// A copy that is being made.
struct Copy<'a, W: Write> {
    to: To<'a, W>,
    files: u64,
    bytes: u64,
}

impl<W: Write> Copy<'_, W> {
    /// Copies all files in a folder and its subfolders. `prefix` is the start of their names.
    fn all_below(&mut self, dir: &Path, prefix: &str) -> anyhow::Result<()> {
        let mut entries = fs::read_dir(dir)
            .and_then(Iterator::collect::<io::Result<Vec<_>>>)
            .with_context(|| format!("cannot read {}", dir.display()))?;
        taximeter_collections::sort_by_key(&mut entries, fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name
                .to_str()
                .with_context(|| format!("the file name {} is not UTF-8", path.display()))?;
            if is_left_out(name) {
                continue;
            }
            let whole = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                self.all_below(&path, &format!("{whole}/"))?;
                continue;
            }
            if name == LEDGER {
                let text = fs::read_to_string(&path);
                let text = text.with_context(|| format!("cannot read {}", path.display()))?;
                // Who writes to the copy writes another ledger.
                let metadata = entry.metadata()?;
                let text = in_copy(&text);
                self.add_all(&whole, &mut text.as_bytes(), text.len() as u64, &metadata)?;
                continue;
            }
            self.add_named(&path, whole)?;
        }
        Ok(())
    }

    /// Copies a file, or its compressed form if it was compressed meanwhile.
    fn add_named(&mut self, path: &Path, name: String) -> anyhow::Result<()> {
        let compressed = format!("{name}{COMPRESSED}");
        let mut compressed_path = path.as_os_str().to_owned();
        compressed_path.push(COMPRESSED);
        for (path, name) in [(path, name), (Path::new(&compressed_path), compressed)] {
            match File::open(path) {
                Ok(file) => return self.add(&name, &file),
                Err(fault) if fault.kind() == ErrorKind::NotFound => {}
                Err(fault) => {
                    return Err(fault).with_context(|| format!("cannot read {}", path.display()));
                }
            }
        }
        // The file was deleted meanwhile. A later file has its content.
        Ok(())
    }

    /// Copies a file with its current length.
    fn add(&mut self, name: &str, file: &File) -> anyhow::Result<()> {
        let metadata = file.metadata()?;
        let mut bytes = file.take(metadata.len());
        self.add_all(name, &mut bytes, metadata.len(), &metadata)?;
        ensure!(bytes.limit() == 0, "{name} became shorter during the copy");
        Ok(())
    }

    /// Writes a file that has so many `bytes`, and is otherwise as `metadata` says.
    fn add_all(
        &mut self,
        name: &str,
        bytes: &mut impl Read,
        length: u64,
        metadata: &Metadata,
    ) -> anyhow::Result<()> {
        let copied = match &mut self.to {
            To::Folder(folder) => into_file(&folder.join(name), bytes),
            To::Archive(archive) => archive.append_data(&mut header(metadata, length), name, bytes),
        };
        copied.with_context(|| format!("cannot copy {name}"))?;
        (self.files, self.bytes) = (self.files + 1, self.bytes + length);
        Ok(())
    }
}

impl<W: Write> To<'_, W> {
    /// A new or empty folder.
    fn folder(path: &Path) -> anyhow::Result<Self> {
        let context = || format!("cannot write to {}", path.display());
        fs::create_dir_all(path).with_context(context)?;
        let mut entries = fs::read_dir(path).with_context(context)?;
        ensure!(entries.next().is_none(), "{} is not empty; name another folder", path.display());
        Ok(Self::Folder(path.to_owned()))
    }

    fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Folder(path) => File::open(&path).and_then(|folder| folder.sync_all())?,
            Self::Archive(archive) => archive.into_inner()?.flush()?,
        }
        Ok(())
    }
}

/// Copies into a new file and syncs it.
fn into_file(path: &Path, bytes: &mut impl Read) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = File::create_new(path)?;
    io::copy(bytes, &mut file)?;
    file.sync_all()
}

/// The tar header of a file. It has no owner, so it belongs to the user who unpacks it.
fn header(metadata: &Metadata, length: u64) -> Header {
    let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let mut header = Header::new_gnu();
    header.set_size(length);
    header.set_mode(0o640);
    header.set_mtime(modified.unwrap_or_default().as_secs());
    header
}
