//! Parts that chat completions and completions share.

use std::fmt::Write;
use std::ops::Range;

use super::page::{IDS, TOTALS};
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

/// Where a chunk has its running totals, if it has them.
pub(super) fn totals_slot(job: &Job) -> &'static str {
    if job.continuous_usage { TOTALS } else { "" }
}

/// Where a chunk has the ids of its tokens, or the null that stands there otherwise.
pub(super) fn ids_slot(job: &Job) -> &'static str {
    if job.token_ids { IDS } else { "null" }
}

/// Running totals of one choice after `output` tokens.
pub(crate) fn write_totals(job: &Job, output: u64, out: &mut impl Write) -> std::fmt::Result {
    let (input, total) = (job.input, job.input + output);
    write!(
        out,
        r#","usage":{{"prompt_tokens":{input},"total_tokens":{total},"completion_tokens":{output}}}"#
    )
}

/// The same as text; nothing where nobody asked for them.
pub(super) fn totals(job: &Job, output: u64) -> String {
    let mut totals = String::new();
    if job.continuous_usage {
        // Memory cannot refuse to be written to.
        _ = write_totals(job, output, &mut totals);
    }
    totals
}

/// A list of ids for `tokens`.
pub(crate) fn write_ids(tokens: Range<u64>, out: &mut impl Write) -> std::fmt::Result {
    for (at, token) in tokens.enumerate() {
        let before = if at == 0 { '[' } else { ',' };
        write!(out, "{before}{}", 100 + token)?;
    }
    out.write_char(']')
}

/// Ids of the prompt's tokens, or the null that stands there otherwise.
pub(super) fn prompt_ids(job: &Job) -> String {
    let mut ids = String::new();
    if job.token_ids && job.input > 0 {
        // Memory cannot refuse to be written to.
        _ = write_ids(0..job.input, &mut ids);
    } else {
        ids.push_str(if job.token_ids { "[]" } else { "null" });
    }
    ids
}
