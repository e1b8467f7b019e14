//! Every kind of log line: its name, its level and its fields. Also the meaning of the fields of
//! requests.

use super::key;

/// The severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Something an operator may want to know.
    Info,
    /// Something outside the gateway went wrong.
    Warn,
    /// Something is broken and needs an operator.
    Critical,
}

impl Level {
    /// The name of the level in a line.
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
    /// The name of the event.
    pub word: &'static str,
    pub level: Level,
    /// The fields of its lines in addition to time, level, event and trace.
    pub fields: &'static [&'static str],
    /// A sentence for people.
    pub meaning: &'static str,
}

macro_rules! log_events {
    ($($event:ident: $word:literal, $level:ident, $fields:expr, $meaning:literal;)*) => {
        /// A kind of log line.
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
         "error_type", "operation", "provider", "upstream", "model", "response_model", "session",
         "agent", "stream",
         "input_tokens", "cache_read_input_tokens", "cache_write_input_tokens", "output_tokens",
         "reasoning_output_tokens", "source", "flags", "cost", "cost_known", "currency", "duration_seconds",
         "gateway_seconds", "time_to_first_chunk_seconds", "time_to_first_token_seconds"],
        "A request ended.";
    RequestCompleted: "request_completed", Info,
        ["id", "tenant", "operation", "provider", "upstream", "model", "response_model",
         "input_tokens", "cache_read_input_tokens", "cache_write_input_tokens", "output_tokens",
         "reasoning_output_tokens", "source", "flags", "cost", "cost_known", "currency"],
        "The usage of a request in the background has become known.";
    CompletionDelayed: "completion_delayed", Critical, ["id", "reason"],
        "The ledger did not accept the usage of a request in the background. The next answer that \
         shows it completes the request.";
    OperationFailed: "operation_failed", Warn,
        ["id", "tenant", "operation", "provider", "upstream", "model", "status", "error_type",
         "exception_type"],
        "A call to an engine failed.";
    Listening: "listening", Info, ["listen", "admin", "upstreams", "data_dir", "version"],
        "The gateway accepts requests.";
    ConfigReloaded: "config_reloaded", Info, [],
        "The gateway uses a new configuration. Running requests keep the old one.";
    ConfigWaits: "config_waits", Warn, ["keys", "hint"],
        "Some changed keys of the configuration take effect only at the next start.";
    ConfigRejected: "config_rejected", Critical, ["path", "problem", "problems"],
        "The configuration file has mistakes. The gateway keeps the configuration that it has. One \
         line for each mistake.";
    ConfigWithoutFile: "config_without_file", Warn, ["hint"],
        "The gateway was told to reload, but it was started without a configuration file.";
    Leaving: "leaving", Info, ["grace_seconds"],
        "The gateway was told to stop. `/readyz` answers 503, and the gateway still serves every \
         request.";
    Draining: "draining", Info, [],
        "The gateway takes no new requests, and lets running requests end.";
    Stopped: "stopped", Info, [], "The gateway has stopped.";
    StartGivenUp: "start_given_up", Info, [],
        "The gateway was told to stop before its start was complete.";
    VariableIgnored: "variable_ignored", Warn, ["name", "reason"],
        "An environment variable has a wrong value and is ignored.";
    RequestRefused: "request_refused", Warn, ["code", "request_id", "message"],
        "The gateway refused a request.";
    AuthRefused: "auth_refused", Warn, ["reason", "key_sha256"],
        "A request had no valid credential.";
    NameKeyMissing: "name_key_missing", Critical, ["error"],
        "The key that hashes names of end users and sessions cannot be read from `data_dir`, or made \
         there. Records do not have what would be hashed until the gateway starts again.";
    SpoofedHeader: "spoofed_header", Warn, ["tenant"],
        "An untrusted client sent the tenant header. The gateway ignored it.";
    BadFraming: "bad_framing", Warn, ["cause", "peer", "place"],
        "The gateway closed a client connection because it could not read a request. `place` is \
         `head` or `body`. The line has no byte of the request.";
    ConnectionRefused: "connection_refused", Warn, ["reason", "peer"],
        "The gateway closed a new connection because there are too many.";
    TenantLimited: "tenant_limited", Warn, ["tenant"],
        "The gateway refused a request because of a limit of its tenant.";
    Panicked: "panicked", Critical, ["place"],
        "A task of the gateway panicked and ended. Everything else continues.";
    TlsRenewed: "tls_renewed", Info, ["path"],
        "The certificate files have changed. New connections get the new certificate.";
    TlsRefused: "tls_refused", Critical, ["reason"],
        "The certificate files have changed and cannot be used. The old certificate stays in use.";
    PodInjected: "pod_injected", Info, ["namespace", "pod"],
        "The webhook added the sidecar to a pod.";
    PodNotInjected: "pod_not_injected", Warn, ["namespace", "pod", "reason"],
        "A pod asked for a sidecar, and the webhook let it through without one.";
    ReviewRefused: "review_refused", Warn, ["reason"],
        "The webhook received something that is not an admission review.";
    UpstreamRecognised: "upstream_recognised", Info, ["upstream", "provider"],
        "The list of models shows which engine an upstream runs. The configuration does not name it.";
    DialectGuessed: "dialect_guessed", Info, ["upstream", "dialect"],
        "Answers of an upstream have the marks of a dialect. Taximeter asks for usage as this dialect \
         expects it. Nothing else changes.";
    QuestionRefused: "question_refused", Warn, ["upstream", "path", "model", "member"],
        "An engine refused a member that Taximeter added to ask for usage, and took the request \
         without it. Taximeter does not ask for an hour.";
    UpstreamUnreachable: "upstream_unreachable", Warn, ["upstream", "cause", "message"],
        "An engine could not be reached.";
    UpstreamProtocol: "upstream_protocol", Warn, ["upstream", "cause"],
        "An engine's answer is not valid HTTP.";
    CredentialUnencrypted: "credential_unencrypted", Warn, ["upstream", "hint"],
        "Credentials go to an upstream without encryption, over networks of others.";
    UpstreamRefusedCredential: "upstream_refused_credential", Critical, ["upstream"],
        "An upstream refused the credential from the configuration.";
    CountSkipped: "count_skipped", Warn, ["cause"],
        "An answer has no usage, and Taximeter did not count it.";
    TokenizerLoaded: "tokenizer_loaded", Info, ["path"], "A tokenizer was loaded.";
    TokenizerFallback: "tokenizer_fallback", Warn, ["path", "reason"],
        "A tokenizer file is used with a slower, equally exact library.";
    PricesWithoutExchange: "prices_without_exchange", Warn, ["currency", "bills_in", "hint"],
        "Some models have prices in a currency without an exchange rate. Their cost is unknown.";
    LedgerOpened: "ledger_opened", Info,
        ["from_seq", "entries", "torn_bytes", "torn_entries", "lost_entries", "stray_entries",
         "gateway_died", "gateway_died_unpriced"],
        "The journal was opened. The fields say what the start repaired.";
    LedgerRecovered: "ledger_recovered", Info, [], "The ledger can be written again.";
    LedgerRetired: "ledger_retired", Info, ["segments"],
        "The gateway removed journal segments that nobody needs: their requests are in files of days, or \
         in the database.";
    LedgerMadeRoom: "ledger_made_room", Info,
        ["files", "bytes", "first", "last", "remaining_files", "remaining_bytes"],
        "The data directory was nearly full. The gateway removed its oldest journal segments that \
         are in the store.";
    VolumeFilledByOthers: "volume_filled_by_others", Warn,
        ["files", "bytes", "first", "last", "remaining_files", "remaining_bytes", "hint"],
        "The volume of the data directory is nearly full, mostly of other files. The gateway removed \
         its oldest journal segments that are in the store: at most a tenth of them a day.";
    LedgerSealed: "ledger_sealed", Info, ["requests", "files_merged"],
        "Requests left the store for files of their days, and files of one day became one.";
    LedgerNotSealed: "ledger_not_sealed", Warn, ["reason"],
        "Requests could not leave the store for files of their days. They stay there, and the gateway \
         tries again. Told once for each reason in a row.";
    SamplesNotKept: "samples_not_kept", Warn, ["reason"],
        "Samples of engines, GPUs and hosts could not be written, merged or removed. Requests do not depend on \
         them. The gateway goes on; a damaged file is renamed to `NAME.damaged`.";
    DetailsRetired: "details_retired", Info, ["cause", "requests", "first_day", "last_day"],
        "Records of requests were removed that are older than `ledger.records_keep_days`. Bills stay.";
    DetailsRemovedForRoom: "details_removed_for_room", Warn,
        ["cause", "requests", "first_day", "last_day"],
        "The oldest records of requests were removed before their time to make room, which the data \
         directory (`own`) or other files (`others`) had taken. Bills stay.";
    ClockAhead: "clock_ahead", Warn, ["clock", "newest_entry", "hint"],
        "The clock is more than a day ahead of the newest entry of the ledger. Nothing is removed \
         because of its age until the clock was steady for a day.";
    ClockTrusted: "clock_trusted", Info, [],
        "The clock was set right, or was steady for a day. What is old is removed again.";
    LedgerFull: "ledger_full", Critical, ["bytes", "bytes_max", "hint"],
        "The data directory has no room for new requests. The gateway refuses them, unless \
         `ledger.unavailable` is `serve`.";
    LedgerHasRoom: "ledger_has_room", Info, ["bytes", "bytes_max"],
        "The data directory has room again.";
    LedgerSlow: "ledger_slow", Critical, ["action", "seconds"],
        "A write or sync of the ledger takes longer than a request waits.";
    LedgerWriteFailed: "ledger_write_failed", Critical, ["path", "error", "hint"],
        "The ledger cannot be written. The gateway tries again until it can.";
    LedgerSyncFailed: "ledger_sync_failed", Critical, ["error"], "The ledger cannot be synced.";
    LedgerNotCompressed: "ledger_not_compressed", Warn, ["path", "error"],
        "A closed journal file cannot be compressed. It stays as it is, and the gateway tries again.";
    LedgerSegmentLost: "ledger_segment_lost", Critical, ["path"],
        "A file of the journal was removed while the gateway used it.";
    LedgerEntryLost: "ledger_entry_lost", Critical, ["reason"],
        "The ledger did not accept an entry.";
    PendingDropped: "pending_dropped", Warn, ["requests"],
        "The ledger no longer waits for the usage of requests in the background: there are too \
         many, or they are too old. Their cost stays unknown.";
    LedgerTorn: "ledger_torn", Warn, ["path", "fault", "bytes", "first_seq", "entries", "kept"],
        "A power cut or crash cut off the end of the journal.";
    LedgerSalvaged: "ledger_salvaged", Critical,
        ["path", "fault", "first_seq", "entries_lost", "kept"],
        "A part of the journal is damaged. The start skipped it.";
    StoreRejected: "store_rejected", Critical, ["reason", "path"],
        "A ledger entry cannot be read and was set aside.";
    StoreFailed: "store_failed", Warn, ["reason"],
        "The store could not be fed. The journal keeps the missing entries. Told once for each reason in a row.";
    PushRejected: "push_rejected", Critical, ["id", "reason"],
        "The receiver of `export.push` rejected an event.";
    PushFailed: "push_failed", Warn, ["reason"],
        "The receiver of `export.push` could not be reached or refused everything.";
    PushAtRisk: "push_at_risk", Critical, ["receiver", "requests", "since", "goes_at", "hint"],
        "Less than a week is left until requests go that the receiver of `export.push` lacks: the oldest \
         one is of `since` and goes about `goes_at`.";
    PushSafe: "push_safe", Info, ["receiver"],
        "The receiver of `export.push` has what was about to go, or it is kept longer.";
    PushLost: "push_lost", Critical, ["first", "last", "hint"],
        "Requests are gone that the receiver does not have, among the journal's entries `first` to `last`.";
    PushJournalReplaced: "push_journal_replaced", Warn, [],
        "The data directory has another journal. The gateway sends it from its start.";
    OtlpRejected: "otlp_rejected", Warn, ["signal", "rejected", "message"],
        "The collector accepted only a part of a push.";
    OtlpFailed: "otlp_failed", Warn, ["signal", "reason"],
        "The collector could not be reached or refused everything. The gateway tries again.";
    OtlpDropped: "otlp_dropped", Warn, ["signal", "items", "reason"],
        "The gateway dropped items instead of sending them to the collector.";
    OtlpPanicked: "otlp_panicked", Critical, [],
        "The OTLP sender panicked and was restarted.";
}

impl LogEvent {
    /// Whether it is a line for each request, which has no rate of its own.
    pub(crate) const fn is_access(self) -> bool {
        matches!(self, Self::Request)
    }

    /// Whether it is written to stderr. Events that only collectors can use are not.
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
    ("id", key::REQUEST_ID, "The `id` of the record, and `x-taximeter-request-id` on the answer."),
    (
        "request_id",
        key::CLIENT_REQUEST_ID,
        "The client's `x-request-id`, or the one that Taximeter made.",
    ),
    (
        "peer",
        key::CLIENT_ADDRESS,
        "The address of the client: of the connection, or the one that a trusted peer names in \
         `x-forwarded-for`.",
    ),
    ("tenant", key::TENANT, "The tenant. Absent if the caller was not identified."),
    ("method", key::HTTP_REQUEST_METHOD, "A known method, or `_OTHER`."),
    ("route", key::HTTP_ROUTE, "The template of the route. Absent if no route matched."),
    ("path", key::URL_PATH, "The path without the query. Of `request` only if no route matched."),
    (
        "status",
        key::HTTP_RESPONSE_STATUS_CODE,
        "The status that the client got. Absent if it left before.",
    ),
    ("end", key::END, "The end of the request, as on the record. Absent without a record."),
    ("code", key::CODE, "The error code, if the gateway refused the request."),
    ("error_type", key::ERROR_TYPE, "The kind of error. Absent on success."),
    ("exception_type", key::EXCEPTION_TYPE, "The same, as OpenTelemetry names it on exceptions."),
    ("operation", key::GEN_AI_OPERATION_NAME, "`chat`, `embeddings` and so on."),
    ("provider", key::GEN_AI_PROVIDER_NAME, "The upstream's `provider`."),
    ("upstream", key::UPSTREAM, "The upstream's name."),
    ("model", key::GEN_AI_REQUEST_MODEL, "The model that the client asked for."),
    ("response_model", key::GEN_AI_RESPONSE_MODEL, "The model that answered."),
    ("session", key::GEN_AI_CONVERSATION_ID, "The session, as on the record."),
    ("agent", key::GEN_AI_AGENT_ID, "The agent, as on the record."),
    ("stream", key::GEN_AI_REQUEST_STREAM, "Whether the answer was a stream."),
    ("input_tokens", key::GEN_AI_USAGE_INPUT_TOKENS, "With cached tokens. Absent if unknown."),
    (
        "cache_read_input_tokens",
        key::GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
        "A part of the input. Absent if unknown.",
    ),
    (
        "cache_write_input_tokens",
        key::GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS,
        "A part of the input. Absent if unknown.",
    ),
    ("output_tokens", key::GEN_AI_USAGE_OUTPUT_TOKENS, "With reasoning tokens. Absent if unknown."),
    (
        "reasoning_output_tokens",
        key::GEN_AI_USAGE_REASONING_OUTPUT_TOKENS,
        "A part of the output. Absent if unknown.",
    ),
    ("source", key::SOURCE, "The source of the usage: `reported`, `counted` or `unknown`."),
    ("flags", key::FLAGS, "The flags of the usage. Absent if there are none."),
    ("cost", key::COST_AMOUNT, "An exact decimal number, as text. Absent if unknown."),
    ("cost_known", key::COST_KNOWN, "The known part of an unknown cost."),
    ("currency", key::CURRENCY, "ISO 4217."),
    (
        "duration_seconds",
        key::DURATION,
        "From the head of the request to the last byte of the answer.",
    ),
    ("gateway_seconds", key::GATEWAY_DURATION, "The time that the gateway itself took."),
    (
        "time_to_first_chunk_seconds",
        key::GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK,
        "Time to the first event of a stream.",
    ),
    (
        "time_to_first_token_seconds",
        key::TIME_TO_FIRST_TOKEN,
        "Time to the first generated content of a stream.",
    ),
    ("signal", key::SIGNAL, "`metrics`, `traces` or `logs`."),
    ("cause", key::CAUSE, "A word from a fixed list."),
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
