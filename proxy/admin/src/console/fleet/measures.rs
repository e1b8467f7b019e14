//! The charts of engines, GPUs and hosts.

use super::curves::{How, Measure};
use super::figures::Form;

/// A measure of what is told, whatever its labels.
const fn measure(title: &'static str, quantity: &'static str, how: How, form: Form) -> Measure {
    Measure { title, quantity, having: &[], without: &[], how, form }
}

/// Is it full, does it wait, and what does it do?
pub(crate) const ENGINES: &[Measure] = &[
    measure(
        "Running requests",
        "taximeter.fleet.engine.requests_running",
        How::Level,
        Form::Number,
    ),
    measure(
        "Waiting requests",
        "taximeter.fleet.engine.requests_waiting",
        How::Level,
        Form::Number,
    ),
    measure("KV cache in use", "taximeter.fleet.engine.kv_cache_usage", How::Level, Form::Share),
    measure(
        "Prefix cache hits",
        "taximeter.fleet.engine.prefix_hit_tokens",
        How::PartOf("taximeter.fleet.engine.prefix_query_tokens"),
        Form::Share,
    ),
    measure("Preemptions", "taximeter.fleet.engine.preemptions", How::Rate, Form::PerSecond),
    measure("Requests of a step", "taximeter.fleet.engine.batch_size", How::Level, Form::Number),
    measure("Prompt tokens", "taximeter.fleet.engine.prompt_tokens", How::Rate, Form::PerSecond),
    measure(
        "Generated tokens",
        "taximeter.fleet.engine.generation_tokens",
        How::Rate,
        Form::PerSecond,
    ),
    measure(
        "Time to first token, 95th percentile",
        "gen_ai.server.time_to_first_token",
        How::P95,
        Form::Seconds,
    ),
];

/// What does it do and draw, is it held down, and is it ill?
pub(crate) const GPUS: &[Measure] = &[
    Measure {
        having: &[("hw.gpu.task", "general")],
        ..measure("Utilisation", "hw.gpu.utilization", How::Level, Form::Share)
    },
    measure("Multiprocessors", "taximeter.fleet.gpu.sm.active", How::Level, Form::Share),
    measure("Memory in use", "hw.gpu.memory.usage", How::Level, Form::Bytes),
    Measure {
        having: &[("hw.type", "gpu")],
        ..measure("Power", "hw.power", How::Level, Form::Watts)
    },
    Measure {
        having: &[("clock", "sm")],
        ..measure("Clock", "taximeter.fleet.gpu.clock", How::Level, Form::Clock)
    },
    Measure {
        having: &[("hw.type", "gpu")],
        ..measure("Temperature", "hw.temperature", How::Level, Form::Celsius)
    },
    Measure {
        without: &[("reason", "low_utilization")],
        ..measure("Held down", "taximeter.fleet.gpu.throttle", How::Rate, Form::Share)
    },
    measure("Links", "hw.gpu.io", How::Rate, Form::BytesPerSecond),
    measure("Links, as a rate", "taximeter.fleet.gpu.link.io", How::Level, Form::BytesPerSecond),
    measure("Errors", "hw.errors", How::Rate, Form::PerSecond),
];

/// Which resource is short?
pub(crate) const HOSTS: &[Measure] = &[
    Measure {
        without: &[("cpu.mode", "idle")],
        ..measure("Busy CPUs, by mode", "system.cpu.time", How::Rate, Form::Number)
    },
    Measure {
        having: &[("kind", "some")],
        ..measure(
            "Tasks that wait (PSI)",
            "taximeter.fleet.host.pressure.time",
            How::Rate,
            Form::Share,
        )
    },
    measure("Available memory", "system.memory.linux.available", How::Level, Form::Bytes),
    measure("Swapped pages", "system.paging.operations", How::Rate, Form::PerSecond),
    measure(
        "Time of a disk operation",
        "system.disk.operation_time",
        How::PartOf("system.disk.operations"),
        Form::Seconds,
    ),
    measure("Network", "system.network.io", How::Rate, Form::BytesPerSecond),
    measure("Segments sent again", "taximeter.fleet.net.retransmits", How::Rate, Form::PerSecond),
];
