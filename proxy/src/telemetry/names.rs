//! Every instrument: the only place where a name stands.
//!
//! GenAI names, units and buckets follow the OpenTelemetry semantic conventions v1.41.1
//! ("generation A"), HTTP ones v1.44.0; what is under `taximeter.` is ours. Attribute keys that the
//! registry has come from its crate.

#![expect(
    deprecated,
    reason = "the registry of GenAI names has moved; v1.41.1 is the generation we emit"
)]

use opentelemetry_semantic_conventions::{attribute, metric};

/// What an instrument is in Prometheus' words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    /// With upper bounds.
    Histogram(&'static [f64]),
}

/// One row of the table below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// UCUM, as OpenTelemetry writes it.
    pub(crate) unit: &'static str,
    pub(crate) help: &'static str,
}

/// Tokens per request.
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// Durations of operations, in seconds.
const DURATIONS: &[f64] = &taximeter_meter::GapHistogram::BOUNDS_SECONDS;
/// Time per output token, in seconds.
const PER_TOKEN: &[f64] =
    &[0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5];
/// Time to the first token, in seconds.
const FIRST_TOKEN: &[f64] =
    &[0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
/// HTTP durations, in seconds.
const HTTP: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
/// The gateway's own part of a request, in seconds.
const OWN: &[f64] =
    &[0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.05, 0.25, 1.0];

macro_rules! instruments {
    ($($instrument:ident: $name:expr, $kind:expr, $unit:literal, $help:literal;)*) => {
        /// An instrument.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub(crate) enum Instrument { $($instrument),* }

        impl Instrument {
            /// All of them.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$instrument),*];

            /// Its row.
            pub(crate) const fn spec(self) -> Spec {
                match self {
                    $(Self::$instrument => {
                        Spec { name: $name, kind: $kind, unit: $unit, help: $help }
                    })*
                }
            }
        }
    };
}

instruments! {
    TokenUsage: metric::GEN_AI_CLIENT_TOKEN_USAGE, Kind::Histogram(TOKENS), "{token}",
        "Tokens per request, cached and reasoning tokens included.";
    OperationDuration: metric::GEN_AI_CLIENT_OPERATION_DURATION, Kind::Histogram(DURATIONS), "s",
        "Duration of an operation, from the request's head to its last byte.";
    TimeToFirstChunk: metric::GEN_AI_CLIENT_OPERATION_TIME_TO_FIRST_CHUNK,
        Kind::Histogram(DURATIONS), "s", "Time to the first event of a stream.";
    TimePerOutputChunk: metric::GEN_AI_CLIENT_OPERATION_TIME_PER_OUTPUT_CHUNK,
        Kind::Histogram(DURATIONS), "s", "Gap between two events with generated content.";
    ServerRequestDuration: metric::GEN_AI_SERVER_REQUEST_DURATION, Kind::Histogram(DURATIONS), "s",
        "Duration of a request, as seen in front of the engine.";
    ServerTimeToFirstToken: metric::GEN_AI_SERVER_TIME_TO_FIRST_TOKEN,
        Kind::Histogram(FIRST_TOKEN), "s", "Time to the first generated content of a stream.";
    ServerTimePerOutputToken: metric::GEN_AI_SERVER_TIME_PER_OUTPUT_TOKEN,
        Kind::Histogram(PER_TOKEN), "s", "Time per output token after the first.";
    HttpServerRequestDuration: metric::HTTP_SERVER_REQUEST_DURATION, Kind::Histogram(HTTP), "s",
        "Duration of an HTTP request.";
    Requests: "taximeter.requests", Kind::Counter, "{request}", "Requests by how they ended.";
    Tokens: "taximeter.tokens", Kind::Counter, "{token}",
        "Tokens by type and by where the number comes from.";
    Recounts: "taximeter.usage.recounts", Kind::Counter, "{count}",
        "Reported numbers of tokens that were also counted, by type and by whether both agree.";
    CacheReadTokens: "taximeter.cache_read.input_tokens", Kind::Counter, "{token}",
        "Input tokens served from a cache; a part of the input.";
    CacheWriteTokens: "taximeter.cache_write.input_tokens", Kind::Counter, "{token}",
        "Input tokens written to a cache; a part of the input.";
    ReasoningTokens: "taximeter.reasoning.output_tokens", Kind::Counter, "{token}",
        "Output tokens that were reasoning; a part of the output.";
    Cost: "taximeter.cost", Kind::Counter, "{USD}",
        "What requests cost, as an approximation; the ledger has it exactly.";
    Unpriced: "taximeter.unpriced", Kind::Counter, "{request}",
        "Requests whose cost is unknown.";
    GatewayDuration: "taximeter.gateway.duration", Kind::Histogram(OWN), "s",
        "The gateway's own part of a request, until it was sent upstream.";
    Refusals: "taximeter.refusals", Kind::Counter, "{request}", "Requests that were not served.";
    Voids: "taximeter.voids", Kind::Counter, "{request}",
        "Reserved requests that used nothing, by reason.";
    UpstreamFaults: "taximeter.upstream.connect_failures", Kind::Counter, "{connection}",
        "Connections to an engine that failed, by cause.";
    UpstreamProtocolFaults: "taximeter.upstream.protocol_faults", Kind::Counter, "{answer}",
        "Answers of an engine that are not valid HTTP, by cause.";
    MeterOddities: "taximeter.meter.oddities", Kind::Counter, "{event}",
        "What engines sent that a meter wonders about, by kind.";
    AnswersLeft: "taximeter.answers.left", Kind::Counter, "{answer}",
        "Answers that a client left within, by what became of them: cancelled or drained.";
    CountsSkipped: "taximeter.meter.counts.skipped", Kind::Counter, "{request}",
        "Answers without usage that were not counted either, by cause.";
    AuthRefusals: "taximeter.auth.refusals", Kind::Counter, "{request}",
        "Requests without a valid credential, by reason.";
    SpoofedHeaders: "taximeter.spoofed_headers", Kind::Counter, "{request}",
        "Requests in which a client wrote an identity header of its own.";
    BadFraming: "taximeter.bad_framing", Kind::Counter, "{connection}",
        "Client connections that ended because no request could be read, by cause.";
    ConnectionsRefused: "taximeter.connections.refused", Kind::Counter, "{connection}",
        "Client connections over the maximum.";
    RequestsOpen: "taximeter.requests.open", Kind::Gauge, "{request}",
        "Reserved requests that have not ended.";
    LedgerEntries: "taximeter.ledger.entries", Kind::Counter, "{entry}",
        "Entries in the journal.";
    EntriesLost: "taximeter.ledger.entries.lost", Kind::Counter, "{entry}",
        "Entries that the ledger would not take.";
    LedgerSlow: "taximeter.ledger.slow", Kind::Counter, "{event}",
        "Times that the disk took longer than a second, or than a request waits for it.";
    StoreFaults: "taximeter.store.faults", Kind::Counter, "{fault}",
        "Times that the store could not be fed from the journal.";
    PushedEvents: "taximeter.push.events", Kind::Counter, "{event}",
        "Events of the ledger that were sent to the receiver, by what it did: stored or rejected.";
    PushFaults: "taximeter.push.faults", Kind::Counter, "{fault}",
        "Times that the receiver could not be reached or took nothing; all of it is sent again.";
    LedgerHealthy: "taximeter.ledger.healthy", Kind::Gauge, "1",
        "1 while the ledger can be written.";
}

/// Attribute keys.
pub(crate) mod key {
    use super::attribute;

    pub(crate) const ERROR_TYPE: &str = attribute::ERROR_TYPE;
    pub(crate) const GEN_AI_OPERATION_NAME: &str = attribute::GEN_AI_OPERATION_NAME;
    pub(crate) const GEN_AI_PROVIDER_NAME: &str = attribute::GEN_AI_PROVIDER_NAME;
    pub(crate) const GEN_AI_REQUEST_MODEL: &str = attribute::GEN_AI_REQUEST_MODEL;
    pub(crate) const GEN_AI_RESPONSE_MODEL: &str = attribute::GEN_AI_RESPONSE_MODEL;
    pub(crate) const GEN_AI_TOKEN_TYPE: &str = attribute::GEN_AI_TOKEN_TYPE;
    pub(crate) const HTTP_REQUEST_METHOD: &str = attribute::HTTP_REQUEST_METHOD;
    pub(crate) const HTTP_RESPONSE_STATUS_CODE: &str = attribute::HTTP_RESPONSE_STATUS_CODE;
    pub(crate) const HTTP_ROUTE: &str = attribute::HTTP_ROUTE;
    pub(crate) const SERVER_ADDRESS: &str = attribute::SERVER_ADDRESS;
    pub(crate) const SERVER_PORT: &str = attribute::SERVER_PORT;
    pub(crate) const URL_SCHEME: &str = attribute::URL_SCHEME;
    pub(crate) const TENANT: &str = "taximeter.tenant";
    pub(crate) const END: &str = "taximeter.end";
    pub(crate) const SOURCE: &str = "taximeter.usage.source";
    pub(crate) const AGREES: &str = "taximeter.usage.agrees";
    pub(crate) const CURRENCY: &str = "taximeter.currency";
    pub(crate) const CODE: &str = "taximeter.refusal.code";
    pub(crate) const REASON: &str = "taximeter.void.reason";
    pub(crate) const UPSTREAM: &str = "taximeter.upstream";
    pub(crate) const CAUSE: &str = "taximeter.cause";
    pub(crate) const OUTCOME: &str = "taximeter.outcome";
    pub(crate) const KIND: &str = "taximeter.kind";
}

impl Spec {
    /// The name in Prometheus: escaped, then the unit, then `_total` on counters.
    ///
    /// Source: OpenTelemetry compatibility/prometheus, `UnderscoreEscapingWithSuffixes`.
    pub(crate) fn prometheus(&self) -> String {
        let mut name = escaped(self.name);
        let unit = match self.unit {
            "s" => "_seconds",
            "By" => "_bytes",
            _ => "",
        };
        if !name.ends_with(unit) {
            name.push_str(unit);
        }
        if self.kind == Kind::Counter && !name.ends_with("_total") {
            name.push_str("_total");
        }
        name
    }
}

/// A name or key with everything but letters, digits and `_` as `_`.
pub(crate) fn escaped(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_become_prometheus_names_by_the_specification() {
        for (instrument, name) in [
            (Instrument::TokenUsage, "gen_ai_client_token_usage"),
            (Instrument::OperationDuration, "gen_ai_client_operation_duration_seconds"),
            (
                Instrument::TimePerOutputChunk,
                "gen_ai_client_operation_time_per_output_chunk_seconds",
            ),
            (Instrument::ServerTimeToFirstToken, "gen_ai_server_time_to_first_token_seconds"),
            (Instrument::HttpServerRequestDuration, "http_server_request_duration_seconds"),
            (Instrument::Cost, "taximeter_cost_total"),
            (Instrument::RequestsOpen, "taximeter_requests_open"),
        ] {
            assert_eq!(instrument.spec().prometheus(), name);
        }
    }

    #[test]
    fn every_name_is_there_once_and_every_bound_rises() {
        let names: HashSet<_> = Instrument::ALL.iter().map(|i| i.spec().prometheus()).collect();
        assert_eq!(names.len(), Instrument::ALL.len());
        for instrument in Instrument::ALL {
            if let Kind::Histogram(bounds) = instrument.spec().kind {
                assert!(bounds.is_sorted(), "{instrument:?}");
            }
        }
    }
}
