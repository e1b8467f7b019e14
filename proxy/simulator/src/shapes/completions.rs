//! The older completions in vLLM's format.

use super::choices::{FAILURE, finish_reason, ids_slot, totals, totals_slot, usage};
use super::page::{NUMBER, Numbers, Page, TEXT, Template};
use super::shape::Shape;
use crate::job::Job;

pub(super) struct Completions;

impl Shape for Completions {
    fn open(&self, _job: &Job, _page: &mut Page) {}

    /// There is no place for reasoning here, and the job has none.
    fn reasoning(&self, job: &Job) -> Template {
        self.content(job)
    }

    fn content(&self, job: &Job) -> Template {
        let (head, ids, totals) = (head(job), ids_slot(job), totals_slot(job));
        let json = format!(
            r#"{head},"choices":[{{"index":{NUMBER},"text":"{TEXT}","logprobs":null,
               "finish_reason":null,"stop_reason":null,"token_ids":{ids}}}]{totals}}}"#
        );
        Template::new(Numbers::Choices, None, &json)
    }

    fn close(&self, job: &Job, page: &mut Page) {
        let head = head(job);
        let (finish, totals) = (finish_reason(job.finish), totals(job, job.output));
        for choice in 0..job.choices {
            page.data(format_args!(
                r#"{head},"choices":[{{"index":{choice},"text":"","logprobs":null,
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
        let finish = finish_reason(job.finish);
        let choices: Vec<String> = (0..job.choices)
            .map(|choice| {
                let text = job.content_text(choice);
                format!(
                    r#"{{"index":{choice},"text":"{text}","logprobs":null,
                       "finish_reason":"{finish}","stop_reason":null,"prompt_logprobs":null}}"#
                )
            })
            .collect();
        format!(r#"{},"choices":[{}]{}}}"#, head(job), choices.join(","), usage(job))
    }
}

/// The fields that open every body, without the closing brace.
fn head(job: &Job) -> String {
    let Job { id, created, model_json, .. } = job;
    format!(r#"{{"id":"{id}","object":"text_completion","created":{created},"model":{model_json}"#)
}
