//! Lets one call of this thread to the system fail that changes a file: a write, a sync, a change of
//! a length, a new file, a mapping that is to be written. SQLite is told to call what is here; `fsync` and
//! `fdatasync` it calls by their names, which are those of this file first.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_long, c_void};
use std::ptr;

use libc::{MAP_FAILED, MAP_SHARED, O_CREAT, PROT_WRITE, mode_t, off_t, size_t, ssize_t};
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
    type Open = unsafe extern "C" fn(*const c_char, c_int, c_int) -> c_int;
    type Write = unsafe extern "C" fn(c_int, *const c_void, size_t) -> ssize_t;
    type WriteAt = unsafe extern "C" fn(c_int, *const c_void, size_t, off_t) -> ssize_t;
    type Cut = unsafe extern "C" fn(c_int, off_t) -> c_int;
    type Remove = unsafe extern "C" fn(*const c_char) -> c_int;
    type Map = unsafe extern "C" fn(*mut c_void, size_t, c_int, c_int, c_int, off_t) -> *mut c_void;
    // SAFETY: SQLite calls each of these by the type that is given here, which is that of the call of
    // the same name. Its default file system lives as long as the process.
    unsafe {
        let calls: [(&std::ffi::CStr, Any); 7] = [
            (c"open", std::mem::transmute::<Open, Any>(open)),
            (c"write", std::mem::transmute::<Write, Any>(write)),
            (c"pwrite", std::mem::transmute::<WriteAt, Any>(write_at)),
            (c"pwrite64", std::mem::transmute::<WriteAt, Any>(write_at)),
            (c"ftruncate", std::mem::transmute::<Cut, Any>(cut)),
            (c"unlink", std::mem::transmute::<Remove, Any>(remove)),
            (c"mmap", std::mem::transmute::<Map, Any>(map)),
        ];
        let vfs = ffi::sqlite3_vfs_find(ptr::null());
        let set = (*vfs).xSetSystemCall.expect("SQLite for Linux");
        for (name, call) in calls {
            // What it does not call it does not know.
            let set = set(vfs, name.as_ptr(), Some(call));
            assert!(set == ffi::SQLITE_OK || name.to_bytes().starts_with(b"pwrite"), "{name:?}");
        }
    }
}

#[expect(unsafe_code, reason = "SQLite calls it")]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: the path is a string.
    let makes_file = flags & O_CREAT != 0 && unsafe { libc::access(path, libc::F_OK) } != 0;
    if makes_file && fails() {
        return -1;
    }
    // SAFETY: the caller answers for the arguments.
    unsafe { libc::open(path, flags, mode.cast_unsigned() as mode_t) }
}

#[expect(unsafe_code, reason = "SQLite calls it")]
unsafe extern "C" fn write(file: c_int, bytes: *const c_void, count: size_t) -> ssize_t {
    // SAFETY: the caller answers for the arguments; fewer bytes are there too.
    taken(count).map_or(-1, |count| unsafe { libc::write(file, bytes, count) })
}

#[expect(unsafe_code, reason = "SQLite calls it")]
unsafe extern "C" fn write_at(
    file: c_int,
    bytes: *const c_void,
    count: size_t,
    at: off_t,
) -> ssize_t {
    // SAFETY: the caller answers for the arguments; fewer bytes are there too.
    taken(count).map_or(-1, |count| unsafe { libc::pwrite(file, bytes, count, at) })
}

#[expect(unsafe_code, reason = "SQLite calls it")]
unsafe extern "C" fn cut(file: c_int, length: off_t) -> c_int {
    // SAFETY: the call takes numbers.
    if fails() { -1 } else { unsafe { libc::ftruncate(file, length) } }
}

#[expect(unsafe_code, reason = "SQLite calls it")]
unsafe extern "C" fn remove(path: *const c_char) -> c_int {
    // SAFETY: the caller answers for the argument.
    if fails() { -1 } else { unsafe { libc::unlink(path) } }
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
