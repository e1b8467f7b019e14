//! What chat and completions, the APIs with choices, say alike.

use crate::job::{Finish, Job};

/// The error that vLLM puts into a stream.
pub(super) const FAILURE: &str = r#"{"error":{
    "message":"EngineCore encountered an issue (simulated).","type":"InternalServerError",
    "param":null,"code":500}}"#;

/// `,"usage":{…}` of chat and completions, or nothing where usage is left out.
pub(super) fn usage(job: &Job) -> String {
    if job.behaviour.no_usage {
        return String::new();
    }
    let (input, output) = (job.input, job.output_total());
    let total = input + output;
    let prompt_details = if job.cached > 0 || job.cache_written > 0 || job.behaviour.prefix_cache {
        let written = if job.cache_written > 0 {
            format!(r#","cache_write_tokens":{}"#, job.cache_written)
        } else {
            String::new()
        };
        format!(r#"{{"cached_tokens":{}{written}}}"#, job.cached)
    } else {
        "null".to_owned()
    };
    let completion_details = if job.reasoning > 0 {
        format!(r#","completion_tokens_details":{{"reasoning_tokens":{}}}"#, job.reasoning_total())
    } else {
        String::new()
    };
    format!(
        r#","usage":{{"prompt_tokens":{input},"total_tokens":{total},"completion_tokens":{output},
           "prompt_tokens_details":{prompt_details}{completion_details}}}"#
    )
}

/// `finish_reason` of a choice.
pub(super) fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::ToolCall => "tool_calls",
    }
}
