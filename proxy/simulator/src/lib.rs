//! A simulated engine on a socket: the shapes of OpenAI and Anthropic, settable times, counts and failures.
//!
//! For the demo, for `taximeter simulate`, for tests and benches. Knows nothing of the gateway.
