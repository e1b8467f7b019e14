//! Lets one call of this thread to the system fail that changes a file: a write, a sync, a change of
//! a length, a new file or folder, another name, a removal, a mapping that is to be written. Programs call
//! these by their names, which are those of this file first. Two of them SQLite knows by other names: it
//! is told to call what is here.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_long, c_void};
use std::ptr;

use libc::{MAP_FAILED, MAP_SHARED, O_CREAT, O_TRUNC, PROT_WRITE, mode_t, off_t, size_t, ssize_t};
use rusqlite::ffi;

/// What fails, counted from when it was planned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) kind: Kind,
    /// At each call from then on.
    pub(crate) is_permanent: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The call fails with this number and does nothing.
    Error(c_int),
    /// A write takes a half. Other calls do as ever.
    Short,
}

thread_local! {
    static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

/// Plans a fault for this thread. Until `calls` is asked it counts the calls.
pub(crate) fn plan(fault: Fault) {
    CALLS.set(0);
    FAULT.set(Some(fault));
}

/// Forgets the fault. How many calls there were.
pub(crate) fn calls() -> usize {
    FAULT.set(None);
    CALLS.get()
}

/// What is to happen to this call.
fn step() -> Option<Kind> {
    let fault = FAULT.get()?;
    let at = CALLS.replace(CALLS.get() + 1);
    (at == fault.at || (fault.is_permanent && at > fault.at)).then_some(fault.kind)
}

/// Whether this call fails; `errno` says why then.
#[expect(unsafe_code, reason = "errno belongs to the thread")]
fn fails() -> bool {
    let Some(Kind::Error(number)) = step() else { return false };
    // SAFETY: the address is that of this thread's number.
    unsafe { *libc::__errno_location() = number };
    true
}

/// How many of so many bytes a write takes; `None` if it fails.
#[expect(unsafe_code, reason = "errno belongs to the thread")]
fn taken(count: size_t) -> Option<size_t> {
    match step() {
        None => Some(count),
        Some(Kind::Short) => Some(count.div_ceil(2)),
        Some(Kind::Error(number)) => {
            // SAFETY: the address is that of this thread's number.
            unsafe { *libc::__errno_location() = number };
            None
        }
    }
}

/// Tells SQLite to call what is here. Comes before the first database is opened.
#[expect(unsafe_code, reason = "the file system of SQLite belongs to the process")]
pub(crate) fn take_over() {
    type Any = unsafe extern "C" fn();
    type Open = unsafe extern "C" fn(*const c_char, c_int, mode_t) -> c_int;
    type Cut = extern "C" fn(c_int, off_t) -> c_int;
    type Map = unsafe extern "C" fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void;
    // SAFETY: SQLite calls each of these by the type that is given here, which is that of the call of
    // the same name. Its default file system lives as long as the process.
    unsafe {
        let calls: [(&std::ffi::CStr, Any); 3] = [
            (c"open", std::mem::transmute::<Open, Any>(open64)),
            (c"ftruncate", std::mem::transmute::<Cut, Any>(ftruncate64)),
            (c"mmap", std::mem::transmute::<Map, Any>(map)),
        ];
        let vfs = ffi::sqlite3_vfs_find(ptr::null());
        let set = (*vfs).xSetSystemCall.expect("SQLite for Linux");
        for (name, call) in calls {
            assert_eq!(set(vfs, name.as_ptr(), Some(call)), ffi::SQLITE_OK, "{name:?}");
        }
    }
}

/// Its mode is there for a file that is made.
#[expect(unsafe_code, reason = "the program's own name comes before that of the C library")]
#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
    // SAFETY: the path is a string.
    let is_there = || unsafe { libc::access(path, libc::F_OK) } == 0;
    let changes = flags & O_TRUNC != 0 || (flags & O_CREAT != 0 && !is_there());
    if changes && fails() {
        return -1;
    }
    // SAFETY: the caller answers for the arguments.
    unsafe { libc::open(path, flags, mode) }
}

#[expect(unsafe_code, reason = "the program's own name comes before that of the C library")]
#[unsafe(no_mangle)]
unsafe extern "C" fn write(file: c_int, bytes: *const c_void, count: size_t) -> ssize_t {
    let Some(count) = taken(count) else { return -1 };
    // SAFETY: the caller answers for the arguments; fewer bytes are there too.
    let written = unsafe { libc::syscall(libc::SYS_write, file, bytes, count) };
    ssize_t::try_from(written).unwrap_or(-1)
}

#[expect(unsafe_code, reason = "the program's own name comes before that of the C library")]
#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(
    file: c_int,
    bytes: *const c_void,
    count: size_t,
    at: off_t,
) -> ssize_t {
    let Some(count) = taken(count) else { return -1 };
    // SAFETY: the caller answers for the arguments; fewer bytes are there too.
    let written = unsafe { libc::syscall(libc::SYS_pwrite64, file, bytes, count, at) };
    ssize_t::try_from(written).unwrap_or(-1)
}

/// Whoever was compiled without 64 bits in its name.
#[expect(unsafe_code, reason = "the program's own name comes before that of the C library")]
#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite(
    file: c_int,
    bytes: *const c_void,
    count: size_t,
    at: off_t,
) -> ssize_t {
    // SAFETY: the caller answers for the arguments.
    unsafe { pwrite64(file, bytes, count, at) }
}

#[expect(unsafe_code, reason = "the program's own name comes before that of the C library")]
#[unsafe(no_mangle)]
extern "C" fn ftruncate64(file: c_int, length: off_t) -> c_int {
    if fails() {
        return -1;
    }
    // SAFETY: the call takes numbers.
    unsafe { libc::ftruncate(file, length) }
}

#[expect(unsafe_code, reason = "the program's own name comes before that of the C library")]
#[unsafe(no_mangle)]
unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    if fails() {
        return -1;
    }
    // SAFETY: the caller answers for the argument.
    unsafe { libc::unlinkat(libc::AT_FDCWD, path, 0) }
}

#[expect(unsafe_code, reason = "the program's own name comes before that of the C library")]
#[unsafe(no_mangle)]
unsafe extern "C" fn rename(from: *const c_char, to: *const c_char) -> c_int {
    if fails() {
        return -1;
    }
    // SAFETY: the caller answers for the arguments.
    unsafe { libc::renameat(libc::AT_FDCWD, from, libc::AT_FDCWD, to) }
}

#[expect(unsafe_code, reason = "the program's own name comes before that of the C library")]
#[unsafe(no_mangle)]
unsafe extern "C" fn mkdir(path: *const c_char, mode: mode_t) -> c_int {
    if fails() {
        return -1;
    }
    // SAFETY: the caller answers for the arguments.
    unsafe { libc::mkdirat(libc::AT_FDCWD, path, mode) }
}

#[expect(unsafe_code, reason = "SQLite calls it")]
unsafe extern "C" fn map(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    if protection & PROT_WRITE != 0 && flags & MAP_SHARED != 0 && fails() {
        return MAP_FAILED;
    }
    // SAFETY: the caller answers for the arguments.
    unsafe { libc::mmap(address, length, protection, flags, file, offset) }
}

#[expect(unsafe_code, reason = "the program's own name comes before that of the C library")]
#[unsafe(no_mangle)]
extern "C" fn fsync(file: c_int) -> c_int {
    sync(libc::SYS_fsync, file)
}

#[expect(unsafe_code, reason = "the program's own name comes before that of the C library")]
#[unsafe(no_mangle)]
extern "C" fn fdatasync(file: c_int) -> c_int {
    sync(libc::SYS_fdatasync, file)
}

#[expect(unsafe_code, reason = "the call of the C library is this one")]
fn sync(call: c_long, file: c_int) -> c_int {
    // SAFETY: the call takes a number.
    if fails() || unsafe { libc::syscall(call, file) } != 0 { -1 } else { 0 }
}
