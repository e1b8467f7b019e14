//! OpenTelemetry's variables that Taximeter does not support, each with what to use in its place.
//! The log warns of those that are set.

/// Limits of attributes.
const LIMITS: &str = "no limit of its own: texts from clients have at most 256 bytes, captured \
                      content at most `telemetry.content.bytes_max`";
/// Queues in front of the collector, and batches.
const QUEUES: &str = "no size of its own: 32 MiB of spans and 32 MiB of log records may wait as they \
                      are sent, and one push has at most 200 requests or 512 lines";
/// The time for one push.
const TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT, or the key `telemetry.otlp.timeout_seconds`";
/// The address of `/metrics`.
const ADMIN: &str = "the key `admin`, whose address serves `/metrics`";
/// TLS towards the collector.
const SCHEME: &str = "an endpoint that begins with http:// or https://";
/// Prompts and answers in files.
const UPLOAD: &str = "no upload: captured content goes to the collector";

/// Their names, and what to use in their place.
pub(super) const UNSUPPORTED: &[(&str, &str)] = &[
    ("OTEL_ATTRIBUTE_COUNT_LIMIT", LIMITS),
    ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", LIMITS),
    ("OTEL_BLRP_EXPORT_TIMEOUT", TIMEOUT),
    ("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", QUEUES),
    ("OTEL_BLRP_MAX_QUEUE_SIZE", QUEUES),
    ("OTEL_BSP_EXPORT_TIMEOUT", TIMEOUT),
    ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", QUEUES),
    ("OTEL_BSP_MAX_QUEUE_SIZE", QUEUES),
    ("OTEL_CONFIG_FILE", "`taximeter serve --config FILE`"),
    ("OTEL_EXPERIMENTAL_CONFIG_FILE", "`taximeter serve --config FILE`"),
    ("OTEL_EXPORTER_OTLP_INSECURE", SCHEME),
    ("OTEL_EXPORTER_OTLP_LOGS_INSECURE", SCHEME),
    ("OTEL_EXPORTER_OTLP_METRICS_INSECURE", SCHEME),
    ("OTEL_EXPORTER_OTLP_TRACES_INSECURE", SCHEME),
    ("OTEL_EXPORTER_PROMETHEUS_HOST", ADMIN),
    ("OTEL_EXPORTER_PROMETHEUS_PORT", ADMIN),
    ("OTEL_INSTRUMENTATION_GENAI_COMPLETION_HOOK", UPLOAD),
    ("OTEL_INSTRUMENTATION_GENAI_UPLOAD_BASE_PATH", UPLOAD),
    ("OTEL_INSTRUMENTATION_GENAI_UPLOAD_FORMAT", UPLOAD),
    ("OTEL_INSTRUMENTATION_GENAI_UPLOAD_MAX_QUEUE_SIZE", UPLOAD),
    ("OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT", LIMITS),
    ("OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT", LIMITS),
    ("OTEL_LOG_LEVEL", "no level of its own: every log line has its level"),
    ("OTEL_METRICS_EXEMPLAR_FILTER", "no filter: every bucket keeps its last request"),
    ("OTEL_METRIC_EXPORT_TIMEOUT", TIMEOUT),
    ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", LIMITS),
    ("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", LIMITS),
];
