//! The trait that every API implements.

use super::page::{Page, Template};
use crate::job::Job;

/// One API's way to say an answer.
pub(crate) trait Shape: Sync {
    /// Events before the first token.
    fn open(&self, job: &Job, page: &mut Page);
    /// A chunk of reasoning.
    fn reasoning(&self, job: &Job) -> Template;
    /// Events between the last reasoning and the first content.
    fn turn(&self, _job: &Job, _page: &mut Page) {}
    /// A chunk of content: text, or what a tool call says.
    fn content(&self, job: &Job) -> Template;
    /// Events after the last token.
    fn close(&self, job: &Job, page: &mut Page);
    /// An error in the middle, and what still follows it.
    fn fail(&self, job: &Job, page: &mut Page);
    /// The answer that is not a stream.
    fn whole(&self, job: &Job) -> String;
}
