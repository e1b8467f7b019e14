//! Volumes of a size, and other users: what root can make of a machine. Without root, and where no
//! volume can be mounted, the tests say so and do what is left.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::gateway::{binary, bounded};

/// A user that owns nothing.
pub(crate) const NOBODY: u32 = 65534;
/// What a volume is filled with.
const FILLER: &str = "filler";
/// One block.
const BLOCK: [u8; 1 << 10] = [0; 1 << 10];

/// An ext4 of blocks of 1 KiB, mounted at a folder until this is dropped.
pub(crate) struct Volume {
    at: PathBuf,
}

impl Volume {
    /// Mounts one of so many KiB at `folder/data`. `None` where that is not allowed.
    pub(crate) fn mount(folder: &Path, kib: u64) -> Option<Self> {
        let (image, at) = (folder.join("image"), folder.join("data"));
        fs::create_dir(&at).expect("a folder");
        let file = File::create(&image).expect("an image");
        file.set_len(kib << 10).expect("its length");
        let mut make = Command::new("mkfs.ext4");
        make.args(["-q", "-b", "1024", "-m", "0"]).arg(&image);
        assert!(is_done(&mut make), "mkfs.ext4 fails; Debian's e2fsprogs has it");
        let mut mount = Command::new("mount");
        if !is_done(mount.args(["-o", "loop"]).arg(&image).arg(&at)) {
            eprintln!("this user or machine may mount nothing, so a real volume is not seen");
            return None;
        }
        Some(Self { at })
    }

    /// Fills it but for so many KiB.
    pub(crate) fn fill(&self, kib_left: u64) {
        let path = self.at.join(FILLER);
        let mut filler = File::create(&path).expect("a file");
        while filler.write_all(&BLOCK).is_ok() {}
        filler.sync_all().expect("all of it on the volume");
        let length = filler.metadata().expect("its length").len();
        filler.set_len(length.saturating_sub(kib_left << 10)).expect("shorter");
        filler.sync_all().expect("all of it on the volume");
    }

    /// Makes room.
    pub(crate) fn empty(&self) {
        fs::remove_file(self.at.join(FILLER)).expect("remove a file");
    }

    /// Nothing on it can be changed any more, or all can again.
    pub(crate) fn may_be_written(&self, may: bool) {
        let how = if may { "remount,rw" } else { "remount,ro" };
        assert!(is_done(Command::new("mount").args(["-o", how]).arg(&self.at)), "{how}");
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        is_done(Command::new("umount").arg("--lazy").arg(&self.at));
    }
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
