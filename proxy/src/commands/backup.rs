//! `taximeter backup`: a copy of the ledger that a gateway can start from, taken while one writes it.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anyhow::{Context as _, ensure};
use clap::Args;
use tar::{Builder, Header};
use taximeter_store::{HeldStore, StoreError};

use super::failure::Failure;
use super::ledger::data_dir;
use super::load;

/// What stands for the archive on stdout.
const STDOUT: &str = "-";

const EXAMPLES: &str = "\
Examples:
  taximeter backup /backups/monday --config taximeter.yaml     into an empty folder
  taximeter backup - --config taximeter.yaml > monday.tar      as a tar archive
  taximeter verify --store sqlite --data-dir /backups/monday   is the copy whole?

Works while the gateway runs, which serves on while its store waits, and while it does not. A
gateway starts from the copy as its data_dir. Of a store in PostgreSQL it has nothing: see pg_dump.";

/// Copies the ledger: journal, corrections and SQLite store, as of one moment
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BackupArgs {
    /// A folder that is empty or not there yet; - writes a tar archive to stdout
    #[arg(value_name = "DIR")]
    to: PathBuf,

    /// The gateway's configuration: where it keeps its ledger
    #[arg(long, value_name = "FILE", env = "TAXIMETER_CONFIG")]
    config: Option<PathBuf>,

    /// The gateway's data directory [default: data_dir of the configuration, else ./taximeter-data]
    #[arg(long, value_name = "DIR", env = "TAXIMETER_DATA_DIR")]
    data_dir: Option<PathBuf>,
}

/// Copies, to where the arguments say or to `out`, and says on `err` how much that was.
///
/// Errors: the ledger cannot be read, or the copy not written; what is there then is no copy.
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
    // Held first: what the store has is then in the journal, or is older than all of it, and no file
    // of the journal goes meanwhile.
    let store = HeldStore::begin(&dir).map_err(Failure::from)?;
    copy.all_below(&dir, "")?;
    for (name, file) in store.iter().flat_map(HeldStore::files) {
        copy.add(name, file)?;
    }
    drop(store);
    let Copy { to, files, bytes } = copy;
    to.finish()?;
    writeln!(err, "{files} files, {bytes} bytes")?;
    Ok(())
}

/// Whether a file is none of the ledger's, or one that is copied apart.
fn is_left_out(name: &str) -> bool {
    name.starts_with("store.sqlite") || name == "journal.lock" || name.ends_with(".new")
}

/// Where a copy goes.
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
    /// All files of a folder and those in it; `prefix` is what their names begin with.
    fn all_below(&mut self, dir: &Path, prefix: &str) -> anyhow::Result<()> {
        let mut entries = fs::read_dir(dir)
            .and_then(Iterator::collect::<io::Result<Vec<_>>>)
            .with_context(|| format!("cannot read {}", dir.display()))?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_str().with_context(|| format!("{} is no text", path.display()))?;
            if is_left_out(name) {
                continue;
            }
            let whole = format!("{prefix}{name}");
            if entry.file_type()?.is_dir() {
                self.all_below(&path, &format!("{whole}/"))?;
                continue;
            }
            match File::open(&path) {
                Ok(file) => self.add(&whole, &file)?,
                // Another one has its place.
                Err(fault) if fault.kind() == ErrorKind::NotFound => {}
                Err(fault) => {
                    return Err(fault).with_context(|| format!("cannot read {}", path.display()));
                }
            }
        }
        Ok(())
    }

    /// A file as long as it is now.
    fn add(&mut self, name: &str, file: &File) -> anyhow::Result<()> {
        let metadata = file.metadata()?;
        let length = metadata.len();
        let mut bytes = file.take(length);
        let copied = match &mut self.to {
            To::Folder(folder) => into_file(&folder.join(name), &mut bytes),
            To::Archive(archive) => archive.append_data(&mut header(&metadata), name, &mut bytes),
        };
        copied.with_context(|| format!("cannot copy {name}"))?;
        ensure!(bytes.limit() == 0, "{name} has become shorter while it was copied");
        (self.files, self.bytes) = (self.files + 1, self.bytes + length);
        Ok(())
    }
}

impl<W: Write> To<'_, W> {
    /// A folder in which nothing is yet.
    fn folder(path: &Path) -> anyhow::Result<Self> {
        let told = || format!("cannot write to {}", path.display());
        fs::create_dir_all(path).with_context(told)?;
        let mut entries = fs::read_dir(path).with_context(told)?;
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

/// Copies into a file that is new, and on the disk when this returns.
fn into_file(path: &Path, bytes: &mut impl Read) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = File::create_new(path)?;
    io::copy(bytes, &mut file)?;
    file.sync_all()
}

/// What an archive says of a file: it is whose who unpacks it.
fn header(metadata: &Metadata) -> Header {
    let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let mut header = Header::new_gnu();
    header.set_size(metadata.len());
    header.set_mode(0o640);
    header.set_mtime(modified.unwrap_or_default().as_secs());
    header
}
