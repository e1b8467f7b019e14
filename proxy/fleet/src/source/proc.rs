//! `/proc` of a Linux host, without an exporter. It has no marks: who reads it knows what it is.

use std::sync::Arc;

use crate::identity::Identity;
use crate::quantity as q;
use crate::quantity::Quantity;
use crate::reading::{Component, Measured, Program, Reading, Unknown, Value, Version};

/// The files that are read, below `/proc`.
pub const PROC_FILES: &[&str] = &[
    STAT,
    LOADAVG,
    MEMINFO,
    VMSTAT,
    DISKSTATS,
    DEV,
    SNMP,
    NETSTAT,
    PRESSURE_CPU,
    PRESSURE_IO,
    PRESSURE_MEMORY,
    PRESSURE_IRQ,
    RELEASE,
];

const STAT: &str = "stat";
const LOADAVG: &str = "loadavg";
const MEMINFO: &str = "meminfo";
const VMSTAT: &str = "vmstat";
const DISKSTATS: &str = "diskstats";
const DEV: &str = "net/dev";
const SNMP: &str = "net/snmp";
const NETSTAT: &str = "net/netstat";
const PRESSURE_CPU: &str = "pressure/cpu";
const PRESSURE_IO: &str = "pressure/io";
const PRESSURE_MEMORY: &str = "pressure/memory";
const PRESSURE_IRQ: &str = "pressure/irq";
/// The version of the kernel.
const RELEASE: &str = "sys/kernel/osrelease";

/// The short name of this source.
const NAME: &str = "proc";
/// Most disks, and most network cards.
const DEVICES_MAX: usize = 64;

/// One number of a file, and the quantity that it is.
#[derive(Debug, Clone, Copy)]
pub struct ProcRow {
    /// The file, below `/proc`.
    pub file: &'static str,
    /// What it is.
    pub quantity: &'static Quantity,
    /// Attributes that the number stands for.
    pub fixed: &'static [(&'static str, &'static str)],
    place: Place,
    /// What the number is divided by.
    by: f64,
    /// What was done to it.
    how: &'static str,
}

/// Where in its file a number is.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// This field of the line of all CPUs.
    Cpu(usize),
    /// This word of the file.
    Word(usize),
    /// Behind this name, with or without a colon.
    Named(&'static str),
    /// Of this protocol, below this name.
    Below(&'static str, &'static str),
    /// This field of each disk.
    Disk(usize),
    /// This field of each network card.
    Card(usize),
    /// The total of this line.
    Total(&'static str),
}

impl ProcRow {
    /// Where it is from, for people.
    #[must_use]
    pub fn from(&self) -> String {
        let file = self.file;
        match self.place {
            Place::Cpu(_) => format!("/proc/{file} cpu"),
            Place::Word(_) | Place::Disk(_) | Place::Card(_) => format!("/proc/{file}"),
            Place::Named(name) | Place::Total(name) => format!("/proc/{file} {name}"),
            Place::Below(protocol, name) => format!("/proc/{file} {protocol}.{name}"),
        }
    }

    /// Its values in the text of its file, each with the device that it is of.
    fn values<'t>(&self, text: &'t str) -> Vec<(Option<&'t str>, f64)> {
        let one = |number: Option<&str>| number.and_then(parse).map(|is| (None, is / self.by));
        let named = |name: &str| {
            let is_it =
                |line: &&str| words(line).next().map(|is| is.trim_end_matches(':')) == Some(name);
            text.lines().find(is_it)
        };
        match self.place {
            Place::Cpu(at) => one(named("cpu").and_then(|line| words(line).nth(at))),
            Place::Word(at) => one(words(text).nth(at)),
            Place::Named(name) => one(named(name).and_then(|line| words(line).nth(1))),
            Place::Total(name) => one(named(name)
                .and_then(|line| words(line).find_map(|word| word.strip_prefix("total=")))),
            Place::Below(protocol, name) => one(below(text, protocol, name)),
            Place::Disk(at) => {
                let of = |line: &'t str| Some((words(line).nth(2)?, words(line).nth(at)?));
                return self.devices(text.lines().filter_map(of).filter(|(name, _)| is_disk(name)));
            }
            Place::Card(at) => {
                let of = |line: &'t str| {
                    let (name, rest) = line.split_once(':')?;
                    Some((name.trim(), words(rest).nth(at)?))
                };
                return self.devices(text.lines().filter_map(of));
            }
        }
        .into_iter()
        .collect()
    }

    fn devices<'t>(
        &self,
        all: impl Iterator<Item = (&'t str, &'t str)>,
    ) -> Vec<(Option<&'t str>, f64)> {
        let value = |(name, number)| Some((Some(name), parse(number)? / self.by));
        all.filter_map(value).take(DEVICES_MAX).collect()
    }

    /// The attribute that has the name of the device.
    const fn device(&self) -> &'static str {
        match self.place {
            Place::Card(_) => "network.interface.name",
            _ => "system.device",
        }
    }
}

fn words(line: &str) -> std::str::SplitAsciiWhitespace<'_> {
    line.split_ascii_whitespace()
}

/// A number that counts something.
fn parse(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    text.parse().ok().filter(|number: &f64| is_plain && number.is_finite())
}

/// Of two lines that begin with the protocol, the first has names and the second numbers.
fn below<'t>(text: &'t str, protocol: &str, name: &str) -> Option<&'t str> {
    let mut lines = text.lines().filter_map(|line| {
        let (is, rest) = line.split_once(':')?;
        (is == protocol).then_some(rest)
    });
    let at = lines.next()?.split_ascii_whitespace().position(|is| is == name)?;
    lines.next()?.split_ascii_whitespace().nth(at)
}

/// Whether it is a whole disk, and none that is in memory or in another file.
fn is_disk(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbered = |prefix: &str| name.strip_prefix(prefix).is_some_and(digits);
    if ["loop", "ram", "zram", "fd"].into_iter().any(numbered) {
        return false;
    }
    if name.starts_with("nvme") || name.starts_with("mmcblk") {
        return !name.rsplit_once('p').is_some_and(|(_, part)| digits(part));
    }
    let lettered = ["sd", "hd", "vd", "xvd"].into_iter().any(|prefix| name.starts_with(prefix));
    !(lettered && name.ends_with(|last: char| last.is_ascii_digit()))
}

type Fixed = &'static [(&'static str, &'static str)];

const fn row(
    file: &'static str,
    place: Place,
    quantity: &'static Quantity,
    fixed: Fixed,
) -> ProcRow {
    ProcRow { file, quantity, fixed, place, by: 1.0, how: "" }
}

const fn cpu(at: usize, fixed: Fixed) -> ProcRow {
    // USER_HZ is 100 on every machine that Linux runs on today.
    ProcRow { by: 100.0, how: "in ticks", ..row(STAT, Place::Cpu(at), q::CPU_TIME, fixed) }
}

const fn kibibytes(name: &'static str, quantity: &'static Quantity, fixed: Fixed) -> ProcRow {
    ProcRow { by: 1.0 / 1024.0, how: "in KiB", ..row(MEMINFO, Place::Named(name), quantity, fixed) }
}

const fn disk(at: usize, quantity: &'static Quantity, fixed: Fixed) -> ProcRow {
    row(DISKSTATS, Place::Disk(at), quantity, fixed)
}

const fn sectors(at: usize, fixed: Fixed) -> ProcRow {
    ProcRow { by: 1.0 / 512.0, how: "in sectors", ..disk(at, q::DISK_IO, fixed) }
}

const fn milliseconds(at: usize, quantity: &'static Quantity, fixed: Fixed) -> ProcRow {
    ProcRow { by: 1_000.0, how: "in ms", ..disk(at, quantity, fixed) }
}

const fn card(at: usize, quantity: &'static Quantity, fixed: Fixed) -> ProcRow {
    row(DEV, Place::Card(at), quantity, fixed)
}

const fn pressure(file: &'static str, kind: &'static str, fixed: Fixed) -> ProcRow {
    let row = row(file, Place::Total(kind), q::HOST_PRESSURE, fixed);
    ProcRow { by: 1_000_000.0, how: "in µs", ..row }
}

const READ: Fixed = &[("disk.io.direction", "read")];
const WRITE: Fixed = &[("disk.io.direction", "write")];
const TRANSMIT: Fixed = &[("network.io.direction", "transmit")];
const RECEIVE: Fixed = &[("network.io.direction", "receive")];

/// All numbers that are read of `/proc`. The words for modes are those of node_exporter.
pub const PROC_ROWS: &[ProcRow] = &[
    cpu(1, &[("cpu.mode", "user")]),
    cpu(2, &[("cpu.mode", "nice")]),
    cpu(3, &[("cpu.mode", "system")]),
    cpu(4, &[("cpu.mode", "idle")]),
    cpu(5, &[("cpu.mode", "iowait")]),
    cpu(6, &[("cpu.mode", "irq")]),
    cpu(7, &[("cpu.mode", "softirq")]),
    cpu(8, &[("cpu.mode", "steal")]),
    row(LOADAVG, Place::Word(0), q::LOAD_1M, &[]),
    row(LOADAVG, Place::Word(1), q::LOAD_5M, &[]),
    row(LOADAVG, Place::Word(2), q::LOAD_15M, &[]),
    kibibytes("MemTotal", q::MEMORY_LIMIT, &[]),
    kibibytes("MemAvailable", q::MEMORY_AVAILABLE, &[]),
    kibibytes("SwapFree", q::PAGING_USAGE, &[("system.paging.state", "free")]),
    row(VMSTAT, Place::Named("pgmajfault"), q::PAGING_FAULTS, &[("system.paging.type", "major")]),
    row(VMSTAT, Place::Named("pswpin"), q::PAGING_OPERATIONS, &[("system.paging.direction", "in")]),
    row(
        VMSTAT,
        Place::Named("pswpout"),
        q::PAGING_OPERATIONS,
        &[("system.paging.direction", "out")],
    ),
    row(VMSTAT, Place::Named("oom_kill"), q::HOST_OOM_KILLS, &[]),
    pressure(PRESSURE_CPU, "some", &[("resource", "cpu"), ("kind", "some")]),
    pressure(PRESSURE_IO, "some", &[("resource", "io"), ("kind", "some")]),
    pressure(PRESSURE_IO, "full", &[("resource", "io"), ("kind", "full")]),
    pressure(PRESSURE_MEMORY, "some", &[("resource", "memory"), ("kind", "some")]),
    pressure(PRESSURE_MEMORY, "full", &[("resource", "memory"), ("kind", "full")]),
    pressure(PRESSURE_IRQ, "full", &[("resource", "irq"), ("kind", "full")]),
    disk(3, q::DISK_OPERATIONS, READ),
    sectors(5, READ),
    milliseconds(6, q::DISK_OPERATION_TIME, READ),
    disk(7, q::DISK_OPERATIONS, WRITE),
    sectors(9, WRITE),
    milliseconds(10, q::DISK_OPERATION_TIME, WRITE),
    milliseconds(12, q::DISK_IO_TIME, &[]),
    card(0, q::NETWORK_IO, RECEIVE),
    card(1, q::NETWORK_PACKETS, RECEIVE),
    card(2, q::NETWORK_ERRORS, RECEIVE),
    card(3, q::NETWORK_DROPPED, RECEIVE),
    card(8, q::NETWORK_IO, TRANSMIT),
    card(9, q::NETWORK_PACKETS, TRANSMIT),
    card(10, q::NETWORK_ERRORS, TRANSMIT),
    card(11, q::NETWORK_DROPPED, TRANSMIT),
    row(SNMP, Place::Below("Tcp", "OutSegs"), q::NET_SEGMENTS, &[]),
    row(SNMP, Place::Below("Tcp", "RetransSegs"), q::NET_RETRANSMITS, &[]),
    row(NETSTAT, Place::Below("TcpExt", "TCPSynRetrans"), q::NET_SYN_RETRANSMITS, &[]),
    row(NETSTAT, Place::Below("TcpExt", "TCPTimeouts"), q::NET_TIMEOUTS, &[]),
    row(
        NETSTAT,
        Place::Below("TcpExt", "ListenOverflows"),
        q::NET_LISTEN_DROPS,
        &[("reason", "overflow")],
    ),
    row(NETSTAT, Place::Below("TcpExt", "ListenDrops"), q::NET_LISTEN_DROPS, &[("reason", "all")]),
];

/// What only an exporter of hosts tells, and why.
pub const PROC_NEVER: &[(&Quantity, &str)] = &[
    (q::NETWORK_SPEED, "only an exporter of hosts tells it"),
    (q::FILESYSTEM_USAGE, "only an exporter of hosts tells it"),
    (q::FILESYSTEM_LIMIT, "only an exporter of hosts tells it"),
    (q::HOST_TEMPERATURE, "only an exporter of hosts tells it"),
    (q::HOST_ENERGY, "RAPL is read only through an exporter of hosts, which has the rights for it"),
];

/// What `/proc` says. `file` gives the text of one of [`PROC_FILES`]; `None` where it cannot be read.
#[must_use]
pub fn read_proc<'t>(file: impl Fn(&str) -> Option<&'t str>) -> Reading {
    let nobody = Arc::new(Identity::default());
    let mut reading = Reading::default();
    for row in PROC_ROWS {
        let text = file(row.file);
        let values = text.map(|text| row.values(text)).unwrap_or_default();
        if values.is_empty() {
            reading.unknown.push(unknown(row.quantity, row.fixed, why(row, text)));
        }
        for (device, value) in values {
            let mut attributes = owned(row.fixed);
            attributes.extend(device.map(|name| (row.device().to_owned(), name.to_owned())));
            reading.measured.push(Measured {
                quantity: row.quantity,
                value: Value::Number(value),
                buckets: None,
                identity: nobody.clone(),
                attributes,
                program: NAME,
                from: row.from(),
                how: row.how.to_owned(),
                age: None,
            });
        }
    }
    match retransmitted(&reading.measured, &nobody) {
        Some(share) => reading.measured.push(share),
        None => reading.unknown.push(unknown(
            q::NET_RETRANSMIT,
            &[],
            "what it is made from is not there".to_owned(),
        )),
    }
    reading
        .unknown
        .extend(PROC_NEVER.iter().map(|(quantity, why)| unknown(quantity, &[], (*why).to_owned())));
    let release = file(RELEASE).and_then(|text| Version::of(Component::Kernel, None, text));
    reading.versions.extend(release);
    reading.programs.push(Program {
        name: NAME,
        title: "/proc of the gateway's host",
        is_read: true,
        is_certain: true,
        marks: vec!["read by Taximeter itself".to_owned()],
        generation: None,
    });
    reading
}

/// The share of segments that were sent again.
fn retransmitted(measured: &[Measured], nobody: &Arc<Identity>) -> Option<Measured> {
    let of = |quantity: &Quantity| {
        let found = measured.iter().find(|one| one.quantity == quantity)?;
        if let Value::Number(number) = found.value { Some((found, number)) } else { None }
    };
    let ((from, again), (_, all)) = (of(q::NET_RETRANSMITS)?, of(q::NET_SEGMENTS)?);
    let value = Value::Number((again / all).min(1.0));
    (all > 0.0).then(|| Measured {
        quantity: q::NET_RETRANSMIT,
        value,
        buckets: None,
        identity: nobody.clone(),
        attributes: Vec::new(),
        program: NAME,
        from: from.from.clone(),
        how: "made: retransmits / segments, since the host started".to_owned(),
        age: None,
    })
}

fn unknown(quantity: &'static Quantity, fixed: Fixed, why: String) -> Unknown {
    Unknown { quantity, attributes: owned(fixed), program: NAME, why, of: Vec::new() }
}

fn owned(fixed: Fixed) -> Vec<(String, String)> {
    fixed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Why a row has no value.
fn why(row: &ProcRow, text: Option<&str>) -> String {
    match (row.place, text) {
        (Place::Total(_), None) if row.file == PRESSURE_IRQ => {
            "the kernel does not count it: that is of Linux 6.1 or later, built to measure \
             interrupts"
                .to_owned()
        }
        (Place::Total(_), None) => {
            "the kernel has no PSI, or it is off: psi=1 turns it on".to_owned()
        }
        (_, None) => format!("/proc/{} cannot be read", row.file),
        (_, Some(_)) => format!("no {}", row.from()),
    }
}

#[cfg(test)]
mod tests;
