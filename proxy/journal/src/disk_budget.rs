//! Measures the data directory and its volume, and tells how much room there is. A sidecar that fills
//! its volume gets its engine's pod evicted.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{StatVfs, statvfs};
use rustix::process::geteuid;
use taximeter_system::clock;

use super::disk::Kernel;
use super::files;
use super::foresight::History;
use super::pace::{self, KEPT_BYTES, Kept};
use super::room::{self, Filler, Plan, Removable, Room, RoomLimits, Supply, Usage, Volume, plan};

/// Between two looks.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// How often is kept what is to outlive the process.
const KEPT_PERIOD: Duration = Duration::from_secs(60);
/// What a block of a file is counted in, whatever the file system has (stat(2)).
const BLOCK_BYTES: u64 = 512;
/// Of so many blocks, ext4 keeps one for its own lists of blocks, besides what it reserves for root.
const EXT4_RESERVED_OF: u64 = 50;
/// At most so many of them.
const EXT4_RESERVED_BLOCKS_MAX: u64 = 4096;
/// The file that says what is known of the room.
const ROOM: &str = "room.state";

pub use super::foresight::Details;

/// The room of the data directory, as it was when somebody looked.
#[derive(Debug, Default)]
pub struct DiskBudget {
    state: Mutex<State>,
    /// Held by who writes the file of what is kept.
    keeping: Mutex<()>,
    short: AtomicBool,
    full: AtomicBool,
    refuses: AtomicBool,
    /// No segment may go, and there is too little room.
    needs_days: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// `None` before the first look.
    measured: Option<Measured>,
    /// Bytes in free pages of the store.
    reusable_bytes: u64,
    room: Room,
    history: History,
    kept: Kept,
    /// The last look.
    looked: Option<Instant>,
    /// When was written what is kept.
    written: Option<Instant>,
}

/// What a look has found.
#[derive(Debug, Clone)]
struct Measured {
    dir: PathBuf,
    usage: Usage,
    volume: Volume,
    limits: RoomLimits,
}

/// How fast the data directory grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Bytes a day; less than nothing if the directory shrinks.
    pub bytes_a_day: f64,
    /// Days until there is no room for new requests. `None` if the directory does not grow, or if
    /// nothing limits it.
    pub days_left: Option<f64>,
}

/// A change of the state of the data directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// There is no room for new requests.
    Full,
    /// There is room again.
    Emptied,
}

impl DiskBudget {
    /// Looks at the data directory `dir`, and changes nothing there. Returns whether it became full, or
    /// stopped being full.
    ///
    /// # Errors
    /// A directory cannot be read. Nothing changes then.
    pub fn look(&self, dir: &Path, limits: &RoomLimits) -> io::Result<Option<Turn>> {
        let usage = taken(dir)?;
        // A file system that does not tell limits nothing.
        let volume = statvfs(dir).map(|stat| volume_of(&stat, uses_reserve())).unwrap_or_default();
        let now = clock::now();
        let mut state = self.lock();
        if state.looked.is_none() {
            let text = files::read(&dir.join(ROOM), &Kernel, KEPT_BYTES).unwrap_or_default();
            state.kept = Kept::parse(&String::from_utf8_lossy(&text)).unwrap_or_default();
        }
        let passed =
            state.looked.map_or(0, |looked| now.saturating_duration_since(looked).as_secs());
        // Parts of a second count at the next look.
        let looked = state.looked.unwrap_or(now) + Duration::from_secs(passed);
        state.looked = Some(looked);
        state.kept.allowance.pass(passed);
        state.measured = Some(Measured { dir: dir.to_owned(), usage, volume, limits: *limits });
        let bytes = state.net_bytes().unwrap_or_default();
        state.kept.pace.look(passed, bytes);
        Ok(self.judge(&mut state))
    }

    /// Keeps what is to outlive the process, from time to time. Who only looks writes nothing.
    fn keep_if_due(&self) {
        let (written, now) = (self.lock().written, clock::now());
        if written.is_none_or(|written| now >= written + KEPT_PERIOD) {
            self.keep();
        }
    }

    /// Writes over what is kept, in place: a file that is there needs no more room. What cannot be kept
    /// now is kept later.
    fn keep(&self) {
        // The disk may be slow, and others look at the state.
        let _alone = self.keeping.lock().unwrap_or_else(PoisonError::into_inner);
        let (path, text) = {
            let state = self.lock();
            let Some(Measured { dir, .. }) = &state.measured else { return };
            (dir.join(ROOM), state.kept.text())
        };
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        if file.and_then(|file| file.write_all_at(text.as_bytes(), 0)).is_ok() {
            self.lock().written = Some(clock::now());
        }
    }

    /// Sets the bytes in pages of the store that it has free.
    pub fn reusable(&self, bytes: u64) {
        let mut state = self.lock();
        state.reusable_bytes = bytes;
        self.judge(&mut state);
    }

    fn judge(&self, state: &mut State) -> Option<Turn> {
        let Measured { usage, volume, limits, .. } = state.measured.as_ref()?;
        let usage = Usage { reusable_bytes: state.reusable_bytes, ..*usage };
        let was_full = self.is_full();
        let room = Room::of(&usage, volume, limits, was_full);
        self.short.store(room.is_short(), Relaxed);
        self.full.store(room.is_full, Relaxed);
        self.refuses.store(room.is_full && !limits.serves, Relaxed);
        state.room = room;
        let turn = if room.is_full { Turn::Full } else { Turn::Emptied };
        (room.is_full != was_full).then_some(turn)
    }

    /// What goes of `history`, the oldest first, to make room.
    pub fn plan(&self, history: &[Removable]) -> Plan {
        let mut state = self.lock();
        let room = state.room;
        plan(&room, history, state.kept.allowance.grant(history))
    }

    /// These parts of the history have gone, as `plan` said: so many bytes of them because of others.
    pub fn freed(&self, gone: &[Removable], for_others: u64) {
        let mut state = self.lock();
        state.kept.allowance.spend(for_others);
        if let Some(Measured { usage, volume, .. }) = &mut state.measured {
            for Removable { bytes, files, .. } in gone {
                usage.bytes = usage.bytes.saturating_sub(*bytes);
                usage.files = usage.files.saturating_sub(*files);
                free(volume.bytes.as_mut(), *bytes);
                free(volume.files.as_mut(), *files);
            }
        }
        self.judge(&mut state);
        drop(state);
        // So that a restart does not begin the day anew.
        self.keep();
    }

    /// The size of the data directory in bytes; `None` before the first look.
    pub fn bytes(&self) -> Option<u64> {
        Some(self.lock().measured.as_ref()?.usage.bytes)
    }

    /// The room; `None` before the first look.
    pub fn room(&self) -> Option<Room> {
        let state = self.lock();
        state.measured.as_ref().map(|_| state.room)
    }

    /// How fast the directory grows. `None` until that is known.
    pub fn growth(&self) -> Option<Growth> {
        let state = self.lock();
        let bytes_a_day = state.kept.pace.bytes_a_day(state.net_bytes()?)?;
        let until_full = state.room.bytes_until_full;
        let days_left = until_full.and_then(|bytes| pace::days_left(bytes, bytes_a_day));
        Some(Growth { bytes_a_day, days_left })
    }

    /// Days until there is room only if history goes that is behind the oldest `bytes_before` of it, at
    /// the present rate. `None` until that is known, and where that will not be.
    pub fn days_of_room(&self, bytes_before: u64) -> Option<f64> {
        let bytes = self.lock().room.bytes_until_short()?.saturating_add(bytes_before);
        if bytes == 0 {
            return Some(0.0);
        }
        pace::days_left(bytes, self.growth()?.bytes_a_day)
    }

    /// Whether history is to go early.
    pub fn is_short(&self) -> bool {
        self.short.load(Relaxed)
    }

    /// Whether requests of old days are to go: there is too little room, and no segment may go.
    pub fn needs_days(&self) -> bool {
        self.is_short() && self.needs_days.load(Relaxed)
    }

    /// So many segments may still go.
    pub(super) fn segments_left(&self, count: usize) {
        self.needs_days.store(count == 0, Relaxed);
    }

    /// Sets what the segments take that may go.
    pub(super) fn segments(&self, bytes: u64) {
        self.lock().history.segments_bytes = Some(bytes);
    }

    /// Sets what the details of days take that may go.
    pub fn details(&self, details: Details) {
        self.lock().history.details = Some(details);
    }

    /// Bytes until new requests find no room, if all history goes that may go. `None` until that is
    /// known, and where nothing limits them.
    pub fn room_left(&self) -> Option<u64> {
        let state = self.lock();
        let Measured { usage, volume, .. } = state.measured.as_ref()?;
        let by_volume = volume.bytes.filter(|_| state.room.is_by_volume);
        let filler = by_volume.map_or(Filler::Own, |volume| room::filler(usage.bytes, volume));
        let allowance = state.kept.allowance.today(state.history.bytes());
        state.history.room_left(&state.room, filler, allowance)
    }

    /// Days of details that the room holds. `None` until that is known, and where nothing limits them.
    pub fn days_held(&self) -> Option<f64> {
        let state = self.lock();
        state.history.days_held(&state.room)
    }

    /// Whether there is no room for new requests.
    pub fn is_full(&self) -> bool {
        self.full.load(Relaxed)
    }

    /// Whether new requests are refused, because there is no room for them.
    pub fn refuses(&self) -> bool {
        self.refuses.load(Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What the directory takes without the pages that the store has free.
    fn net_bytes(&self) -> Option<u64> {
        let bytes = self.measured.as_ref()?.usage.bytes;
        Some(bytes.saturating_sub(self.reusable_bytes))
    }
}

fn free(supply: Option<&mut Supply>, amount: u64) {
    if let Some(Supply { used, available }) = supply {
        *used = used.saturating_sub(amount);
        *available = available.saturating_add(amount);
    }
}

/// Looks at `dir` for ever. It calls `on_change` when the directory becomes full, and when it has room
/// again.
pub async fn watch(
    disk_budget: Arc<DiskBudget>,
    dir: PathBuf,
    limits: RoomLimits,
    on_change: impl Fn(Turn, &Room),
) {
    let mut period = tokio::time::interval(LOOK_PERIOD);
    loop {
        period.tick().await;
        let (budget, dir) = (Arc::clone(&disk_budget), dir.clone());
        let look = move || {
            let turn = budget.look(&dir, &limits);
            budget.keep_if_due();
            turn
        };
        let turn = tokio::task::spawn_blocking(look).await;
        // What cannot be looked at is as it was.
        if let Ok(Ok(Some(turn))) = turn {
            // The listener may ask for more.
            let room = disk_budget.lock().room;
            on_change(turn, &room);
        }
    }
}

/// What a volume has, of which this process may use what is reserved for root, or not. A file system
/// that counts no blocks or no inodes does not limit them.
fn volume_of(stat: &StatVfs, uses_reserve: bool) -> Volume {
    let block = if stat.f_frsize == 0 { stat.f_bsize } else { stat.f_frsize };
    let supply = |all: u64, free: u64, for_all: u64, unit: u64| {
        // A part of what is free is for nobody.
        let for_root = free.saturating_sub((all / EXT4_RESERVED_OF).min(EXT4_RESERVED_BLOCKS_MAX));
        let available = if uses_reserve { for_root.max(for_all) } else { for_all };
        let used = all.saturating_sub(free).saturating_mul(unit);
        (all > 0).then_some(Supply { used, available: available.saturating_mul(unit) })
    };
    Volume {
        bytes: supply(stat.f_blocks, stat.f_bfree, stat.f_bavail, block),
        files: supply(stat.f_files, stat.f_ffree, stat.f_favail, 1),
    }
}

/// Whether this process may use what a volume reserves for root: as root, and not as the root of a
/// namespace that somebody else is outside.
fn uses_reserve() -> bool {
    let is_root_outside = || {
        let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
        map.lines().any(|line| line.split_whitespace().take(2).eq(["0", "0"]))
    };
    geteuid().is_root() && is_root_outside()
}

/// What the files below a directory take.
///
/// # Errors
/// A directory cannot be read. Files that go meanwhile take nothing.
fn taken(dir: &Path) -> io::Result<Usage> {
    let mut usage = Usage::default();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => {
                let Usage { bytes, files, .. } = taken(&entry.path())?;
                usage.bytes += bytes;
                usage.files += files + 1;
            }
            Ok(metadata) => {
                usage.bytes += size(&metadata);
                usage.files += 1;
            }
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(usage)
}

/// What a file takes of its volume, in bytes.
pub(super) fn size(metadata: &fs::Metadata) -> u64 {
    metadata.blocks() * BLOCK_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(bytes_max: Option<u64>) -> RoomLimits {
        RoomLimits { bytes_max, segment_bytes: 1 << 20, serves: false }
    }

    #[test]
    fn it_is_short_and_then_full_until_there_is_room_again_and_serves_all_the_same_if_it_should() {
        let dir = tempfile::tempdir().unwrap();
        let filler = dir.path().join("filler");
        let budget = DiskBudget::default();
        assert_eq!((budget.bytes(), budget.room(), budget.growth()), (None, None, None));
        let most = limits(Some(10 << 20));
        let seen = |mib: usize| {
            fs::write(&filler, vec![1; mib << 20]).unwrap();
            let turn = budget.look(dir.path(), &most).unwrap();
            (turn, budget.is_short(), budget.refuses())
        };
        assert_eq!(seen(7), (None, false, false));
        assert_eq!(seen(9), (None, true, false));
        assert_eq!(seen(10), (Some(Turn::Full), true, true));
        assert_eq!(budget.growth(), None, "nobody has seen it grow for an hour");
        let serves = RoomLimits { serves: true, ..most };
        assert_eq!(budget.look(dir.path(), &serves).unwrap(), None);
        assert_eq!((budget.is_full(), budget.refuses()), (true, false));
        assert_eq!(seen(9), (Some(Turn::Emptied), true, false));
        assert_eq!(seen(1), (None, false, false));
        assert!(budget.bytes().is_some_and(|bytes| bytes >= 1 << 20));
    }

    #[test]
    fn history_behind_some_other_goes_at_once_only_where_there_is_too_little_room() {
        let dir = tempfile::tempdir().unwrap();
        let budget = DiskBudget::default();
        assert_eq!(budget.days_of_room(0), None);
        let filler = |mib: usize| {
            fs::write(dir.path().join("filler"), vec![1; mib << 20]).unwrap();
            budget.look(dir.path(), &limits(Some(10 << 20))).unwrap();
        };
        filler(5);
        assert_eq!(budget.days_of_room(0), None, "nobody knows the rate");
        filler(9);
        assert_eq!(budget.days_of_room(0), Some(0.0));
        assert_eq!(budget.days_of_room(1), None);
    }

    #[test]
    fn free_pages_of_the_store_are_room() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("store"), vec![1; 9 << 20]).unwrap();
        let budget = DiskBudget::default();
        budget.look(dir.path(), &limits(Some(10 << 20))).unwrap();
        assert!(budget.is_short());
        budget.reusable(4 << 20);
        assert!(!budget.is_short());
        budget.reusable(0);
        assert!(budget.is_short());
    }

    #[test]
    fn the_volume_limits_the_room_of_a_directory_without_a_maximum() {
        let dir = tempfile::tempdir().unwrap();
        let budget = DiskBudget::default();
        budget.look(dir.path(), &limits(None)).unwrap();
        let stat = statvfs(dir.path()).unwrap();
        let room = budget.room().unwrap();
        assert_eq!(room.bytes_max.is_some(), stat.f_blocks > 0);
        assert_eq!(room.files_left.is_some(), stat.f_files > 0);
        budget.look(dir.path(), &limits(Some(5_000_000))).unwrap();
        assert!(budget.room().unwrap().bytes_max.is_some_and(|most| most <= 5_000_000));
        assert!(budget.look(&dir.path().join("nowhere"), &limits(None)).is_err());
    }

    #[test]
    fn a_volume_that_counts_no_blocks_or_inodes_limits_none_and_root_has_its_reserve() {
        let dir = tempfile::tempdir().unwrap();
        let stat = StatVfs {
            f_frsize: 1_024,
            f_blocks: 1_000,
            f_bfree: 300,
            f_bavail: 250,
            f_files: 90,
            f_ffree: 40,
            f_favail: 30,
            ..statvfs(dir.path()).unwrap()
        };
        let bytes = |available| Some(Supply { used: 700 << 10, available });
        let files = |available| Some(Supply { used: 50, available });
        let own = volume_of(&stat, false);
        assert_eq!((own.bytes, own.files), (bytes(250 << 10), files(30)));
        let root = volume_of(&stat, true);
        assert_eq!((root.bytes, root.files), (bytes(280 << 10), files(39)));
        let none_reserved = StatVfs { f_bavail: 300, f_favail: 40, ..stat };
        let all = volume_of(&none_reserved, true);
        assert_eq!((all.bytes, all.files), (bytes(300 << 10), files(40)));
        let btrfs = StatVfs { f_files: 0, f_ffree: 0, f_favail: 0, ..stat };
        assert_eq!(volume_of(&btrfs, false), Volume { files: None, ..own });
        let unlimited = StatVfs { f_blocks: 0, f_bfree: 0, f_bavail: 0, ..stat };
        assert_eq!(volume_of(&unlimited, true), Volume { bytes: None, ..root });
    }

    #[test]
    fn what_lies_in_folders_counts_too_and_a_file_that_takes_no_blocks_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("one"), vec![1; 100_000]).unwrap();
        let one = taken(dir.path()).unwrap();
        assert!((100_000..200_000).contains(&one.bytes), "{one:?}");
        fs::create_dir(dir.path().join("folder")).unwrap();
        fs::write(dir.path().join("folder/two"), vec![1; 100_000]).unwrap();
        fs::File::create(dir.path().join("sparse")).unwrap().set_len(1 << 30).unwrap();
        let all = Usage { bytes: 2 * one.bytes, files: 4, reusable_bytes: 0 };
        assert_eq!(taken(dir.path()).unwrap(), all);
        assert!(taken(&dir.path().join("nowhere")).is_err());
    }
}
