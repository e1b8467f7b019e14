//! The limits by name.

use std::time::Duration;

/// Named limits (`facts/robustness.md` §20). `Limits::default()` has the documented defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Request head, in bytes.
    pub header_bytes_max: usize,
    /// Request header fields.
    pub headers_max: usize,
    /// Request target, in bytes.
    pub uri_bytes_max: usize,
    /// Time for a whole request head.
    pub header_read_timeout: Duration,
    /// One request body, in bytes.
    pub body_bytes_max: usize,
    /// Time without progress while reading a body.
    pub body_read_timeout: Duration,
    /// All bodies held at once, in bytes, where that is said; see `bodies_total`.
    pub bodies_total_bytes_max: Option<usize>,
    /// Deepest nesting of a request's JSON, the outermost object included.
    pub json_depth_max: usize,
    /// What the process may take, in bytes; `None` leaves it to the container.
    pub memory_bytes_max: Option<usize>,
    /// Idle keep-alive connection from a client.
    pub idle_timeout: Duration,
    /// Client connections.
    pub connections_max: usize,
    /// Connections from one client's address; `None` is no maximum.
    pub connections_per_peer_max: Option<usize>,
    /// Requests on one connection; behind the last of them it is closed.
    pub requests_per_connection_max: u32,
    /// Requests of one tenant that run at once, where nothing else is agreed with it; `None` is no
    /// maximum.
    pub requests_per_tenant_max: Option<usize>,
    /// Streams on one HTTP/2 connection.
    pub http2_streams_max: u32,
    /// What a client may send on one HTTP/2 stream before we have read it, in bytes.
    pub http2_window_bytes: u32,
    /// The same of all streams of a connection together.
    pub http2_connection_window_bytes: u32,
    /// So many streams of one HTTP/2 connection that are reset in ten seconds end it, where those are
    /// more than half of all.
    pub http2_resets_per_10s_max: u32,
    /// Frames of one HTTP/2 connection in ten seconds that move no request and no answer.
    pub http2_control_frames_per_10s_max: u32,
    /// Connecting to an upstream, TLS included.
    pub upstream_connect_timeout: Duration,
    /// Until the upstream's head.
    pub upstream_head_timeout: Duration,
    /// Silence between two reads of an answer.
    pub upstream_idle_timeout: Duration,
    /// A whole request, from its head to the last byte of its answer.
    pub request_timeout: Duration,
    /// How long an idle upstream connection is kept.
    pub upstream_keep_alive: Duration,
    /// Tries to send one request, where nothing of it has reached an engine.
    pub attempts_max: u32,
    /// A client that does not read.
    pub client_write_timeout: Duration,
    /// Longest body that is read as one document, in bytes, decoded.
    pub decode_bytes_max: usize,
    /// Most decoded bytes per byte of an encoded body.
    pub decode_ratio_max: u32,
    /// Longest line, and longest data of one event, that is read of a stream, in bytes.
    pub sse_line_bytes_max: usize,
    /// Text that is counted for one request, in bytes; the rest is estimated.
    pub count_bytes_max: usize,
    /// Frames gathered into one write, in bytes.
    pub relay_buffer_bytes: usize,
    /// Everything is served this long after SIGTERM, while readiness is off already.
    pub drain_grace: Duration,
    /// Streams may go on this long after that.
    pub drain: Duration,
    /// Waiting for the ledger.
    pub ledger_write_timeout: Duration,
    /// Entries waiting for the ledger, in bytes.
    pub ledger_queue_bytes_max: usize,
    /// A file of the journal that is this long is followed by another one, in bytes.
    pub ledger_segment_bytes: usize,
    /// Series of one metric.
    pub series_per_metric_max: usize,
    /// Longest text in a field of the log, in bytes.
    pub log_field_bytes_max: usize,
    /// Lines of one kind in the log a second.
    pub log_lines_per_kind_per_second_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_bytes_max: 64 << 10,
            headers_max: 100,
            uri_bytes_max: 8 << 10,
            header_read_timeout: Duration::from_secs(10),
            body_bytes_max: 32 << 20,
            body_read_timeout: Duration::from_secs(30),
            bodies_total_bytes_max: None,
            json_depth_max: 256,
            memory_bytes_max: None,
            idle_timeout: Duration::from_secs(75),
            connections_max: 10_000,
            connections_per_peer_max: None,
            requests_per_connection_max: 10_000,
            requests_per_tenant_max: None,
            http2_streams_max: 100,
            http2_window_bytes: 64 << 10,
            http2_connection_window_bytes: 1 << 20,
            http2_resets_per_10s_max: 100,
            http2_control_frames_per_10s_max: 1_000,
            upstream_connect_timeout: Duration::from_secs(5),
            upstream_head_timeout: Duration::from_secs(300),
            upstream_idle_timeout: Duration::from_secs(120),
            request_timeout: Duration::from_secs(3600),
            upstream_keep_alive: Duration::from_secs(4),
            attempts_max: 2,
            client_write_timeout: Duration::from_secs(60),
            decode_bytes_max: 32 << 20,
            decode_ratio_max: 200,
            sse_line_bytes_max: 1 << 20,
            count_bytes_max: 4 << 20,
            relay_buffer_bytes: 64 << 10,
            drain_grace: Duration::ZERO,
            drain: Duration::from_secs(30),
            ledger_write_timeout: Duration::from_secs(1),
            ledger_queue_bytes_max: 64 << 20,
            ledger_segment_bytes: 64 << 20,
            series_per_metric_max: 2_000,
            log_field_bytes_max: 256,
            log_lines_per_kind_per_second_max: 10,
        }
    }
}

impl Limits {
    /// All bodies held at once by default, in bytes, where memory is no less than four times that.
    pub(crate) const BODIES_TOTAL_BYTES: usize = 1 << 30;

    /// All bodies held at once, in bytes: as configured, or else at most a quarter of what the process
    /// may take.
    #[must_use]
    pub fn bodies_total(&self, memory_bytes: Option<u64>) -> usize {
        let quarter = memory_bytes.map(|bytes| usize::try_from(bytes / 4).unwrap_or(usize::MAX));
        let most = Self::BODIES_TOTAL_BYTES.min(quarter.unwrap_or(usize::MAX));
        self.bodies_total_bytes_max.unwrap_or(most)
    }
}
