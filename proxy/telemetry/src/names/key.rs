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
        "A status, the engine's own word, or one of ours; `_OTHER` beyond 50 words. Absent on success.";
    EXCEPTION_TYPE: attribute::EXCEPTION_TYPE, Text, "The same word, on events of operations that failed.";
    SERVER_ADDRESS: attribute::SERVER_ADDRESS, Text, "Host of the upstream's URL.";
    SERVER_PORT: attribute::SERVER_PORT, Int, "Port of the upstream's URL.";
    HTTP_REQUEST_METHOD: attribute::HTTP_REQUEST_METHOD, Text,
        "One of the known methods, else `_OTHER`.";
    HTTP_RESPONSE_STATUS_CODE: attribute::HTTP_RESPONSE_STATUS_CODE, Int,
        "Absent where nothing was answered.";
    HTTP_REQUEST_RESEND_COUNT: attribute::HTTP_REQUEST_RESEND_COUNT, Int,
        "Which further attempt to send it this is, from 1; absent on the first.";
    HTTP_ROUTE: attribute::HTTP_ROUTE, Text, "The route's template; absent where none matched.";
    URL_SCHEME: attribute::URL_SCHEME, Text, "`http`, or `https` with `tls`.";
    NETWORK_PROTOCOL_VERSION: attribute::NETWORK_PROTOCOL_VERSION, Text,
        "Of HTTP: `1.0`, `1.1` or `2` of a client, `1.1` of an engine.";
    CPU_MODE: attribute::CPU_MODE, Text, "`user` or `system`.";
    TENANT: "taximeter.tenant", Text,
        "Who pays; `other` beyond `tenants_max`. Absent where nobody has said who it is.";
    GEN_AI_REQUEST_CHOICE_COUNT: attribute::GEN_AI_REQUEST_CHOICE_COUNT, Int,
        "How many answers were asked for at once, if not one.";
    GEN_AI_REQUEST_STREAM: attribute::GEN_AI_REQUEST_STREAM, Text, "`true`; absent otherwise.";
    GEN_AI_REQUEST_MAX_TOKENS: attribute::GEN_AI_REQUEST_MAX_TOKENS, Int,
        "The most that were asked for, of each answer.";
    GEN_AI_REQUEST_TEMPERATURE: attribute::GEN_AI_REQUEST_TEMPERATURE, Text,
        "A number, as asked for.";
    GEN_AI_REQUEST_TOP_P: attribute::GEN_AI_REQUEST_TOP_P, Text, "A number, as asked for.";
    GEN_AI_REQUEST_TOP_K: attribute::GEN_AI_REQUEST_TOP_K, Text,
        "A number, as asked for; a whole one in `latest`.";
    GEN_AI_REQUEST_FREQUENCY_PENALTY: attribute::GEN_AI_REQUEST_FREQUENCY_PENALTY, Text,
        "A number, as asked for.";
    GEN_AI_REQUEST_PRESENCE_PENALTY: attribute::GEN_AI_REQUEST_PRESENCE_PENALTY, Text,
        "A number, as asked for.";
    GEN_AI_REQUEST_SEED: attribute::GEN_AI_REQUEST_SEED, Int, "As asked for.";
    GEN_AI_REQUEST_STOP_SEQUENCES: attribute::GEN_AI_REQUEST_STOP_SEQUENCES, Text,
        "As asked for, up to 24, of at most 256 bytes each.";
    GEN_AI_REQUEST_REASONING_LEVEL: "gen_ai.request.reasoning.level", Text,
        "As asked for; `latest`.";
    GEN_AI_REQUEST_PREVIOUS_RESPONSE_ID: "gen_ai.request.previous_response.id", Text,
        "The response that this one goes on from; `latest`.";
    GEN_AI_PROMPT_NAME: attribute::GEN_AI_PROMPT_NAME, Text,
        "The id of a prompt that the provider keeps, as asked for; `latest`.";
    GEN_AI_PROMPT_VERSION: "gen_ai.prompt.version", Text, "Its version, as asked for; `latest`.";
    GEN_AI_REQUEST_ENCODING_FORMATS: attribute::GEN_AI_REQUEST_ENCODING_FORMATS, Text,
        "Of embeddings, as asked for.";
    GEN_AI_EMBEDDINGS_DIMENSION_COUNT: attribute::GEN_AI_EMBEDDINGS_DIMENSION_COUNT, Int,
        "Of embeddings, as asked for.";
    GEN_AI_OUTPUT_TYPE: attribute::GEN_AI_OUTPUT_TYPE, Text,
        "`text`, `json`, `image` or `speech`, where that was asked for.";
    OPENAI_API_TYPE: attribute::OPENAI_API_TYPE, Text,
        "`chat_completions` or `responses`; like all of `openai` only where the provider is OpenAI, or Azure.";
    OPENAI_REQUEST_SERVICE_TIER: attribute::OPENAI_REQUEST_SERVICE_TIER, Text,
        "As asked for, if that is not `auto`.";
    OPENAI_RESPONSE_SERVICE_TIER: attribute::OPENAI_RESPONSE_SERVICE_TIER, Text,
        "As the answer says.";
    OPENAI_RESPONSE_SYSTEM_FINGERPRINT: attribute::OPENAI_RESPONSE_SYSTEM_FINGERPRINT, Text,
        "What the engine runs on, as the answer says.";
    GEN_AI_CONVERSATION_ID: attribute::GEN_AI_CONVERSATION_ID, Text,
        "Where the request names it.";
    GEN_AI_RESPONSE_ID: attribute::GEN_AI_RESPONSE_ID, Text, "The answer's `id`.";
    GEN_AI_RESPONSE_FINISH_REASONS: attribute::GEN_AI_RESPONSE_FINISH_REASONS, Text,
        "One per choice.";
    GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: attribute::GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK, Text,
        "Seconds, of a stream, from when the engine is called.";
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
    GEN_AI_USAGE_TEXT_INPUT_TOKENS: "gen_ai.usage.text.input_tokens", Int,
        "A part of the input; `latest`, where the engine tells it apart.";
    GEN_AI_USAGE_IMAGE_INPUT_TOKENS: "gen_ai.usage.image.input_tokens", Int,
        "A part of the input; `latest`, where the engine tells it apart.";
    GEN_AI_USAGE_AUDIO_INPUT_TOKENS: "gen_ai.usage.audio.input_tokens", Int,
        "A part of the input; `latest`, where the engine tells it apart.";
    GEN_AI_USAGE_TEXT_OUTPUT_TOKENS: "gen_ai.usage.text.output_tokens", Int,
        "A part of the output; `latest`, where the engine tells it apart.";
    GEN_AI_USAGE_IMAGE_OUTPUT_TOKENS: "gen_ai.usage.image.output_tokens", Int,
        "A part of the output; `latest`, where the engine tells it apart.";
    GEN_AI_USAGE_AUDIO_OUTPUT_TOKENS: "gen_ai.usage.audio.output_tokens", Int,
        "A part of the output; `latest`, where the engine tells it apart.";
    GEN_AI_USAGE_TEXT_CACHE_READ_INPUT_TOKENS: "gen_ai.usage.text.cache_read.input_tokens", Int,
        "A part of what was read from a cache; `latest`, where the engine tells it apart.";
    GEN_AI_USAGE_IMAGE_CACHE_READ_INPUT_TOKENS: "gen_ai.usage.image.cache_read.input_tokens", Int,
        "A part of what was read from a cache; `latest`, where the engine tells it apart.";
    GEN_AI_USAGE_AUDIO_CACHE_READ_INPUT_TOKENS: "gen_ai.usage.audio.cache_read.input_tokens", Int,
        "A part of what was read from a cache; `latest`, where the engine tells it apart.";
    GEN_AI_SYSTEM_INSTRUCTIONS: attribute::GEN_AI_SYSTEM_INSTRUCTIONS, Text,
        "JSON; where content is captured.";
    GEN_AI_INPUT_MESSAGES: attribute::GEN_AI_INPUT_MESSAGES, Text,
        "JSON; where content is captured.";
    GEN_AI_OUTPUT_MESSAGES: attribute::GEN_AI_OUTPUT_MESSAGES, Text,
        "JSON, one message per choice; where content is captured.";
    GEN_AI_TOOL_DEFINITIONS: attribute::GEN_AI_TOOL_DEFINITIONS, Text,
        "JSON, kinds and names of tools; where content is captured.";
    CONTENT_CUT: "taximeter.content.cut", Text,
        "`true` where captured content is not all that was said; absent otherwise.";
    URL_PATH: attribute::URL_PATH, Text, "Without the query.";
    URL_FULL: attribute::URL_FULL, Text, "Where an engine was asked, without the query.";
    CLIENT_ADDRESS: attribute::CLIENT_ADDRESS, Text, "Who asks: whoever is connected, or whom trusted peers name (`x-forwarded-for`).";
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
    SOURCE: "taximeter.usage.source", Text,
        "Who counted: `reported` or `counted`; `unknown` where nobody did. Of a span the weaker one of \
         input and output.";
    INPUT_SOURCE: "taximeter.usage.input.source", Text, "The same of the input.";
    OUTPUT_SOURCE: "taximeter.usage.output.source", Text, "The same of the output.";
    FLAG: "taximeter.usage.flag", Text, "What to know about the usage, as its record has it.";
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
