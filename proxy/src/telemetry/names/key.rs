//! Every attribute key, and what its values are.

use opentelemetry_semantic_conventions::attribute;

/// What the values of an attribute are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    Text,
    /// Whole numbers.
    Int,
}

macro_rules! keys {
    ($($name:ident: $key:expr, $kind:ident, $meaning:literal;)*) => {
        $(pub(crate) const $name: &str = $key;)*

        /// All of them: key, type of the values, meaning.
        pub(crate) const ALL: &[(&str, Type, &str)] = &[$(($key, Type::$kind, $meaning)),*];
    };
}

keys! {
    GEN_AI_OPERATION_NAME: attribute::GEN_AI_OPERATION_NAME, Text,
        "`chat`, `text_completion`, `embeddings` and so on; values that the registry lacks are ours.";
    GEN_AI_PROVIDER_NAME: attribute::GEN_AI_PROVIDER_NAME, Text, "The upstream's `provider`.";
    GEN_AI_REQUEST_MODEL: attribute::GEN_AI_REQUEST_MODEL, Text,
        "The model asked for; `other` where no engine has served it, and beyond 200 names.";
    GEN_AI_RESPONSE_MODEL: attribute::GEN_AI_RESPONSE_MODEL, Text,
        "The model that answered; `other` beyond 200 names.";
    GEN_AI_TOKEN_TYPE: attribute::GEN_AI_TOKEN_TYPE, Text, "`input` or `output`.";
    GEN_AI_TOKEN_MODALITY: "gen_ai.token.modality", Text,
        "`text`, `image`, `audio`, or `unknown` where the engine did not say.";
    ERROR_TYPE: attribute::ERROR_TYPE, Text,
        "A status, the engine's own word, or one of ours; `other` beyond 50 words. Absent on success.";
    SERVER_ADDRESS: attribute::SERVER_ADDRESS, Text, "Host of the upstream's URL.";
    SERVER_PORT: attribute::SERVER_PORT, Int, "Port of the upstream's URL.";
    HTTP_REQUEST_METHOD: attribute::HTTP_REQUEST_METHOD, Text,
        "One of the known methods, else `_OTHER`.";
    HTTP_RESPONSE_STATUS_CODE: attribute::HTTP_RESPONSE_STATUS_CODE, Int,
        "Absent where nothing was answered.";
    HTTP_ROUTE: attribute::HTTP_ROUTE, Text, "The route's template; absent where none matched.";
    URL_SCHEME: attribute::URL_SCHEME, Text, "`http`, or `https` with `tls`.";
    NETWORK_PROTOCOL_VERSION: attribute::NETWORK_PROTOCOL_VERSION, Text, "`1.1`.";
    CPU_MODE: attribute::CPU_MODE, Text, "`user` or `system`.";
    TENANT: "taximeter.tenant", Text, "Who pays; `other` beyond `tenants_max`.";
    GEN_AI_REQUEST_CHOICE_COUNT: attribute::GEN_AI_REQUEST_CHOICE_COUNT, Int,
        "How many answers were asked for at once, if not one.";
    GEN_AI_REQUEST_STREAM: attribute::GEN_AI_REQUEST_STREAM, Text, "`true`; absent otherwise.";
    GEN_AI_RESPONSE_ID: attribute::GEN_AI_RESPONSE_ID, Text, "The answer's `id`.";
    GEN_AI_RESPONSE_FINISH_REASONS: attribute::GEN_AI_RESPONSE_FINISH_REASONS, Text,
        "One per choice.";
    GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: attribute::GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK, Text,
        "Seconds, of a stream.";
    GEN_AI_USAGE_INPUT_TOKENS: attribute::GEN_AI_USAGE_INPUT_TOKENS, Int, "Cached ones included.";
    GEN_AI_USAGE_OUTPUT_TOKENS: attribute::GEN_AI_USAGE_OUTPUT_TOKENS, Int, "Reasoning included.";
    GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: attribute::GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, Int,
        "A part of the input.";
    GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS: attribute::GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS,
        Int, "A part of the input; `v1_41`.";
    GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: "gen_ai.usage.cache_write.input_tokens", Int,
        "A part of the input; `latest`.";
    GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: attribute::GEN_AI_USAGE_REASONING_OUTPUT_TOKENS, Int,
        "A part of the output.";
    URL_PATH: attribute::URL_PATH, Text, "Without the query.";
    CLIENT_ADDRESS: attribute::CLIENT_ADDRESS, Text, "Whoever is connected: the client or a proxy.";
    REQUEST_ID: "taximeter.request.id", Text, "The record's `id`.";
    CLIENT_REQUEST_ID: "taximeter.request.client_id", Text,
        "The client's `x-request-id`, or ours in its place.";
    DURATION: "taximeter.request.duration", Text,
        "Seconds, from the request's head to its last byte.";
    GATEWAY_DURATION: "taximeter.gateway.duration", Text, "Seconds, the part of them that was ours.";
    TIME_TO_FIRST_TOKEN: "taximeter.response.time_to_first_token", Text, "Seconds, of a stream.";
    FLAGS: "taximeter.usage.flags", Text, "What to know about the usage, as its record has it.";
    COST_AMOUNT: "taximeter.cost.amount", Text, "A decimal number, exact.";
    END: "taximeter.end", Text, "How the request ended, as its record has it.";
    SOURCE: "taximeter.usage.source", Text, "Who counted: `reported` or `counted`.";
    AGREES: "taximeter.usage.agrees", Text, "`true` or `false`.";
    CURRENCY: "taximeter.currency", Text, "ISO 4217.";
    CODE: "taximeter.refusal.code", Text, "The code that the client is told.";
    REASON: "taximeter.void.reason", Text,
        "`not_sent`, `upstream_refused`, `upstream_auth` or `client_left`.";
    UPSTREAM: "taximeter.upstream", Text, "The upstream's name.";
    CAUSE: "taximeter.cause", Text, "A fixed word.";
    OUTCOME: "taximeter.outcome", Text, "A fixed word.";
    KIND: "taximeter.kind", Text, "A fixed word.";
    SIGNAL: "taximeter.otlp.signal", Text, "`metrics`, `traces` or `logs`.";
}

/// In front of the name of a log line's field that has no key of its own.
pub(crate) const LOG_FIELD: &str = "taximeter.log.";

/// What the values of `key` are.
pub(crate) fn kind(key: &str) -> Type {
    ALL.iter().find(|(known, ..)| *known == key).map_or(Type::Text, |(_, kind, _)| *kind)
}
