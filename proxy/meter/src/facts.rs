//! The few facts that every wire format boils down to.

use crate::json::{Malformed, Text};
use crate::sse::Event;
use crate::usage::Report;

/// What one wire format's answers say, in the facts that all share.
pub(crate) trait Format: std::fmt::Debug + Send + Sync {
    /// Reads one event of a stream.
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed>;
    /// Reads a whole answer.
    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed>;
}

/// What one event, or one whole answer, says.
#[derive(Debug, Default)]
pub(crate) struct Facts<'a> {
    /// `id` of the answer.
    pub(crate) id: Option<Text<'a>>,
    /// Model that answers.
    pub(crate) model: Option<Text<'a>>,
    /// Service tier that is used.
    pub(crate) service_tier: Option<Text<'a>>,
    /// Choices that finished, and why.
    pub(crate) finish_reasons: Vec<(u64, Text<'a>)>,
    /// What was generated.
    pub(crate) content: Content<'a>,
    /// Usage so far.
    pub(crate) usage: Option<Box<Report>>,
    /// llama.cpp's counts.
    pub(crate) timings: Option<Box<Report>>,
    /// A usage object and an empty list of choices: what an engine sends because usage was asked
    /// for.
    pub(crate) is_only_usage: bool,
    /// Members that differ from event to event and say nothing: padding, a sequence number.
    pub(crate) fillers: [Option<Text<'a>>; 2],
    /// The provider failed: a plain word for how.
    pub(crate) error: Option<String>,
    /// The provider's own end mark.
    pub(crate) is_end: bool,
}

/// `error.type` of an error that goes by no plain word.
pub(crate) const OTHER_ERROR: &str = "_OTHER";

impl<'a> Facts<'a> {
    /// An error of which nothing is known.
    pub(crate) fn error() -> Self {
        Self { error: Some(OTHER_ERROR.to_owned()), ..Self::default() }
    }

    /// The one text that was generated, if that and names are all that is said.
    pub(crate) fn only_text(&self) -> Option<&Text<'a>> {
        let says_more = self.usage.is_some()
            || self.timings.is_some()
            || self.error.is_some()
            || self.is_end
            || self.is_only_usage
            || !self.finish_reasons.is_empty();
        if says_more { None } else { self.content.single() }
    }

    /// Whether it brought generated content. An error's does not count.
    pub(crate) const fn has_content(&self) -> bool {
        self.content.began && self.error.is_none()
    }
}

/// Generated content: text, reasoning, tool arguments, refusals; in the order that it stands.
#[derive(Debug, Default)]
pub(crate) struct Content<'a> {
    began: bool,
    first: Option<Text<'a>>,
    /// Only an event with several choices or calls, or a whole answer, has more than one.
    more: Vec<Text<'a>>,
}

impl<'a> Content<'a> {
    /// Adds text; an empty one is not content.
    pub(crate) fn push(&mut self, text: Option<Text<'a>>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        self.began = true;
        if self.first.is_none() {
            self.first = Some(text);
        } else {
            self.more.push(text);
        }
    }

    /// Content without text, such as sound.
    pub(crate) const fn begin(&mut self) {
        self.began = true;
    }

    fn single(&self) -> Option<&Text<'a>> {
        self.first.as_ref().filter(|_| self.more.is_empty())
    }

    /// All texts, in order.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Text<'a>> {
        self.first.iter().chain(&self.more)
    }
}
