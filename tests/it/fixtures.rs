//! Requests and answers in OpenAI's and Anthropic's shapes, written by hand after their API
//! references.

pub(crate) const CHAT: &str =
    r#"{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Where to?"}]}"#;

pub(crate) const CHAT_ANSWER: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","created":1,
"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,
"message":{"role":"assistant","content":"Station"},"finish_reason":"stop"}],
"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100,
"prompt_tokens_details":{"cached_tokens":400},
"completion_tokens_details":{"reasoning_tokens":0}}}"#;

pub(crate) const STREAM_CHAT: &str =
    r#"{"model":"gpt-4o-mini","stream":true,"messages":[{"role":"user","content":"Where to?"}]}"#;

/// Asks for usage itself: the gateway has nothing to add.
pub(crate) const STREAM_CHAT_WITH_USAGE: &str = r#"{"model":"gpt-4o-mini","stream":true,
"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Where to?"}]}"#;

pub(crate) const ROLE: &str = concat!(
    r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"#,
    r#""model":"gpt-4o-mini-2024-07-18","#,
    r#""choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
    "\n\n"
);
pub(crate) const HELLO: &str = concat!(
    r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"#,
    r#""model":"gpt-4o-mini-2024-07-18","#,
    r#""choices":[{"index":0,"delta":{"content":"To the"},"finish_reason":null}]}"#,
    "\n\n"
);
pub(crate) const WORLD: &str = concat!(
    r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"#,
    r#""model":"gpt-4o-mini-2024-07-18","#,
    r#""choices":[{"index":0,"delta":{"content":" station"},"finish_reason":null}]}"#,
    "\n\n"
);
pub(crate) const STOP: &str = concat!(
    r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"#,
    r#""model":"gpt-4o-mini-2024-07-18","#,
    r#""choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    "\n\n"
);
pub(crate) const USAGE: &str = concat!(
    r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"#,
    r#""model":"gpt-4o-mini-2024-07-18","#,
    r#""choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100,"total_tokens":1100,"#,
    r#""prompt_tokens_details":{"cached_tokens":400}}}"#,
    "\n\n"
);
pub(crate) const DONE: &str = "data: [DONE]\n\n";

pub(crate) const MESSAGE: &str = r#"{"model":"claude-sonnet-4-5","max_tokens":64,
"messages":[{"role":"user","content":"Where to?"}]}"#;

/// Anthropic's input excludes what was cached: 1,000 in all here.
pub(crate) const MESSAGE_ANSWER: &str = r#"{"id":"msg_1","type":"message","role":"assistant",
"model":"claude-sonnet-4-5-20250929","content":[{"type":"text","text":"Station"}],
"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":600,
"cache_read_input_tokens":400,"cache_creation_input_tokens":0,"output_tokens":100}}"#;

pub(crate) const MESSAGE_STREAM: &str = r#"{"model":"claude-sonnet-4-5","max_tokens":64,
"stream":true,"messages":[{"role":"user","content":"Where to?"}]}"#;

pub(crate) const MESSAGE_EVENTS: [&str; 7] = [
    concat!(
        "event: message_start\n",
        r#"data: {"type":"message_start","message":{"id":"msg_1","type":"message","#,
        r#""role":"assistant","model":"claude-sonnet-4-5-20250929","content":[],"#,
        r#""stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":600,"#,
        r#""cache_creation_input_tokens":0,"cache_read_input_tokens":400,"output_tokens":1}}}"#,
        "\n\n"
    ),
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    concat!(
        "event: content_block_start\n",
        r#"data: {"type":"content_block_start","index":0,"#,
        r#""content_block":{"type":"text","text":""}}"#,
        "\n\n"
    ),
    concat!(
        "event: content_block_delta\n",
        r#"data: {"type":"content_block_delta","index":0,"#,
        r#""delta":{"type":"text_delta","text":"Station"}}"#,
        "\n\n"
    ),
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    concat!(
        "event: message_delta\n",
        r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"#,
        r#""usage":{"output_tokens":100}}"#,
        "\n\n"
    ),
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
];

pub(crate) const EMBEDDINGS: &str =
    r#"{"model":"text-embedding-3-small","input":["Where to?","Station"]}"#;

pub(crate) const EMBEDDINGS_ANSWER: &str = r#"{"object":"list","model":"text-embedding-3-small",
"data":[{"object":"embedding","index":0,"embedding":[0.1,0.2]}],
"usage":{"prompt_tokens":8,"total_tokens":8}}"#;

/// An event with so many objects in a list that some of them are left out.
pub(crate) fn of_too_many_parts(event: &str) -> String {
    let parts = format!("{{\"parts\":[{}{{}}],", "{},".repeat(700_000));
    event.replacen('{', &parts, 1)
}
