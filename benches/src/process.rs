//! A server under measurement: started here, read from `/proc`, ended with its owner.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::clock::pause;

/// How often a server that starts is asked whether it listens, and how long in between.
const START_ATTEMPTS: u32 = 100;
const START_PAUSE: Duration = Duration::from_millis(50);

/// An address of this machine that nobody listens on.
///
/// Errors: there is none.
pub fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// One process, killed when dropped, and by the kernel when this program dies first.
#[derive(Debug)]
pub struct Process {
    child: Child,
}

impl Process {
    /// Starts `command` with its output in the file `log`, and waits until `address` answers.
    ///
    /// Errors: the address is taken, or the program ends or does not listen within five seconds.
    pub fn start(command: &[String], address: SocketAddr, log: &Path) -> Result<Self> {
        if TcpStream::connect(address).is_ok() {
            bail!("{address} is taken; end what listens there");
        }
        let output = File::create(log).with_context(|| log.display().to_string())?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "--"])
            .args(command)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("setpriv (Debian: util-linux)")?;
        let mut process = Self { child };
        for _ in 0..START_ATTEMPTS {
            if TcpStream::connect(address).is_ok() {
                return Ok(process);
            }
            if let Some(status) = process.child.try_wait()? {
                bail!("{command:?} ended with {status}; see {}", log.display());
            }
            pause(START_PAUSE);
        }
        bail!("{command:?} does not listen on {address}; see {}", log.display())
    }

    /// CPU time of all its threads so far.
    pub fn cpu(&self) -> Result<CpuTime> {
        CpuTime::of(&self.child.id().to_string())
    }

    /// The same of the threads whose names begin so.
    ///
    /// Errors: the process is gone.
    pub fn cpu_of_threads(&self, name: &str) -> Result<CpuTime> {
        CpuTime::of_threads(&self.child.id().to_string(), name)
    }

    /// Resident memory, in KiB.
    pub fn resident_kib(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()).context("VmRSS")?;
        Ok(number.parse()?)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// CPU time of a process, user and system, by thread id, in nanoseconds.
///
/// From `/proc/PID/task/*/schedstat`: what `utime` and `stime` in `stat` are made of, without
/// their rounding to 10 ms.
#[derive(Debug)]
pub struct CpuTime(BTreeMap<u32, u64>);

impl CpuTime {
    /// Reads it; `pid` is a number or `self`.
    pub fn of(pid: &str) -> Result<Self> {
        Self::of_threads(pid, "")
    }

    /// The same of threads whose names begin so.
    fn of_threads(pid: &str, name: &str) -> Result<Self> {
        let mut threads = BTreeMap::new();
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let thread = thread?;
            let id = thread.file_name().to_string_lossy().parse()?;
            // A thread that ends meanwhile has nothing to read.
            let named = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
            if !named.starts_with(name) {
                continue;
            }
            let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            let nanos = text.split_whitespace().next().unwrap_or("0").parse()?;
            threads.insert(id, nanos);
        }
        Ok(Self(threads))
    }

    /// All threads together.
    #[must_use]
    pub fn total_nanos(&self) -> u64 {
        self.0.values().sum()
    }

    /// What the threads used since `earlier`.
    #[must_use]
    pub fn nanos_since(&self, earlier: &Self) -> u64 {
        let before = |id| earlier.0.get(id).copied().unwrap_or(0);
        self.0.iter().map(|(id, now)| now.saturating_sub(before(id))).sum()
    }
}
