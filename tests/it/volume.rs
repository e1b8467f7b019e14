//! Volumes of a size, and other users. A machine allows some of these and not others, so each test
//! runs on every kind that there is, and there always is one.

use std::any::type_name;
use std::cell::Cell;
use std::env;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use tempfile::TempDir;

use crate::gateway::{Gateway, Setup, binary, bounded, taximeter};

/// A user that owns nothing.
pub(crate) const NOBODY: u32 = 65534;
/// What a volume is filled with.
const FILLER: &str = "filler";
/// One block.
const BLOCK: [u8; 1 << 10] = [0; 1 << 10];

/// What stands for a volume that is full or cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An ext4 of blocks of 1 KiB. Only who may mount can have one.
    Ext4,
    /// A file system in memory, mounted in a namespace in which the test runs once more. Where the
    /// kernel lets users make namespaces, everybody can have one.
    Memory,
    /// The folder that the test has anyway, with a limit of the length of files, and closed to those
    /// who only read. Needs no right at all.
    Limits,
}

/// Says to a test that it runs in a namespace in which it may mount.
const INSIDE: &str = "TAXIMETER_TEST_INSIDE";

impl Kind {
    /// Runs `check` on each kind that this user can have on this machine, for the test of this name.
    pub(crate) fn each<T: Fn()>(_: T, check: impl Fn(Self)) {
        if env::var_os(INSIDE).is_some() {
            return check(Self::Memory);
        }
        let test = type_name::<T>().split_once("::").expect("a path").1;
        let is_mounted = {
            let folder = tempfile::tempdir().expect("a temporary folder");
            Volume::try_mount(Self::Ext4, folder.path(), "data", 1 << 10).is_some()
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut mount = in_namespace();
        mount.args(["mount", "-t", "tmpfs", "volume"]).arg(folder.path());
        let has_namespace = is_done(&mut mount);
        // The kinds side by side: mostly they wait.
        thread::scope(|beside| {
            if has_namespace {
                beside.spawn(|| run_in_namespace(test));
            }
            if is_mounted {
                check(Self::Ext4);
            }
        });
        if !has_namespace && !is_mounted {
            check(Self::Limits);
        }
    }
}

/// Runs the test of this name once more, in a namespace.
fn run_in_namespace(test: &str) {
    binary();
    let mut run = in_namespace();
    run.arg(env::current_exe().expect("this test's own path"));
    let run = run.args(["--exact", test, "--nocapture"]).env(INSIDE, "").output();
    let Output { status, stdout, stderr } = run.expect("run this test");
    let said = [stdout, stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(status.success() && said[0].contains("1 passed"), "{}", said.concat());
}

/// Runs what follows as the root of a namespace, which may mount for itself.
fn in_namespace() -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount"]);
    command
}

/// What a full volume lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lacking {
    Blocks,
    /// What is written must be in a new file.
    Inodes,
}

/// Mounted until this is dropped.
pub(crate) struct Volume {
    kind: Kind,
    at: PathBuf,
    /// To this length a file may grow.
    limit: Cell<Option<u64>>,
}

impl Volume {
    /// Mounts one of so many KiB at `folder/data`.
    pub(crate) fn mount(kind: Kind, folder: &Path, kib: u64) -> Self {
        let mounted = Self::try_mount(kind, folder, "data", kib);
        mounted.unwrap_or_else(|| panic!("no {kind:?} any more"))
    }

    /// Mounts one of so many KiB, of which `folder/data` is a part. What fills it is beside that.
    pub(crate) fn mount_around(kind: Kind, folder: &Path, kib: u64) -> Self {
        let mounted = Self::try_mount(kind, folder, "volume", kib);
        let mounted = mounted.unwrap_or_else(|| panic!("no {kind:?} any more"));
        let data = mounted.at.join("data");
        fs::create_dir(&data).expect("a folder");
        symlink(data, folder.join("data")).expect("a link");
        mounted
    }

    fn try_mount(kind: Kind, folder: &Path, name: &str, kib: u64) -> Option<Self> {
        let at = folder.join(name);
        fs::create_dir(&at).expect("a folder");
        match kind {
            Kind::Ext4 if !is_root() => return None,
            Kind::Ext4 => {
                let image = folder.join("image");
                let file = File::create(&image).expect("an image");
                file.set_len(kib << 10).expect("its length");
                let mut make = Command::new("mkfs.ext4");
                make.args(["-q", "-b", "1024", "-m", "0", "-N", "128"]).arg(&image);
                assert!(is_done(&mut make), "mkfs.ext4 fails; Debian's e2fsprogs has it");
                let mut mount = Command::new("mount");
                if !is_done(mount.args(["-o", "loop"]).arg(&image).arg(&at)) {
                    return None;
                }
            }
            Kind::Memory => {
                let mut mount = Command::new("mount");
                let options = format!("size={kib}k,nr_inodes=128");
                mount.args(["-t", "tmpfs", "-o", &options, "volume"]);
                assert!(is_done(mount.arg(&at)), "it may mount no longer");
            }
            Kind::Limits => {}
        }
        Some(Self { kind, at, limit: Cell::new(None) })
    }

    /// Starts a gateway with its data here.
    pub(crate) fn start(&self, setup: Setup, folder: TempDir) -> Gateway {
        match self.limit.get() {
            None => setup.start_in(folder),
            Some(bytes) => setup.start_where_files_have(bytes, folder),
        }
    }

    /// Fills it but for so many KiB.
    pub(crate) fn fill(&self, kib_left: u64) {
        if self.kind == Kind::Limits {
            let segment = |path: &PathBuf| path.extension().is_some_and(|it| it == "tlj");
            let last = files(&self.at).into_iter().filter(segment).max().expect("a segment");
            let length = fs::metadata(last).expect("its length").len();
            self.limit.set(Some(length + (kib_left << 10)));
            return;
        }
        let path = self.at.join(FILLER);
        let mut filler = File::create(&path).expect("a file");
        // What was freed a moment ago is room only once that is on the volume.
        while filler.write_all(&BLOCK).is_ok() {
            while filler.write_all(&BLOCK).is_ok() {}
            filler.sync_all().expect("all of it on the volume");
        }
        let length = filler.metadata().expect("its length").len();
        filler.set_len(length.saturating_sub(kib_left << 10)).expect("shorter");
        filler.sync_all().expect("all of it on the volume");
    }

    /// Makes files until there can be no more. Limits know no such thing, and leave no room instead.
    pub(crate) fn use_up_inodes(&self) {
        if self.kind == Kind::Limits {
            return self.fill(0);
        }
        self.leave_inodes(0);
    }

    /// Makes files until there can be only so many more.
    pub(crate) fn leave_inodes(&self, left: u32) {
        let path = |number: u32| self.at.join(format!("{FILLER}-{number}"));
        let most = (0..).find(|number| File::create(path(*number)).is_err()).expect("an end");
        for number in most.saturating_sub(left)..most {
            fs::remove_file(path(number)).expect("remove a file");
        }
    }

    /// Takes all room away. Limits leave none for any file, whatever is to be lacking.
    pub(crate) fn leave_nothing(&self, lacking: Lacking) {
        match (self.kind, lacking) {
            (Kind::Limits, _) => self.limit.set(Some(0)),
            (_, Lacking::Blocks) => self.fill(0),
            (_, Lacking::Inodes) => self.use_up_inodes(),
        }
    }

    /// Makes room.
    pub(crate) fn empty(&self, gateway: &Gateway) {
        if self.limit.take().is_some() {
            gateway.enlarge_disk();
        }
        for path in files(&self.at) {
            let name = path.file_name().unwrap_or_default();
            if name.as_encoded_bytes().starts_with(FILLER.as_bytes()) {
                fs::remove_file(path).expect("remove a file");
            }
        }
    }

    /// Runs a reading command while nothing here can be changed.
    pub(crate) fn only_to_be_read<T>(&self, read: impl FnOnce(fn(&[&str]) -> Output) -> T) -> T {
        let remount = |how: &str| match self.kind {
            Kind::Ext4 | Kind::Memory => {
                // What else the options of one in memory say may not be said again.
                let options = format!("remount,bind,{how}");
                is_done(Command::new("mount").args(["-o", &options]).arg(&self.at))
            }
            Kind::Limits => {
                let folder = self.at.parent().expect("a folder");
                if how == "ro" {
                    close_to_readers(folder)
                } else {
                    open_again(folder)
                }
                true
            }
        };
        assert!(remount("ro"), "{:?} stays as it is", self.kind);
        let run: fn(&[&str]) -> Output = match self.kind {
            Kind::Limits => as_reader,
            Kind::Ext4 | Kind::Memory => |words| taximeter(words),
        };
        let read = read(run);
        assert!(remount("rw"), "{:?} stays as it is", self.kind);
        read
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        if self.kind != Kind::Limits {
            is_done(Command::new("umount").arg("--lazy").arg(&self.at));
        }
    }
}

/// The files in a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").path()).collect()
}

fn is_done(command: &mut Command) -> bool {
    let command = command.stdin(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Whether this is root.
pub(crate) fn is_root() -> bool {
    fs::metadata("/proc/self").expect("this process").uid() == 0
}

/// Runs a command of the binary as a user who may only read what is there.
pub(crate) fn as_reader(words: &[&str]) -> Output {
    let mut command = if is_root() { by(NOBODY) } else { bounded() };
    command.args(words).stdin(Stdio::null()).output().expect("run taximeter")
}

/// The binary as another user.
pub(crate) fn by(user: u32) -> Command {
    let mut command = Command::new("setpriv");
    command
        .arg(format!("--reuid={user}"))
        .args(["--clear-groups", "--inh-caps=-all"])
        .arg(binary());
    command
}

/// All may read what is below, and nobody but its owner may write it; who is not root, and would be
/// the owner, may not either.
pub(crate) fn close_to_readers(folder: &Path) {
    let (dirs, files) = if is_root() { (0o755, 0o644) } else { (0o555, 0o444) };
    let is_dir = folder.is_dir();
    if is_dir {
        for entry in fs::read_dir(folder).expect("a folder") {
            close_to_readers(&entry.expect("an entry").path());
        }
    }
    let mode = if is_dir { dirs } else { files };
    fs::set_permissions(folder, fs::Permissions::from_mode(mode)).expect("permissions");
}

/// Makes what `close_to_readers` closed removable again.
pub(crate) fn open_again(folder: &Path) {
    if folder.is_dir() {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("permissions");
        for entry in fs::read_dir(folder).expect("a folder") {
            open_again(&entry.expect("an entry").path());
        }
    }
}

/// All that is below a folder: names, owners, lengths and times of change.
pub(crate) fn listing(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let now = fs::metadata(&path).expect("a file");
        let times = (now.mtime(), now.mtime_nsec());
        found.push(format!("{} user {} bytes {} {times:?}", path.display(), now.uid(), now.len()));
        if path.is_dir() && !path.ends_with("lost+found") {
            found.extend(listing(&path));
        }
    }
    found.sort();
    found
}
