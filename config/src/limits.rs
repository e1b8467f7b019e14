//! The limits of the gateway: the one table that declares them.

mod declare;

use std::time::Duration;

use crate::numbers::{AtLeast, AtLeast32, SecondsOrZero, Whole};
use declare::limits;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

limits! {
    /// The longest request head, in bytes. Taximeter refuses a longer one with 431
    /// `headers_too_large`. The admin address has the same limit.
    header_bytes_max: usize = 64 << 10, AtLeast<8_192>, Reload;

    /// The most header fields in one request. Taximeter refuses a request that has more with 431
    /// `headers_too_large`. The admin address has the same limit.
    headers_max: usize = 100, AtLeast<1>, Reload;

    /// The longest request target (path and query), in bytes; at most `header_bytes_max`. Taximeter
    /// refuses a longer one with 414 `uri_too_long`. The admin address has the same limit.
    uri_bytes_max: usize = 8 << 10, AtLeast<1>, Reload;

    /// The time that a client has for its TLS handshake, and for each request head. Taximeter
    /// closes the connection of a slower client.
    header_read_timeout ("header_read_timeout_seconds"): Duration = seconds(10), Duration, Reload;

    /// The largest request body, in bytes; at most `bodies_total_bytes_max`. Taximeter refuses a
    /// larger one with 413 `request_too_large`.
    body_bytes_max: usize = 32 << 20, AtLeast<1>, Reload;

    /// The longest pause between two parts of a request body. Taximeter refuses the request of a
    /// slower client with 408 `request_timeout`.
    body_read_timeout ("body_read_timeout_seconds"): Duration = seconds(30), Duration, Reload;

    /// The bytes that all request bodies may take in memory at once. Taximeter refuses a request
    /// that does not fit with 503 `overloaded`.
    bodies_total_bytes_max: Option<usize> = None, AtLeast<1>, Reload,
        "1073741824, or a quarter of the process's memory limit where that is less", "268435456";

    /// The deepest nesting of JSON in a request body; the outermost object is level 1. Taximeter
    /// refuses a deeper one with 400 `invalid_json`.
    json_depth_max: usize = 256, Whole<1, 65_536>, Reload;

    /// The memory that the process may take, in bytes. From 90 % of it on Taximeter refuses new
    /// requests with 503 `overloaded`, until the process takes less than 85 %.
    memory_bytes_max: Option<usize> = None, AtLeast<1>, Reload,
        "the memory limit of the container; no limit where there is none", "536870912";

    /// How long a client connection may stay idle between two requests. Taximeter closes it then.
    idle_timeout ("idle_timeout_seconds"): Duration = seconds(75), Duration, Reload;

    /// The most client connections at once. Taximeter closes every further connection without an
    /// answer.
    connections_max: usize = 10_000, AtLeast<1>, Reload;

    /// The most client connections at once from one IP address. Taximeter closes every further
    /// connection from that address without an answer.
    connections_per_peer_max: Option<usize> = None, AtLeast<1>, Reload, "no limit", "2000";

    /// The most requests on one client connection. Taximeter closes the connection after the last
    /// of them.
    requests_per_connection_max: u32 = 10_000, AtLeast32<1>, Reload;

    /// The most requests of one tenant that run at once, for tenants without a `concurrency` of
    /// their own. Taximeter refuses every further request with 429 `concurrency_limited`.
    requests_per_tenant_max: Option<usize> = None, AtLeast<1>, Reload, "no limit", "50";

    /// The most concurrent streams on one HTTP/2 connection. Taximeter announces the number and
    /// refuses every further stream.
    http2_streams_max: u32 = 100, AtLeast32<1>, Reload;

    /// The flow-control window of one HTTP/2 stream, in bytes. A client may not send more before
    /// Taximeter has read it.
    http2_window_bytes: u32 = 64 << 10, Whole<1, 2_147_483_647>, Reload;

    /// The flow-control window of one HTTP/2 connection, in bytes: of all its streams together.
    http2_connection_window_bytes: u32 = 1 << 20, Whole<1, 2_147_483_647>, Reload;

    /// The stream resets on one HTTP/2 connection within 10 seconds. Taximeter closes a connection
    /// that reaches the number, if more than half of all its streams were reset.
    http2_resets_per_10s_max: u32 = 100, AtLeast32<1>, Reload;

    /// The most frames on one HTTP/2 connection within 10 seconds that carry no request and no
    /// answer, such as PING and SETTINGS. Taximeter closes a connection that sends more.
    http2_control_frames_per_10s_max: u32 = 1_000, AtLeast32<1>, Reload;

    /// The time to connect to an upstream, with the TLS handshake. Taximeter then tries again, and
    /// answers 502 `upstream_connect` after the last attempt.
    upstream_connect_timeout ("upstream_connect_timeout_seconds"): Duration = seconds(5), Duration,
        Reload;

    /// The time until an upstream begins its answer. Taximeter then answers 504 `upstream_timeout`.
    upstream_head_timeout ("upstream_head_timeout_seconds"): Duration = seconds(300), Duration,
        Reload;

    /// The longest silence of an upstream within an answer. Taximeter then ends the answer, in a
    /// stream with the error `upstream_timeout`; the record's `end` is `upstream_stalled`.
    upstream_idle_timeout ("upstream_idle_timeout_seconds"): Duration = seconds(120), Duration,
        Reload;

    /// The time for a whole request, from its head to the last byte of the answer. Taximeter then
    /// ends the request: with 408 or 504 before the answer has begun, else by cutting the answer;
    /// the record's `end` is `deadline`.
    request_timeout ("request_timeout_seconds"): Duration = seconds(3600), Duration, Reload;

    /// How long Taximeter keeps an idle connection to an upstream for the next request. It closes
    /// the connection then.
    upstream_keep_alive ("upstream_keep_alive_seconds"): Duration = seconds(4), Duration, Reload;

    /// The most attempts to send one request. Taximeter tries again only where the engine cannot
    /// have begun to work, and answers 502 after the last attempt.
    attempts_max: u32 = 2, Whole<1, 10>, Reload;

    /// The time in which a client must read what was sent to it. Taximeter closes the connection of
    /// a client that does not; the record's `end` is `client_stalled`.
    client_write_timeout ("client_write_timeout_seconds"): Duration = seconds(60), Duration, Reload;

    /// The largest compressed request body, in bytes after decompression. Taximeter refuses a larger
    /// one with 413 `request_too_large`.
    decode_bytes_max: usize = 32 << 20, AtLeast<1>, Reload;

    /// The most decompressed bytes per byte of a compressed body. Taximeter refuses a request
    /// beyond it with 413 `request_too_large`. An answer beyond it passes unread.
    decode_ratio_max: u32 = 200, AtLeast32<1>, Reload;

    /// The longest text that Taximeter counts with a tokenizer for one request, in bytes. It
    /// estimates the tokens of longer text, and flags the number as `estimated`.
    count_bytes_max: usize = 4 << 20, Whole<1, 67_108_864>, Reload;

    /// The bytes of an answer that Taximeter collects for one write to the client. A longer answer
    /// that is not a stream carries no `x-taximeter-tokens` and no `x-taximeter-cost`.
    relay_buffer_bytes: usize = 64 << 10, AtLeast<1>, Reload;

    /// How long Taximeter serves on after SIGTERM while `/readyz` answers 503, so that load
    /// balancers can take it out. The drain begins then.
    drain_grace ("drain_grace_seconds"): Duration = Duration::ZERO, SecondsOrZero, Reload;

    /// How long running requests may go on once the drain has begun. Taximeter then ends them;
    /// their records' `end` is `shutdown`.
    drain ("drain_seconds"): Duration = seconds(30), Duration, Reload;

    /// How long a request waits for its ledger entry to be written. Taximeter then refuses a new
    /// request with 503 `ledger_unavailable`, unless `ledger.unavailable` is `serve`. For an answer
    /// that is complete it only logs `ledger_slow`.
    ledger_write_timeout ("ledger_write_timeout_seconds"): Duration = seconds(1), Duration, Reload;

    /// The bytes of ledger entries that wait to be written. Once half of it is taken, Taximeter
    /// refuses new requests with 503 `ledger_unavailable`; the rest is for requests that run.
    ledger_queue_bytes_max: usize = 64 << 20, AtLeast<1>, Restart;

    /// The size of one journal file, in bytes. Taximeter starts a new file once the last one is as
    /// long.
    ledger_segment_bytes: usize = 64 << 20, AtLeast<4_096>, Restart;

    /// The most time series of one metric. All further ones share one series, whose labels are
    /// `other`.
    series_per_metric_max: usize = 2_000, AtLeast<10>, Restart;

    /// The longest text in one field of the log, in bytes. Taximeter cuts a longer one.
    log_field_bytes_max: usize = 256, AtLeast<64>, Reload;

    /// The most log lines of one event per second; lines of `telemetry.access_log` do not count.
    /// Taximeter leaves out the rest, and says in the next line how many.
    log_lines_per_kind_per_second_max: u32 = 10, AtLeast32<1>, Reload;
}

impl Limits {
    /// The default of `bodies_total_bytes_max` where a quarter of the memory is not less.
    pub(crate) const BODIES_TOTAL_BYTES: usize = 1 << 30;

    /// The bytes that all request bodies may take at once: the configured limit, or the default
    /// with this memory limit of the process.
    #[must_use]
    pub fn bodies_total(&self, memory_bytes: Option<u64>) -> usize {
        let quarter = memory_bytes.map(|bytes| usize::try_from(bytes / 4).unwrap_or(usize::MAX));
        let most = Self::BODIES_TOTAL_BYTES.min(quarter.unwrap_or(usize::MAX));
        self.bodies_total_bytes_max.unwrap_or(most)
    }
}
