//! The keys under `telemetry`.

use std::path::PathBuf;
use std::time::Duration;

use crate::access_log::AccessLog;
use crate::content::{Capture, Pattern};
use crate::json_schema::{default, without};
use crate::model::GenAi;
use crate::numbers::{AtLeast, Whole};
use crate::otlp::{HistogramBuckets, OtlpProtocol, Temporality};
use crate::reader::{List, Optional, Spanned, Table, keys};
use crate::sampling::Ratio;
use crate::values::{EndpointUrl, Gzip, HeaderText, Name};

keys! {
    /// Metrics, traces and logs.
    RawTelemetry {
        /// The generation of the OpenTelemetry GenAI conventions: `v1_41`, `latest`, or `both` side
        /// by side.
        genai: Optional<Spanned<GenAi>> =
            without("`v1_41`, or what `OTEL_SEMCONV_STABILITY_OPT_IN` says").example("latest"),
        /// The most tenants with their own label in metrics. All further tenants are `other`.
        tenants_max: Optional<Spanned<AtLeast<1>>> = default("500").example("50"),
        /// Whether every series of `/metrics` has `otel_scope_name` and `otel_scope_version`, some 200
        /// bytes for each.
        scope_labels: Optional<Spanned<bool>> = default("off").example("on"),
        /// Whether histograms also have native buckets, for Prometheus servers that scrape them.
        native_histograms: Optional<Spanned<bool>> = default("off").example("on"),
        /// Which requests get a log line when they end: none, those that failed or were refused, or
        /// all.
        access_log: Optional<Spanned<AccessLog>> = default("off").example("all"),
        /// The OpenTelemetry collector that Taximeter pushes to.
        otlp: Optional<RawOtlp> = without("what the `OTEL_…` variables say, else none"),
        /// Spans of requests, pushed to the collector. `{}` takes all defaults.
        traces: Optional<RawTraces> = without("what the `OTEL_…` variables say, else no spans"),
        /// Whether telemetry has the texts of prompts and answers.
        content: Optional<RawContent> = without("no texts"),
    }
}

keys! {
    /// Texts of prompts and answers, of requests whose trace is kept from its start. Logs and
    /// metrics never have them.
    RawContent {
        /// Where the texts go: `spans` puts them on the spans of engines, `events` sends log
        /// records where these are pushed, `both` does both.
        capture: Optional<Spanned<Capture>> =
            without("`off`, or what `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` says")
                .example("spans"),
        /// The most bytes of one attribute. Taximeter cuts a longer text.
        bytes_max: Optional<Spanned<Whole<256, 262_144>>> = default("32768").example("4096"),
        /// Regular expressions. Taximeter replaces what they match.
        redact: Optional<List<Spanned<Pattern>>> =
            without("no expressions").example(r#"["[0-9]{8}"]"#),
        /// Whether Taximeter also replaces API keys, tokens, private keys and e-mail addresses.
        redact_known: Optional<Spanned<bool>> = default("on").example("off"),
        /// The tenants whose texts are captured.
        tenants: Optional<List<Spanned<Name>>> = without("all tenants").example(r#"["acme"]"#),
    }
}

keys! {
    /// Which requests have spans.
    RawTraces {
        /// The part of traces that Taximeter keeps, of those that begin here. A trace that a caller
        /// has begun is kept where the caller keeps it.
        ratio: Optional<Spanned<Ratio>> =
            without("1, or what `OTEL_TRACES_SAMPLER` says").example("0.25"),
        /// What Taximeter keeps whatever `ratio` and the caller say.
        always: Optional<RawAlways> = without("the defaults of its keys"),
    }
}

keys! {
    /// Requests whose spans Taximeter always keeps, once they have ended.
    RawAlways {
        /// Requests that failed.
        errors: Optional<Spanned<bool>> = default("on").example("off"),
        /// Streams whose first token came later than this, in seconds.
        slow_first_token_seconds: Optional<Spanned<Duration>> = default("5").example("2"),
        /// Streams with a longer gap between two tokens than this, in seconds.
        stall_seconds: Optional<Spanned<Duration>> = default("5").example("0.5"),
    }
}

keys! {
    /// An OpenTelemetry collector. Each key wins over the `OTEL_…` variables with the same meaning.
    /// `OTEL_SDK_DISABLED=true` stops all pushing.
    RawOtlp {
        /// The URL of the collector. With `http/protobuf`, Taximeter appends `/v1/metrics`,
        /// `/v1/traces` and `/v1/logs`.
        endpoint: Optional<Spanned<EndpointUrl>> =
            without("`OTEL_EXPORTER_OTLP_ENDPOINT`").example("http://collector:4317"),
        /// The protocol.
        protocol: Optional<Spanned<OtlpProtocol>> =
            without("`grpc` on port 4317, else `http/protobuf`").example("grpc"),
        /// Headers of every push.
        headers: Optional<Table<HeaderText>> =
            without("no headers").example(r#"{"api-key": "${env:COLLECTOR_KEY}"}"#),
        /// The compression of a push.
        compression: Optional<Spanned<Gzip>> = without("`gzip`").example("none"),
        /// The time for one push and its answer.
        timeout_seconds: Optional<Spanned<Duration>> = without("10").example("5"),
        /// A PEM file with the authorities that Taximeter trusts in place of the system's.
        ca: Optional<Spanned<PathBuf>> = without("the system's authorities").example("ca.pem"),
        /// A PEM file with the client certificate for the collector. Needs `key`.
        cert: Optional<Spanned<PathBuf>> = without("no certificate").example("otlp.crt"),
        /// A PEM file with the key of `cert`.
        key: Optional<Spanned<PathBuf>> = without("no certificate").example("otlp.key"),
        /// The time between two pushes of metrics.
        interval_seconds: Optional<Spanned<Duration>> = without("60").example("15"),
        /// What numbers count from: `cumulative` counts from the gateway's start, `delta` from the
        /// push before. Datadog needs `delta`.
        temporality: Optional<Spanned<Temporality>> = without("`cumulative`").example("delta"),
        /// The buckets of histograms: `explicit` are those of the conventions, `exponential` are
        /// each 9 % wider than the one before.
        histograms: Optional<Spanned<HistogramBuckets>> =
            without("`explicit`").example("exponential"),
        /// Whether Taximeter pushes its log lines too.
        logs: Optional<Spanned<bool>> =
            without("`off`, or what `OTEL_LOGS_EXPORTER` says").example("on"),
    }
}
