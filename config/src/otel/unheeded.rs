//! Variables of the standard that change nothing here, each with what stands in its place: whoever
//! sets one is told.

/// Bounds on what is told of a span or a line.
const SHOWN: &str = "nothing: a text that others choose has 256 bytes at most, and content `telemetry.content.bytes_max`";
/// What waits for a collector, and what one push takes.
const QUEUED: &str =
    "nothing: 2,048 requests and 16,384 lines may wait, and 200 and 512 of them are one push";
/// How long a push may take.
const TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT, or `telemetry.otlp.timeout_seconds`";
/// Where metrics are scraped.
const ADMIN: &str = "`admin`, which has `/metrics`";
/// Whether a collector is spoken to by TLS.
const SCHEME: &str = "an endpoint that begins with http:// or https://";
/// Prompts and answers in files.
const UPLOAD: &str = "nothing: what is captured goes to the collector";

/// Their names, and what is expected in their place.
pub(super) const UNHEEDED: &[(&str, &str)] = &[
    ("OTEL_ATTRIBUTE_COUNT_LIMIT", SHOWN),
    ("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", SHOWN),
    ("OTEL_BLRP_EXPORT_TIMEOUT", TIMEOUT),
    ("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", QUEUED),
    ("OTEL_BLRP_MAX_QUEUE_SIZE", QUEUED),
    ("OTEL_BSP_EXPORT_TIMEOUT", TIMEOUT),
    ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", QUEUED),
    ("OTEL_BSP_MAX_QUEUE_SIZE", QUEUED),
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
    ("OTEL_LOGRECORD_ATTRIBUTE_COUNT_LIMIT", SHOWN),
    ("OTEL_LOGRECORD_ATTRIBUTE_VALUE_LENGTH_LIMIT", SHOWN),
    ("OTEL_LOG_LEVEL", "nothing: each line of the log has its level"),
    ("OTEL_METRICS_EXEMPLAR_FILTER", "nothing: each bucket keeps its last request"),
    ("OTEL_METRIC_EXPORT_TIMEOUT", TIMEOUT),
    ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", SHOWN),
    ("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", SHOWN),
];
