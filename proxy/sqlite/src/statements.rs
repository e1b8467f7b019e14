//! The statements that were issued, as files in the data directory. So they outlive the store, which
//! can be built anew.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use taximeter_billing::Period;
use taximeter_database::error::StoreError;

use super::keeper::is_keeper;

/// The folder in the data directory.
const FOLDER: &str = "statements";
/// Most characters of a tenant in the name of a file.
const TENANT_CHARS_MAX: usize = 32;

/// The end of the name of a file.
const END: &str = ".json";

/// A statement: its tenant, its period and its number.
type Which<'a> = (&'a str, Period, u32);

/// The statements of `tenant` for `period`, beside the database at `path`, in order of their numbers.
pub(super) fn read(path: &Path, tenant: &str, period: Period) -> Result<Vec<String>, StoreError> {
    let series = series(tenant, period);
    texts(path, |file| file.series == series)
}

/// All statements, each series in order.
pub(super) fn read_all(path: &Path) -> Result<Vec<String>, StoreError> {
    texts(path, |_| true)
}

/// A file with a statement.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct StatementFile {
    series: String,
    number: u32,
    path: PathBuf,
}

fn texts(path: &Path, wants: impl Fn(&StatementFile) -> bool) -> Result<Vec<String>, StoreError> {
    let folder = folder(path);
    let listed = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.and_then(Iterator::collect::<io::Result<Vec<_>>>),
    };
    let listed = listed.map_err(|source| unavailable(&folder, source))?;
    let file = |entry: &fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let (series, number) = name.strip_suffix(END)?.rsplit_once('.')?;
        let (series, number) = (series.to_owned(), number.parse().ok()?);
        Some(StatementFile { series, number, path: entry.path() })
    };
    let mut files: Vec<_> = listed.iter().filter_map(file).filter(wants).collect();
    taximeter_collections::sort(&mut files);
    let text = |StatementFile { path, .. }: &StatementFile| {
        fs::read_to_string(path).map_err(|source| unavailable(path, source))
    };
    files.iter().map(text).collect()
}

/// Adds a statement. Whether its number was free. It is on the disk then, whole.
pub(super) fn add(path: &Path, which: Which<'_>, signed: &str) -> Result<bool, StoreError> {
    let folder = folder(path);
    // What another user makes there may be closed to the gateway's user.
    if !is_keeper(path.parent().unwrap_or(path)) {
        let why = io::Error::new(ErrorKind::PermissionDenied, "it belongs to another user");
        return Err(unavailable(&folder, why));
    }
    let file = folder.join(name(which));
    publish(&folder, &file, signed).map_err(|source| unavailable(&file, source))
}

fn publish(folder: &Path, path: &Path, signed: &str) -> io::Result<bool> {
    match fs::create_dir(folder) {
        Ok(()) => File::open(folder.parent().unwrap_or(folder))?.sync_all()?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    // Two that issue the same number at the same time write two files.
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    let named = write(&draft, signed).and_then(|()| fs::hard_link(&draft, path));
    let removed = fs::remove_file(&draft);
    let is_new = match named {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
        Err(error) => return Err(error),
    };
    removed?;
    File::open(folder)?.sync_all()?;
    Ok(is_new)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn folder(path: &Path) -> PathBuf {
    path.with_file_name(FOLDER)
}

fn name((tenant, period, number): Which<'_>) -> String {
    format!("{}.{number}{END}", series(tenant, period))
}

/// The beginning of the names of a tenant's statements: `20261101T000000Z-20261201T000000Z-acme-0f3c…`.
/// The digest tells tenants apart whose names look alike in it.
fn series(tenant: &str, period: Period) -> String {
    let time = |at: Timestamp| at.strftime("%Y%m%dT%H%M%SZ").to_string();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let shown: String = tenant.chars().take(TENANT_CHARS_MAX).map(plain).collect();
    let digest = Sha256::digest(tenant);
    let digest: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{shown}-{digest}", time(period.from()), time(period.to()))
}

fn unavailable(path: &Path, source: io::Error) -> StoreError {
    StoreError::Unavailable { store: path.display().to_string(), source: source.into() }
}
