//! The words of `telemetry.otlp`.

/// The protocol of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// gRPC over HTTP/2.
    Grpc,
    /// Protobuf over HTTP/1.1.
    HttpProtobuf,
}

/// What pushed numbers count from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Temporality {
    /// The start of the gateway.
    #[default]
    Cumulative,
    /// The push before this one.
    Delta,
}

/// The buckets of pushed histograms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HistogramBuckets {
    /// The buckets of the conventions.
    #[default]
    Explicit,
    /// Buckets whose bounds grow by a factor.
    Exponential,
}
