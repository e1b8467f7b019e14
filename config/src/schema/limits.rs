//! The keys under `limits`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::time::Duration;

use crate::numbers::Grace;
use crate::reader::{At, Optional, keys};

keys! {
    /// Limits by name, all above 0 but for a grace; the unit is the end of the name.
    RawLimits {
        /// Request head; at least 8192. Default: 65536.
        header_bytes_max: Optional<At<NonZeroUsize>>,
        /// Request header fields. Default: 100.
        headers_max: Optional<At<NonZeroUsize>>,
        /// Request target; within `header_bytes_max`. Default: 8192.
        uri_bytes_max: Optional<At<NonZeroUsize>>,
        /// Time for a whole request head. Default: 10.
        header_read_timeout_seconds: Optional<At<Duration>>,
        /// One request body. Default: 33554432.
        body_bytes_max: Optional<At<NonZeroUsize>>,
        /// Time without progress while reading a body. Default: 30.
        body_read_timeout_seconds: Optional<At<Duration>>,
        /// All bodies held at once; at least `body_bytes_max`. Default: 1073741824, or a quarter of
        /// `memory_bytes_max`.
        bodies_total_bytes_max: Optional<At<NonZeroUsize>>,
        /// Deepest nesting of a body in JSON, the outermost object included; at most 65536.
        /// Default: 256.
        json_depth_max: Optional<At<NonZeroUsize>>,
        /// Memory of the process: at nine tenths of it new requests are refused. Default: what the
        /// container may take.
        memory_bytes_max: Optional<At<NonZeroUsize>>,
        /// Idle keep-alive connection from a client. Default: 75.
        idle_timeout_seconds: Optional<At<Duration>>,
        /// Client connections. Default: 10000.
        connections_max: Optional<At<NonZeroUsize>>,
        /// Connections from one client's address. Default: no maximum.
        connections_per_peer_max: Optional<At<NonZeroUsize>>,
        /// Requests on one connection; behind the last of them it is closed. Default: 10000.
        requests_per_connection_max: Optional<At<NonZeroU32>>,
        /// Requests of one tenant that run at once, for tenants without a `concurrency` of their
        /// own; those beyond it get 429 `concurrency_limited`. Default: no maximum.
        requests_per_tenant_max: Optional<At<NonZeroUsize>>,
        /// Streams on one HTTP/2 connection. Default: 100.
        http2_streams_max: Optional<At<NonZeroU32>>,
        /// What a client may send on one HTTP/2 stream before it is read; at most 2147483647.
        /// Default: 65536.
        http2_window_bytes: Optional<At<NonZeroU32>>,
        /// The same of all streams of a connection together. Default: 1048576.
        http2_connection_window_bytes: Optional<At<NonZeroU32>>,
        /// Resets on one HTTP/2 connection in ten seconds, where more than half of its streams were
        /// reset. Default: 100.
        http2_resets_per_10s_max: Optional<At<NonZeroU32>>,
        /// Frames on one HTTP/2 connection in ten seconds that move no request and no answer.
        /// Default: 1000.
        http2_control_frames_per_10s_max: Optional<At<NonZeroU32>>,
        /// Connecting to an upstream, TLS included. Default: 5.
        upstream_connect_timeout_seconds: Optional<At<Duration>>,
        /// Until the upstream's answer begins. Default: 300.
        upstream_head_timeout_seconds: Optional<At<Duration>>,
        /// Silence within an answer. Default: 120.
        upstream_idle_timeout_seconds: Optional<At<Duration>>,
        /// A whole request, from its head to the last byte of its answer. Default: 3600.
        request_timeout_seconds: Optional<At<Duration>>,
        /// How long an idle upstream connection is kept. Default: 4.
        upstream_keep_alive_seconds: Optional<At<Duration>>,
        /// Tries to send one request, where nothing of it has reached an engine; at most 10.
        /// Default: 2.
        attempts_max: Optional<At<NonZeroU32>>,
        /// A client that does not read. Default: 60.
        client_write_timeout_seconds: Optional<At<Duration>>,
        /// Longest body that is read as one document, decoded. Default: 33554432.
        decode_bytes_max: Optional<At<NonZeroUsize>>,
        /// Most decoded bytes per byte of an encoded body. Default: 200.
        decode_ratio_max: Optional<At<NonZeroU32>>,
        /// Longest line, and longest data of one event, that is read of a stream; longer ones pass
        /// unread. Sixteen times that where an event holds an image. At least 1024. Default: 1048576.
        sse_line_bytes_max: Optional<At<NonZeroUsize>>,
        /// Text that is counted for one request; the tokens of what exceeds it are estimated. At most
        /// 67108864. Default: 4194304.
        count_bytes_max: Optional<At<NonZeroUsize>>,
        /// Frames gathered into one write. Default: 65536.
        relay_buffer_bytes: Optional<At<NonZeroUsize>>,
        /// Everything is served this long after SIGTERM, while readiness is off already: load
        /// balancers learn late. Default: 0.
        drain_grace_seconds: Optional<At<Grace>>,
        /// Streams may go on this long after SIGTERM and the grace. Default: 30.
        drain_seconds: Optional<At<Duration>>,
        /// Waiting for the ledger. Default: 1.
        ledger_write_timeout_seconds: Optional<At<Duration>>,
        /// Entries waiting for the ledger. Default: 67108864.
        ledger_queue_bytes_max: Optional<At<NonZeroUsize>>,
        /// One file of the journal, before the next one begins; at least 4096. Default: 67108864.
        ledger_segment_bytes: Optional<At<NonZeroUsize>>,
        /// Series of one metric; what comes after them shares a series with `other` as its labels.
        /// At least 10. Default: 2000.
        series_per_metric_max: Optional<At<NonZeroUsize>>,
        /// Longest text in a field of the log; longer ones are cut. At least 64. Default: 256.
        log_field_bytes_max: Optional<At<NonZeroUsize>>,
        /// Lines of one kind in the log a second, but for `telemetry.access_log`; the number left out
        /// is told with the next one. Default: 10.
        log_lines_per_kind_per_second_max: Optional<At<NonZeroU32>>,
    }
}
