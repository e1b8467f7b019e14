//! Every attribute key and the meaning of its values.

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
        "`chat`, `text_completion`, `embeddings` and so on. Taximeter adds values where the \
         registry has none.";
    GEN_AI_PROVIDER_NAME: attribute::GEN_AI_PROVIDER_NAME, Text, "The upstream's `provider`.";
    GEN_AI_REQUEST_MODEL: attribute::GEN_AI_REQUEST_MODEL, Text,
        "The model that the client asked for. `other` if no engine has served it, and beyond 200 \
         names.";
    GEN_AI_RESPONSE_MODEL: attribute::GEN_AI_RESPONSE_MODEL, Text,
        "The model that answered. `other` beyond 200 names.";
    GEN_AI_TOKEN_TYPE: attribute::GEN_AI_TOKEN_TYPE, Text, "`input` or `output`.";
    GEN_AI_TOKEN_MODALITY: "gen_ai.token.modality", Text,
        "`text`, `image`, `audio`, or `unknown` if the engine did not say.";
    ERROR_TYPE: attribute::ERROR_TYPE, Text,
        "A status, the engine's own word, or a word of Taximeter. `_OTHER` beyond 50 words. Absent \
         on success.";
    EXCEPTION_TYPE: attribute::EXCEPTION_TYPE, Text,
        "The same word, on events of failed operations.";
    SERVER_ADDRESS: attribute::SERVER_ADDRESS, Text, "Host of the upstream's URL.";
    SERVER_PORT: attribute::SERVER_PORT, Int, "Port of the upstream's URL.";
    HTTP_REQUEST_METHOD: attribute::HTTP_REQUEST_METHOD, Text,
        "A known method, or `_OTHER`.";
    HTTP_RESPONSE_STATUS_CODE: attribute::HTTP_RESPONSE_STATUS_CODE, Int,
        "Absent if there was no answer.";
    HTTP_REQUEST_RESEND_COUNT: attribute::HTTP_REQUEST_RESEND_COUNT, Int,
        "The number of the repeated attempt, from 1. Absent on the first attempt.";
    HTTP_ROUTE: attribute::HTTP_ROUTE, Text,
        "The template of the route. Absent if no route matched.";
    URL_SCHEME: attribute::URL_SCHEME, Text, "`http`, or `https` with `tls`.";
    NETWORK_PROTOCOL_VERSION: attribute::NETWORK_PROTOCOL_VERSION, Text,
        "The HTTP version: `1.0`, `1.1` or `2` for clients, `1.1` for engines.";
    CPU_MODE: attribute::CPU_MODE, Text, "`user` or `system`.";
    TENANT: "taximeter.tenant", Text,
        "The tenant. `other` beyond `tenants_max`. Absent if the caller was not identified.";
    GEN_AI_REQUEST_CHOICE_COUNT: attribute::GEN_AI_REQUEST_CHOICE_COUNT, Int,
        "The number of choices that the client asked for, if it is not 1.";
    GEN_AI_REQUEST_STREAM: attribute::GEN_AI_REQUEST_STREAM, Text, "`true`, or absent.";
    GEN_AI_REQUEST_MAX_TOKENS: attribute::GEN_AI_REQUEST_MAX_TOKENS, Int,
        "The maximum that the client asked for, for each choice.";
    GEN_AI_REQUEST_TEMPERATURE: attribute::GEN_AI_REQUEST_TEMPERATURE, Text,
        "A number, as the client sent it.";
    GEN_AI_REQUEST_TOP_P: attribute::GEN_AI_REQUEST_TOP_P, Text, "A number, as the client sent it.";
    GEN_AI_REQUEST_TOP_K: attribute::GEN_AI_REQUEST_TOP_K, Text,
        "A number, as the client sent it. A whole number in `latest`.";
    GEN_AI_REQUEST_FREQUENCY_PENALTY: attribute::GEN_AI_REQUEST_FREQUENCY_PENALTY, Text,
        "A number, as the client sent it.";
    GEN_AI_REQUEST_PRESENCE_PENALTY: attribute::GEN_AI_REQUEST_PRESENCE_PENALTY, Text,
        "A number, as the client sent it.";
    GEN_AI_REQUEST_SEED: attribute::GEN_AI_REQUEST_SEED, Int, "As the client sent it.";
    GEN_AI_REQUEST_STOP_SEQUENCES: attribute::GEN_AI_REQUEST_STOP_SEQUENCES, Text,
        "As the client sent them: up to 24, each at most 256 bytes.";
    GEN_AI_REQUEST_REASONING_LEVEL: "gen_ai.request.reasoning.level", Text,
        "As the client sent it. Only in `latest`.";
    GEN_AI_REQUEST_PREVIOUS_RESPONSE_ID: "gen_ai.request.previous_response.id", Text,
        "The response that this one continues. Only in `latest`.";
    GEN_AI_PROMPT_NAME: attribute::GEN_AI_PROMPT_NAME, Text,
        "The id of a stored prompt of the provider, as the client sent it. Only in `latest`.";
    GEN_AI_PROMPT_VERSION: "gen_ai.prompt.version", Text,
        "Its version, as the client sent it. Only in `latest`.";
    GEN_AI_REQUEST_ENCODING_FORMATS: attribute::GEN_AI_REQUEST_ENCODING_FORMATS, Text,
        "Of embeddings, as the client sent it.";
    GEN_AI_EMBEDDINGS_DIMENSION_COUNT: attribute::GEN_AI_EMBEDDINGS_DIMENSION_COUNT, Int,
        "Of embeddings, as the client sent it.";
    GEN_AI_OUTPUT_TYPE: attribute::GEN_AI_OUTPUT_TYPE, Text,
        "`text`, `json`, `image` or `speech`, if the client asked for it.";
    OPENAI_API_TYPE: attribute::OPENAI_API_TYPE, Text,
        "`chat_completions` or `responses`. Like all `openai` attributes only for OpenAI and Azure.";
    OPENAI_REQUEST_SERVICE_TIER: attribute::OPENAI_REQUEST_SERVICE_TIER, Text,
        "As the client sent it, if it is not `auto`.";
    OPENAI_RESPONSE_SERVICE_TIER: attribute::OPENAI_RESPONSE_SERVICE_TIER, Text,
        "As in the answer.";
    OPENAI_RESPONSE_SYSTEM_FINGERPRINT: attribute::OPENAI_RESPONSE_SYSTEM_FINGERPRINT, Text,
        "The configuration that the engine runs on, as in the answer.";
    GEN_AI_CONVERSATION_ID: attribute::GEN_AI_CONVERSATION_ID, Text,
        "The session, as on the record, or else the conversation, if the request names one.";
    GEN_AI_AGENT_ID: attribute::GEN_AI_AGENT_ID, Text, "The agent, as on the record.";
    GEN_AI_RESPONSE_ID: attribute::GEN_AI_RESPONSE_ID, Text, "The answer's `id`.";
    GEN_AI_RESPONSE_FINISH_REASONS: attribute::GEN_AI_RESPONSE_FINISH_REASONS, Text,
        "One per choice.";
    GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: attribute::GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK, Text,
        "Seconds from the call of the engine. Only for streams.";
    GEN_AI_USAGE_INPUT_TOKENS: attribute::GEN_AI_USAGE_INPUT_TOKENS, Int, "With cached tokens.";
    GEN_AI_USAGE_OUTPUT_TOKENS: attribute::GEN_AI_USAGE_OUTPUT_TOKENS, Int,
        "With reasoning tokens.";
    GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: attribute::GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, Int,
        "A part of the input.";
    GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS: attribute::GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS,
        Int, "A part of the input. Only in `v1_41`.";
    GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS: "gen_ai.usage.cache_write.input_tokens", Int,
        "A part of the input. Only in `latest`.";
    GEN_AI_USAGE_REASONING_OUTPUT_TOKENS: attribute::GEN_AI_USAGE_REASONING_OUTPUT_TOKENS, Int,
        "A part of the output.";
    GEN_AI_USAGE_TEXT_INPUT_TOKENS: "gen_ai.usage.text.input_tokens", Int,
        "A part of the input, if the engine reports it. Only in `latest`.";
    GEN_AI_USAGE_IMAGE_INPUT_TOKENS: "gen_ai.usage.image.input_tokens", Int,
        "A part of the input, if the engine reports it. Only in `latest`.";
    GEN_AI_USAGE_AUDIO_INPUT_TOKENS: "gen_ai.usage.audio.input_tokens", Int,
        "A part of the input, if the engine reports it. Only in `latest`.";
    GEN_AI_USAGE_TEXT_OUTPUT_TOKENS: "gen_ai.usage.text.output_tokens", Int,
        "A part of the output, if the engine reports it. Only in `latest`.";
    GEN_AI_USAGE_IMAGE_OUTPUT_TOKENS: "gen_ai.usage.image.output_tokens", Int,
        "A part of the output, if the engine reports it. Only in `latest`.";
    GEN_AI_USAGE_AUDIO_OUTPUT_TOKENS: "gen_ai.usage.audio.output_tokens", Int,
        "A part of the output, if the engine reports it. Only in `latest`.";
    GEN_AI_USAGE_TEXT_CACHE_READ_INPUT_TOKENS: "gen_ai.usage.text.cache_read.input_tokens", Int,
        "A part of the cached input, if the engine reports it. Only in `latest`.";
    GEN_AI_USAGE_IMAGE_CACHE_READ_INPUT_TOKENS: "gen_ai.usage.image.cache_read.input_tokens", Int,
        "A part of the cached input, if the engine reports it. Only in `latest`.";
    GEN_AI_USAGE_AUDIO_CACHE_READ_INPUT_TOKENS: "gen_ai.usage.audio.cache_read.input_tokens", Int,
        "A part of the cached input, if the engine reports it. Only in `latest`.";
    GEN_AI_SYSTEM_INSTRUCTIONS: attribute::GEN_AI_SYSTEM_INSTRUCTIONS, Text,
        "JSON. Only if content is captured.";
    GEN_AI_INPUT_MESSAGES: attribute::GEN_AI_INPUT_MESSAGES, Text,
        "JSON. Only if content is captured.";
    GEN_AI_OUTPUT_MESSAGES: attribute::GEN_AI_OUTPUT_MESSAGES, Text,
        "JSON, one message for each choice. Only if content is captured.";
    GEN_AI_TOOL_DEFINITIONS: attribute::GEN_AI_TOOL_DEFINITIONS, Text,
        "JSON: types and names of tools. Only if content is captured.";
    CONTENT_CUT: "taximeter.content.cut", Text,
        "`true` if the captured content was cut, or absent.";
    URL_PATH: attribute::URL_PATH, Text, "Without the query.";
    URL_FULL: attribute::URL_FULL, Text, "The URL of the request to the engine, without the query.";
    CLIENT_ADDRESS: attribute::CLIENT_ADDRESS, Text,
        "The address of the client: of the connection, or the one that a trusted peer names in \
         `x-forwarded-for`.";
    REQUEST_ID: "taximeter.request.id", Text, "The record's `id`.";
    CLIENT_REQUEST_ID: "taximeter.request.client_id", Text,
        "The client's `x-request-id`, or the one that Taximeter made.";
    DURATION: "taximeter.request.duration", Text,
        "Seconds from the head of the request to the last byte of the answer.";
    GATEWAY_DURATION: "taximeter.gateway.duration", Text, "Seconds that the gateway itself took.";
    TIME_TO_FIRST_TOKEN: "taximeter.response.time_to_first_token", Text,
        "Seconds. Only for streams.";
    FLAGS: "taximeter.usage.flags", Text, "The flags of the usage, as on the record.";
    COST_AMOUNT: "taximeter.cost.amount", Text, "An exact decimal number.";
    COST_KNOWN: "taximeter.cost.known", Text, "The known part of an unknown cost.";
    END: "taximeter.end", Text, "The end of the request, as on the record.";
    SOURCE: "taximeter.usage.source", Text,
        "The source of the number: `reported`, `counted` or `unknown`. On a span: the weaker source \
         of input and output. On `taximeter.usage` also `estimated`: counted by bytes, or with a \
         vocabulary that may not be the model's.";
    USAGE_REASON: "taximeter.usage.reason", Text,
        "Why the engine's report is not the source: `not_reported`, `zero`, `invalid`, `token_ids`, \
         `context` (a part of the prompt is not in the request), `unread` (a part of the answer \
         could not be read), `maybe_unsent`, or the end of an answer that broke off, such as \
         `client_left`. Absent if it is the source.";
    INPUT_SOURCE: "taximeter.usage.input.source", Text, "The same for the input.";
    OUTPUT_SOURCE: "taximeter.usage.output.source", Text, "The same for the output.";
    FLAG: "taximeter.usage.flag", Text, "The flags of the usage, as on the record.";
    AGREES: "taximeter.usage.agrees", Text, "`true` or `false`.";
    CURRENCY: "taximeter.currency", Text, "ISO 4217.";
    CODE: "taximeter.refusal.code", Text, "The error code in the answer to the client.";
    REASON: "taximeter.void.reason", Text,
        "`not_sent`, `upstream_refused`, `upstream_auth` or `client_left`.";
    UPSTREAM: "taximeter.upstream", Text, "The upstream's name.";
    DIMENSION: "taximeter.dimension", Text,
        "`session`, `agent`, `parent_agent`, `turn`, `kind`, `client`, `end_user` or `tag`.";
    CAUSE: "taximeter.cause", Text, "A word from a fixed list.";
    OUTCOME: "taximeter.outcome", Text, "A word from a fixed list.";
    STREAM: "taximeter.stream", Text, "`true` if the request is a stream. Absent otherwise.";
    FAULT: "taximeter.fault", Text,
        "Who has caused that the request was not served: `client`, `engine` or `gateway`. Absent on \
         success.";
    STATUS_CLASS: "taximeter.status.class", Text,
        "The class of the status that the client got: `2xx` to `5xx`. Absent if there was no answer.";
    KIND: "taximeter.kind", Text, "A word from a fixed list.";
    FLEET_SOURCE: "taximeter.fleet.source", Text,
        "The URL of a source of the section `fleet`, or the path of what is read.";
    FLEET_INSTANCE: "taximeter.fleet.instance", Text,
        "The address that another scraper took the value from, where a source tells of several.";
    FLEET_ENGINE: "taximeter.fleet.engine", Text, "The engine of a server that has several.";
    FLEET_RANK: "taximeter.fleet.rank", Text, "The rank in a data-parallel engine.";
    FLEET_REASON: "taximeter.fleet.reason", Text, "Why clocks are held down.";
    RESOURCE: "taximeter.fleet.resource", Text, "`cpu`, `io`, `memory` or `irq`.";
    PRESSURE: "taximeter.fleet.pressure", Text, "Whether `some` or all (`full`) tasks waited.";
    HOST_NAME: attribute::HOST_NAME, Text, "The node, as its exporter says it.";
    HW_ID: "hw.id", Text, "The GPU: its UUID or its serial number, or its PCI address where neither is told.";
    HW_PART: "hw.gpu.part", Text, "The part of the GPU: a MIG instance or a partition.";
    K8S_NAMESPACE: attribute::K8S_NAMESPACE_NAME, Text, "The namespace of the pod.";
    K8S_POD: attribute::K8S_POD_NAME, Text, "The pod that an engine is in, or that has a GPU.";
    K8S_CONTAINER: attribute::K8S_CONTAINER_NAME, Text, "The container.";
    SIGNAL: "taximeter.otlp.signal", Text, "`metrics`, `traces` or `logs`.";
}

/// The keys of what engines, GPUs and hosts tell, by the names of the schema.
pub(crate) const FLEET: &[(&str, &str)] = &[
    ("source", FLEET_SOURCE),
    ("target", KIND),
    ("upstream", UPSTREAM),
    ("instance", FLEET_INSTANCE),
    ("engine", FLEET_ENGINE),
    ("engine.rank", FLEET_RANK),
    ("reason", FLEET_REASON),
    ("resource", RESOURCE),
    ("kind", PRESSURE),
    ("gen_ai.request.model", GEN_AI_REQUEST_MODEL),
    ("host.name", HOST_NAME),
    ("hw.id", HW_ID),
    ("hw.gpu.part", HW_PART),
    ("k8s.namespace.name", K8S_NAMESPACE),
    ("k8s.pod.name", K8S_POD),
    ("k8s.container.name", K8S_CONTAINER),
];

/// Whom a value of an engine is about.
pub(crate) const ENGINE: &[&str] = &[
    FLEET_SOURCE,
    FLEET_INSTANCE,
    UPSTREAM,
    HOST_NAME,
    K8S_NAMESPACE,
    K8S_POD,
    K8S_CONTAINER,
    GEN_AI_REQUEST_MODEL,
    FLEET_ENGINE,
    FLEET_RANK,
];
/// Whom a value of a GPU is about.
pub(crate) const GPU: &[&str] = &[
    FLEET_SOURCE,
    FLEET_INSTANCE,
    HOST_NAME,
    HW_ID,
    HW_PART,
    K8S_NAMESPACE,
    K8S_POD,
    K8S_CONTAINER,
];

/// Parts of the input that are text, pictures and sound.
pub(crate) const INPUT_BY_MODALITY: [&str; 3] = [
    GEN_AI_USAGE_TEXT_INPUT_TOKENS,
    GEN_AI_USAGE_IMAGE_INPUT_TOKENS,
    GEN_AI_USAGE_AUDIO_INPUT_TOKENS,
];

/// Parts of the output that are text, pictures and sound.
pub(crate) const OUTPUT_BY_MODALITY: [&str; 3] = [
    GEN_AI_USAGE_TEXT_OUTPUT_TOKENS,
    GEN_AI_USAGE_IMAGE_OUTPUT_TOKENS,
    GEN_AI_USAGE_AUDIO_OUTPUT_TOKENS,
];

/// Parts of what was read from a cache that are text, pictures and sound.
pub(crate) const CACHE_READ_BY_MODALITY: [&str; 3] = [
    GEN_AI_USAGE_TEXT_CACHE_READ_INPUT_TOKENS,
    GEN_AI_USAGE_IMAGE_CACHE_READ_INPUT_TOKENS,
    GEN_AI_USAGE_AUDIO_CACHE_READ_INPUT_TOKENS,
];

/// In front of the name of a log line's field that has no key of its own.
pub(crate) const LOG_FIELD: &str = "taximeter.log.";

/// What the values of `key` are.
pub(crate) fn kind(key: &str) -> Type {
    ALL.iter().find(|(known, ..)| *known == key).map_or(Type::Text, |(_, kind, _)| *kind)
}
