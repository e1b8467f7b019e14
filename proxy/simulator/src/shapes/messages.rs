//! Anthropic's messages.

use super::page::{Numbers, Page, TEXT, Template};
use super::shape::Shape;
use crate::ask::CacheTtl;
use crate::job::{Finish, Job};

pub(super) struct Messages;

impl Shape for Messages {
    fn open(&self, job: &Job, page: &mut Page) {
        let Job { id, model_json, .. } = job;
        let usage = usage(job, 1.min(job.output), false);
        page.event(
            "message_start",
            format_args!(
                r#"{{"type":"message_start","message":{{"model":{model_json},"id":"{id}",
               "type":"message","role":"assistant","content":[],"stop_reason":null,
               "stop_sequence":null{usage}}}}}"#
            ),
        );
        if job.reasoning > 0 {
            page.event(
                "content_block_start",
                format_args!(
                    r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"thinking",
                   "thinking":"","signature":""}}}}"#
                ),
            );
        } else {
            start_content(job, page);
        }
        page.event("ping", format_args!(r#"{{"type": "ping"}}"#));
    }

    fn reasoning(&self, _job: &Job) -> Template {
        delta(0, &format!(r#"{{"type":"thinking_delta","thinking":"{TEXT}"}}"#))
    }

    fn turn(&self, job: &Job, page: &mut Page) {
        page.event(
            "content_block_delta",
            format_args!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"signature_delta",
               "signature":"c2ltdWxhdGVk"}}}}"#
            ),
        );
        stop_block(0, page);
        start_content(job, page);
    }

    fn content(&self, job: &Job) -> Template {
        let index = content_index(job);
        if job.finish == Finish::ToolCall {
            delta(index, &format!(r#"{{"type":"input_json_delta","partial_json":"{TEXT}"}}"#))
        } else {
            delta(index, &format!(r#"{{"type":"text_delta","text":"{TEXT}"}}"#))
        }
    }

    fn close(&self, job: &Job, page: &mut Page) {
        stop_block(content_index(job), page);
        let (stop, usage) = (stop_reason(job.finish), usage(job, job.output, true));
        page.event(
            "message_delta",
            format_args!(
                r#"{{"type":"message_delta","delta":{{"stop_reason":"{stop}",
               "stop_sequence":null}}{usage}}}"#
            ),
        );
        if !job.behaviour.no_done {
            page.event("message_stop", format_args!(r#"{{"type":"message_stop"}}"#));
        }
    }

    fn fail(&self, _job: &Job, page: &mut Page) {
        page.event(
            "error",
            format_args!(
                r#"{{"type":"error","error":{{"type":"overloaded_error","message":"Overloaded"}}}}"#
            ),
        );
    }

    fn whole(&self, job: &Job) -> String {
        let Job { id, model_json, .. } = job;
        let text = job.content_text(0);
        let content = if job.finish == Finish::ToolCall {
            let tool = &job.behaviour.tool;
            format!(
                r#"{{"type":"tool_use","id":"toolu_{id}","name":"{tool}","input":{}}}"#,
                text.replace('\\', "")
            )
        } else {
            format!(r#"{{"type":"text","text":"{text}"}}"#)
        };
        let thinking = if job.reasoning > 0 {
            let text = job.reasoning_text(0);
            format!(r#"{{"type":"thinking","thinking":"{text}","signature":"c2ltdWxhdGVk"}},"#)
        } else {
            String::new()
        };
        let (stop, usage) = (stop_reason(job.finish), usage(job, job.output, true));
        format!(
            r#"{{"model":{model_json},"id":"{id}","type":"message","role":"assistant",
               "content":[{thinking}{content}],"stop_reason":"{stop}",
               "stop_sequence":null{usage}}}"#
        )
    }
}

/// `error.type` of a status.
pub(super) fn error_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        529 | 503 => "overloaded_error",
        _ => "api_error",
    }
}

fn content_index(job: &Job) -> u64 {
    u64::from(job.reasoning > 0)
}

fn start_content(job: &Job, page: &mut Page) {
    let (id, index) = (&job.id, content_index(job));
    if job.finish == Finish::ToolCall {
        let tool = &job.behaviour.tool;
        page.event("content_block_start", format_args!(
            r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"tool_use",
               "id":"toolu_{id}","name":"{tool}","input":{{}}}}}}"#
        ));
    } else {
        page.event(
            "content_block_start",
            format_args!(
                r#"{{"type":"content_block_start","index":{index},"content_block":{{"type":"text",
               "text":""}}}}"#
            ),
        );
    }
}

fn stop_block(index: u64, page: &mut Page) {
    page.event(
        "content_block_stop",
        format_args!(r#"{{"type":"content_block_stop","index":{index}}}"#),
    );
}

fn delta(index: u64, delta: &str) -> Template {
    let json = format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#);
    Template::new(Numbers::Choices, Some("content_block_delta"), &json)
}

/// `,"usage":{…}`, or nothing where usage is left out. The cache is no part of `input_tokens` here.
fn usage(job: &Job, output: u64, last: bool) -> String {
    if job.behaviour.no_usage {
        return String::new();
    }
    let (read, written) = (job.cached, job.cache_written);
    let input = job.input - read - written;
    let (five_minutes, one_hour) = match job.cache_ttl {
        CacheTtl::FiveMinutes => (written, 0),
        CacheTtl::OneHour => (0, written),
    };
    let thinking = if last && job.reasoning > 0 {
        format!(r#","output_tokens_details":{{"thinking_tokens":{}}}"#, job.reasoning)
    } else {
        String::new()
    };
    format!(
        r#","usage":{{"input_tokens":{input},"cache_creation_input_tokens":{written},
           "cache_read_input_tokens":{read},
           "cache_creation":{{"ephemeral_5m_input_tokens":{five_minutes},
           "ephemeral_1h_input_tokens":{one_hour}}},"output_tokens":{output}{thinking},
           "service_tier":"standard"}}"#
    )
}

fn stop_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "end_turn",
        Finish::Length => "max_tokens",
        Finish::ToolCall => "tool_use",
    }
}
