//! The quantities of the schema: name, unit, layer. Names are OpenTelemetry's where it has one for the
//! same thing; the others begin with `taximeter.fleet.`.

/// Where a quantity belongs, from the chip up to money.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// L1.
    Gpu,
    /// L2.
    Collectives,
    /// L3.
    Host,
    /// L4.
    Owner,
    /// L5.
    Training,
    /// L6.
    Engine,
    /// L7.
    Requests,
    /// L8.
    Money,
}

impl Layer {
    /// `L1` to `L8`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Gpu => "L1",
            Self::Collectives => "L2",
            Self::Host => "L3",
            Self::Owner => "L4",
            Self::Training => "L5",
            Self::Engine => "L6",
            Self::Requests => "L7",
            Self::Money => "L8",
        }
    }
}

/// How a value behaves over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instrument {
    /// It only grows, until its program starts again.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Many observations since the program started.
    Histogram,
}

/// Which values can be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Valid {
    /// Any number.
    Any,
    /// From 0 on.
    NotNegative,
    /// From 0 to 1.
    Ratio,
}

/// One quantity.
#[derive(Debug, PartialEq, Eq)]
pub struct Quantity {
    /// Its name.
    pub name: &'static str,
    /// Its unit, as UCUM writes it.
    pub unit: &'static str,
    /// Its layer.
    pub layer: Layer,
    /// How it behaves.
    pub instrument: Instrument,
    /// Which values can be true.
    pub valid: Valid,
    /// What it is.
    pub meaning: &'static str,
}

macro_rules! quantities {
    ($($constant:ident = $name:literal, $unit:literal, $layer:ident, $instrument:ident, $valid:ident,
        $meaning:literal;)*) => {
        $(
            #[doc = $meaning]
            pub(crate) const $constant: &Quantity = &Quantity {
                name: $name,
                unit: $unit,
                layer: Layer::$layer,
                instrument: Instrument::$instrument,
                valid: Valid::$valid,
                meaning: $meaning,
            };
        )*

        /// All of them, layer by layer.
        pub const QUANTITIES: &[&Quantity] = &[$($constant),*];
    };
}

quantities! {
    GPU_UTILIZATION = "hw.gpu.utilization", "1", Gpu, Gauge, Ratio,
        "share of time in which the GPU, or its video unit, did something";
    GPU_ENGINE_ACTIVE = "taximeter.fleet.gpu.engine.active", "1", Gpu, Gauge, Ratio,
        "share of time in which the compute engine was active";
    GPU_SM_ACTIVE = "taximeter.fleet.gpu.sm.active", "1", Gpu, Gauge, Ratio,
        "share of cycles in which a multiprocessor had work";
    GPU_SM_OCCUPANCY = "taximeter.fleet.gpu.sm.occupancy", "1", Gpu, Gauge, Ratio,
        "resident warps by what would fit";
    GPU_TENSOR_ACTIVE = "taximeter.fleet.gpu.tensor.active", "1", Gpu, Gauge, Ratio,
        "share of cycles in which the tensor units were active";
    GPU_PIPE_ACTIVE = "taximeter.fleet.gpu.pipe.active", "1", Gpu, Gauge, Ratio,
        "share of cycles in which a pipe for one format of numbers was active";
    GPU_DRAM_ACTIVE = "taximeter.fleet.gpu.dram.active", "1", Gpu, Gauge, Ratio,
        "share of cycles in which the memory sent or received";
    GPU_MEMORY_USAGE = "hw.gpu.memory.usage", "By", Gpu, Gauge, NotNegative, "memory in use";
    GPU_MEMORY_FREE = "taximeter.fleet.gpu.memory.free", "By", Gpu, Gauge, NotNegative, "free memory";
    GPU_MEMORY_RESERVED = "taximeter.fleet.gpu.memory.reserved", "By", Gpu, Gauge, NotNegative,
        "memory that the driver keeps";
    GPU_MEMORY_LIMIT = "hw.gpu.memory.limit", "By", Gpu, Gauge, NotNegative, "memory that there is";
    POWER = "hw.power", "W", Gpu, Gauge, NotNegative, "power of the whole board";
    POWER_LIMIT = "taximeter.fleet.gpu.power.limit", "W", Gpu, Gauge, NotNegative,
        "power at which the board is capped";
    ENERGY = "hw.energy", "J", Gpu, Counter, NotNegative, "energy since the driver was loaded";
    TEMPERATURE = "hw.temperature", "Cel", Gpu, Gauge, Any, "temperature of a sensor";
    GPU_CLOCK = "taximeter.fleet.gpu.clock", "Hz", Gpu, Gauge, NotNegative, "clock";
    GPU_LINK_RATE = "taximeter.fleet.gpu.link.io", "By/s", Gpu, Gauge, NotNegative,
        "traffic of a link, as a rate";
    GPU_LINK_BYTES = "hw.gpu.io", "By", Gpu, Counter, NotNegative, "traffic of a link, added up";
    GPU_LINK_SPEED = "taximeter.fleet.gpu.link.speed", "GT/s", Gpu, Gauge, NotNegative,
        "transfers per second that a link has agreed on";
    GPU_THROTTLE = "taximeter.fleet.gpu.throttle", "s", Gpu, Counter, NotNegative,
        "time in which clocks were held down, by reason";
    GPU_THROTTLED = "taximeter.fleet.gpu.throttled", "1", Gpu, Gauge, Ratio,
        "1 while a reason holds clocks down, or the share of time in which it did";
    GPU_THROTTLE_EVENTS = "taximeter.fleet.gpu.throttle.events", "{event}", Gpu, Gauge, NotNegative,
        "times that clocks were held down in the exporter's last minutes; may fall";
    HW_ERRORS = "hw.errors", "{error}", Gpu, Counter, NotNegative, "errors by type";
    GPU_LAST_XID = "taximeter.fleet.gpu.xid.last", "{code}", Gpu, Gauge, NotNegative,
        "the last XID of the driver; 0 is none since the exporter started";
    GPU_XID_EVENTS = "taximeter.fleet.gpu.xid.events", "{event}", Gpu, Gauge, NotNegative,
        "XIDs in the exporter's last minutes; may fall";
    GPU_LAST_AFID = "taximeter.fleet.gpu.afid.last", "{code}", Gpu, Gauge, NotNegative,
        "AMD's field id of the last error";
    GPU_ROW_REMAP_FAILED = "taximeter.fleet.gpu.row_remap.failed", "1", Gpu, Gauge, Ratio,
        "1 if a memory row could not be replaced";
    HW_STATUS = "hw.status", "1", Gpu, Gauge, Ratio, "1 if the state is so";
    CPU_TIME = "system.cpu.time", "s", Host, Counter, NotNegative, "time of all CPUs by mode";
    LOAD_1M = "system.cpu.load_average.1m", "{thread}", Host, Gauge, NotNegative,
        "load average of a minute";
    LOAD_5M = "system.cpu.load_average.5m", "{thread}", Host, Gauge, NotNegative,
        "load average of five minutes";
    LOAD_15M = "system.cpu.load_average.15m", "{thread}", Host, Gauge, NotNegative,
        "load average of fifteen minutes";
    MEMORY_LIMIT = "system.memory.limit", "By", Host, Gauge, NotNegative, "memory that there is";
    MEMORY_AVAILABLE = "system.memory.linux.available", "By", Host, Gauge, NotNegative,
        "memory that new programs can get without swapping";
    PAGING_USAGE = "system.paging.usage", "By", Host, Gauge, NotNegative, "swap by state";
    PAGING_FAULTS = "system.paging.faults", "{fault}", Host, Counter, NotNegative, "page faults";
    PAGING_OPERATIONS = "system.paging.operations", "{operation}", Host, Counter, NotNegative,
        "pages that were swapped";
    HOST_PRESSURE = "taximeter.fleet.host.pressure.time", "s", Host, Counter, NotNegative,
        "time in which some or all tasks waited for a resource (PSI)";
    HOST_OOM_KILLS = "taximeter.fleet.host.oom_kills", "{process}", Host, Counter, NotNegative,
        "processes that the kernel killed for memory";
    DISK_IO = "system.disk.io", "By", Host, Counter, NotNegative, "bytes of a disk";
    DISK_OPERATIONS = "system.disk.operations", "{operation}", Host, Counter, NotNegative,
        "operations of a disk";
    DISK_OPERATION_TIME = "system.disk.operation_time", "s", Host, Counter, NotNegative,
        "time of all operations of a disk";
    DISK_IO_TIME = "system.disk.io_time", "s", Host, Counter, NotNegative,
        "time in which a disk was busy";
    NETWORK_IO = "system.network.io", "By", Host, Counter, NotNegative, "bytes of a network card";
    NETWORK_PACKETS = "system.network.packet.count", "{packet}", Host, Counter, NotNegative,
        "packets of a network card";
    NETWORK_ERRORS = "system.network.errors", "{error}", Host, Counter, NotNegative,
        "errors of a network card";
    NETWORK_DROPPED = "system.network.packet.dropped", "{packet}", Host, Counter, NotNegative,
        "packets that a network card dropped";
    NETWORK_SPEED = "taximeter.fleet.net.speed", "By/s", Host, Gauge, NotNegative,
        "speed of a network card";
    NET_SEGMENTS = "taximeter.fleet.net.segments", "{segment}", Host, Counter, NotNegative,
        "TCP segments that were sent";
    NET_RETRANSMITS = "taximeter.fleet.net.retransmits", "{segment}", Host, Counter, NotNegative,
        "TCP segments that were sent again";
    NET_RETRANSMIT = "taximeter.fleet.net.retransmit", "1", Host, Gauge, Ratio,
        "share of TCP segments that were sent again, since the host started";
    NET_SYN_RETRANSMITS = "taximeter.fleet.net.syn_retransmits", "{segment}", Host, Counter,
        NotNegative, "first segments of connections that were sent again";
    NET_TIMEOUTS = "taximeter.fleet.net.timeouts", "{timeout}", Host, Counter, NotNegative,
        "TCP timers that ran out";
    NET_LISTEN_DROPS = "taximeter.fleet.net.listen_drops", "{connection}", Host, Counter, NotNegative,
        "connections that a full queue of a listener refused";
    FILESYSTEM_USAGE = "system.filesystem.usage", "By", Host, Gauge, NotNegative,
        "room of a file system by state";
    FILESYSTEM_LIMIT = "system.filesystem.limit", "By", Host, Gauge, NotNegative,
        "size of a file system";
    HOST_TEMPERATURE = "hw.temperature", "Cel", Host, Gauge, Any, "temperature of a sensor of the host";
    HOST_ENERGY = "hw.energy", "J", Host, Counter, NotNegative,
        "energy of CPU or memory since the host started (RAPL)";
    GPU_OWNER = "taximeter.fleet.gpu.owner", "1", Owner, Gauge, Ratio,
        "1 for the pod that a GPU is given to";
    REQUESTS_RUNNING = "taximeter.fleet.engine.requests_running", "{request}", Engine, Gauge,
        NotNegative, "requests that the engine works on";
    REQUESTS_WAITING = "taximeter.fleet.engine.requests_waiting", "{request}", Engine, Gauge,
        NotNegative, "requests that wait in the engine";
    REQUESTS_WAITING_BY_REASON = "taximeter.fleet.engine.requests_waiting_by_reason", "{request}",
        Engine, Gauge, NotNegative, "the waiting requests by what they wait for";
    REQUESTS_SWAPPED = "taximeter.fleet.engine.requests_swapped", "{request}", Engine, Gauge,
        NotNegative, "requests whose memory was moved to the host";
    KV_CACHE_USAGE = "taximeter.fleet.engine.kv_cache_usage", "1", Engine, Gauge, Ratio,
        "share of the KV cache that is in use";
    KV_CACHE_TOKENS = "taximeter.fleet.engine.kv_cache_tokens", "{token}", Engine, Gauge, NotNegative,
        "tokens in the KV cache";
    KV_CACHE_LIMIT = "taximeter.fleet.engine.kv_cache_limit", "{token}", Engine, Gauge, NotNegative,
        "tokens that the KV cache can hold";
    PREFIX_QUERY_TOKENS = "taximeter.fleet.engine.prefix_query_tokens", "{token}", Engine, Counter,
        NotNegative, "tokens that were looked up in the prefix cache";
    PREFIX_HIT_TOKENS = "taximeter.fleet.engine.prefix_hit_tokens", "{token}", Engine, Counter,
        NotNegative, "tokens that the prefix cache had";
    EXTERNAL_QUERY_TOKENS = "taximeter.fleet.engine.external_query_tokens", "{token}", Engine,
        Counter, NotNegative, "tokens that were looked up in a cache of several engines";
    EXTERNAL_HIT_TOKENS = "taximeter.fleet.engine.external_hit_tokens", "{token}", Engine, Counter,
        NotNegative, "tokens that a cache of several engines had";
    PREFIX_HIT_RATE = "taximeter.fleet.engine.prefix_hit_rate", "1", Engine, Gauge, Ratio,
        "share of tokens that the prefix cache had lately, as the engine says it";
    PREEMPTIONS = "taximeter.fleet.engine.preemptions", "{request}", Engine, Counter, NotNegative,
        "requests that lost their place";
    EVICTIONS = "taximeter.fleet.engine.evictions", "{token}", Engine, Counter, NotNegative,
        "tokens that left the cache for others";
    PROMPT_TOKENS = "taximeter.fleet.engine.prompt_tokens", "{token}", Engine, Counter, NotNegative,
        "tokens of prompts, with those that came from a cache";
    CACHED_TOKENS = "taximeter.fleet.engine.cached_tokens", "{token}", Engine, Counter, NotNegative,
        "tokens of prompts that came from a cache";
    PREFILL_TOKENS = "taximeter.fleet.engine.prefill_tokens", "{token}", Engine, Counter, NotNegative,
        "tokens of prompts that were computed";
    GENERATION_TOKENS = "taximeter.fleet.engine.generation_tokens", "{token}", Engine, Counter,
        NotNegative, "tokens that were generated";
    REQUESTS = "taximeter.fleet.engine.requests", "{request}", Engine, Counter, NotNegative,
        "requests that ended, by how";
    REQUESTS_ABORTED = "taximeter.fleet.engine.requests_aborted", "{request}", Engine, Counter,
        NotNegative, "requests that were given up";
    REJECTED = "taximeter.fleet.engine.rejected", "{request}", Engine, Counter, NotNegative,
        "requests that the engine refused";
    TIME_TO_FIRST_TOKEN = "gen_ai.server.time_to_first_token", "s", Engine, Histogram, NotNegative,
        "from the request to its first token";
    TIME_PER_OUTPUT_TOKEN = "gen_ai.server.time_per_output_token", "s", Engine, Histogram,
        NotNegative, "mean time between the tokens of a request";
    INTER_TOKEN_LATENCY = "taximeter.fleet.engine.inter_token_latency", "s", Engine, Histogram,
        NotNegative, "time between two tokens";
    REQUEST_DURATION = "gen_ai.server.request.duration", "s", Engine, Histogram, NotNegative,
        "from the request to its end";
    QUEUE_TIME = "taximeter.fleet.engine.queue_time", "s", Engine, Histogram, NotNegative,
        "time that a request waited in the engine";
    PREFILL_TIME = "taximeter.fleet.engine.prefill_time", "s", Engine, Histogram, NotNegative,
        "time of a request's prefill";
    DECODE_TIME = "taximeter.fleet.engine.decode_time", "s", Engine, Histogram, NotNegative,
        "time of a request's decoding";
    INFERENCE_TIME = "taximeter.fleet.engine.inference_time", "s", Engine, Histogram, NotNegative,
        "time that a request ran";
    PREFILL_SECONDS = "taximeter.fleet.engine.prefill_seconds", "s", Engine, Counter, NotNegative,
        "time of all prefills";
    DECODE_SECONDS = "taximeter.fleet.engine.decode_seconds", "s", Engine, Counter, NotNegative,
        "time of all decoding";
    SEQUENCE_MAX = "taximeter.fleet.engine.sequence_max", "{token}", Engine, Gauge, NotNegative,
        "tokens of the longest request so far";
    PROMPT_LENGTH = "taximeter.fleet.engine.prompt_length", "{token}", Engine, Histogram, NotNegative,
        "tokens of a prompt";
    GENERATION_LENGTH = "taximeter.fleet.engine.generation_length", "{token}", Engine, Histogram,
        NotNegative, "tokens of an answer";
    BATCH_TOKENS = "taximeter.fleet.engine.batch_tokens", "{token}", Engine, Histogram, NotNegative,
        "tokens of a step";
    BATCH_SIZE = "taximeter.fleet.engine.batch_size", "{request}", Engine, Gauge, NotNegative,
        "mean requests of a step";
    STEPS = "taximeter.fleet.engine.steps", "{step}", Engine, Counter, NotNegative,
        "steps of the model";
    PROMPT_THROUGHPUT = "taximeter.fleet.engine.prompt_throughput", "{token}/s", Engine, Gauge,
        NotNegative, "prompt tokens per second, as the engine says it";
    GENERATION_THROUGHPUT = "taximeter.fleet.engine.generation_throughput", "{token}/s", Engine,
        Gauge, NotNegative, "generated tokens per second, as the engine says it";
    SPEC_DRAFTS = "taximeter.fleet.engine.spec_drafts", "{draft}", Engine, Counter, NotNegative,
        "drafts of speculative decoding";
    SPEC_DRAFT_TOKENS = "taximeter.fleet.engine.spec_draft_tokens", "{token}", Engine, Counter,
        NotNegative, "tokens that were drafted";
    SPEC_ACCEPTED_TOKENS = "taximeter.fleet.engine.spec_accepted_tokens", "{token}", Engine, Counter,
        NotNegative, "drafted tokens that were accepted";
    SPEC_ACCEPT_RATE = "taximeter.fleet.engine.spec_accept_rate", "1", Engine, Gauge, Ratio,
        "share of drafted tokens that were accepted";
    SPEC_ACCEPT_LENGTH = "taximeter.fleet.engine.spec_accept_length", "{token}", Engine, Gauge,
        NotNegative, "tokens that one step of speculative decoding brings";
    ENGINE_STATE = "taximeter.fleet.engine.state", "1", Engine, Gauge, Ratio,
        "1 for the state that the engine is in";
}
