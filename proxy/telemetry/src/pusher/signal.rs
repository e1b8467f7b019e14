//! The OTLP signals: traces, metrics and logs.

/// A signal of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    /// Its name.
    pub name: &'static str,
    /// Path of its gRPC method.
    pub method: &'static str,
}

/// Spans.
pub const TRACES: Signal = Signal {
    name: "traces",
    method: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
};

/// Metrics.
pub const METRICS: Signal = Signal {
    name: "metrics",
    method: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
};

/// Log records.
pub const LOGS: Signal =
    Signal { name: "logs", method: "/opentelemetry.proto.collector.logs.v1.LogsService/Export" };
