//! node_exporter: the host. What it takes from `netstat` and `vmstat` it declares to be nothing, and it
//! is counters all the same.

use crate::identity::Field;
use crate::quantity as q;
use crate::reading::Component;
use crate::row::{Mark, Op, Refuse, Row, Source, derived, row};

pub(super) const SOURCE: Source = Source {
    name: "node",
    title: "node_exporter",
    prefixes: &["node_"],
    any_case: false,
    anchors: &[],
    marks: &[
        Mark::Metric("exporter_build_info"),
        Mark::Metric("uname_info"),
        Mark::Metric("scrape_collector_success"),
        Mark::Metric("cpu_seconds"),
        Mark::Metric("memory_MemTotal_bytes"),
    ],
    foreign: &[],
    generations: &[
        (Mark::Metric("cpu_seconds"), "0.16 or later"),
        (Mark::Metric("cpu"), "before 0.16, which has other names"),
    ],
    identity: &[
        ("instance", Field::Instance),
        ("node", Field::Node),
        ("nodename", Field::Node),
        ("hostname", Field::Node),
    ],
    subject: &[Field::Instance, Field::Node],
    node_of: Some(("node_uname_info", "nodename")),
    ignored: &["job", "endpoint", "service", "namespace", "pod", "container"],
    versions: &[("release", Component::Kernel)],
    version_at: &[],
    rows: ROWS,
    derived: &[derived(
        q::NET_RETRANSMIT,
        Op::Ratio,
        &[q::NET_RETRANSMITS, q::NET_SEGMENTS],
        "since the host started",
    )],
    blank: None,
    never: &[],
};

const DEVICE: &[(&str, &str)] = &[("device", "system.device")];
const CARD: &[(&str, &str)] = &[("device", "network.interface.name")];
const NO_PSI: &str = "the kernel has no PSI, or it is off (psi=1 turns it on), or the collector is";
const NO_IRQ: &str = "the kernel does not count it (it is of Linux 6.1 or later, built to measure interrupts), or this \
                      version of the exporter does not read it";
const NO_SENSOR: &str = "the host offers no such sensor to the exporter";

const fn disk(
    names: &'static [&'static str],
    quantity: &'static q::Quantity,
    fixed: &'static [(&'static str, &'static str)],
) -> Row {
    row(names, quantity).fixed(fixed).labels(DEVICE)
}

const fn card(
    names: &'static [&'static str],
    quantity: &'static q::Quantity,
    fixed: &'static [(&'static str, &'static str)],
) -> Row {
    row(names, quantity).fixed(fixed).labels(CARD)
}

const fn pressure(
    names: &'static [&'static str],
    fixed: &'static [(&'static str, &'static str)],
) -> Row {
    row(names, q::HOST_PRESSURE).fixed(fixed).absent(NO_PSI)
}

const fn pressure_of_irq(
    names: &'static [&'static str],
    fixed: &'static [(&'static str, &'static str)],
) -> Row {
    row(names, q::HOST_PRESSURE).fixed(fixed).absent(NO_IRQ)
}

const READ: &[(&str, &str)] = &[("disk.io.direction", "read")];
const WRITE: &[(&str, &str)] = &[("disk.io.direction", "write")];
const TRANSMIT: &[(&str, &str)] = &[("network.io.direction", "transmit")];
const RECEIVE: &[(&str, &str)] = &[("network.io.direction", "receive")];
const SPEED: &[Refuse] = &[Refuse::Negative("below 0 is a card whose speed is not known")];

const ROWS: &[Row] = &[
    row(&["cpu_seconds"], q::CPU_TIME).labels(&[("mode", "cpu.mode")]).sum_over(&["cpu"]),
    row(&["load1"], q::LOAD_1M),
    row(&["load5"], q::LOAD_5M),
    row(&["load15"], q::LOAD_15M),
    row(&["memory_MemTotal_bytes"], q::MEMORY_LIMIT),
    row(&["memory_MemAvailable_bytes"], q::MEMORY_AVAILABLE),
    row(&["memory_SwapFree_bytes"], q::PAGING_USAGE).fixed(&[("system.paging.state", "free")]),
    row(&["vmstat_pgmajfault"], q::PAGING_FAULTS).fixed(&[("system.paging.type", "major")]),
    row(&["vmstat_pswpin"], q::PAGING_OPERATIONS).fixed(&[("system.paging.direction", "in")]),
    row(&["vmstat_pswpout"], q::PAGING_OPERATIONS).fixed(&[("system.paging.direction", "out")]),
    row(&["vmstat_oom_kill"], q::HOST_OOM_KILLS),
    pressure(&["pressure_cpu_waiting_seconds"], &[("resource", "cpu"), ("kind", "some")]),
    pressure(&["pressure_io_waiting_seconds"], &[("resource", "io"), ("kind", "some")]),
    pressure(&["pressure_io_stalled_seconds"], &[("resource", "io"), ("kind", "full")]),
    pressure(&["pressure_memory_waiting_seconds"], &[("resource", "memory"), ("kind", "some")]),
    pressure(&["pressure_memory_stalled_seconds"], &[("resource", "memory"), ("kind", "full")]),
    pressure_of_irq(&["pressure_irq_stalled_seconds"], &[("resource", "irq"), ("kind", "full")]),
    disk(&["disk_read_bytes"], q::DISK_IO, READ),
    disk(&["disk_written_bytes"], q::DISK_IO, WRITE),
    disk(&["disk_reads_completed"], q::DISK_OPERATIONS, READ),
    disk(&["disk_writes_completed"], q::DISK_OPERATIONS, WRITE),
    disk(&["disk_read_time_seconds"], q::DISK_OPERATION_TIME, READ),
    disk(&["disk_write_time_seconds"], q::DISK_OPERATION_TIME, WRITE),
    disk(&["disk_io_time_seconds"], q::DISK_IO_TIME, &[]),
    card(&["network_receive_bytes"], q::NETWORK_IO, RECEIVE),
    card(&["network_transmit_bytes"], q::NETWORK_IO, TRANSMIT),
    card(&["network_receive_packets"], q::NETWORK_PACKETS, RECEIVE),
    card(&["network_transmit_packets"], q::NETWORK_PACKETS, TRANSMIT),
    card(&["network_receive_errs"], q::NETWORK_ERRORS, RECEIVE),
    card(&["network_transmit_errs"], q::NETWORK_ERRORS, TRANSMIT),
    card(&["network_receive_drop"], q::NETWORK_DROPPED, RECEIVE),
    card(&["network_transmit_drop"], q::NETWORK_DROPPED, TRANSMIT),
    card(&["network_speed_bytes"], q::NETWORK_SPEED, &[]).refuse(SPEED),
    row(&["netstat_Tcp_OutSegs"], q::NET_SEGMENTS),
    row(&["netstat_Tcp_RetransSegs"], q::NET_RETRANSMITS),
    row(&["netstat_TcpExt_TCPSynRetrans"], q::NET_SYN_RETRANSMITS),
    row(&["netstat_TcpExt_TCPTimeouts"], q::NET_TIMEOUTS),
    row(&["netstat_TcpExt_ListenOverflows"], q::NET_LISTEN_DROPS).fixed(&[("reason", "overflow")]),
    row(&["netstat_TcpExt_ListenDrops"], q::NET_LISTEN_DROPS).fixed(&[("reason", "all")]),
    row(&["filesystem_avail_bytes"], q::FILESYSTEM_USAGE)
        .fixed(&[("system.filesystem.state", "free")])
        .labels(FILES),
    row(&["filesystem_size_bytes"], q::FILESYSTEM_LIMIT).labels(FILES),
    row(&["hwmon_temp_celsius"], q::HOST_TEMPERATURE)
        .fixed(&[("hw.type", "host")])
        .absent(NO_SENSOR),
    row(&["rapl_package_joules"], q::HOST_ENERGY)
        .fixed(&[("hw.type", "cpu")])
        .labels(&[("path", "zone")])
        .absent("the exporter may not read RAPL without rights"),
    row(&["rapl_dram_joules"], q::HOST_ENERGY)
        .fixed(&[("hw.type", "memory")])
        .labels(&[("path", "zone")])
        .absent("the exporter may not read RAPL without rights"),
];

const FILES: &[(&str, &str)] = &[
    ("device", "system.device"),
    ("mountpoint", "system.filesystem.mountpoint"),
    ("fstype", "system.filesystem.type"),
];
