//! The rules for limits.

use std::fmt::Display;
use std::num::{NonZeroU32, NonZeroUsize};

use crate::limits::Limits;
use crate::mistake::Invalid;
use crate::reader::{At, Optional, Reader};
use crate::schema::RawLimits;
use crate::values::Value;

/// The most that HTTP/2 has a number for.
const HTTP2_WINDOW_BYTES_MAX: NonZeroU32 = NonZeroU32::new(i32::MAX as u32).unwrap();
/// The least that hyper reads a head with.
const HEADER_BYTES_MIN: usize = 8192;
/// Below it, files of the journal are little but heads.
const SEGMENT_BYTES_MIN: usize = 4096;
/// Below it, whole events of ordinary streams would not be read.
const SSE_LINE_BYTES_MIN: usize = 1024;
/// Below it, the fixed words of one metric would be `other`.
const SERIES_MIN: usize = 10;
/// Below it, an address or a path is not seen whole.
const LOG_FIELD_BYTES_MIN: usize = 64;
/// Each level that is open takes a byte; no engine reads a thousand.
const JSON_DEPTH_MAX: NonZeroUsize = NonZeroUsize::new(65_536).unwrap();
/// Some seconds of counting.
const COUNT_BYTES_MAX: NonZeroUsize = NonZeroUsize::new(64 << 20).unwrap();
/// An engine that nine attempts have not reached is gone.
const ATTEMPTS_MAX: NonZeroU32 = NonZeroU32::new(10).unwrap();

/// The limits; what is wrong with them is reported.
pub(super) fn limits(raw: RawLimits, reader: &mut Reader<'_>) -> Limits {
    let default = Limits::default();
    bounds(&raw, reader);
    let head = (&raw.header_bytes_max, default.header_bytes_max);
    ordered((&raw.uri_bytes_max, default.uri_bytes_max), head, "header_bytes_max", reader);
    let bodies = (&raw.bodies_total_bytes_max, Limits::BODIES_TOTAL_BYTES);
    ordered(
        (&raw.body_bytes_max, default.body_bytes_max),
        bodies,
        "bodies_total_bytes_max",
        reader,
    );
    Limits {
        header_bytes_max: raw.header_bytes_max.or(default.header_bytes_max),
        headers_max: raw.headers_max.or(default.headers_max),
        uri_bytes_max: raw.uri_bytes_max.or(default.uri_bytes_max),
        header_read_timeout: raw.header_read_timeout_seconds.or(default.header_read_timeout),
        body_bytes_max: raw.body_bytes_max.or(default.body_bytes_max),
        body_read_timeout: raw.body_read_timeout_seconds.or(default.body_read_timeout),
        bodies_total_bytes_max: raw.bodies_total_bytes_max.given().map(|at| at.value.get()),
        json_depth_max: raw.json_depth_max.or(default.json_depth_max),
        memory_bytes_max: raw.memory_bytes_max.given().map(|at| at.value.get()),
        idle_timeout: raw.idle_timeout_seconds.or(default.idle_timeout),
        connections_max: raw.connections_max.or(default.connections_max),
        connections_per_peer_max: raw.connections_per_peer_max.given().map(|at| at.value.get()),
        requests_per_connection_max: raw
            .requests_per_connection_max
            .or(default.requests_per_connection_max),
        requests_per_tenant_max: raw.requests_per_tenant_max.given().map(|at| at.value.get()),
        http2_streams_max: raw.http2_streams_max.or(default.http2_streams_max),
        http2_window_bytes: raw.http2_window_bytes.or(default.http2_window_bytes),
        http2_connection_window_bytes: raw
            .http2_connection_window_bytes
            .or(default.http2_connection_window_bytes),
        http2_resets_per_10s_max: raw.http2_resets_per_10s_max.or(default.http2_resets_per_10s_max),
        http2_control_frames_per_10s_max: raw
            .http2_control_frames_per_10s_max
            .or(default.http2_control_frames_per_10s_max),
        upstream_connect_timeout: raw
            .upstream_connect_timeout_seconds
            .or(default.upstream_connect_timeout),
        upstream_head_timeout: raw.upstream_head_timeout_seconds.or(default.upstream_head_timeout),
        upstream_idle_timeout: raw.upstream_idle_timeout_seconds.or(default.upstream_idle_timeout),
        request_timeout: raw.request_timeout_seconds.or(default.request_timeout),
        upstream_keep_alive: raw.upstream_keep_alive_seconds.or(default.upstream_keep_alive),
        attempts_max: raw.attempts_max.or(default.attempts_max),
        client_write_timeout: raw.client_write_timeout_seconds.or(default.client_write_timeout),
        decode_bytes_max: raw.decode_bytes_max.or(default.decode_bytes_max),
        decode_ratio_max: raw.decode_ratio_max.or(default.decode_ratio_max),
        sse_line_bytes_max: raw.sse_line_bytes_max.or(default.sse_line_bytes_max),
        count_bytes_max: raw.count_bytes_max.or(default.count_bytes_max),
        relay_buffer_bytes: raw.relay_buffer_bytes.or(default.relay_buffer_bytes),
        drain_grace: raw.drain_grace_seconds.or(default.drain_grace),
        drain: raw.drain_seconds.or(default.drain),
        ledger_write_timeout: raw.ledger_write_timeout_seconds.or(default.ledger_write_timeout),
        ledger_queue_bytes_max: raw.ledger_queue_bytes_max.or(default.ledger_queue_bytes_max),
        ledger_segment_bytes: raw.ledger_segment_bytes.or(default.ledger_segment_bytes),
        series_per_metric_max: raw.series_per_metric_max.or(default.series_per_metric_max),
        log_field_bytes_max: raw.log_field_bytes_max.or(default.log_field_bytes_max),
        log_lines_per_kind_per_second_max: raw
            .log_lines_per_kind_per_second_max
            .or(default.log_lines_per_kind_per_second_max),
    }
}

/// Each by itself.
fn bounds(raw: &RawLimits, reader: &mut Reader<'_>) {
    at_least(HEADER_BYTES_MIN, &raw.header_bytes_max, reader);
    at_least(SEGMENT_BYTES_MIN, &raw.ledger_segment_bytes, reader);
    at_least(SSE_LINE_BYTES_MIN, &raw.sse_line_bytes_max, reader);
    at_least(SERIES_MIN, &raw.series_per_metric_max, reader);
    at_least(LOG_FIELD_BYTES_MIN, &raw.log_field_bytes_max, reader);
    at_most(JSON_DEPTH_MAX, &raw.json_depth_max, reader);
    at_most(COUNT_BYTES_MAX, &raw.count_bytes_max, reader);
    at_most(ATTEMPTS_MAX, &raw.attempts_max, reader);
    at_most(HTTP2_WINDOW_BYTES_MAX, &raw.http2_window_bytes, reader);
    at_most(HTTP2_WINDOW_BYTES_MAX, &raw.http2_connection_window_bytes, reader);
}

pub(super) type Count<'raw> = (&'raw Optional<At<NonZeroUsize>>, usize);

pub(super) fn at_least(least: usize, raw: &Optional<At<NonZeroUsize>>, reader: &mut Reader<'_>) {
    if let Optional::Given(at) = raw
        && at.value.get() < least
    {
        let why = Invalid::new("is too little", format!("at least {least}"));
        reader.invalid::<NonZeroUsize>(&at.spot, &at.written, &why);
    }
}

fn at_most<T: Value + Ord + Display>(most: T, raw: &Optional<At<T>>, reader: &mut Reader<'_>) {
    if let Optional::Given(at) = raw
        && at.value > most
    {
        let why = Invalid::new("is too much", format!("at most {most}"));
        reader.invalid::<T>(&at.spot, &at.written, &why);
    }
}

/// Reports when `part` is more than `whole`, at the one that the file gives.
pub(super) fn ordered(
    part: Count<'_>,
    whole: Count<'_>,
    whole_name: &str,
    reader: &mut Reader<'_>,
) {
    let value =
        |(field, default): Count<'_>| field.as_ref().given().map_or(default, |at| at.value.get());
    let most = value(whole);
    if value(part) <= most {
        return;
    }
    match (part.0, whole.0) {
        (Optional::Given(at), Optional::Absent | Optional::Given(_)) => {
            let why = Invalid::new("is too much", format!("at most `{whole_name}`, {most}"));
            reader.invalid::<NonZeroUsize>(&at.spot, &at.written, &why);
        }
        (Optional::Absent, Optional::Given(_)) => at_least(part.1, whole.0, reader),
        _ => {}
    }
}
