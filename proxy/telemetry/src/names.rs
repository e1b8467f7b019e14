//! Every instrument. Names of instruments are in this table and nowhere else.
//!
//! GenAI names, units and buckets follow the OpenTelemetry semantic conventions in two generations:
//! v1.41.1, and the current state of the conventions' own repository. HTTP names follow v1.44.0.
//! Names under `taximeter.` are our own. Names that the `opentelemetry-semantic-conventions` crate
//! has come from there.

#![expect(deprecated, reason = "the registry of GenAI names has moved; the crate has the old one")]

mod bounds;
pub(crate) mod key;
pub(crate) mod log_event;

use bounds::{DURATIONS, FIRST_TOKEN, HTTP, OWN, PER_TOKEN, TOKENS};
use opentelemetry_semantic_conventions::metric;
use taximeter_config::GenAi;

/// What an instrument is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum InstrumentKind {
    Counter,
    /// A value that goes up and down and can be added over gateways.
    UpDownCounter,
    Gauge,
    /// A histogram with these upper bounds.
    Histogram(&'static [f64]),
}

/// Which generation of the GenAI conventions has an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    Any,
    V1_41,
    Latest,
}

impl Generation {
    /// Whether it is told where `genai` is chosen.
    pub(crate) const fn is_in(self, genai: GenAi) -> bool {
        matches!(
            (self, genai),
            (Self::Any, _)
                | (_, GenAi::Both)
                | (Self::V1_41, GenAi::V1_41)
                | (Self::Latest, GenAi::Latest)
        )
    }
}

/// One row of the table below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spec {
    pub name: &'static str,
    pub kind: InstrumentKind,
    /// The unit in UCUM, as OpenTelemetry writes it.
    pub unit: &'static str,
    pub generation: Generation,
    /// Keys of the attributes that a series can have, in groups.
    pub(crate) attributes: &'static [&'static [&'static str]],
    pub help: &'static str,
}

/// Who served what, and for whom.
pub(crate) const REQUEST: &[&str] = &[
    key::GEN_AI_OPERATION_NAME,
    key::GEN_AI_PROVIDER_NAME,
    key::GEN_AI_REQUEST_MODEL,
    key::GEN_AI_RESPONSE_MODEL,
    key::SERVER_ADDRESS,
    key::SERVER_PORT,
    key::TENANT,
];
const ERROR: &[&str] = &[key::ERROR_TYPE];
const MODALITY: &[&str] = &[key::GEN_AI_TOKEN_MODALITY];

macro_rules! instruments {
    ($($instrument:ident: $name:expr, $kind:expr, $unit:literal, $generation:ident,
        $attributes:expr, $help:literal;)*) => {
        /// An instrument.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Instrument { $($instrument),* }

        impl Instrument {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$instrument),*];

            /// Its row.
            pub(crate) const fn spec(self) -> Spec {
                match self {
                    $(Self::$instrument => Spec {
                        name: $name,
                        kind: $kind,
                        unit: $unit,
                        generation: Generation::$generation,
                        attributes: $attributes,
                        help: $help,
                    }),*
                }
            }
        }
    };
}

use InstrumentKind::{Counter, Gauge, Histogram, UpDownCounter};

instruments! {
    TokenUsage: metric::GEN_AI_CLIENT_TOKEN_USAGE, Histogram(TOKENS), "{token}", V1_41,
        &[REQUEST, &[key::GEN_AI_TOKEN_TYPE]],
        "Tokens of a request, with cached and reasoning tokens.";
    OperationDuration: metric::GEN_AI_CLIENT_OPERATION_DURATION, Histogram(DURATIONS), "s", Any,
        &[REQUEST, ERROR],
        "Duration of an operation, from the call of the engine to the last byte, as in its span. \
         With `latest` only for operations that are neither inference nor embeddings.";
    TimeToFirstChunk: metric::GEN_AI_CLIENT_OPERATION_TIME_TO_FIRST_CHUNK, Histogram(DURATIONS),
        "s", V1_41, &[REQUEST], "Time from the call of the engine to the first event of the stream.";
    TimePerOutputChunk: metric::GEN_AI_CLIENT_OPERATION_TIME_PER_OUTPUT_CHUNK,
        Histogram(DURATIONS), "s", V1_41, &[REQUEST],
        "Gap between two events with generated content.";
    InferenceDuration: "gen_ai.client.inference.duration", Histogram(DURATIONS), "s", Latest,
        &[REQUEST, ERROR],
        "Duration of an inference, from the call of the engine to the last byte.";
    InferenceTimeToFirstChunk: "gen_ai.client.inference.time_to_first_chunk",
        Histogram(DURATIONS), "s", Latest, &[REQUEST],
        "Time from the call of the engine to the first event of the stream.";
    InferenceTimePerOutputChunk: "gen_ai.client.inference.time_per_output_chunk",
        Histogram(DURATIONS), "s", Latest, &[REQUEST],
        "Gap between two events with generated content.";
    InferenceInputTokens: "gen_ai.client.inference.usage.input_tokens", Counter, "{token}", Latest,
        &[REQUEST, MODALITY], "Input tokens, with cached tokens.";
    InferenceOutputTokens: "gen_ai.client.inference.usage.output_tokens", Counter, "{token}",
        Latest, &[REQUEST, MODALITY], "Output tokens, with reasoning.";
    InferenceCacheReadTokens: "gen_ai.client.inference.usage.cache_read.input_tokens", Counter,
        "{token}", Latest, &[REQUEST, MODALITY],
        "Input tokens served from a cache; a part of the input.";
    InferenceCacheWriteTokens: "gen_ai.client.inference.usage.cache_write.input_tokens", Counter,
        "{token}", Latest, &[REQUEST, MODALITY],
        "Input tokens written to a cache; a part of the input.";
    InferenceReasoningTokens: "gen_ai.client.inference.usage.reasoning.output_tokens", Counter,
        "{token}", Latest, &[REQUEST, MODALITY],
        "Output tokens that were reasoning; a part of the output.";
    InferenceInputSize: "gen_ai.client.inference.operation.input_tokens", Histogram(TOKENS),
        "{token}", Latest, &[REQUEST, ERROR], "Input tokens of one inference.";
    InferenceOutputSize: "gen_ai.client.inference.operation.output_tokens", Histogram(TOKENS),
        "{token}", Latest, &[REQUEST, ERROR], "Output tokens of one inference.";
    EmbeddingsDuration: "gen_ai.client.embeddings.duration", Histogram(DURATIONS), "s", Latest,
        &[REQUEST, ERROR],
        "Duration of a request for embeddings, from the call of the engine to the last byte.";
    EmbeddingsInputSize: "gen_ai.client.embeddings.operation.input_tokens", Histogram(TOKENS),
        "{token}", Latest, &[REQUEST, ERROR], "Input tokens of one request for embeddings.";
    ServerRequestDuration: metric::GEN_AI_SERVER_REQUEST_DURATION, Histogram(DURATIONS), "s", Any,
        &[REQUEST, ERROR],
        "Duration of a request as the gateway sees it, from its head to the last byte.";
    ServerTimeToFirstToken: metric::GEN_AI_SERVER_TIME_TO_FIRST_TOKEN, Histogram(FIRST_TOKEN),
        "s", Any, &[REQUEST], "Time to the first generated content of a stream.";
    FirstTokenWait: "taximeter.first_token.wait", Histogram(FIRST_TOKEN), "s", Any,
        &[REQUEST, &[key::STREAM, key::OUTCOME]],
        "Wait until the first content came (`token`), the client left (`left`), or engine or gateway \
         failed (`failed`), told then. Without a stream: until all of it. Without requests that were \
         refused for a mistake.";
    ServerTimePerOutputToken: metric::GEN_AI_SERVER_TIME_PER_OUTPUT_TOKEN, Histogram(PER_TOKEN),
        "s", Any, &[REQUEST], "Time per output token after the first.";
    HttpServerRequestDuration: metric::HTTP_SERVER_REQUEST_DURATION, Histogram(HTTP), "s", Any,
        &[
            &[key::HTTP_REQUEST_METHOD, key::URL_SCHEME, key::HTTP_ROUTE],
            &[key::NETWORK_PROTOCOL_VERSION, key::HTTP_RESPONSE_STATUS_CODE],
            &[key::ERROR_TYPE, key::TENANT],
        ],
        "Duration of an HTTP request of a client.";
    HttpClientRequestDuration: metric::HTTP_CLIENT_REQUEST_DURATION, Histogram(HTTP), "s", Any,
        &[
            &[key::HTTP_REQUEST_METHOD, key::SERVER_ADDRESS, key::SERVER_PORT],
            &[key::HTTP_RESPONSE_STATUS_CODE, key::ERROR_TYPE, key::NETWORK_PROTOCOL_VERSION],
        ],
        "Duration of an HTTP request to an engine, from its first byte to the end of the answer.";
    HttpServerActiveRequests: metric::HTTP_SERVER_ACTIVE_REQUESTS, UpDownCounter, "{request}", Any,
        &[&[key::HTTP_REQUEST_METHOD, key::URL_SCHEME]],
        "HTTP requests of clients that are being answered.";
    Completions: "taximeter.completions", Counter, "{request}", Any, &[REQUEST],
        "Requests in the background whose usage has become known. It is counted then.";
    Requests: "taximeter.requests", Counter, "{request}", Any,
        &[REQUEST, &[key::END, key::STATUS_CLASS, key::FAULT]],
        "Requests that have a record, and those that were admitted, used nothing, and came in a flood: \
         by their end, the class of the status, and who has caused that they were not served.";
    Tokens: "taximeter.tokens", Counter, "{token}", Any,
        &[REQUEST, &[key::GEN_AI_TOKEN_TYPE, key::SOURCE]],
        "Tokens, by type and by the source of the number.";
    RunningOutput: "taximeter.output.running", Counter, "{token}", Any,
        &[&[key::GEN_AI_REQUEST_MODEL, key::UPSTREAM, key::TENANT]],
        "Output tokens of streams while they run, told each second, estimated where the engine does not \
         say them; the rest at the end. `taximeter.tokens` has the settled number.";
    Usage: "taximeter.usage", Counter, "{request}", Any,
        &[REQUEST, &[key::SOURCE, key::USAGE_REASON]],
        "Requests that owe something, by the weakest source of what they used, and by the reason for \
         it. Of a request in the background that is said when it is completed.";
    Sources: "taximeter.usage.sources", Counter, "{request}", Any,
        &[REQUEST, &[key::GEN_AI_TOKEN_TYPE, key::SOURCE]],
        "Requests, by token type and by the source of the number (`reported`, `counted` or \
         `unknown`).";
    Flags: "taximeter.usage.flags", Counter, "{request}", Any, &[REQUEST, &[key::FLAG]],
        "Requests whose usage has a flag, by flag.";
    Recounts: "taximeter.usage.recounts", Counter, "{count}", Any,
        &[REQUEST, &[key::GEN_AI_TOKEN_TYPE, key::AGREES]],
        "Reported token numbers that Taximeter also counted, by type and by whether both agree.";
    CacheReadTokens: "taximeter.cache_read.input_tokens", Counter, "{token}", Any, &[REQUEST],
        "Input tokens served from a cache; a part of the input.";
    CacheWriteTokens: "taximeter.cache_write.input_tokens", Counter, "{token}", Any, &[REQUEST],
        "Input tokens written to a cache; a part of the input.";
    ReasoningTokens: "taximeter.reasoning.output_tokens", Counter, "{token}", Any, &[REQUEST],
        "Output tokens that were reasoning; a part of the output.";
    Cost: "taximeter.cost", Counter, "{USD}", Any, &[REQUEST, &[key::CURRENCY]],
        "Cost of requests, approximate; of an unknown cost, the part that is known. The ledger has \
         the exact amounts.";
    Unpriced: "taximeter.unpriced", Counter, "{request}", Any, &[REQUEST, &[key::CAUSE]],
        "Requests whose cost is unknown, or known in part only, by the reason: a price is missing, or \
         what they used is unknown (`no_quantity`). Of a request in the background that is said when \
         it is completed.";
    GatewayDuration: "taximeter.gateway.duration", Histogram(OWN), "s", Any, &[REQUEST],
        "Time that the gateway itself took before it sent the request to the upstream.";
    Refusals: "taximeter.refusals", Counter, "{request}", Any, &[&[key::CODE, key::TENANT]],
        "Requests that the gateway refused, by code.";
    LimitRefusals: "taximeter.limits.refusals", Counter, "{request}", Any,
        &[&[key::TENANT, key::KIND]],
        "Requests and connections that the gateway refused because of a limit, by limit: a tenant's \
         (`concurrency`), or its own (`memory`, `file_descriptors`, `bodies_total_bytes_max`, \
         `probes`, `connections_max`, `connections_per_peer_max`).";
    Voids: "taximeter.voids", Counter, "{request}", Any, &[&[key::REASON, key::TENANT]],
        "Admitted requests that used nothing, by reason.";
    UpstreamFaults: "taximeter.upstream.connect_failures", Counter, "{connection}", Any,
        &[&[key::UPSTREAM, key::CAUSE]], "Connections to an engine that failed, by cause.";
    UpstreamRetries: "taximeter.upstream.retries", Counter, "{request}", Any,
        &[&[key::UPSTREAM, key::CAUSE]],
        "Further attempts to send a request, by the cause of the attempt before. It had not reached \
         an engine, or the engine refused what Taximeter added to it (`question_refused`).";
    UpstreamProtocolFaults: "taximeter.upstream.protocol_faults", Counter, "{answer}", Any,
        &[&[key::UPSTREAM, key::CAUSE]],
        "Answers of an engine that are not valid HTTP, by cause.";
    UpstreamHealthy: "taximeter.upstream.healthy", Gauge, "1", Any, &[&[key::UPSTREAM]],
        "1 if the upstream answered its last request. 0 if it could not be reached, answered 5xx or \
         429, refused the gateway's credential, or broke off. Absent before the first request.";
    UpstreamAnswers: "taximeter.upstream.answers", Counter, "{answer}", Any,
        &[&[key::UPSTREAM, key::OUTCOME]],
        "Requests to an upstream, by how it answered: as it should (`answered`), or as a 0 of \
         `taximeter.upstream.healthy` says (`failed`). Answers that began as they should and broke off \
         are also in `broke_off`.";
    MeterOddities: "taximeter.meter.oddities", Counter, "{event}", Any, &[&[key::KIND]],
        "Unexpected content in answers of engines, by kind.";
    AnswersLeft: "taximeter.answers.left", Counter, "{answer}", Any, &[&[key::KIND]],
        "Answers whose client left before the end, by what the gateway did: cancelled or drained.";
    CountsSkipped: "taximeter.meter.counts.skipped", Counter, "{request}", Any, &[&[key::CAUSE]],
        "Answers without usage that Taximeter did not count, by cause. With `queue_full` it \
         estimates them.";
    ContentLeftOut: "taximeter.content.left_out", Counter, "{request}", Any, &[&[key::CAUSE]],
        "Requests whose captured content is missing from their spans, by cause.";
    AuthRefusals: "taximeter.auth.refusals", Counter, "{request}", Any, &[&[key::CODE]],
        "Requests without a valid credential, by reason.";
    DimensionsDropped: "taximeter.dimensions.dropped", Counter, "{value}", Any,
        &[&[key::DIMENSION, key::CAUSE]],
        "Names of sessions, agents, turns, end users and tags in requests that records do not have, \
         by dimension and cause.";
    SpoofedHeaders: "taximeter.spoofed_headers", Counter, "{request}", Any, &[],
        "Requests in which an untrusted client sent the tenant header.";
    BadFraming: "taximeter.bad_framing", Counter, "{connection}", Any, &[&[key::CAUSE]],
        "Client connections that the gateway closed because it could not read a request, by cause.";
    ConnectionsRefused: "taximeter.connections.refused", Counter, "{connection}", Any, &[],
        "Client connections that the gateway closed because there were too many, in all or from one \
         address.";
    Panics: "taximeter.panics", Counter, "{event}", Any, &[],
        "Panics in the gateway. The task that panicked has ended.";
    RequestsOpen: "taximeter.requests.open", UpDownCounter, "{request}", Any, &[],
        "Admitted requests that have not ended.";
    OldestAge: "taximeter.requests.oldest_age", Gauge, "s", Any, &[],
        "Since when the oldest open request has run. 0 without one.";
    AgeMax: "taximeter.requests.age_max", Gauge, "s", Any, &[],
        "How long a request may take: `limits.request_timeout_seconds`.";
    StartTime: "taximeter.start_time", Gauge, "s", Any, &[],
        "When the process has started, since 1970.";
    PricesDate: "taximeter.prices.date", Gauge, "s", Any, &[&[key::KIND]],
        "The date of a price book in seconds since 1970, by book: `builtin` or `overrides`. Absent if \
         the book has none.";
    CertificateBegin: "taximeter.tls.not_before", Gauge, "s", Any, &[&[key::KIND]],
        "When a certificate of the gateway begins to be valid, in seconds since 1970: that of `listen`, \
         `admin` or `otlp`.";
    CertificateEnd: "taximeter.tls.not_after", Gauge, "s", Any, &[&[key::KIND]],
        "When it, or one that has signed it, ends, in seconds since 1970.";
    LedgerEntries: "taximeter.ledger.entries", Counter, "{entry}", Any, &[],
        "Entries in the journal.";
    PendingDropped: "taximeter.ledger.pending.dropped", Counter, "{request}", Any, &[],
        "Requests in the background that the ledger no longer waits for. Their cost stays unknown.";
    EntriesLost: "taximeter.ledger.entries.lost", Counter, "{entry}", Any, &[],
        "Entries that the ledger did not accept, and those that a start had to leave out, because they \
         could not be read: at most so many.";
    EntriesRejected: "taximeter.ledger.entries.rejected", Counter, "{entry}", Any, &[],
        "Ledger entries that could not be read and were set aside.";
    LedgerSlow: "taximeter.ledger.slow", Counter, "{event}", Any, &[],
        "Writes and syncs of the ledger that took longer than a second, or longer than a request \
         waits.";
    StoreFaults: "taximeter.store.faults", Counter, "{fault}", Any, &[],
        "Failed attempts to feed the store from the journal.";
    PushedEvents: "taximeter.push.events", Counter, "{event}", Any, &[&[key::OUTCOME]],
        "Ledger events sent to the receiver, by its answer: stored or rejected.";
    PushFaults: "taximeter.push.faults", Counter, "{fault}", Any, &[],
        "Failed attempts to send events to the receiver. The gateway sends them again.";
    PushPending: "taximeter.push.pending", Gauge, "{request}", Any, &[],
        "Requests that the receiver of `export.push` lacks, at most: those that have used nothing are \
         not sent. Counted once a minute while it is away or late.";
    PushAtRisk: "taximeter.push.at_risk", Gauge, "1", Any, &[],
        "1 if less than a week is left until requests go that the receiver of `export.push` lacks.";
    StoreLag: "taximeter.store.lag", Gauge, "{entry}", Any, &[],
        "Journal entries that the store does not have yet. Absent until the store was fed once.";
    LedgerHealthy: "taximeter.ledger.healthy", Gauge, "1", Any, &[],
        "1 if the ledger can be written and has room.";
    LedgerSize: "taximeter.ledger.size", Gauge, "By", Any, &[],
        "Size of the data directory: journal, store and everything else.";
    LedgerSizeMax: "taximeter.ledger.size_max", Gauge, "By", Any, &[],
        "Limit of that size: `ledger.dir_bytes_max`, or what it takes and the volume has left, \
         whichever is less. Absent until it is known.";
    LedgerInodesLeft: "taximeter.ledger.inodes_left", Gauge, "{inode}", Any, &[],
        "Inodes that the volume of the data directory has left. Absent if it does not limit them.";
    LedgerDaysLeft: "taximeter.ledger.days_left", Gauge, "d", Any, &[],
        "Days until the data directory has no room for new requests, at the rate of the last one or \
         two days. Absent until that is known, which takes an hour, and while the directory does \
         not grow.";
    LedgerRoomLeft: "taximeter.ledger.room_left", Gauge, "By", Any, &[],
        "Bytes until the data directory has no room for new requests, if all goes that may go to make \
         room. Absent until that is known, and if nothing limits them.";
    DetailsHeld: "taximeter.ledger.details.days_held", Gauge, "d", Any, &[],
        "Days of records of requests that the room holds, at the rate of the last week. Absent until the \
         first day is sealed, if nothing limits the room, and if a database has the records.";
    DetailsKeep: "taximeter.ledger.details.to_keep", Gauge, "d", Any, &[],
        "For how many days records are to be kept: `ledger.records_keep_days`.";
    LedgerHistoryRemoved: "taximeter.ledger.history.removed", Counter, "{file}", Any,
        &[&[key::CAUSE]],
        "Files of the ledger's history that were removed before their time to make room, by who has \
         filled the volume: the data directory (`own`) or other files (`others`).";
    LedgerDetailsRemoved: "taximeter.ledger.details.removed", Counter, "{request}", Any,
        &[&[key::CAUSE]],
        "Requests whose records were removed, by why: they were older than \
         `ledger.records_keep_days` (`age`), or there was no room, which the data directory (`own`) or \
         other files (`others`) had taken. Their sums by the hour stay.";
    LedgerClockAhead: "taximeter.ledger.clock_ahead", Gauge, "1", Any, &[],
        "1 while nothing is removed by age, because the clock is more than a day ahead of the newest \
         entry.";
    OtlpItems: "taximeter.otlp.items", Counter, "{item}", Any, &[&[key::SIGNAL, key::OUTCOME]],
        "Items pushed by OTLP, by outcome: sent, rejected by the collector, or dropped.";
    OtlpFaults: "taximeter.otlp.faults", Counter, "{fault}", Any, &[&[key::SIGNAL]],
        "Failed attempts to send to the collector.";
    OtlpRestarts: "taximeter.otlp.restarts", Counter, "{event}", Any, &[],
        "Restarts of the OTLP sender after a panic.";
    ScrapesShed: "taximeter.scrapes.shed", Counter, "{request}", Any, &[],
        "Requests for /metrics that were refused because too many ran at once.";
    LogLinesLost: "taximeter.log.lines.lost", Counter, "{line}", Any, &[],
        "Log lines that were lost because stderr was blocked.";
    ConfigValid: "taximeter.config.valid", Gauge, "1", Any, &[],
        "1 if the gateway runs with the configuration in the file. 0 if the file has mistakes.";
    ConfigReloads: "taximeter.config.reloads", Counter, "{reload}", Any, &[&[key::OUTCOME]],
        "Reloads of the configuration, by outcome: applied or rejected.";
    ProcessCpuTime: metric::PROCESS_CPU_TIME, Counter, "s", Any, &[&[key::CPU_MODE]],
        "CPU time of the gateway's process.";
    ProcessMemory: metric::PROCESS_MEMORY_USAGE, UpDownCounter, "By", Any, &[],
        "Physical memory that the gateway's process uses.";
    ProcessFiles: metric::PROCESS_UNIX_FILE_DESCRIPTOR_COUNT, UpDownCounter, "{file_descriptor}",
        Any, &[], "File descriptors that the gateway's process has open.";
    FleetSourceUp: "taximeter.fleet.source.up", Gauge, "1", Any, &[&[key::FLEET_SOURCE, key::KIND]],
        "1 if the last question to a source of the section `fleet` brought metrics, 0 if it did not. Absent \
         before the first.";
    FleetSourceStale: "taximeter.fleet.source.stale", Gauge, "1", Any,
        &[&[key::FLEET_SOURCE, key::KIND]],
        "1 if no value of a source has come for three of its periods, so that nothing of it is known. Absent \
         before its first value.";
    FleetSourceAge: "taximeter.fleet.source.age", Gauge, "s", Any,
        &[&[key::FLEET_SOURCE, key::KIND]],
        "How old the last values of a source are. Absent before the first.";
    FleetMemorySize: "taximeter.fleet.memory.size", Gauge, "By", Any, &[],
        "What the files of samples take (`fleet.memory`).";
    FleetMemorySeries: "taximeter.fleet.memory.series", Gauge, "{series}", Any, &[],
        "Series of which samples are kept.";
    FleetMemoryLeftOut: "taximeter.fleet.memory.left_out", Gauge, "{sample}", Any, &[],
        "Samples that were left out since the start: too many, or values that are no numbers.";
    FleetRequestsRunning: "taximeter.fleet.engine.requests_running", Gauge, "{request}", Any,
        &[key::ENGINE], "Requests that the engine works on.";
    FleetRequestsWaiting: "taximeter.fleet.engine.requests_waiting", Gauge, "{request}", Any,
        &[key::ENGINE], "Requests that wait in the engine.";
    FleetKvCacheUsage: "taximeter.fleet.engine.kv_cache_usage", Gauge, "1", Any, &[key::ENGINE],
        "Share of the KV cache that is in use.";
    FleetPreemptions: "taximeter.fleet.engine.preemptions", Gauge, "{request}", Any, &[key::ENGINE],
        "Requests that lost their place, since the engine started: it begins anew with the engine.";
    FleetPromptTokens: "taximeter.fleet.engine.prompt_tokens", Gauge, "{token}", Any, &[key::ENGINE],
        "Tokens of prompts, with those that came from a cache, since the engine started.";
    FleetGenerationTokens: "taximeter.fleet.engine.generation_tokens", Gauge, "{token}", Any,
        &[key::ENGINE], "Tokens that were generated, since the engine started.";
    FleetSmActive: "taximeter.fleet.gpu.sm.active", Gauge, "1", Any, &[key::GPU],
        "Share of cycles in which a multiprocessor had work.";
    FleetTensorActive: "taximeter.fleet.gpu.tensor.active", Gauge, "1", Any, &[key::GPU],
        "Share of cycles in which the tensor units were active.";
    FleetDramActive: "taximeter.fleet.gpu.dram.active", Gauge, "1", Any, &[key::GPU],
        "Share of cycles in which the memory sent or received.";
    FleetThrottle: "taximeter.fleet.gpu.throttle", Gauge, "s", Any, &[key::GPU, &[key::FLEET_REASON]],
        "Time in which clocks were held down, by reason, since the driver was loaded.";
    FleetThrottled: "taximeter.fleet.gpu.throttled", Gauge, "1", Any, &[key::GPU, &[key::FLEET_REASON]],
        "1 while a reason holds clocks down, or the share of time in which it did.";
    FleetLastXid: "taximeter.fleet.gpu.xid.last", Gauge, "{code}", Any, &[key::GPU],
        "The last XID of the driver; 0 is none since the exporter started.";
    FleetPressure: "taximeter.fleet.host.pressure.time", Gauge, "s", Any,
        &[&[key::FLEET_SOURCE, key::FLEET_INSTANCE, key::HOST_NAME, key::RESOURCE, key::PRESSURE]],
        "Time in which some or all tasks of a host waited for a resource (PSI), since it started.";
}

impl Instrument {
    /// The instrument of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|instrument| instrument.spec().name == name)
    }
}

impl Instrument {
    /// Whether its numbers go on where the process before has left them.
    pub(crate) const fn outlives_process(self) -> bool {
        matches!(self, Self::LedgerEntries)
    }

    /// Whether it is what an engine, a GPU or a host tells, or what is known of who tells it.
    pub(crate) fn is_of_fleet(self) -> bool {
        self.spec().name.starts_with("taximeter.fleet.")
    }

    /// Whether its numbers are kept elsewhere from the start, and read when metrics are read.
    pub(crate) const fn is_observed(self) -> bool {
        matches!(
            self,
            Self::LedgerEntries | Self::LogLinesLost | Self::ProcessCpuTime | Self::UpstreamAnswers
        )
    }
}

impl Spec {
    /// Whether its numbers only grow from 0.
    pub(crate) const fn counts(&self) -> bool {
        matches!(self.kind, InstrumentKind::Counter | InstrumentKind::Histogram(_))
    }

    /// Whether it is one series of whole things from the start, so that an increase from nothing to
    /// one is seen.
    pub(crate) fn is_bare_count(&self) -> bool {
        self.kind == Counter && self.attributes.is_empty() && self.unit.starts_with('{')
    }

    /// Whether a series of it can have this attribute.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.attributes.iter().any(|group| group.contains(&key))
    }

    /// The unit, as names in Prometheus spell it; nothing for what is merely counted.
    pub(crate) fn unit_word(&self) -> &'static str {
        match self.unit {
            "s" => "seconds",
            "By" => "bytes",
            _ => "",
        }
    }

    /// The name of its family in Prometheus: escaped, then the unit; samples of counters have
    /// `_total` behind it.
    ///
    /// Source: OpenTelemetry compatibility/prometheus, `UnderscoreEscapingWithSuffixes`. But for one:
    /// only parts of histograms may end with `_count`, and Prometheus' own clients have a name for it.
    pub(crate) fn prometheus(&self) -> String {
        if self.name == metric::PROCESS_UNIX_FILE_DESCRIPTOR_COUNT {
            return "process_open_fds".to_owned();
        }
        let mut name = escaped(self.name);
        let unit = self.unit_word();
        if !unit.is_empty() && !name.ends_with(unit) {
            name.push('_');
            name.push_str(unit);
        }
        name
    }
}

/// A name or key with everything but letters, digits and `_` as `_`.
pub(crate) fn escaped(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests;
