//! NVIDIA's dcgm-exporter: fields of DCGM under their own names, in the old namespace in lower case, and
//! under the names of 1.x. Which fields there are is a file of its operator.

use crate::identity::Field;
use crate::quantity as q;
use crate::reading::Component;
use crate::row::{Mark, Op, Refuse, Row, Source, derived, row};
use crate::sample::Declared;

pub(super) const SOURCE: Source = Source {
    name: "dcgm",
    title: "NVIDIA dcgm-exporter",
    prefixes: &["DCGM_"],
    any_case: true,
    anchors: &[],
    marks: &[
        Mark::LabelBegins("UUID", "GPU-"),
        Mark::LabelBegins("uuid", "GPU-"),
        Mark::LabelBegins("gpu_uuid", "GPU-"),
        Mark::LabelBegins("device", "nvidia"),
        Mark::Label("modelName"),
        Mark::Label("DCGM_FI_DRIVER_VERSION"),
        Mark::Label("pci_bus_id"),
    ],
    foreign: &[],
    generations: &[
        (Mark::Label("pod_name"), "old namespace"),
        (Mark::Metric("GPU_TEMP"), "names of 1.x"),
        (Mark::Metric("POWER_USAGE"), "names of 1.x"),
        (Mark::LabelBegins("uuid", "GPU-"), "old namespace"),
        (Mark::Label("hostname"), "label hostname (2026)"),
        (Mark::Label("Hostname"), "label Hostname"),
    ],
    identity: &[
        ("instance", Field::Instance),
        ("Hostname", Field::Node),
        ("hostname", Field::Node),
        ("UUID", Field::Gpu),
        ("uuid", Field::Gpu),
        ("gpu_uuid", Field::Gpu),
        ("gpu", Field::Gpu),
        ("modelName", Field::GpuModel),
        ("model_name", Field::GpuModel),
        ("pci_bus_id", Field::Pci),
        ("GPU_I_ID", Field::Part),
        ("GPU_I_PROFILE", Field::Profile),
        ("exported_namespace", Field::Namespace),
        ("namespace", Field::Namespace),
        ("pod_namespace", Field::Namespace),
        ("exported_pod", Field::Pod),
        ("pod", Field::Pod),
        ("pod_name", Field::Pod),
        ("exported_container", Field::Container),
        ("container", Field::Container),
        ("container_name", Field::Container),
    ],
    subject: &[Field::Instance, Field::Node, Field::Gpu, Field::Part],
    node_of: None,
    ignored: &[
        "job",
        "endpoint",
        "service",
        "device",
        "pod_uid",
        "DCGM_FI_DRIVER_VERSION",
        "DCGM_FI_PROCESS_NAME",
        "DCGM_FI_DEV_BRAND",
        "DCGM_FI_DEV_SERIAL",
        "DCGM_FI_DEV_NAME",
        "DCGM_FI_CUDA_DRIVER_VERSION",
        "DCGM_FI_NVML_VERSION",
        "DCGM_FI_DEV_VBIOS_VERSION",
        "err_msg",
    ],
    versions: &[("DCGM_FI_DRIVER_VERSION", Component::Driver)],
    version_at: &[],
    rows: ROWS,
    derived: &[
        derived(
            q::GPU_MEMORY_LIMIT,
            Op::Sum,
            &[q::GPU_MEMORY_USAGE, q::GPU_MEMORY_FREE, q::GPU_MEMORY_RESERVED],
            "",
        ),
        derived(
            q::GPU_MEMORY_LIMIT,
            Op::Sum,
            &[q::GPU_MEMORY_USAGE, q::GPU_MEMORY_FREE],
            "without what the driver keeps",
        ),
    ],
    blank: Some(blank),
    never: &[(q::GPU_OWNER, NO_OWNER)],
};

const NO_OWNER: &str = "no labels of a pod: the GPU is given to none, or the exporter is not told to \
                        ask Kubernetes";
const NOT_DEFAULT: &str = "not among the exporter's default fields";
const BOARD: &str = "not told of a MIG instance";
const NO_PROFILING: &str = "this GPU or driver gives no profiling fields, or they are not chosen";

const MIB: f64 = 1_048_576.0;
const TRANSMIT: (&str, &str) = ("network.io.direction", "transmit");
const RECEIVE: (&str, &str) = ("network.io.direction", "receive");
const PCIE: (&str, &str) = ("link", "pcie");
const NVLINK: (&str, &str) = ("link", "nvlink");

/// DCGM's words for "nothing": blank, not found, not supported, not permitted.
fn blank(value: f64) -> Option<&'static str> {
    const WHY: &str = "DCGM says that it is not supported";
    let of_double = (140_737_488_355_328.0..=140_737_488_355_331.0).contains(&value);
    let of_int32 = (2_147_483_632.0..=2_147_483_635.0).contains(&value);
    (of_double || of_int32 || value >= 9.2e18).then_some(WHY)
}

/// What holds clocks down, bit by bit.
const REASONS: &[(u32, &str)] = &[
    (0x1, "idle"),
    (0x2, "clocks_setting"),
    (0x4, "power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal"),
    (0x40, "hw_thermal"),
    (0x80, "hw_power_brake"),
    (0x100, "display_clocks"),
];

const fn ratio(names: &'static [&'static str], quantity: &'static q::Quantity) -> Row {
    row(names, quantity).absent(NO_PROFILING)
}

const fn percent(
    names: &'static [&'static str],
    quantity: &'static q::Quantity,
    fixed: &'static [(&'static str, &'static str)],
) -> Row {
    row(names, quantity).fixed(fixed).scaled("%", 0.01).absent_in_part(BOARD)
}

const fn mib(names: &'static [&'static str], quantity: &'static q::Quantity) -> Row {
    row(names, quantity).scaled("MiB", MIB)
}

const fn errors(
    names: &'static [&'static str],
    fixed: &'static [(&'static str, &'static str)],
) -> Row {
    row(names, q::HW_ERRORS).fixed(fixed).absent(NOT_DEFAULT)
}

const fn throttle(
    names: &'static [&'static str],
    fixed: &'static [(&'static str, &'static str)],
) -> Row {
    row(names, q::GPU_THROTTLE).fixed(fixed).scaled("ns", 1e-9).absent(NOT_DEFAULT)
}

const ROWS: &[Row] = &[
    percent(
        &["FI_DEV_GPU_UTIL", "GPU_UTILIZATION"],
        q::GPU_UTILIZATION,
        &[("hw.gpu.task", "general")],
    )
    .absent_in_part("DCGM gives no utilisation of a MIG instance"),
    percent(
        &["FI_DEV_ENC_UTIL", "ENC_UTILIZATION"],
        q::GPU_UTILIZATION,
        &[("hw.gpu.task", "encoder")],
    ),
    percent(
        &["FI_DEV_DEC_UTIL", "DEC_UTILIZATION"],
        q::GPU_UTILIZATION,
        &[("hw.gpu.task", "decoder")],
    ),
    ratio(&["FI_PROF_GR_ENGINE_ACTIVE"], q::GPU_ENGINE_ACTIVE),
    ratio(&["FI_PROF_SM_ACTIVE"], q::GPU_SM_ACTIVE).absent(NOT_DEFAULT),
    ratio(&["FI_PROF_SM_OCCUPANCY"], q::GPU_SM_OCCUPANCY).absent(NOT_DEFAULT),
    ratio(&["FI_PROF_PIPE_TENSOR_ACTIVE"], q::GPU_TENSOR_ACTIVE),
    ratio(&["FI_PROF_PIPE_FP64_ACTIVE"], q::GPU_PIPE_ACTIVE)
        .fixed(&[("pipe", "fp64")])
        .absent(NOT_DEFAULT),
    ratio(&["FI_PROF_PIPE_FP32_ACTIVE"], q::GPU_PIPE_ACTIVE)
        .fixed(&[("pipe", "fp32")])
        .absent(NOT_DEFAULT),
    ratio(&["FI_PROF_PIPE_FP16_ACTIVE"], q::GPU_PIPE_ACTIVE)
        .fixed(&[("pipe", "fp16")])
        .absent(NOT_DEFAULT),
    ratio(&["FI_PROF_DRAM_ACTIVE"], q::GPU_DRAM_ACTIVE),
    percent(&["FI_DEV_MEM_COPY_UTIL", "MEM_COPY_UTILIZATION"], q::GPU_DRAM_ACTIVE, &[]),
    mib(&["FI_DEV_FB_USED", "FB_USED"], q::GPU_MEMORY_USAGE),
    mib(&["FI_DEV_FB_FREE", "FB_FREE"], q::GPU_MEMORY_FREE),
    mib(&["FI_DEV_FB_RESERVED", "FB_RESERVED"], q::GPU_MEMORY_RESERVED),
    mib(&["FI_DEV_FB_TOTAL", "FB_TOTAL"], q::GPU_MEMORY_LIMIT),
    row(&["FI_DEV_POWER_USAGE", "FI_DEV_POWER_USAGE_INSTANT", "POWER_USAGE"], q::POWER).fixed(GPU),
    row(&["FI_DEV_ENFORCED_POWER_LIMIT", "FI_DEV_POWER_MGMT_LIMIT"], q::POWER_LIMIT)
        .absent(NOT_DEFAULT),
    row(&["FI_DEV_TOTAL_ENERGY_CONSUMPTION", "TOTAL_ENERGY_CONSUMPTION"], q::ENERGY)
        .fixed(GPU)
        .scaled("mJ", 1e-3),
    row(&["FI_DEV_GPU_TEMP", "GPU_TEMP"], q::TEMPERATURE)
        .fixed(&[("hw.type", "gpu"), ("sensor", "gpu")]),
    row(&["FI_DEV_MEMORY_TEMP", "MEMORY_TEMP"], q::TEMPERATURE)
        .fixed(&[("hw.type", "gpu"), ("sensor", "memory")])
        .refuse(&[Refuse::Zero("0 is a GPU whose memory has no sensor")]),
    row(&["FI_DEV_SM_CLOCK", "SM_CLOCK"], q::GPU_CLOCK)
        .fixed(&[("clock", "sm")])
        .scaled("MHz", 1e6),
    row(&["FI_DEV_MEM_CLOCK", "MEMORY_CLOCK"], q::GPU_CLOCK)
        .fixed(&[("clock", "memory")])
        .scaled("MHz", 1e6),
    // Its operator may have chosen the counter of bytes or the rate, under one name.
    row(&["FI_PROF_PCIE_TX_BYTES"], q::GPU_LINK_BYTES)
        .declared(Declared::Counter)
        .fixed(&[PCIE, TRANSMIT])
        .absent(RATE),
    row(&["FI_PROF_PCIE_RX_BYTES"], q::GPU_LINK_BYTES)
        .declared(Declared::Counter)
        .fixed(&[PCIE, RECEIVE])
        .absent(RATE),
    ratio(&["FI_PROF_PCIE_TX_BYTES"], q::GPU_LINK_RATE)
        .fixed(&[PCIE, TRANSMIT])
        .undeclared(AS_RATE),
    ratio(&["FI_PROF_PCIE_RX_BYTES"], q::GPU_LINK_RATE).fixed(&[PCIE, RECEIVE]).undeclared(AS_RATE),
    row(&["FI_PROF_NVLINK_TX_BYTES"], q::GPU_LINK_BYTES)
        .declared(Declared::Counter)
        .fixed(&[NVLINK, TRANSMIT])
        .absent(RATE),
    row(&["FI_PROF_NVLINK_RX_BYTES"], q::GPU_LINK_BYTES)
        .declared(Declared::Counter)
        .fixed(&[NVLINK, RECEIVE])
        .absent(RATE),
    ratio(&["FI_PROF_NVLINK_TX_BYTES"], q::GPU_LINK_RATE)
        .fixed(&[NVLINK, TRANSMIT])
        .undeclared(AS_RATE)
        .absent(NOT_DEFAULT),
    ratio(&["FI_PROF_NVLINK_RX_BYTES"], q::GPU_LINK_RATE)
        .fixed(&[NVLINK, RECEIVE])
        .undeclared(AS_RATE)
        .absent(NOT_DEFAULT),
    row(&["FI_DEV_NVLINK_BANDWIDTH_TOTAL", "NVLINK_BANDWIDTH_TOTAL"], q::GPU_LINK_BYTES)
        .fixed(&[NVLINK])
        .refuse(&[Refuse::Always("DCGM does not say in which unit it counts NVLink")]),
    throttle(
        &[
            "FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS",
            "FI_DEV_POWER_VIOLATION",
            "POWER_VIOLATION",
        ],
        &[("reason", "power_cap")],
    ),
    throttle(&["FI_DEV_THERMAL_VIOLATION", "THERMAL_VIOLATION"], &[("reason", "thermal")]),
    throttle(&["FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS"], &[("reason", "sw_thermal")]),
    throttle(&["FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS"], &[("reason", "hw_thermal")]),
    throttle(
        &["FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS"],
        &[("reason", "hw_power_brake")],
    ),
    throttle(
        &[
            "FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS",
            "FI_DEV_SYNC_BOOST_VIOLATION",
            "SYNC_BOOST_VIOLATION",
        ],
        &[("reason", "sync_boost")],
    ),
    throttle(
        &["FI_DEV_BOARD_LIMIT_VIOLATION", "BOARD_LIMIT_VIOLATION"],
        &[("reason", "board_limit")],
    ),
    throttle(
        &["FI_DEV_LOW_UTIL_VIOLATION", "LOW_UTIL_VIOLATION"],
        &[("reason", "low_utilization")],
    ),
    throttle(
        &["FI_DEV_RELIABILITY_VIOLATION", "RELIABILITY_VIOLATION"],
        &[("reason", "reliability")],
    ),
    row(&["FI_DEV_CLOCKS_EVENT_REASONS", "FI_DEV_CLOCK_THROTTLE_REASONS"], q::GPU_THROTTLED)
        .bits(REASONS)
        .absent(NOT_DEFAULT),
    row(&["EXP_CLOCK_EVENTS_COUNT"], q::GPU_THROTTLE_EVENTS)
        .labels(&[("clock_event", "reason")])
        .absent(NOT_DEFAULT),
    row(&["FI_DEV_XID_ERRORS", "XID_ERRORS"], q::GPU_LAST_XID)
        .absent("some releases print it only after an error: its absence does not say healthy"),
    row(&["EXP_XID_ERRORS_COUNT"], q::GPU_XID_EVENTS).labels(&[("xid", "xid")]).absent(NOT_DEFAULT),
    errors(
        &["FI_DEV_ECC_SBE_VOL_TOTAL", "ECC_SBE_VOLATILE_TOTAL"],
        &[("error.type", "ecc.corrected"), ("since", "driver")],
    ),
    errors(
        &["FI_DEV_ECC_DBE_VOL_TOTAL", "ECC_DBE_VOLATILE_TOTAL"],
        &[("error.type", "ecc.uncorrected"), ("since", "driver")],
    ),
    errors(
        &["FI_DEV_ECC_SBE_AGG_TOTAL", "ECC_SBE_AGGREGATE_TOTAL"],
        &[("error.type", "ecc.corrected"), ("since", "ever")],
    ),
    errors(
        &["FI_DEV_ECC_DBE_AGG_TOTAL", "ECC_DBE_AGGREGATE_TOTAL"],
        &[("error.type", "ecc.uncorrected"), ("since", "ever")],
    ),
    errors(
        &["FI_DEV_RETIRED_SBE", "RETIRED_PAGES_SBE"],
        &[("error.type", "retired_page.corrected")],
    ),
    errors(
        &["FI_DEV_RETIRED_DBE", "RETIRED_PAGES_DBE"],
        &[("error.type", "retired_page.uncorrected")],
    ),
    errors(
        &["FI_DEV_RETIRED_PENDING", "RETIRED_PAGES_PENDING"],
        &[("error.type", "retired_page.pending")],
    ),
    row(&["FI_DEV_CORRECTABLE_REMAPPED_ROWS"], q::HW_ERRORS)
        .fixed(&[("error.type", "remapped_row.corrected")]),
    row(&["FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"], q::HW_ERRORS)
        .fixed(&[("error.type", "remapped_row.uncorrected")]),
    row(&["FI_DEV_ROW_REMAP_FAILURE"], q::GPU_ROW_REMAP_FAILED),
    row(&["FI_DEV_PCIE_REPLAY_COUNTER", "PCIE_REPLAY_COUNTER"], q::HW_ERRORS)
        .fixed(&[("error.type", "pcie.replay")]),
    errors(
        &["FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "NVLINK_FLIT_CRC_ERROR_COUNT_TOTAL"],
        &[("error.type", "nvlink.crc_flit")],
    ),
    errors(
        &["FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "NVLINK_DATA_CRC_ERROR_COUNT_TOTAL"],
        &[("error.type", "nvlink.crc_data")],
    ),
    errors(
        &["FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "NVLINK_REPLAY_ERROR_COUNT_TOTAL"],
        &[("error.type", "nvlink.replay")],
    ),
    errors(
        &["FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "NVLINK_RECOVERY_ERROR_COUNT_TOTAL"],
        &[("error.type", "nvlink.recovery")],
    ),
];

const AS_RATE: &str = "not declared, and read as the rate that it is by default";
const RATE: &str = "printed as a rate, if at all";
const GPU: &[(&str, &str)] = &[("hw.type", "gpu")];
