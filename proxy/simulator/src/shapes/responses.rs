//! OpenAI's responses: typed, numbered events. The last one carries the usage.

use super::page::{NUMBER, Numbers, Page, TEXT, Template};
use super::shape::Shape;
use crate::job::{Finish, Job};

pub(super) struct Responses;

impl Shape for Responses {
    fn open(&self, job: &Job, page: &mut Page) {
        let response = response(job, "in_progress", "", "null");
        for name in ["response.created", "response.in_progress"] {
            event(page, name, &format!(r#""response":{response}"#));
        }
        if job.reasoning > 0 {
            let item = format!(r#"{{"id":"rs_{}","type":"reasoning","summary":[]}}"#, job.id);
            event(page, "response.output_item.added", &placed(0, &item));
        } else {
            start_content(job, page);
        }
    }

    fn reasoning(&self, job: &Job) -> Template {
        delta("response.reasoning_text.delta", &format!(r#""item_id":"rs_{}""#, job.id), 0)
    }

    fn turn(&self, job: &Job, page: &mut Page) {
        let (id, text) = (&job.id, job.reasoning_text(0));
        event(
            page,
            "response.reasoning_text.done",
            &format!(r#""item_id":"rs_{id}","output_index":0,"content_index":0,"text":"{text}""#),
        );
        event(page, "response.output_item.done", &placed(0, &reasoning_item(job)));
        start_content(job, page);
    }

    fn content(&self, job: &Job) -> Template {
        let (name, item) = if job.finish == Finish::ToolCall {
            ("response.function_call_arguments.delta", format!(r#""item_id":"fc_{}""#, job.id))
        } else {
            ("response.output_text.delta", format!(r#""item_id":"msg_{}""#, job.id))
        };
        delta(name, &item, content_index(job))
    }

    fn close(&self, job: &Job, page: &mut Page) {
        let (id, index, text) = (&job.id, content_index(job), job.content_text(0));
        if job.finish == Finish::ToolCall {
            event(
                page,
                "response.function_call_arguments.done",
                &format!(r#""item_id":"fc_{id}","output_index":{index},"arguments":"{text}""#),
            );
        } else {
            let place = format!(r#""item_id":"msg_{id}","output_index":{index},"content_index":0"#);
            event(
                page,
                "response.output_text.done",
                &format!(r#"{place},"text":"{text}","logprobs":[]"#),
            );
            let part = format!(r#"{{"type":"output_text","text":"{text}","annotations":[]}}"#);
            event(page, "response.content_part.done", &format!(r#"{place},"part":{part}"#));
        }
        event(page, "response.output_item.done", &placed(index, &content_item(job)));
        if !job.behaviour.no_done {
            let (name, status) = match job.finish {
                Finish::Length => ("response.incomplete", "incomplete"),
                Finish::Stop | Finish::ToolCall => ("response.completed", "completed"),
            };
            let response = response(job, status, &output(job), &usage(job));
            event(page, name, &format!(r#""response":{response}"#));
        }
    }

    fn fail(&self, _job: &Job, page: &mut Page) {
        event(
            page,
            "error",
            r#""code":"server_error","message":"EngineCore encountered an issue (simulated).",
               "param":null"#,
        );
    }

    fn whole(&self, job: &Job) -> String {
        let status = if job.finish == Finish::Length { "incomplete" } else { "completed" };
        response(job, status, &output(job), &usage(job))
    }
}

fn event(page: &mut Page, name: &str, fields: &str) {
    let number = page.number();
    page.event(name, format_args!(r#"{{"type":"{name}","sequence_number":{number},{fields}}}"#));
}

fn delta(name: &str, item: &str, output_index: u64) -> Template {
    let place = if name.ends_with("text.delta") { r#","content_index":0"# } else { "" };
    let json = format!(
        r#"{{"type":"{name}","sequence_number":{NUMBER},{item},
           "output_index":{output_index}{place},"delta":"{TEXT}"}}"#
    );
    Template::new(Numbers::Events, Some(name), &json)
}

fn placed(output_index: u64, item: &str) -> String {
    format!(r#""output_index":{output_index},"item":{item}"#)
}

fn content_index(job: &Job) -> u64 {
    u64::from(job.reasoning > 0)
}

fn start_content(job: &Job, page: &mut Page) {
    let (id, index) = (&job.id, content_index(job));
    if job.finish == Finish::ToolCall {
        let tool = &job.behaviour.tool;
        let item = format!(
            r#"{{"id":"fc_{id}","type":"function_call","status":"in_progress","arguments":"",
               "call_id":"call_{id}","name":"{tool}"}}"#
        );
        event(page, "response.output_item.added", &placed(index, &item));
        return;
    }
    let item = format!(
        r#"{{"id":"msg_{id}","type":"message","status":"in_progress","content":[],
           "role":"assistant"}}"#
    );
    event(page, "response.output_item.added", &placed(index, &item));
    event(
        page,
        "response.content_part.added",
        &format!(
            r#""item_id":"msg_{id}","output_index":{index},"content_index":0,
               "part":{{"type":"output_text","text":"","annotations":[]}}"#
        ),
    );
}

fn output(job: &Job) -> String {
    if job.reasoning > 0 {
        format!("{},{}", reasoning_item(job), content_item(job))
    } else {
        content_item(job)
    }
}

fn reasoning_item(job: &Job) -> String {
    let (id, text) = (&job.id, job.reasoning_text(0));
    format!(
        r#"{{"id":"rs_{id}","type":"reasoning","summary":[],"content":[{{"type":"reasoning_text",
           "text":"{text}"}}]}}"#
    )
}

fn content_item(job: &Job) -> String {
    let (id, text, tool) = (&job.id, job.content_text(0), &job.behaviour.tool);
    match job.finish {
        Finish::ToolCall => format!(
            r#"{{"id":"fc_{id}","type":"function_call","status":"completed","arguments":"{text}",
               "call_id":"call_{id}","name":"{tool}"}}"#
        ),
        Finish::Stop | Finish::Length => {
            let status = if job.finish == Finish::Length { "incomplete" } else { "completed" };
            format!(
                r#"{{"id":"msg_{id}","type":"message","status":"{status}",
                   "content":[{{"type":"output_text","annotations":[],"text":"{text}"}}],
                   "role":"assistant"}}"#
            )
        }
    }
}

/// The response object that opens and closes a stream, and is the whole of a plain answer.
fn response(job: &Job, status: &str, output: &str, usage: &str) -> String {
    let Job { id, created, model_json, .. } = job;
    let incomplete =
        if status == "incomplete" { r#"{"reason":"max_output_tokens"}"# } else { "null" };
    format!(
        r#"{{"id":"{id}","object":"response","created_at":{created},"status":"{status}",
           "error":null,"incomplete_details":{incomplete},"instructions":null,"metadata":{{}},
           "model":{model_json},"output":[{output}],"parallel_tool_calls":true,"temperature":1.0,
           "tool_choice":"auto","tools":[],"top_p":1.0,"usage":{usage}}}"#
    )
}

fn usage(job: &Job) -> String {
    if job.behaviour.no_usage {
        return "null".to_owned();
    }
    let Job { input, cached, output, reasoning, .. } = job;
    let written = if job.cache_written > 0 {
        format!(r#","cache_write_tokens":{}"#, job.cache_written)
    } else {
        String::new()
    };
    let total = input + output;
    format!(
        r#"{{"input_tokens":{input},"input_tokens_details":{{"cached_tokens":{cached}{written}}},
           "output_tokens":{output},"output_tokens_details":{{"reasoning_tokens":{reasoning}}},
           "total_tokens":{total}}}"#
    )
}
