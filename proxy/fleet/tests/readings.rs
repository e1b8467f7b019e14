//! Scrapes of each program and generation, and what they are in the schema.
//!
//! Beside each `fixtures/NAME.prom` stands `NAME.txt`, its reading. `INSTA_UPDATE=always` writes it. The
//! scrapes are written by hand in the form that the programs print: see `fixtures/README.md`.
#![cfg(test)]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use taximeter_control::exposition::{Bounds, body, read};
use taximeter_fleet::{Measured, Percentile, Reading, SOURCES, Value, Version};
use taximeter_tests::generated::is_fresh;

/// When the scrapes came.
const AT: &str = "2026-11-27T00:00:00Z";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn reading_of(bytes: &[u8]) -> (Reading, String) {
    let text = body(bytes);
    let exposition = read(&text, &Bounds::default());
    let reading = taximeter_fleet::read(&exposition.samples, AT.parse().unwrap());
    let mut skipped = String::new();
    for (line, why) in exposition.skipped.told() {
        writeln!(skipped, "line {line}: {why}").unwrap();
    }
    (reading, skipped)
}

fn reading(name: &str) -> Reading {
    reading_of(&std::fs::read(folder().join(format!("{name}.prom"))).unwrap()).0
}

fn percentile(is: Percentile) -> String {
    match is {
        Percentile::About(value) => format!("{value}"),
        Percentile::Above(bound) => format!("> {bound}"),
        Percentile::Unknown(why) => format!("unknown ({why})"),
    }
}

fn value(measured: &Measured) -> String {
    match measured.value {
        Value::Number(number) => format!("{number} {}", measured.quantity.unit),
        Value::Histogram(of) => format!(
            "count {:?} sum {:?} p50 {} p95 {} {}",
            of.count,
            of.sum,
            percentile(of.p50),
            percentile(of.p95),
            measured.quantity.unit
        ),
    }
}

fn labels(measured: &Measured) -> String {
    let identity = measured.identity.iter().map(|(field, value)| (field.name(), value));
    let attributes = measured.attributes.iter().map(|(name, value)| (&**name, &**value));
    let all: Vec<_> =
        identity.chain(attributes).map(|(name, value)| format!("{name}={value}")).collect();
    all.join(" ")
}

/// The whole reading as a text.
fn printed(reading: &Reading, skipped: &str) -> String {
    let mut text = String::new();
    for program in &reading.programs {
        let how = match (program.is_read, program.is_certain) {
            (false, _) => "not read",
            (true, true) => "certain",
            (true, false) => "likely",
        };
        let generation = program.generation.unwrap_or("unknown generation");
        writeln!(text, "{}: {how}, {generation}; {}", program.title, program.marks.join(", "))
            .unwrap();
    }
    for is in &reading.measured {
        let age = is.age.map(|age| format!(" age {}s", age.as_secs())).unwrap_or_default();
        let how = if is.how.is_empty() { String::new() } else { format!(" ({})", is.how) };
        let (layer, name) = (is.quantity.layer.code(), is.quantity.name);
        writeln!(
            text,
            "{layer} {name} = {} [{}] from {}{how}{age}",
            value(is),
            labels(is),
            is.from
        )
        .unwrap();
    }
    for is in &reading.unknown {
        let attributes: Vec<_> = is.attributes.iter().map(|(n, v)| format!("{n}={v}")).collect();
        let of: Vec<_> = is
            .of
            .iter()
            .map(|of| of.iter().map(|(_, value)| value).collect::<Vec<_>>().join("/"))
            .collect();
        let of = if of.is_empty() { String::new() } else { format!(" of {}", of.join(" and ")) };
        let (layer, name) = (is.quantity.layer.code(), is.quantity.name);
        writeln!(text, "{layer} {name} [{}] unknown{of}: {}", attributes.join(" "), is.why)
            .unwrap();
    }
    writeln!(text, "unread: {}", reading.unread.join(" ")).unwrap();
    for note in &reading.notes {
        writeln!(text, "note: {note}").unwrap();
    }
    text + skipped
}

#[test]
fn each_scrape_is_read_as_its_file_says() {
    let mut programs = BTreeSet::new();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "prom") {
            names.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
        }
    }
    names.sort();
    for name in names {
        let bytes = std::fs::read(folder().join(format!("{name}.prom"))).unwrap();
        let (reading, skipped) = reading_of(&bytes);
        programs.extend(reading.programs.iter().filter(|is| is.is_read).map(|is| is.name));
        let file = format!("proxy/fleet/tests/fixtures/{name}.txt");
        assert_eq!(is_fresh(&file, |_| printed(&reading, &skipped)), Ok(()));
    }
    let all: BTreeSet<_> = SOURCES.iter().map(|source| source.name).collect();
    assert_eq!(programs, all, "each program has a scrape");
}

/// The numbers of a quantity, in the order of their labels.
fn numbers(reading: &Reading, name: &str, part_of_labels: &str) -> Vec<f64> {
    let named = reading.measured.iter().filter(|is| is.quantity.name == name);
    let mut found: Vec<_> = named
        .filter(|is| labels(is).contains(part_of_labels))
        .map(|is| match is.value {
            Value::Number(number) => (labels(is), number),
            Value::Histogram(_) => panic!("{name} is a histogram"),
        })
        .collect();
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found.into_iter().map(|(_, number)| number).collect()
}

fn why(reading: &Reading, name: &str) -> Vec<String> {
    let named = reading.unknown.iter().filter(|is| is.quantity.name == name);
    named.map(|is| is.why.clone()).collect()
}

#[test]
fn a_counter_under_two_names_is_not_added() {
    let two = reading("vllm-0.10-two-names");
    assert_eq!(numbers(&two, "taximeter.fleet.engine.prefix_query_tokens", ""), [800.0]);
    assert_eq!(numbers(&two, "taximeter.fleet.engine.prefix_hit_tokens", ""), [300.0]);
    assert_eq!(numbers(&two, "taximeter.fleet.engine.kv_cache_usage", ""), [0.12]);
}

#[test]
fn what_stands_for_no_value_is_unknown_and_not_zero() {
    let old = reading("vllm-0.6-engine-v0");
    assert!(numbers(&old, "taximeter.fleet.engine.prefix_hit_rate", "").is_empty());
    assert_eq!(
        why(&old, "taximeter.fleet.engine.prefix_hit_rate"),
        ["-1 is what vLLM prints before it has data"]
    );
    let gpus = reading("dcgm-4");
    assert!(numbers(&gpus, "hw.temperature", "sensor=memory").is_empty());
    assert_eq!(numbers(&gpus, "taximeter.fleet.gpu.engine.active", ""), [0.951_234]);
    let llama = reading("llama-2025-not-asked-yet");
    assert_eq!(why(&llama, "taximeter.fleet.engine.batch_size"), ["its value is NaN"]);
    assert!(numbers(&llama, "taximeter.fleet.engine.prompt_tokens", "").is_empty());
    let divided = reading("amd-divided-with-prefix");
    assert_eq!(numbers(&divided, "hw.power", ""), [300.0]);
    assert_eq!(numbers(&divided, "hw.gpu.memory.usage", ""), [10_485_760.0, 0.0]);
    let host = reading("node-1.8");
    assert_eq!(numbers(&host, "taximeter.fleet.net.speed", ""), [125_000_000.0]);
    let damaged = reading("damaged");
    for name in
        ["requests_waiting", "kv_cache_usage", "generation_tokens", "prompt_tokens", "preemptions"]
    {
        let name = format!("taximeter.fleet.engine.{name}");
        assert!(numbers(&damaged, &name, "").is_empty(), "{name}");
        assert_eq!(why(&damaged, &name).len(), 1, "{name}");
    }
    assert_eq!(numbers(&damaged, "taximeter.fleet.engine.requests_running", ""), [3.0]);
}

#[test]
fn units_are_those_of_the_schema() {
    let gpus = reading("dcgm-4");
    assert_eq!(numbers(&gpus, "hw.energy", ""), [71_234_567.89]);
    assert_eq!(numbers(&gpus, "taximeter.fleet.gpu.clock", ""), [1.98e9]);
    assert_eq!(numbers(&gpus, "taximeter.fleet.gpu.throttle", ""), [1.5]);
    let mib = f64::from(1_u32 << 20);
    assert_eq!(numbers(&gpus, "hw.gpu.memory.limit", "GPU-aaaa"), [81_251.0 * mib]);
    assert_eq!(numbers(&gpus, "taximeter.fleet.gpu.throttled", "reason=power_cap"), [1.0]);
    assert_eq!(numbers(&gpus, "taximeter.fleet.gpu.throttled", "reason=sw_thermal"), [1.0]);
    assert_eq!(numbers(&gpus, "taximeter.fleet.gpu.throttled", "reason=hw_thermal"), [0.0]);
    let amd = reading("amd-mi300x");
    assert_eq!(numbers(&amd, "hw.energy", ""), [1.5e6]);
    assert_eq!(numbers(&amd, "hw.power", ""), [612.0]);
    assert_eq!(numbers(&amd, "hw.gpu.utilization", ""), [0.97]);
    assert_eq!(numbers(&amd, "taximeter.fleet.gpu.link.io", ""), [1e6]);
    assert_eq!(
        numbers(&reading("sglang-0.3-percent"), "taximeter.fleet.engine.prefix_hit_rate", ""),
        [0.314]
    );
    assert_eq!(
        numbers(&reading("sglang-0.4"), "taximeter.fleet.engine.prefix_hit_rate", ""),
        [0.31]
    );
}

#[test]
fn the_owner_of_a_gpu_is_not_its_exporter() {
    let owned = reading("dcgm-exported-and-shared");
    let owners: Vec<_> = owned
        .measured
        .iter()
        .filter(|is| is.quantity.name == "taximeter.fleet.gpu.owner")
        .map(labels)
        .collect();
    assert_eq!(owners.len(), 3);
    assert!(owners.iter().all(|owner| !owner.contains("dcgm-exporter-x")), "{owners:?}");
    assert!(owners[0].contains("hw.id=GPU-aaaa") && owners[0].ends_with("sharing=exclusive"));
    assert!(owners[1].contains("hw.id=GPU-cccc ") && owners[1].ends_with("sharing=shared"));
    assert_eq!(owned.notes.len(), 3, "{:?}", owned.notes);
}

#[test]
fn versions_are_those_of_labels_and_each_host_has_one() {
    let versions = |reading: Reading| -> Vec<_> {
        let shown = |one: &Version| {
            format!("{} {} {}", one.of.as_str(), one.host.as_deref().unwrap_or("?"), one.version)
        };
        reading.versions.iter().map(shown).collect()
    };
    assert_eq!(versions(reading("dcgm-4")), ["driver node-a 580.95.05"]);
    assert_eq!(versions(reading("vllm-0.33")), [""; 0]);
    let text = "node_uname_info{nodename=\"n1\",release=\"6.8.0-51\"} 1\nnode_load1 1\n\
        GPU_PACKAGE_POWER{serial_number=\"1\",hostname=\"n1\",driver_version=\"6.10.5\"} 1\n\
        GPU_PACKAGE_POWER{serial_number=\"2\",hostname=\"n1\",driver_version=\"6.10.6\"} 1\n\
        GPU_PACKAGE_POWER{serial_number=\"3\",hostname=\"n2\",driver_version=\"\"} 1\n\
        GPU_PACKAGE_POWER{serial_number=\"4\",hostname=\"n3\",driver_version=\"a\\nb\"} 1\n";
    let told = versions(reading_of(text.as_bytes()).0);
    assert_eq!(told, ["driver n1 6.10.5", "kernel n1 6.8.0-51"]);
}

#[test]
fn several_programs_may_stand_in_one_scrape() {
    let all = reading("federation");
    let names: Vec<_> = all.programs.iter().map(|program| program.name).collect();
    assert_eq!(names, ["vllm", "dcgm", "node"]);
    assert_eq!(numbers(&all, "system.cpu.load_average.1m", "host.name=node-b"), [2.5]);
    let old = all.measured.iter().find(|is| labels(is).contains("host.name=node-b")).unwrap();
    assert_eq!(old.age.unwrap().as_secs(), 3603);
    let usage = why(&all, "taximeter.fleet.engine.kv_cache_usage");
    assert_eq!(usage, ["no vllm:kv_cache_usage_perc"], "of the second engine only");
}

#[test]
fn names_without_more_do_not_make_a_program() {
    for name in ["prefix-less-engine", "vllm-router"] {
        let other = reading(name);
        assert!(other.programs.iter().all(|program| !program.is_read), "{name}");
        assert!(other.measured.is_empty() && !other.programs.is_empty(), "{name}");
    }
    let (one, _) = reading_of(b"vllm:num_requests_waiting 1\n");
    assert!(!one.programs[0].is_certain);
    for text in [
        "nodejs_version_info 1\n",
        "vllm:no_such_thing{model_name=\"m\"} 1\n",
        "node_cpu_usage_seconds_total 1\n",
        "sglang_router_requests_total{model_name=\"m\"} 1\n",
    ] {
        let (none, _) = reading_of(text.as_bytes());
        assert!(none.programs.iter().all(|program| !program.is_read), "{:?}", none.programs);
        assert_eq!(none.unread.len(), 1, "{text}");
    }
}

/// The scrapes with known truth, which are not of this repository. Without them there is nothing to
/// compare with, and the fixtures are what stands.
#[test]
fn scrapes_with_known_truth_are_read_as_they_are() {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/engine-metrics-synthetic");
    let folder = std::env::var_os("TAXIMETER_TEST_ENGINE_METRICS").map_or(folder, PathBuf::from);
    let Ok(truth) = std::fs::read(folder.join("truth.json")) else {
        eprintln!("NOT COMPARED: {} is not there", folder.display());
        return;
    };
    let truth: serde_json::Value = serde_json::from_slice(&truth).unwrap();
    for (file, truth) in [
        ("vllm-0.33-t0", &truth["vllm-0.33"]["t0"]),
        ("vllm-0.33-t1-saturated", &truth["vllm-0.33"]["t1"]),
        ("sglang-0.5.23", &truth["sglang-0.5.23"]),
    ] {
        let bytes = std::fs::read(folder.join(format!("{file}.prom"))).unwrap();
        let (reading, skipped) = reading_of(&bytes);
        assert_eq!(skipped, "");
        let engine = |name: &str| format!("taximeter.fleet.engine.{name}");
        for (name, member) in [
            ("requests", "requests"),
            ("prompt_tokens", "prompt"),
            ("cached_tokens", "cached"),
            ("prefix_hit_tokens", "cached"),
            ("generation_tokens", "generation"),
        ] {
            let sum: f64 = numbers(&reading, &engine(name), "").iter().sum();
            assert_eq!(Some(sum), truth[member].as_f64(), "{file} {name}");
        }
        for (name, member) in [
            ("gen_ai.server.time_to_first_token".to_owned(), "ttft_sum"),
            (engine("queue_time"), "queue_sum"),
            ("gen_ai.server.request.duration".to_owned(), "e2e_sum"),
        ] {
            let sums = reading.measured.iter().filter(|is| is.quantity.name == name);
            let sum: f64 = sums
                .map(|is| match is.value {
                    Value::Histogram(of) => of.sum.unwrap(),
                    Value::Number(_) => panic!("{name} is a number"),
                })
                .sum();
            let true_sum = truth[member].as_f64().unwrap();
            assert!(
                (sum - true_sum).abs() < 1e-9 * true_sum,
                "{file} {name}: {sum} for {true_sum}"
            );
        }
    }
    for (file, program) in [
        ("llamacpp", "llama.cpp"),
        ("dcgm-new-hostname-label", "dcgm"),
        ("dcgm-old-Hostname-label", "dcgm"),
        ("nccl-inspector", "nccl-inspector"),
    ] {
        let bytes = std::fs::read(folder.join(format!("{file}.prom"))).unwrap();
        let (reading, skipped) = reading_of(&bytes);
        assert_eq!(skipped, "");
        assert_eq!(reading.programs[0].name, program);
        assert!(reading.programs[0].is_certain || program == "nccl-inspector");
        assert_eq!(reading.programs.len(), 1);
    }
}

/// Whatever stands in a scrape, reading it is bounded, and nothing is invented.
#[test]
fn a_changed_byte_does_not_break_the_reading() {
    for name in ["dcgm-4", "vllm-0.33", "node-1.8", "amd-mi300x"] {
        let bytes = std::fs::read(folder().join(format!("{name}.prom"))).unwrap();
        let before = reading_of(&bytes).0.measured.len();
        for at in (0..bytes.len()).step_by(7) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x15;
            let after = reading_of(&changed).0.measured.len();
            // A changed label makes a subject of its own, and a changed node or owner one for each bit.
            assert!(after <= before + 12, "{name} {at}: {before} to {after}");
        }
    }
}
