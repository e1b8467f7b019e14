use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const ALL: &[(&str, &str)] = &[
    (
        "stat",
        "cpu  301854 612 111922 8979004 3552 2 3944 10 44 36\ncpu0 1 1 1 1 1 1 1 1 0 0\nctxt 5\n",
    ),
    ("loadavg", "0.02 0.04 0.05 1/500 14017\n"),
    (
        "meminfo",
        "MemTotal:       15666184 kB\nMemFree: 1 kB\nMemAvailable:    9000000 kB\nSwapFree: 2 kB\n",
    ),
    ("vmstat", "nr_free_pages 1\npgmajfault 507162\npswpin 1476\npswpout 35045\noom_kill 3\n"),
    (
        "diskstats",
        "   7       0 loop0 1 2 3 4 5 6 7 8 9 10 11\n   \
         8       0 sda 25354637 34367663 1003346126 18492372 28444756 11134226 505697032 63877960 0 9653880 82621804\n   \
         8       1 sda1 250 0 2000 36 0 0 0 0 0 36 36\n \
         259       0 nvme0n1 47114 4 4643973 21650 1078320 43950 39451633 1011053 0 222766 1032546\n \
         259       1 nvme0n1p1 1140 0 9370 16 1 0 1 0 0 16 16\n",
    ),
    (
        "net/dev",
        "Inter-|   Receive                                                |  Transmit\n \
         face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
         lo: 435303245 1832522 1 2 0 0 0 0 435303246 1832523 3 4 0 0 0 0\n\
         eth0:68210035552 520993275    0    0    0     0          0         0 9315587528 43451486    0    0    0     0       0          0\n",
    ),
    (
        "net/snmp",
        "Ip: Forwarding\nIp: 1\nTcp: RtoAlgorithm OutSegs RetransSegs InErrs\nTcp: 1 54915 2 5\nUdp: a\nUdp: 1\n",
    ),
    (
        "net/netstat",
        "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPTimeouts TCPSynRetrans\n\
         TcpExt: 0 12 13 115 4\nIpExt: a\nIpExt: 1\n",
    ),
    (
        "pressure/cpu",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=14036781\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    ),
    (
        "pressure/io",
        "some avg10=0.18 avg60=0.34 avg300=0.10 total=159886802\nfull avg10=0.18 avg60=0.34 avg300=0.10 total=159229614\n",
    ),
    (
        "pressure/memory",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    ),
    ("pressure/irq", "full avg10=0.00 avg60=0.00 avg300=0.00 total=8494\n"),
];

fn all(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(file, _)| *file == name).map(|(_, text)| *text)
}

/// Each value as `name{attributes}`.
fn values(reading: &Reading) -> BTreeMap<String, f64> {
    let one = |measured: &Measured| {
        let attributes: Vec<_> =
            measured.attributes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let Value::Number(number) = measured.value else { panic!("no number") };
        (format!("{}{{{}}}", measured.quantity.name, attributes.join(",")), number)
    };
    reading.measured.iter().map(one).collect()
}

#[test]
fn each_number_of_a_host_is_in_its_unit() {
    let reading = read_proc(all);
    let values = values(&reading);
    assert_eq!(values.len(), reading.measured.len(), "no series stands twice");
    for (name, value) in [
        ("system.cpu.time{cpu.mode=user}", 3_018.54),
        ("system.cpu.time{cpu.mode=iowait}", 35.52),
        ("system.cpu.time{cpu.mode=steal}", 0.1),
        ("system.cpu.load_average.15m{}", 0.05),
        ("system.memory.limit{}", 16_042_172_416.0),
        ("system.paging.usage{system.paging.state=free}", 2_048.0),
        ("system.paging.operations{system.paging.direction=out}", 35_045.0),
        ("taximeter.fleet.host.oom_kills{}", 3.0),
        ("taximeter.fleet.host.pressure.time{resource=cpu,kind=some}", 14.036_781),
        ("taximeter.fleet.host.pressure.time{resource=io,kind=full}", 159.229_614),
        ("taximeter.fleet.host.pressure.time{resource=memory,kind=full}", 0.0),
        ("taximeter.fleet.host.pressure.time{resource=irq,kind=full}", 0.008_494),
        ("system.disk.io{disk.io.direction=read,system.device=sda}", 513_713_216_512.0),
        ("system.disk.io{disk.io.direction=write,system.device=nvme0n1}", 20_199_236_096.0),
        ("system.disk.operation_time{disk.io.direction=write,system.device=sda}", 63_877.96),
        ("system.disk.io_time{system.device=sda}", 9_653.88),
        (
            "system.network.io{network.io.direction=receive,network.interface.name=eth0}",
            68_210_035_552.0,
        ),
        (
            "system.network.packet.dropped{network.io.direction=transmit,network.interface.name=lo}",
            4.0,
        ),
        ("taximeter.fleet.net.segments{}", 54_915.0),
        ("taximeter.fleet.net.retransmit{}", 2.0 / 54_915.0),
        ("taximeter.fleet.net.syn_retransmits{}", 4.0),
        ("taximeter.fleet.net.listen_drops{reason=overflow}", 12.0),
    ] {
        assert_eq!(values.get(name), Some(&value), "{name}");
    }
    let devices = |name: &str| values.keys().filter(|key| key.contains(name)).count();
    assert_eq!((devices("sda1"), devices("loop0"), devices("nvme0n1p1")), (0, 0, 0));
    let limit = reading.measured.iter().find(|one| one.quantity == q::MEMORY_LIMIT).unwrap();
    assert_eq!((&*limit.from, &*limit.how), ("/proc/meminfo MemTotal", "in KiB"));
}

#[test]
fn every_quantity_of_a_host_is_known_or_unknown_with_a_reason() {
    for (file, without) in [("", ""), ("pressure/io", "PSI"), ("net/snmp", "cannot be read")] {
        let reading = read_proc(|name| all(name).filter(|_| name != file));
        let reasons: Vec<_> = reading.unknown.iter().map(|one| one.why.as_str()).collect();
        assert!(reasons.iter().any(|why| why.contains(without)), "{reasons:?}");
        for quantity in q::QUANTITIES.iter().filter(|is| is.layer == q::Layer::Host) {
            let is_known = reading.measured.iter().any(|one| one.quantity == *quantity);
            let is_told = reading.unknown.iter().any(|one| one.quantity == *quantity);
            assert!(is_known || is_told, "{}", quantity.name);
        }
    }
    let none = read_proc(|_| None);
    assert!(none.measured.is_empty());
    assert_eq!(none.unknown.len(), PROC_ROWS.len() + 1 + PROC_NEVER.len());
}

#[test]
fn what_no_host_has_is_no_value() {
    let without = "Tcp: RtoAlgorithm OutSegs RetransSegs\nTcp: 1 -1\n";
    let reading = read_proc(|name| (name == "net/snmp").then_some(without));
    assert!(reading.measured.is_empty());
    let many: String =
        (0..1_000).map(|n| format!("1 1 dm-{n} 1 2 3 4 5 6 7 8 9 10 11\n")).collect();
    let reading = read_proc(|name| (name == "diskstats").then_some(many.as_str()));
    assert_eq!(reading.measured.len(), 7 * DEVICES_MAX);
}

proptest! {
    #[test]
    fn whatever_a_file_says_values_are_numbers_that_can_be(
        at in 0..ALL.len(),
        cut in any::<prop::sample::Index>(),
        noise in "[ -~\n:]{0,80}",
    ) {
        let (file, text) = ALL[at];
        let (head, tail) = text.split_at(cut.index(text.len()));
        for text in [head.to_owned() + &noise, noise.clone() + tail, head.to_owned() + &noise + tail] {
            let reading = read_proc(|name| if name == file { Some(text.as_str()) } else { all(name) });
            for one in &reading.measured {
                let Value::Number(number) = one.value else { panic!("no number") };
                prop_assert!(number.is_finite() && number >= 0.0, "{}", one.from);
            }
        }
    }
}
