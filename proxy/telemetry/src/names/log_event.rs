//! Every kind of log line: its name, its level and its fields. Also the meaning of the fields of
//! requests.

use super::key;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Something an operator may want to know.
    Info,
    /// Something went wrong that is not ours.
    Warn,
    /// Something is broken and needs somebody.
    Critical,
}

impl Level {
    /// The word, as lines have it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Critical => "critical",
        }
    }
}

/// One row of the table below.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its word.
    pub word: &'static str,
    pub level: Level,
    /// What a line of it can have beside time, level, event and trace.
    pub fields: &'static [&'static str],
    /// A sentence for people.
    pub meaning: &'static str,
}

macro_rules! log_events {
    ($($event:ident: $word:literal, $level:ident, $fields:expr, $meaning:literal;)*) => {
        /// What a line can tell of.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum LogEvent { $(#[doc = $meaning] $event),* }

        impl LogEvent {
            /// All of them.
            #[cfg(test)]
            pub const ALL: &'static [Self] = &[$(Self::$event),*];

            /// Its row.
            pub const fn row(self) -> Row {
                match self {
                    $(Self::$event => Row {
                        word: $word,
                        level: Level::$level,
                        fields: &$fields,
                        meaning: $meaning,
                    }),*
                }
            }
        }
    };
}

log_events! {
    Request: "request", Info,
        ["id", "request_id", "peer", "tenant", "method", "route", "path", "status", "end", "code",
         "error_type", "operation", "provider", "upstream", "model", "response_model", "stream",
         "input_tokens", "cache_read_input_tokens", "cache_write_input_tokens", "output_tokens",
         "reasoning_output_tokens", "source", "flags", "cost", "currency", "duration_seconds",
         "gateway_seconds", "time_to_first_chunk_seconds", "time_to_first_token_seconds"],
        "A request has ended.";
    OperationFailed: "operation_failed", Warn,
        ["id", "tenant", "operation", "provider", "upstream", "model", "status", "error_type",
         "exception_type"],
        "A call of an engine has failed.";
    Listening: "listening", Info, ["listen", "admin", "upstreams", "data_dir", "version"],
        "The gateway serves.";
    ConfigReloaded: "config_reloaded", Info, [],
        "Another configuration is in force; requests that are running keep theirs.";
    ConfigWaits: "config_waits", Warn, ["keys", "hint"],
        "Keys of the configuration have changed that are read at a start only.";
    ConfigRejected: "config_rejected", Critical, ["path", "problem", "problems"],
        "What is in the configuration's file is not taken; what was in force stays so. A line for \
         each mistake.";
    ConfigWithoutFile: "config_without_file", Warn, ["hint"],
        "The gateway was told to read its configuration again, and was started without a file.";
    Leaving: "leaving", Info, ["grace_seconds"],
        "The gateway was told to stop: it is not ready any more, and serves who comes all the same.";
    Draining: "draining", Info, [],
        "The gateway lets requests that are running end, and begins no others.";
    Stopped: "stopped", Info, [], "The gateway has stopped.";
    StartGivenUp: "start_given_up", Info, [],
        "The gateway was told to stop before it had started.";
    VariableIgnored: "variable_ignored", Warn, ["name", "reason"],
        "A variable of the environment does not do and was left out.";
    RequestRefused: "request_refused", Warn, ["code", "request_id", "message"],
        "A request was not served.";
    AuthRefused: "auth_refused", Warn, ["reason", "key_sha256"],
        "A request had no valid credential.";
    SpoofedHeader: "spoofed_header", Warn, ["tenant"],
        "A client wrote an identity header of its own; it was not believed.";
    BadFraming: "bad_framing", Warn, ["cause", "peer", "first_line"],
        "A client's connection ended because no request could be read.";
    ConnectionRefused: "connection_refused", Warn, ["reason", "peer"],
        "A client was not let in: too many connections.";
    TenantLimited: "tenant_limited", Warn, ["tenant"],
        "A request was not served because its tenant has as many as it may.";
    Panicked: "panicked", Critical, ["place"],
        "Something is wrong in the gateway itself: whatever ran there has ended, all else goes on.";
    TlsRenewed: "tls_renewed", Info, ["path"],
        "Another certificate is shown to those who connect from now on.";
    TlsRefused: "tls_refused", Critical, ["reason"],
        "The files of certificate and key have changed and do not do; those before stay in force.";
    PodInjected: "pod_injected", Info, ["namespace", "pod"],
        "The webhook gave a pod its sidecar.";
    PodNotInjected: "pod_not_injected", Warn, ["namespace", "pod", "reason"],
        "A pod that asked the webhook for a sidecar was let through without.";
    ReviewRefused: "review_refused", Warn, ["reason"],
        "What came to the webhook was no admission review.";
    UpstreamRecognised: "upstream_recognised", Info, ["upstream", "provider"],
        "An upstream has shown what it is.";
    UpstreamUnreachable: "upstream_unreachable", Warn, ["upstream", "cause", "message"],
        "An engine could not be reached.";
    UpstreamProtocol: "upstream_protocol", Warn, ["upstream", "cause"],
        "An engine's answer is not valid HTTP.";
    UpstreamRefusedCredential: "upstream_refused_credential", Critical, ["upstream"],
        "An engine refused the credential that the configuration has for it.";
    CountSkipped: "count_skipped", Warn, ["cause"],
        "An answer without usage was not counted either.";
    TokenizerLoaded: "tokenizer_loaded", Info, ["path"], "A vocabulary was read.";
    TokenizerFallback: "tokenizer_fallback", Warn, ["path", "reason"],
        "A vocabulary is counted by a slower tokenizer, as exactly.";
    PricesWithoutExchange: "prices_without_exchange", Warn, ["currency", "bills_in", "hint"],
        "Models priced in a currency without a rate cost unknown.";
    LedgerOpened: "ledger_opened", Info,
        ["from_seq", "entries", "torn_bytes", "torn_entries", "lost_entries", "stray_entries",
         "gateway_died", "gateway_died_unpriced"],
        "The journal was opened; what of it had to be mended.";
    LedgerRecovered: "ledger_recovered", Info, [], "The ledger can be written again.";
    LedgerRetired: "ledger_retired", Info, ["segments"],
        "Segments of the journal were removed, as `keep_days` says, or `dir_bytes_max`.";
    LedgerFull: "ledger_full", Critical, ["bytes", "bytes_max", "hint"],
        "The data directory has no room for more: requests are refused.";
    LedgerHasRoom: "ledger_has_room", Info, ["bytes", "bytes_max"],
        "The data directory has room again.";
    LedgerSlow: "ledger_slow", Critical, ["action", "seconds"],
        "The disk takes longer than a request waits for it.";
    LedgerWriteFailed: "ledger_write_failed", Critical, ["path", "error"],
        "The ledger cannot be written.";
    LedgerSyncFailed: "ledger_sync_failed", Critical, ["error"], "The ledger cannot be synced.";
    LedgerSegmentLost: "ledger_segment_lost", Critical, ["path"],
        "A file of the journal was taken away.";
    LedgerEntryLost: "ledger_entry_lost", Critical, ["reason"],
        "The ledger would not take an entry.";
    LedgerTorn: "ledger_torn", Warn, ["path", "fault", "bytes", "first_seq", "entries", "kept"],
        "The end of the journal was cut off in a power cut or crash.";
    LedgerSalvaged: "ledger_salvaged", Critical,
        ["path", "fault", "first_seq", "entries_lost", "kept"],
        "A part of the journal was damaged and left out.";
    StoreRejected: "store_rejected", Critical, ["reason", "path"],
        "An entry of the ledger cannot be read; it was set aside.";
    StoreFailed: "store_failed", Warn, ["reason"],
        "The store could not be fed; the journal keeps what it lacks.";
    PushRejected: "push_rejected", Critical, ["id", "reason"],
        "The receiver of `export.push` will not take an event.";
    PushFailed: "push_failed", Warn, ["reason"],
        "The receiver of `export.push` could not be reached or took nothing.";
    PushLost: "push_lost", Critical, ["first", "last", "hint"],
        "The journal has dropped events that the receiver lacks.";
    PushJournalReplaced: "push_journal_replaced", Warn, [],
        "The journal is another one; it is sent from its start.";
    OtlpRejected: "otlp_rejected", Warn, ["signal", "rejected", "message"],
        "The collector took a push in part.";
    OtlpFailed: "otlp_failed", Warn, ["signal", "reason"],
        "The collector could not be reached or took nothing; it is asked again.";
    OtlpDropped: "otlp_dropped", Warn, ["signal", "items", "reason"],
        "What was to be pushed was dropped.";
    OtlpPanicked: "otlp_panicked", Critical, [],
        "The sender of OTLP panicked and was started again.";
}

impl LogEvent {
    /// Whether it is a line for each request, which has no rate of its own.
    pub(crate) const fn is_access(self) -> bool {
        matches!(self, Self::Request)
    }

    /// Whether it is written: what only collectors have a use for is not.
    pub const fn is_written(self) -> bool {
        !matches!(self, Self::OperationFailed)
    }

    /// What OpenTelemetry calls it, where it has a name for it.
    pub(crate) const fn convention(self) -> Option<&'static str> {
        match self {
            Self::OperationFailed => Some("gen_ai.client.operation.exception"),
            _ => None,
        }
    }

    /// Whether it is pushed: what the sender says of itself would make it send for ever.
    pub(crate) const fn is_pushed(self) -> bool {
        !matches!(
            self,
            Self::OtlpRejected | Self::OtlpFailed | Self::OtlpDropped | Self::OtlpPanicked
        )
    }
}

/// Fields that have an attribute of their own in OTLP: name, key, meaning. Any other is
/// `taximeter.log.` and its name.
pub(crate) const FIELDS: &[(&str, &str, &str)] = &[
    ("id", key::REQUEST_ID, "Ours: the record's `id`, and `x-taximeter-request-id` on the answer."),
    ("request_id", key::CLIENT_REQUEST_ID, "The client's `x-request-id`, or ours in its place."),
    (
        "peer",
        key::CLIENT_ADDRESS,
        "Address of who asks: whoever is connected, or whom trusted peers name (`x-forwarded-for`).",
    ),
    ("tenant", key::TENANT, "Who pays; absent where that was not found out."),
    ("method", key::HTTP_REQUEST_METHOD, "One of the known methods, else `_OTHER`."),
    ("route", key::HTTP_ROUTE, "The route's template; absent where none matched."),
    ("path", key::URL_PATH, "Where no route matched: what was asked for, without the query."),
    ("status", key::HTTP_RESPONSE_STATUS_CODE, "What the client saw; absent if it left before."),
    ("end", key::END, "How it ended, as its record has it; absent without one."),
    ("code", key::CODE, "Our own word, where we refused it."),
    ("error_type", key::ERROR_TYPE, "What went wrong; absent on success."),
    ("exception_type", key::EXCEPTION_TYPE, "The same, as exceptions have it."),
    ("operation", key::GEN_AI_OPERATION_NAME, "`chat`, `embeddings` and so on."),
    ("provider", key::GEN_AI_PROVIDER_NAME, "The upstream's `provider`."),
    ("upstream", key::UPSTREAM, "The upstream's name."),
    ("model", key::GEN_AI_REQUEST_MODEL, "The model asked for."),
    ("response_model", key::GEN_AI_RESPONSE_MODEL, "The model that answered."),
    ("stream", key::GEN_AI_REQUEST_STREAM, "Whether the answer was a stream."),
    ("input_tokens", key::GEN_AI_USAGE_INPUT_TOKENS, "Cached ones included; absent if unknown."),
    (
        "cache_read_input_tokens",
        key::GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
        "A part of the input; absent if unknown.",
    ),
    (
        "cache_write_input_tokens",
        key::GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS,
        "A part of the input; absent if unknown.",
    ),
    ("output_tokens", key::GEN_AI_USAGE_OUTPUT_TOKENS, "Reasoning included; absent if unknown."),
    (
        "reasoning_output_tokens",
        key::GEN_AI_USAGE_REASONING_OUTPUT_TOKENS,
        "A part of the output; absent if unknown.",
    ),
    ("source", key::SOURCE, "Who counted: `reported`, `counted` or `unknown`."),
    ("flags", key::FLAGS, "What to know about the usage; absent where there is nothing."),
    ("cost", key::COST_AMOUNT, "A decimal number as text, exact; absent if unknown."),
    ("currency", key::CURRENCY, "ISO 4217."),
    ("duration_seconds", key::DURATION, "From the request's head to its last byte."),
    ("gateway_seconds", key::GATEWAY_DURATION, "The part of it that was ours."),
    (
        "time_to_first_chunk_seconds",
        key::GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK,
        "To the first event of a stream.",
    ),
    (
        "time_to_first_token_seconds",
        key::TIME_TO_FIRST_TOKEN,
        "To the first generated content of a stream.",
    ),
    ("signal", key::SIGNAL, "`metrics`, `traces` or `logs`."),
    ("cause", key::CAUSE, "A fixed word."),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_word_is_there_once_and_every_field_of_a_request_has_a_key() {
        let words: HashSet<_> = LogEvent::ALL.iter().map(|event| event.row().word).collect();
        assert_eq!(words.len(), LogEvent::ALL.len());
        let keys: HashSet<_> = FIELDS.iter().map(|(_, key, _)| key).collect();
        assert_eq!(keys.len(), FIELDS.len());
        for field in LogEvent::Request.row().fields {
            assert!(FIELDS.iter().any(|(name, ..)| name == field), "{field}");
        }
        for (name, key, _) in FIELDS {
            assert!(key::ALL.iter().any(|(known, ..)| known == key), "{name}: {key}");
        }
    }
}
