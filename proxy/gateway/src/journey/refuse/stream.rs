//! The error event of a stream that must be cut after its head was sent.

use bytes::Bytes;
use taximeter_framing::exception;

/// The exception that Bedrock sends in a stream that breaks off.
const STREAM_EXCEPTION: &str = "modelStreamErrorException";

/// An event for a stream that must be cut after its head went out. No `[DONE]` follows: a client
/// must be able to tell a cut from an end.
pub(crate) fn stream_error(shape: StreamShape, code: &str, message: &str) -> Bytes {
    let error = match shape {
        StreamShape::Data => serde_json::json!({"error": {
            "message": message, "type": "upstream_error", "param": null, "code": code}}),
        StreamShape::Event => serde_json::json!({"type": "error", "code": code, "message": message,
            "error": {"type": "api_error", "message": message}}),
        StreamShape::Line => serde_json::json!({"error": message}),
        StreamShape::Message => serde_json::json!({"message": message, "code": code}),
    };
    Bytes::from(match shape {
        StreamShape::Data => format!("data: {error}\n\n"),
        StreamShape::Event => format!("event: error\ndata: {error}\n\n"),
        StreamShape::Line => format!("{error}\n"),
        StreamShape::Message => return exception(STREAM_EXCEPTION, &error.to_string()).into(),
    })
}

/// How a stream carries an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamShape {
    /// Chat and completions: a data line.
    Data,
    /// Responses and messages: a typed event.
    Event,
    /// Lines of JSON: a line, as Ollama has it.
    Line,
    /// Bedrock: a message of an exception.
    Message,
}
