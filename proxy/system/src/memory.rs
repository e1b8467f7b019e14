//! Finds the memory limit of this process and says whether it is nearly reached.
//!
//! A client that gets a refusal can try again. If the kernel kills the process, all requests end.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::process;

/// Where the kernel shows what groups of processes may take.
const GROUPS: &str = "/sys/fs/cgroup";
/// From here on a limit is none: version 1 has a number for it.
const NO_LIMIT_BYTES: u64 = 1 << 60;
/// Between two looks at what we take.
const LOOK_PERIOD: Duration = Duration::from_millis(200);
/// Parts of a thousand of what we may take at which requests are refused, and below which they are
/// served again.
const TIGHT: u64 = 900;
const EASY: u64 = 850;

/// The memory limit of this process, and whether it is nearly reached.
#[derive(Debug, Default)]
pub struct Memory {
    /// As the container says, in bytes; `None` where nobody does.
    container: Option<u64>,
    /// Files of our own group that tell what it takes, where its limit is the one that counts. What
    /// groups around it take is not ours to refuse requests for.
    own: Option<(PathBuf, PathBuf)>,
    tight: AtomicBool,
}

impl Memory {
    /// Reads the limit from the control group of this process.
    pub fn of_container() -> Self {
        let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let files = files(Path::new(GROUPS), &group);
        let limits: Vec<_> = files
            .iter()
            .filter_map(|file| Some((limit(&fs::read_to_string(file).ok()?)?, file)))
            .collect();
        let lowest = limits.iter().min_by_key(|(limit, _)| *limit);
        let own = lowest.filter(|(_, file)| files.first() == Some(file));
        Self {
            container: lowest.map(|(limit, _)| *limit),
            own: own.map(|(_, file)| takings(file)),
            tight: AtomicBool::new(false),
        }
    }

    /// What counts against the limit, in bytes: this process, or all of its group that the kernel
    /// cannot take back, such as buffers of sockets and files in memory.
    fn used(&self, configured: bool) -> u64 {
        let resident = process::resident_bytes().unwrap_or_default();
        let own = self.own.as_ref().filter(|_| !configured).and_then(|(usage, stat)| {
            let usage = fs::read_to_string(usage).ok()?.trim().parse().ok()?;
            Some(unreclaimable(usage, &fs::read_to_string(stat).ok()?))
        });
        own.unwrap_or_default().max(resident)
    }

    /// The limit in bytes: the configured one, or that of the container.
    pub fn limit(&self, configured: Option<usize>) -> Option<u64> {
        configured.map(|bytes| bytes as u64).or(self.container)
    }

    /// Whether the limit is nearly reached.
    pub fn is_tight(&self) -> bool {
        self.tight.load(Relaxed)
    }

    /// We take `used` bytes of `limit`.
    fn note(&self, used: u64, limit: u64) {
        let part = used.saturating_mul(1_000) / limit.max(1);
        let edge = if self.is_tight() { EASY } else { TIGHT };
        self.tight.store(part >= edge, Relaxed);
    }
}

/// Checks the memory in use for ever; `configured` returns the limit of the current configuration.
pub async fn watch(memory: Arc<Memory>, configured: impl Fn() -> Option<usize>) {
    let mut period = tokio::time::interval(LOOK_PERIOD);
    loop {
        period.tick().await;
        let configured = configured();
        match memory.limit(configured) {
            Some(limit) => memory.note(memory.used(configured.is_some()), limit),
            None => memory.tight.store(false, Relaxed),
        }
    }
}

/// The files that may have a limit for the group that `group` (of `/proc/self/cgroup`) names: its own
/// and those of the groups around it.
fn files(groups: &Path, group: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in group.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (root, name) = match controllers {
            "" => (groups.to_owned(), "memory.max"),
            "memory" => (groups.join("memory"), "memory.limit_in_bytes"),
            _ => continue,
        };
        let inside = path.trim_start_matches('/');
        files.extend(Path::new(inside).ancestors().map(|part| root.join(part).join(name)));
    }
    files
}

/// What such a file says, in bytes; `None` where there is no limit.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|bytes| *bytes < NO_LIMIT_BYTES)
}

/// The files beside a limit that tell what its group takes, and of what kind that is.
fn takings(limit: &Path) -> (PathBuf, PathBuf) {
    let is_old = limit.ends_with("memory.limit_in_bytes");
    let usage = if is_old { "memory.usage_in_bytes" } else { "memory.current" };
    (limit.with_file_name(usage), limit.with_file_name("memory.stat"))
}

/// Of `usage` bytes what is no cache of files, which the kernel drops before it ends anybody.
fn unreclaimable(usage: u64, stat: &str) -> u64 {
    let cached = stat.lines().filter_map(|line| {
        let (name, bytes) = line.split_once(' ')?;
        let is_cache = matches!(name, "inactive_file" | "active_file");
        if is_cache { bytes.trim().parse().ok() } else { None }
    });
    cached.fold(usage, u64::saturating_sub)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_a_group_and_of_those_around_it_are_found() {
        let found = |group: &str| -> Vec<String> {
            let files = files(Path::new("/g"), group);
            files.iter().map(|file| file.display().to_string()).collect()
        };
        let nested = ["/g/pod/one/memory.max", "/g/pod/memory.max", "/g/memory.max"];
        assert_eq!(found("0::/pod/one\n"), nested);
        assert_eq!(found("0::/\n"), ["/g/memory.max"]);
        let old = ["/g/memory/a/memory.limit_in_bytes", "/g/memory/memory.limit_in_bytes"];
        assert_eq!(found("5:cpu,cpuacct:/a\n4:memory:/a\n"), old);
        assert_eq!(found("nonsense"), [""; 0]);
        assert_eq!(limit("536870912\n"), Some(512 << 20));
        for none in ["max\n", "9223372036854771712\n", "", "-1"] {
            assert_eq!(limit(none), None, "{none:?}");
        }
    }

    #[test]
    fn what_a_group_takes_is_told_beside_its_limit_and_caches_of_files_are_not_part_of_it() {
        let paths = |file: &str| {
            let (usage, stat) = takings(Path::new(file));
            [usage.display().to_string(), stat.display().to_string()]
        };
        assert_eq!(paths("/g/a/memory.max"), ["/g/a/memory.current", "/g/a/memory.stat"]);
        let old = ["/m/memory.usage_in_bytes", "/m/memory.stat"];
        assert_eq!(paths("/m/memory.limit_in_bytes"), old);
        let stat = "anon 300\nfile 650\nshmem 50\ninactive_file 400\nactive_file 200\nsock 70\n";
        assert_eq!(unreclaimable(1_000, stat), 400);
        assert_eq!(unreclaimable(500, stat), 0, "both change while they are read");
        assert_eq!(unreclaimable(500, ""), 500);
    }

    #[test]
    fn it_is_tight_from_nine_tenths_on_until_there_is_room_again() {
        let memory = Memory::default();
        let tight = |used| {
            memory.note(used, 1_000);
            memory.is_tight()
        };
        assert_eq!(
            [0, 899, 900, 860, 850, 849, 899].map(tight),
            [false, false, true, true, true, false, false]
        );
        assert_eq!(memory.limit(None), None);
        assert_eq!(memory.limit(Some(7)), Some(7));
    }
}
