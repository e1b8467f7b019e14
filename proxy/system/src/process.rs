//! Measures the CPU time, memory and file descriptors of this process.

use std::fs;

/// The resources that a process uses; `None` where the system does not report them.
#[derive(Debug, Default, PartialEq)]
pub struct Footprint {
    /// CPU time since the start, of all threads, in user mode, in seconds.
    pub user_seconds: Option<f64>,
    /// The same in the kernel.
    pub system_seconds: Option<f64>,
    /// Physical memory, shared pages included.
    pub memory_bytes: Option<u64>,
    /// Open file descriptors.
    pub file_descriptors: Option<u64>,
}

impl Footprint {
    /// The resources that this process uses now.
    ///
    /// Source: proc(5).
    pub fn now() -> Self {
        let status = fs::read_to_string("/proc/self/status").ok();
        let ticks = fs::read_to_string("/proc/self/stat").ok().and_then(|stat| ticks(&stat));
        let per_second = ticks_per_second();
        Self {
            user_seconds: ticks.map(|(user, _)| user / per_second),
            system_seconds: ticks.map(|(_, system)| system / per_second),
            memory_bytes: status.as_deref().and_then(resident),
            // The directory that is read is itself one of them.
            file_descriptors: fs::read_dir("/proc/self/fd")
                .ok()
                .map(|open| (open.count() as u64).saturating_sub(1)),
        }
    }
}

/// Physical memory of this process, shared pages included, in bytes.
pub(crate) fn resident_bytes() -> Option<u64> {
    resident(&fs::read_to_string("/proc/self/status").ok()?)
}

/// Ticks of the clock that CPU time is told in.
#[expect(clippy::cast_precision_loss, reason = "it is a hundred, or not far from it")]
fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second().max(1) as f64
}

/// CPU time in user mode and in the kernel of a stat file, in ticks.
fn ticks(stat: &str) -> Option<(f64, f64)> {
    // The name of the program may have anything in it, but for what is behind its last bracket.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// `VmRSS` of a status file, in bytes.
fn resident(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn memory_is_what_the_status_says() {
        assert_eq!(resident("Name:\tx\nVmRSS:\t    1234 kB\nThreads:\t2\n"), Some(1234 * 1024));
        for wrong in ["", "VmRSS:", "VmRSS: 12", "VmRSS: x kB", "VmRSS: 18446744073709551615 kB"] {
            assert_eq!(resident(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn cpu_time_is_found_behind_any_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 90 0 0 0 12 34 0 0 20 0 1 0 5 6 7";
        assert_eq!(ticks(stat), Some((12.0, 34.0)));
        assert_eq!((ticks("7 (a) S 1"), ticks("")), (None, None));
    }

    #[test]
    fn this_process_has_run_uses_memory_and_has_files_open() {
        let before = Footprint::now();
        assert!(before.user_seconds >= Some(0.0) && before.system_seconds >= Some(0.0));
        assert!(before.memory_bytes > Some(1 << 20));
        let held: Vec<_> = (0..100).map(|_| File::open("/proc/self/status").unwrap()).collect();
        assert!(Footprint::now().file_descriptors >= Some(held.len() as u64));
    }
}
