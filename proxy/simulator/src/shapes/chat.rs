//! Chat completions in vLLM's format.

use super::choices::{FAILURE, finish_reason, ids_slot, prompt_ids, totals, totals_slot, usage};
use super::page::{NUMBER, Numbers, Page, TEXT, Template};
use super::shape::Shape;
use crate::job::{Finish, Job};

pub(super) struct Chat;

impl Shape for Chat {
    fn open(&self, job: &Job, page: &mut Page) {
        let (head, totals, prompt) = (head(job), totals(job, 0), prompt_ids(job));
        for choice in 0..job.choices {
            page.data(format_args!(
                r#"{head},"choices":[{{"index":{choice},"delta":{{"role":"assistant",
                   "content":""}},"logprobs":null,"finish_reason":null}}]{totals},
                   "prompt_token_ids":{prompt}}}"#
            ));
            if job.finish == Finish::ToolCall {
                let (id, tool) = (&job.id, &job.behaviour.tool);
                page.data(format_args!(
                    r#"{head},"choices":[{{"index":{choice},
                       "delta":{{"tool_calls":[{{"id":"call_{id}","type":"function","index":0,
                       "function":{{"name":"{tool}","arguments":""}}}}]}},"logprobs":null,
                       "finish_reason":null,"token_ids":null}}]{totals}}}"#
                ));
            }
        }
    }

    fn reasoning(&self, job: &Job) -> Template {
        delta(job, &format!(r#"{{"reasoning":"{TEXT}"}}"#))
    }

    fn content(&self, job: &Job) -> Template {
        if job.finish == Finish::ToolCall {
            let call =
                format!(r#"{{"tool_calls":[{{"index":0,"function":{{"arguments":"{TEXT}"}}}}]}}"#);
            delta(job, &call)
        } else {
            delta(job, &format!(r#"{{"content":"{TEXT}"}}"#))
        }
    }

    fn close(&self, job: &Job, page: &mut Page) {
        let head = head(job);
        let (finish, totals) = (finish_reason(job.finish), totals(job, job.output));
        for choice in 0..job.choices {
            page.data(format_args!(
                r#"{head},"choices":[{{"index":{choice},"delta":{{}},"logprobs":null,
                   "finish_reason":"{finish}","stop_reason":null,"token_ids":null}}]{totals}}}"#
            ));
        }
        if job.include_usage && !job.behaviour.no_usage {
            page.data(format_args!(r#"{head},"choices":[]{}}}"#, usage(job)));
        }
        if !job.behaviour.no_done {
            page.data(format_args!("[DONE]"));
        }
    }

    fn fail(&self, _job: &Job, page: &mut Page) {
        page.data(format_args!("{FAILURE}"));
        page.data(format_args!("[DONE]"));
    }

    fn whole(&self, job: &Job) -> String {
        let Job { id, created, model_json, .. } = job;
        let finish = finish_reason(job.finish);
        let choices: Vec<String> = (0..job.choices)
            .map(|choice| {
                let message = message(job, choice);
                format!(
                    r#"{{"index":{choice},"message":{message},"logprobs":null,
                       "finish_reason":"{finish}","stop_reason":null}}"#
                )
            })
            .collect();
        let (choices, usage) = (choices.join(","), usage(job));
        format!(
            r#"{{"id":"{id}","object":"chat.completion","created":{created},"model":{model_json},
               "choices":[{choices}],"service_tier":null,"system_fingerprint":null{usage}}}"#
        )
    }
}

/// The fields that open every chunk, without the closing brace.
fn head(job: &Job) -> String {
    let Job { id, created, model_json, .. } = job;
    format!(
        r#"{{"id":"{id}","object":"chat.completion.chunk","created":{created},"model":{model_json}"#
    )
}

fn delta(job: &Job, delta: &str) -> Template {
    let (head, ids, totals) = (head(job), ids_slot(job), totals_slot(job));
    let json = format!(
        r#"{head},"choices":[{{"index":{NUMBER},"delta":{delta},"logprobs":null,
           "finish_reason":null,"token_ids":{ids}}}]{totals}}}"#
    );
    Template::new(Numbers::Choices, None, &json)
}

fn message(job: &Job, choice: u64) -> String {
    let text = job.content_text(choice);
    let (content, calls) = if job.finish == Finish::ToolCall {
        let (id, tool) = (&job.id, &job.behaviour.tool);
        let call = format!(
            r#"{{"id":"call_{id}","type":"function","function":{{"name":"{tool}",
               "arguments":"{text}"}}}}"#
        );
        ("null".to_owned(), call)
    } else {
        (format!(r#""{text}""#), String::new())
    };
    let reasoning = if job.reasoning > 0 {
        format!(r#""{}""#, job.reasoning_text(choice))
    } else {
        "null".to_owned()
    };
    format!(
        r#"{{"role":"assistant","content":{content},"refusal":null,"tool_calls":[{calls}],
           "reasoning":{reasoning}}}"#
    )
}
