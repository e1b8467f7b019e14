//! The facts that every wire format translates its events into.

use crate::asking::Hidden;
use crate::calls::Calls;
use crate::cut::Cut;
use crate::json::{Malformed, Text};
use crate::measurement::Kinds;
use crate::sse::Event;
use crate::usage::{Part, Report};

/// What one wire format's answers say, in the facts that all share.
pub(crate) trait Format: std::fmt::Debug + Send + Sync {
    /// Reads one event of a stream: of most formats, it has the form of a whole answer.
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        self.document(event.data)
    }
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
    /// What the engine runs on, in a word of its own.
    pub(crate) system_fingerprint: Option<Text<'a>>,
    /// Choices that finished, and why.
    pub(crate) finish_reasons: Vec<(u64, Text<'a>)>,
    /// What was generated.
    pub(crate) content: Content<'a>,
    /// Whole images that were generated.
    pub(crate) images: u64,
    /// Calls of tools that ended.
    pub(crate) calls: Option<Box<Calls>>,
    /// All calls of tools so far, those of earlier events too.
    pub(crate) all_calls: Option<Box<Calls>>,
    /// Usage so far.
    pub(crate) usage: Option<Box<Report>>,
    /// Usage so far of single choices, where each has its own.
    pub(crate) choice_usage: Vec<Report>,
    /// The usage object as it stands, where the wire format has it at the top.
    pub(crate) usage_text: Option<Text<'a>>,
    /// The usage is a running total, that of this choice.
    pub(crate) running_choice: Option<u64>,
    /// Lists of ids of tokens that were generated, as they stand.
    pub(crate) token_ids: Vec<Text<'a>>,
    /// The list of ids of the prompt's tokens, as it stands.
    pub(crate) prompt_token_ids: Option<Text<'a>>,
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
    /// Nothing has finished yet, and what will comes in another exchange.
    pub(crate) is_pending: bool,
}

/// `error.type` of an error that goes by no plain word.
pub(crate) const OTHER_ERROR: &str = "_OTHER";

impl<'a> Facts<'a> {
    /// The one text that was generated, if that and names, running totals and token ids are all
    /// that is said.
    pub(crate) fn only_text(&self) -> Option<&Text<'a>> {
        let is_running = |usage: &Report| self.running_choice.is_some() && usage.is_valid();
        let says_more = self.usage.as_deref().is_some_and(|usage| !is_running(usage))
            || !self.choice_usage.is_empty()
            || self.prompt_token_ids.is_some()
            || self.timings.is_some()
            || self.error.is_some()
            || self.is_end
            || self.is_only_usage
            || !self.finish_reasons.is_empty();
        if says_more { None } else { self.content.single() }
    }

    /// An event that came for nothing but its token ids.
    pub(crate) const fn is_only_ids(&self) -> bool {
        self.content.is_bare && !self.token_ids.is_empty() && self.finish_reasons.is_empty()
    }

    /// Adds what has to be taken out of the event's data to `cuts`, in order.
    pub(crate) fn cut(&self, data: &[u8], hidden: Hidden, nulls_ids: bool, cuts: &mut Vec<Cut>) {
        let usage = self.usage_text.as_ref().filter(|_| hidden.running_usage);
        if let Some(usage) = usage.filter(|_| self.running_choice.is_some()) {
            cuts.extend(usage.place_in(data).and_then(|place| Cut::member(data, place)));
        }
        if hidden.token_ids {
            let places = self.token_ids.iter().chain(&self.prompt_token_ids);
            for place in places.filter_map(|ids| ids.place_in(data)) {
                cuts.extend(if nulls_ids {
                    Some(Cut::null(place))
                } else {
                    Cut::member(data, place)
                });
            }
        }
        cuts.sort_unstable_by_key(|cut| cut.from);
    }

    /// Adds what another part of the answer used: one of its prompts or choices.
    pub(crate) fn add_usage(&mut self, report: Option<Box<Report>>) {
        self.usage = match (self.usage.take(), report) {
            (Some(earlier), Some(report)) => Some(Box::new(earlier.plus(*report))),
            (earlier, report) => earlier.or(report),
        };
    }

    /// Puts a later report of the same over what is known.
    pub(crate) fn renew_usage(&mut self, report: Option<Box<Report>>) {
        self.usage = match (self.usage.take(), report) {
            (Some(earlier), Some(report)) => Some(Box::new(report.over(*earlier))),
            (earlier, report) => report.or(earlier),
        };
    }

    /// Adds what one choice used. Its prompt is that of the other choices.
    pub(crate) fn add_choice_usage(&mut self, choice: u64, report: Option<Box<Report>>) {
        if let Some(mut report) = report {
            report.part = Some(Part::Choice(choice));
            self.choice_usage.push(*report);
        }
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
    /// There was a place for content, and it was an empty object.
    pub(crate) is_bare: bool,
    /// What else than plain text it is.
    pub(crate) kinds: Kinds,
    first: Option<Text<'a>>,
    /// Only an event with several choices or calls, or a whole answer, has more than one.
    more: Vec<Text<'a>>,
    /// The choice of which the text is all that there was so far, and not only what is new.
    whole_of: Option<u64>,
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

    /// Adds reasoning.
    pub(crate) fn push_reasoning(&mut self, text: Option<Text<'a>>) {
        self.kinds.reasoning |= text.as_ref().is_some_and(|text| !text.is_empty());
        self.push(text);
    }

    /// Adds text that stands in a form of the model's own: a call's arguments, a summary of what
    /// was reasoned.
    pub(crate) fn push_formed(&mut self, text: Option<Text<'a>>) {
        self.kinds.formed |= text.as_ref().is_some_and(|text| !text.is_empty());
        self.push(text);
    }

    /// All text so far of `choice`, where an engine repeats it in every event.
    pub(crate) fn whole(&mut self, choice: u64, text: Option<Text<'a>>) {
        self.push(text);
        self.whole_of = Some(choice);
    }

    /// The choice and all its text so far, if that is what stands here.
    pub(crate) fn as_whole(&self) -> Option<(u64, &Text<'a>)> {
        self.whole_of.zip(self.first.as_ref())
    }

    /// Content without text, such as sound.
    pub(crate) const fn begin(&mut self) {
        self.began = true;
        self.kinds.formed = true;
    }

    fn single(&self) -> Option<&Text<'a>> {
        self.first.as_ref().filter(|_| self.more.is_empty() && self.whole_of.is_none())
    }

    /// All texts, in order.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &Text<'a>> {
        self.first.iter().chain(&self.more)
    }
}

/// How many ids a list holds; `None` if it is not a list of numbers.
pub(crate) fn count_ids(list: &[u8]) -> Option<u64> {
    let inside = list.strip_prefix(b"[")?.strip_suffix(b"]")?.trim_ascii();
    let is_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b',' | b' ');
    if !inside.iter().all(is_number) {
        return None;
    }
    let commas = inside.iter().filter(|byte| **byte == b',').count() as u64;
    Some(if inside.is_empty() { 0 } else { commas + 1 })
}
