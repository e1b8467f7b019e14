//! AMD's device-metrics-exporter. Its operator may put any text before all names, and many put `amd_`.
//! Where a GPU is divided, sensors are told of its first part only; on the others they are 0 or absent.

use crate::identity::Field;
use crate::quantity as q;
use crate::reading::Component;
use crate::row::{Mark, Op, Refuse, Row, Source, derived, row};

pub(super) const SOURCE: Source = Source {
    name: "amd",
    title: "AMD device-metrics-exporter",
    prefixes: &["GPU_", "PCIE_"],
    any_case: true,
    anchors: &[
        "gpu_gfx_activity",
        "gpu_package_power",
        "gpu_average_package_power",
        "gpu_used_vram",
        "gpu_total_vram",
        "gpu_total_memory",
        "gpu_energy_consumed",
        "gpu_junction_temperature",
        "gpu_edge_temperature",
        "gpu_umc_activity",
        "gpu_nodes_total",
    ],
    marks: &[
        Mark::Label("card_model"),
        Mark::Label("card_series"),
        Mark::Label("serial_number"),
        Mark::Label("SERIAL_NUMBER"),
        Mark::Label("gpu_partition_id"),
        Mark::Label("gpu_compute_partition_type"),
        Mark::Metric("GPU_GFX_ACTIVITY"),
        Mark::Metric("GPU_USED_VRAM"),
    ],
    foreign: &[],
    generations: &[
        (Mark::LabelBegins("clock_type", "GPU_CLOCK_TYPE_"), "before November 2025"),
        (Mark::Label("clock_type"), "November 2025 or later"),
        (Mark::Metric("GPU_TOTAL_MEMORY"), "an early build"),
    ],
    identity: &[
        ("instance", Field::Instance),
        ("hostname", Field::Node),
        ("Hostname", Field::Node),
        ("HOSTNAME", Field::Node),
        ("serial_number", Field::Gpu),
        ("SERIAL_NUMBER", Field::Gpu),
        ("gpu_uuid", Field::Gpu),
        ("GPU_UUID", Field::Gpu),
        ("gpu_id", Field::Gpu),
        ("GPU_ID", Field::Gpu),
        ("card_series", Field::GpuModel),
        ("card_model", Field::GpuModel),
        ("CARD_MODEL", Field::GpuModel),
        ("gpu_partition_id", Field::Part),
        ("partition_id", Field::Part),
        ("gpu_compute_partition_type", Field::Profile),
        ("exported_namespace", Field::Namespace),
        ("namespace", Field::Namespace),
        ("NAMESPACE", Field::Namespace),
        ("exported_pod", Field::Pod),
        ("pod", Field::Pod),
        ("POD", Field::Pod),
        ("exported_container", Field::Container),
        ("container", Field::Container),
        ("CONTAINER", Field::Container),
    ],
    subject: &[Field::Instance, Field::Node, Field::Gpu, Field::Part],
    node_of: None,
    ignored: &[
        "job",
        "endpoint",
        "service",
        "card_vendor",
        "cluster_name",
        "deployment_mode",
        "driver_version",
        "DRIVER_VERSION",
        "vbios_version",
        "gpu_memory_partition_type",
        "kfd_process_id",
        "pod_uuid",
        "job_id",
        "job_user",
        "job_partition",
    ],
    versions: &[("driver_version", Component::Driver), ("DRIVER_VERSION", Component::Driver)],
    version_at: &[],
    rows: ROWS,
    derived: &[derived(
        q::GPU_MEMORY_LIMIT,
        Op::Sum,
        &[q::GPU_MEMORY_USAGE, q::GPU_MEMORY_FREE],
        "",
    )],
    blank: Some(blank),
    never: &[
        (q::GPU_OWNER, "no labels of a pod"),
        (q::GPU_LAST_XID, "XIDs are NVIDIA's; AMD tells a field id (AFID)"),
        (q::GPU_THROTTLE, "AMD counts what holds clocks down without a unit of time"),
    ],
};

/// What AMD's driver says of a sensor that a card does not have: a number of all ones.
fn blank(value: f64) -> Option<&'static str> {
    let ones = [65_535.0, 4_294_967_295.0];
    let is_blank = value >= 1.8e19 || ones.iter().any(|is| (value - is).abs() < 0.5);
    is_blank.then_some("all bits are ones, which is how the driver says that there is no sensor")
}

const MIB: f64 = 1_048_576.0;
const PART: Refuse = Refuse::ZeroBeyondFirst(
    "gpu_partition_id",
    "told of the first part of a divided GPU only, and 0 on the others",
);
const OLD_PART: Refuse = Refuse::ZeroBeyondFirst(
    "partition_id",
    "told of the first part of a divided GPU only, and 0 on the others",
);
const FIRST_ONLY: &[Refuse] = &[PART, OLD_PART];
const NOT_OFFERED: &[Refuse] =
    &[PART, OLD_PART, Refuse::Zero("0 is what it prints where the chip does not offer it")];
const PROFILER: &str = "profiler metrics are off by default";
const MI3: &str = "of the MI300 series only";

const fn violation(
    names: &'static [&'static str],
    fixed: &'static [(&'static str, &'static str)],
) -> Row {
    row(names, q::GPU_THROTTLED).fixed(fixed).scaled("%", 0.01).absent(MI3)
}

const ROWS: &[Row] = &[
    row(&["GPU_GFX_ACTIVITY", "GPU_USAGE"], q::GPU_UTILIZATION)
        .fixed(&[("hw.gpu.task", "general")])
        .scaled("%", 0.01)
        .refuse(FIRST_ONLY),
    row(&["GPU_PROF_SM_ACTIVE"], q::GPU_SM_ACTIVE).scaled("%", 0.01).absent(PROFILER),
    row(&["GPU_PROF_OCCUPANCY_PERCENT"], q::GPU_SM_OCCUPANCY).scaled("%", 0.01).absent(PROFILER),
    row(&["GPU_PROF_TENSOR_ACTIVE_PERCENT"], q::GPU_TENSOR_ACTIVE)
        .scaled("%", 0.01)
        .absent(PROFILER),
    row(&["GPU_UMC_ACTIVITY"], q::GPU_DRAM_ACTIVE).scaled("%", 0.01).refuse(FIRST_ONLY),
    row(&["GPU_USED_VRAM"], q::GPU_MEMORY_USAGE).scaled("MiB", MIB),
    row(&["GPU_FREE_VRAM"], q::GPU_MEMORY_FREE).scaled("MiB", MIB),
    row(&["GPU_TOTAL_VRAM"], q::GPU_MEMORY_LIMIT).scaled("MiB", MIB),
    row(&["GPU_TOTAL_MEMORY"], q::GPU_MEMORY_LIMIT).scaled("MB", 1e6),
    row(&["GPU_PACKAGE_POWER", "GPU_POWER_USAGE", "GPU_AVERAGE_PACKAGE_POWER"], q::POWER)
        .fixed(GPU)
        .refuse(NOT_OFFERED),
    row(&["GPU_ENERGY_CONSUMED"], q::ENERGY).fixed(GPU).scaled("µJ", 1e-6).refuse(NOT_OFFERED),
    row(&["GPU_JUNCTION_TEMPERATURE"], q::TEMPERATURE)
        .fixed(&[("hw.type", "gpu"), ("sensor", "junction")])
        .refuse(NOT_OFFERED)
        .absent("told of the MI300 series"),
    row(&["GPU_EDGE_TEMPERATURE"], q::TEMPERATURE)
        .fixed(&[("hw.type", "gpu"), ("sensor", "edge")])
        .refuse(NOT_OFFERED)
        .absent("told of the MI200 series"),
    row(&["GPU_MEMORY_TEMPERATURE"], q::TEMPERATURE)
        .fixed(&[("hw.type", "gpu"), ("sensor", "memory")])
        .refuse(NOT_OFFERED),
    row(&["GPU_CLOCK"], q::GPU_CLOCK)
        .fixed(&[("clock", "sm")])
        .only("clock_type", &["system", "GPU_CLOCK_TYPE_SYSTEM"])
        .scaled("MHz", 1e6)
        .labels(&[("clock_index", "index")])
        .refuse(FIRST_ONLY),
    row(&["GPU_CLOCK"], q::GPU_CLOCK)
        .fixed(&[("clock", "memory")])
        .only("clock_type", &["memory", "GPU_CLOCK_TYPE_MEMORY"])
        .scaled("MHz", 1e6)
        .labels(&[("clock_index", "index")])
        .refuse(FIRST_ONLY),
    row(&["PCIE_BANDWIDTH"], q::GPU_LINK_RATE)
        .fixed(&[("link", "pcie"), ("network.io.direction", "both")])
        .scaled("Mbit/s", 125_000.0)
        .refuse(FIRST_ONLY)
        .absent(MI3),
    row(&["PCIE_SPEED"], q::GPU_LINK_SPEED).fixed(&[("link", "pcie")]).refuse(FIRST_ONLY),
    row(&["GPU_XGMI_LINK_TX"], q::GPU_LINK_BYTES)
        .fixed(&[("link", "xgmi"), ("network.io.direction", "transmit")])
        .labels(&[("link_index", "index")])
        .scaled("KiB", 1024.0),
    row(&["GPU_XGMI_LINK_RX"], q::GPU_LINK_BYTES)
        .fixed(&[("link", "xgmi"), ("network.io.direction", "receive")])
        .labels(&[("link_index", "index")])
        .scaled("KiB", 1024.0),
    violation(&["GPU_VIOLATION_PPT_RESIDENCY_PERCENTAGE"], &[("reason", "power_cap")]),
    violation(
        &["GPU_VIOLATION_PROCESSOR_HOT_RESIDENCY_PERCENTAGE"],
        &[("reason", "processor_hot")],
    ),
    violation(&["GPU_VIOLATION_SOCKET_THERMAL_RESIDENCY_PERCENTAGE"], &[("reason", "thermal")]),
    violation(&["GPU_VIOLATION_VR_THERMAL_RESIDENCY_PERCENTAGE"], &[("reason", "vr_thermal")]),
    violation(&["GPU_VIOLATION_HBM_THERMAL_RESIDENCY_PERCENTAGE"], &[("reason", "memory_thermal")]),
    row(&["GPU_AFID_ERRORS"], q::GPU_LAST_AFID),
    row(&["GPU_HEALTH"], q::HW_STATUS).fixed(&[("hw.state", "ok"), ("hw.type", "gpu")]),
    row(&["GPU_ECC_CORRECT_TOTAL"], q::HW_ERRORS).fixed(&[("error.type", "ecc.corrected")]),
    row(&["GPU_ECC_UNCORRECT_TOTAL"], q::HW_ERRORS).fixed(&[("error.type", "ecc.uncorrected")]),
    row(&["GPU_ECC_DEFERRED_TOTAL"], q::HW_ERRORS).fixed(&[("error.type", "ecc.deferred")]),
    row(&["PCIE_REPLAY_COUNT"], q::HW_ERRORS).fixed(&[("error.type", "pcie.replay")]).absent(MI3),
    row(&["PCIE_RECOVERY_COUNT"], q::HW_ERRORS)
        .fixed(&[("error.type", "pcie.recovery")])
        .absent(MI3),
    row(&["PCIE_REPLAY_ROLLOVER_COUNT"], q::HW_ERRORS)
        .fixed(&[("error.type", "pcie.replay_rollover")])
        .absent(MI3),
    row(&["PCIE_NACK_SENT_COUNT"], q::HW_ERRORS)
        .fixed(&[("error.type", "pcie.nack_sent")])
        .absent(MI3),
    row(&["PCIE_NACK_RECEIVED_COUNT"], q::HW_ERRORS)
        .fixed(&[("error.type", "pcie.nack_received")])
        .absent(MI3),
];

const GPU: &[(&str, &str)] = &[("hw.type", "gpu")];
