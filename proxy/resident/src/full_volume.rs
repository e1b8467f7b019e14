//! Lets the process outlive a volume without room.
//!
//! Two signals would end it. SIGBUS comes when memory is written that is mapped from a hole in a file
//! and the volume has no block for it. SQLite maps the index of its write-ahead log, and writes one
//! byte of each 4 KiB first. Where blocks are smaller, the rest of them are holes. So every block is
//! allocated before the file is mapped, and SQLite gets an error where there is none. SIGXFSZ comes
//! with a write beyond the process's limit of file lengths. Ignored, the write is an error too.

use std::ffi::{c_int, c_void};
use std::{io, ptr};

use libc::{MAP_FAILED, MAP_SHARED, PROT_WRITE, off_t, size_t};
use rusqlite::ffi;

/// Turns what a full volume would do to the process into errors of single writes. Comes before the
/// first database is opened.
///
/// # Errors
/// SQLite has no file system of the kind that this knows. Nothing is changed then.
#[expect(unsafe_code, reason = "signals and the file system of SQLite belong to the process")]
pub fn outlive_full_volumes() -> io::Result<()> {
    type MapFunction =
        unsafe extern "C" fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void;
    // SAFETY: no handler is installed: the signal is ignored.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    // SAFETY: the default file system of SQLite lives as long as the process. It calls what is called
    // `mmap` with the arguments of mmap(2), and `map_allocated` takes these.
    let replaced = unsafe {
        let vfs = ffi::sqlite3_vfs_find(ptr::null());
        let set = vfs.as_ref().and_then(|vfs| vfs.xSetSystemCall);
        let map = std::mem::transmute::<MapFunction, unsafe extern "C" fn()>(map_allocated);
        set.map(|set| set(vfs, c"mmap".as_ptr(), Some(map)))
    };
    match replaced {
        Some(ffi::SQLITE_OK) => Ok(()),
        _ => Err(io::Error::other("SQLite has another file system")),
    }
}

/// mmap(2). What is to be written and belongs to a file has its blocks before.
#[expect(unsafe_code, reason = "SQLite calls it in place of mmap")]
unsafe extern "C" fn map_allocated(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    if protection & PROT_WRITE != 0 && flags & MAP_SHARED != 0 && !has_blocks(file, offset, length)
    {
        return MAP_FAILED;
    }
    // SAFETY: the caller answers for the arguments.
    unsafe { libc::mmap(address, length, protection, flags, file, offset) }
}

/// Allocates what is missing; the bytes stay as they are. A file system that cannot do it is left
/// alone: such ones (NFS) do not allocate when memory is written.
///
/// `errno` says why there is no room.
#[expect(unsafe_code, reason = "SQLite has the file open, as a number")]
fn has_blocks(file: c_int, offset: off_t, length: size_t) -> bool {
    let Ok(length) = off_t::try_from(length) else { return true };
    loop {
        // SAFETY: the call takes numbers alone, and changes no bytes.
        if unsafe { libc::fallocate(file, 0, offset, length) } == 0 {
            return true;
        }
        match io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::ENODEV) => return true,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::fs::MetadataExt as _;

    use rusqlite::Connection;

    use super::*;

    const BYTES: usize = 64 << 10;

    #[expect(unsafe_code, reason = "it is what SQLite does")]
    fn map(file: &File, protection: c_int) -> Option<*mut c_void> {
        // SAFETY: the kernel chooses a new place for it.
        let at = unsafe {
            map_allocated(ptr::null_mut(), BYTES, protection, MAP_SHARED, file.as_raw_fd(), 0)
        };
        (at != MAP_FAILED).then_some(at)
    }

    fn hole() -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(BYTES as u64).unwrap();
        assert_eq!(file.metadata().unwrap().blocks(), 0);
        file
    }

    #[test]
    fn what_is_mapped_to_be_written_has_its_blocks_before() {
        let file = hole();
        assert!(map(&file, libc::PROT_READ).is_some());
        assert_eq!(file.metadata().unwrap().blocks(), 0);
        assert!(map(&file, libc::PROT_READ | PROT_WRITE).is_some());
        assert!(file.metadata().unwrap().blocks() * 512 >= BYTES as u64);
    }

    #[test]
    #[expect(unsafe_code, reason = "a file that takes no block without a volume that is full")]
    fn a_file_that_gets_no_blocks_is_not_mapped_to_be_written() {
        // SAFETY: the name is a string; the number is a new file's.
        let file: File = unsafe {
            let number = libc::memfd_create(c"hole".as_ptr(), libc::MFD_ALLOW_SEALING);
            std::os::fd::FromRawFd::from_raw_fd(number)
        };
        file.set_len(BYTES as u64 / 2).unwrap();
        // SAFETY: the call takes numbers.
        let sealed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_GROW) };
        assert_eq!(sealed, 0);
        assert_eq!(map(&file, libc::PROT_READ | PROT_WRITE), None);
        assert!(map(&file, libc::PROT_READ).is_some());
    }

    #[test]
    fn sqlite_maps_by_it_and_a_write_beyond_the_limit_is_an_error() {
        outlive_full_volumes().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (a)").unwrap();
        let index = folder.path().join("store-shm").metadata().unwrap();
        assert!(index.len() > 0 && index.blocks() * 512 >= index.len());

        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
        let ignored = u64::from_str_radix(ignored, 16).unwrap();
        assert_ne!(ignored & (1 << (libc::SIGXFSZ - 1)), 0, "a write beyond the limit ends us");
    }
}
