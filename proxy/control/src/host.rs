//! `/proc` of the gateway's own host.

use std::fs::File;
use std::io::Read as _;
use std::time::Instant;

use jiff::Timestamp;
use taximeter_fleet::{PROC_FILES, Pool, Target, TargetKind, TargetState, read_proc};

/// Longest file that is read, in bytes. Those of a host with a thousand disks are shorter.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// What the host is called among all sources.
const NAME: &str = "/proc";

/// The host, as far as its files tell.
#[derive(Debug)]
pub(crate) struct Host {
    /// The texts of its files, in the order of [`PROC_FILES`]; empty where one cannot be read. They are
    /// kept, so that a look allocates little.
    texts: Vec<String>,
}

impl Host {
    pub(crate) fn new() -> Self {
        Self { texts: vec![String::new(); PROC_FILES.len()] }
    }

    /// The host before the first look.
    pub(crate) fn target(every: std::time::Duration) -> Target {
        Target::new(NAME, TargetKind::Host, Vec::new(), every)
    }

    /// Looks at all files, and notes what they say.
    pub(crate) fn look(
        &mut self,
        target: &mut Target,
        now: Instant,
        at: Timestamp,
        pool: &mut Pool,
    ) {
        for (file, text) in PROC_FILES.iter().zip(&mut self.texts) {
            text.clear();
            // One that is not there is told as unknown.
            if let Ok(file) = File::open(format!("/proc/{file}"))
                && file.take(FILE_BYTES_MAX).read_to_string(text).is_err()
            {
                text.clear();
            }
        }
        let text = |name: &str| {
            let at = PROC_FILES.iter().position(|file| *file == name)?;
            self.texts.get(at).map(String::as_str).filter(|text| !text.is_empty())
        };
        let mut reading = read_proc(text);
        if *target.programs != reading.programs {
            target.programs = std::mem::take(&mut reading.programs).into();
        }
        if *target.versions != reading.versions {
            target.versions = std::mem::take(&mut reading.versions).into();
        }
        if reading.measured.is_empty() {
            return target.fail(at, "unreadable", "no file of /proc can be read");
        }
        target.quantities = target.quantities.after(reading, now, pool).into();
        target.state = TargetState::Up;
        target.asked += 1;
        (target.asked_at, target.answered_at) = (Some(at), Some(at));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use taximeter_system::clock;

    use super::*;

    #[test]
    fn this_host_tells_its_memory_and_its_cpus() {
        let (mut host, mut pool) = (Host::new(), Pool::default());
        let mut target = Host::target(Duration::from_secs(1));
        for _ in 0..3 {
            host.look(&mut target, clock::now(), clock::wall(), &mut pool);
        }
        assert_eq!((&target.state, target.asked), (&TargetState::Up, 3));
        let names: Vec<_> =
            target.quantities.series.iter().map(|series| series.what.quantity.name).collect();
        for name in ["system.cpu.time", "system.memory.limit", "system.network.io"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        assert_eq!(target.quantities.counts.resets, 0);
    }
}
