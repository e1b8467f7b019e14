//! What the kernel does to the process: it takes back the memory that holds the program's code and
//! constants, once a start is over, and a volume without room does not end the process
//! (`full_volume.rs`).
//!
//! Most code that runs at a start never runs again. The kernel counts it as memory of the process
//! until memory is short. It lies in the program's file, as constants do. So giving it back loses
//! nothing. The kernel reads the few pages that are still needed from the file again.
//!
//! This is the only crate with `unsafe` code: calls for which no safe ones exist. It knows nothing
//! else of Taximeter.

mod full_volume;

use std::ffi::c_void;
use std::ops::Range;
use std::path::Path;
use std::{fs, io, ptr};

use rustix::mm::{Advice, madvise};

pub use self::full_volume::outlive_full_volumes;

/// Gives back the memory that holds what is in this program's file: code, constants. What is still
/// needed comes back from the file, or from the kernel's cache of it. Returns how many bytes there
/// are, whether or not they were in memory.
///
/// # Errors
/// `/proc` cannot be read, or the kernel refuses; what was not given back stays as it is.
pub fn give_back() -> io::Result<usize> {
    let program = fs::read_link("/proc/self/exe")?;
    let mappings = fs::read_to_string("/proc/self/smaps")?;
    let mut bytes = 0;
    for range in unchanged(&mappings, &program) {
        give_back_range(&range)?;
        bytes += range.len();
    }
    Ok(bytes)
}

#[expect(unsafe_code, reason = "no safe way to tell the kernel")]
fn give_back_range(unchanged: &Range<usize>) -> io::Result<()> {
    let start = ptr::with_exposed_provenance_mut::<c_void>(unchanged.start);
    // SAFETY: the range is mapped from a file, none of its pages was ever changed and none can be: it
    // is not to be written. Whoever touches a page that is gone gets the same bytes from the file.
    unsafe { madvise(start, unchanged.len(), Advice::LinuxDontNeed)? };
    Ok(())
}

/// Where memory is what the file of `program` has, by what `/proc/self/smaps` says: what is mapped
/// from it, is not to be written, and has no page of its own. What the loader changed before it
/// was closed to writing (RELRO) has some.
fn unchanged(mappings: &str, program: &Path) -> Vec<Range<usize>> {
    let Some(program) = program.to_str() else { return Vec::new() };
    let mut found = Vec::new();
    let mut candidate = None;
    for line in mappings.lines() {
        if let Some(own) = line.strip_prefix("Anonymous:") {
            found.extend(candidate.take().filter(|_| own.trim() == "0 kB"));
        } else if !line.split_ascii_whitespace().next().is_some_and(|field| field.ends_with(':')) {
            candidate = mapped(line, program);
        }
    }
    found
}

/// The range of a mapping from the file of `program` that is not to be written.
fn mapped(line: &str, program: &str) -> Option<Range<usize>> {
    let (fields, path) = line.split_at_checked(line.find('/')?)?;
    let mut fields = fields.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let is_fixed = matches!(fields.next(), Some("r-xp" | "r--p"));
    let address = |hex| usize::from_str_radix(hex, 16).ok();
    (is_fixed && path == program).then_some(address(start)?..address(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "/opt/my programs/taximeter";

    #[test]
    fn only_what_cannot_differ_from_the_programs_own_file_is_given_back() {
        let mapping = |head: &str, own: u32| {
            format!("{head}\nSize: 4 kB\nRss: 4 kB\nAnonymous: {own} kB\nVmFlags: rd mr\n")
        };
        let mappings = [
            mapping(&format!("00200000-00201000 r--p 00000000 fe:00 11 {PROGRAM}"), 0),
            mapping(&format!("00201000-00204000 r-xp 00001000 fe:00 11      {PROGRAM}"), 0),
            // A debugger has put a mark into it.
            mapping(&format!("00204000-00205000 r-xp 00004000 fe:00 11 {PROGRAM}"), 4),
            // What the loader has relocated.
            mapping(&format!("00205000-00206000 r--p 00005000 fe:00 11 {PROGRAM}"), 4),
            mapping(&format!("00206000-00207000 rw-p 00006000 fe:00 11 {PROGRAM}"), 0),
            mapping("7f0000000000-7f0000002000 r-xp 00000000 fe:00 12 /usr/lib/libc.so.6", 0),
            mapping("7f0000003000-7f0000004000 r-xp 00000000 00:00 0 ", 0),
            mapping("7ffc00000000-7ffc00001000 r-xp 00000000 00:00 0 [vdso]", 0),
            mapping(&format!("zz-yy r-xp 0 0 0 {PROGRAM}"), 0),
            "nonsense\nAnonymous:\n\n".to_owned(),
        ];
        let found = unchanged(&mappings.concat(), Path::new(PROGRAM));
        assert_eq!(found, [0x20_0000..0x20_1000, 0x20_1000..0x20_4000]);
        assert_eq!(unchanged(&mappings.concat(), Path::new("/opt/other")), []);
    }

    #[test]
    fn what_was_given_back_is_out_of_memory_and_runs_on() {
        // The kernel fetches more than what is touched, so a part is back at once. What other tests
        // run at the same moment may be back as well.
        let attempts = (0..100).map(|_| {
            let before = resident_kib();
            assert!(give_back().unwrap() > 0);
            (before, resident_kib())
        });
        let all: Vec<_> = attempts.collect();
        assert!(all.iter().any(|(before, after)| after < before), "KiB before and after: {all:?}");
        assert_eq!(format!("{:?}", [1.5, 2.0]), "[1.5, 2.0]");
    }

    /// How much of this program's code is in memory.
    fn resident_kib() -> u64 {
        let program = fs::read_link("/proc/self/exe").unwrap();
        let mappings = fs::read_to_string("/proc/self/smaps").unwrap();
        let code = mappings.lines().skip_while(|line| {
            !(line.contains(" r-xp ") && line.ends_with(program.to_str().unwrap()))
        });
        let resident = code.clone().find_map(|line| line.strip_prefix("Rss:")).unwrap();
        resident.trim().trim_end_matches(" kB").parse().unwrap()
    }
}
