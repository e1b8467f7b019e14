//! Interprets the answers of a collector.
//!
//! Source: the OpenTelemetry protocol: failures, retryable codes and throttling, for HTTP and for
//! gRPC.

use std::time::Duration;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::{HeaderMap, StatusCode};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use prost::Message as _;
use taximeter_net::retry::{ASKED_PAUSE_MAX, retry_after};

/// What is kept of what a collector says, in characters.
const MESSAGE_CHARS_MAX: usize = 256;
const OK: u32 = 0;
const RESOURCE_EXHAUSTED: u32 = 8;
/// `CANCELLED`, `DEADLINE_EXCEEDED`, `ABORTED`, `OUT_OF_RANGE`, `UNAVAILABLE`, `DATA_LOSS`.
const RETRYABLE: [u32; 6] = [1, 4, 10, 11, 14, 15];

/// What became of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The collector has it.
    Taken {
        /// Items among it that it does not take.
        rejected: usize,
        /// What it said; empty where all is well.
        message: String,
    },
    /// The collector will never take it.
    Refused { reason: String },
    /// The collector may take it later.
    Later {
        reason: String,
        /// How long it wants to be left alone.
        wait: Option<Duration>,
    },
}

impl Answer {
    /// Nothing came back; it may be asked again.
    pub(super) fn none(reason: impl Into<String>) -> Self {
        Self::Later { reason: reason.into(), wait: None }
    }

    /// The batch was taken; `body` is what the collector says of it. Partial success has the same
    /// shape for every signal.
    fn taken(body: &[u8]) -> Self {
        let partial = ExportMetricsServiceResponse::decode(body)
            .ok()
            .and_then(|response| response.partial_success)
            .unwrap_or_default();
        Self::Taken {
            rejected: partial.rejected_data_points.try_into().unwrap_or(0),
            message: shortened(&partial.error_message),
        }
    }
}

/// By HTTP.
pub(super) fn of_http(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Answer {
    if status.is_success() {
        return Answer::taken(body);
    }
    let reason = status.to_string();
    match status.as_u16() {
        429 | 502 | 503 | 504 => Answer::Later { reason, wait: retry_after(headers) },
        _ => Answer::Refused { reason },
    }
}

/// By gRPC; `ends` has its status, which is in the trailers, or in the head where nothing else is.
pub(super) fn of_grpc(status: StatusCode, ends: &HeaderMap, body: &[u8]) -> Answer {
    let text = |name| ends.get(name).and_then(|value| value.to_str().ok());
    let Some(code) = text("grpc-status").and_then(|code| code.parse::<u32>().ok()) else {
        // Something between us and the collector answered.
        return match of_http(status, ends, &[]) {
            Answer::Taken { .. } => Answer::none("the answer breaks off: no grpc-status"),
            other => other,
        };
    };
    if code == OK {
        // One byte says whether it is compressed, which we did not ask for, and four how long it is.
        return Answer::taken(body.get(5..).unwrap_or_default());
    }
    let reason = format!("grpc-status {code}: {}", shortened(text("grpc-message").unwrap_or("")));
    let wait = text("grpc-status-details-bin").and_then(retry_info);
    match code {
        RESOURCE_EXHAUSTED if wait.is_some() => Answer::Later { reason, wait },
        code if RETRYABLE.contains(&code) => Answer::Later { reason, wait },
        _ => Answer::Refused { reason },
    }
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, prost::Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, prost::Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, prost::Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

/// How long a collector wants to be left alone, as its status tells in detail.
fn retry_info(details: &str) -> Option<Duration> {
    let config =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let bytes = GeneralPurpose::new(&STANDARD, config).decode(details).ok()?;
    let status = Status::decode(&*bytes).ok()?;
    let info = status.details.iter().find(|any| any.type_url.ends_with("/google.rpc.RetryInfo"))?;
    let delay = RetryInfo::decode(&*info.value).ok()?.retry_delay?;
    let (seconds, nanos) = (delay.seconds.try_into().ok()?, delay.nanos.try_into().ok()?);
    Some(Duration::new(seconds, 0).saturating_add(Duration::from_nanos(nanos)).min(ASKED_PAUSE_MAX))
}

fn shortened(text: &str) -> String {
    text.chars().take(MESSAGE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsPartialSuccess;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    fn partial() -> Vec<u8> {
        let partial = ExportMetricsPartialSuccess {
            rejected_data_points: 7,
            error_message: "too old".to_owned(),
        };
        ExportMetricsServiceResponse { partial_success: Some(partial) }.encode_to_vec()
    }

    #[test]
    fn only_some_statuses_are_worth_another_try() {
        let of = |status: u16, pairs: &[_]| {
            of_http(StatusCode::from_u16(status).unwrap(), &headers(pairs), b"?")
        };
        assert!(matches!(of(200, &[]), Answer::Taken { rejected: 0, .. }));
        for status in [429, 502, 503, 504] {
            let asked = of(status, &[("retry-after", "3")]);
            assert!(matches!(asked, Answer::Later { wait: Some(_), .. }), "{status}");
            assert!(matches!(of(status, &[]), Answer::Later { wait: None, .. }), "{status}");
        }
        for status in [301, 400, 401, 403, 404, 413, 500, 501] {
            assert!(matches!(of(status, &[]), Answer::Refused { .. }), "{status}");
        }
    }

    #[test]
    fn partial_success_is_read() {
        let taken = Answer::Taken { rejected: 7, message: "too old".to_owned() };
        assert_eq!(of_http(StatusCode::OK, &HeaderMap::new(), &partial()), taken);
        let framed = [&[0, 0, 0, 0, 11][..], &partial()].concat();
        let ends = headers(&[("grpc-status", "0")]);
        assert_eq!(of_grpc(StatusCode::OK, &ends, &framed), taken);
    }

    #[test]
    fn grpc_says_itself_what_is_worth_another_try() {
        let of = |pairs: &[_]| of_grpc(StatusCode::OK, &headers(pairs), &[]);
        for code in ["1", "4", "10", "11", "14", "15"] {
            assert!(matches!(of(&[("grpc-status", code)]), Answer::Later { .. }), "{code}");
        }
        for code in ["2", "3", "7", "8", "12", "16"] {
            assert!(matches!(of(&[("grpc-status", code)]), Answer::Refused { .. }), "{code}");
        }
        assert!(matches!(of(&[]), Answer::Later { .. }));
        let proxy = of_grpc(StatusCode::BAD_GATEWAY, &HeaderMap::new(), &[]);
        assert!(matches!(proxy, Answer::Later { .. }));
        let proxy = of_grpc(StatusCode::FORBIDDEN, &HeaderMap::new(), &[]);
        assert!(matches!(proxy, Answer::Refused { .. }));
    }

    #[test]
    fn an_exhausted_collector_may_say_when_to_come_back() {
        let info = RetryInfo { retry_delay: Some(Delay { seconds: 2, nanos: 500_000_000 }) };
        let any = Any {
            type_url: "type.googleapis.com/google.rpc.RetryInfo".to_owned(),
            value: info.encode_to_vec(),
        };
        let bytes = Status { details: vec![any] }.encode_to_vec();
        let details = base64::engine::general_purpose::STANDARD_NO_PAD.encode(bytes);
        let ends = headers(&[("grpc-status", "8"), ("grpc-status-details-bin", &details)]);
        let Answer::Later { wait, .. } = of_grpc(StatusCode::OK, &ends, &[]) else {
            panic!("no wait")
        };
        assert_eq!(wait, Some(Duration::from_millis(2500)));
    }
}
