//! The facts that every wire format translates its events into.

use taximeter_json::Condensed;

use crate::asking::Hidden;
use crate::calls::Calls;
use crate::cut::Cut;
pub(crate) use crate::generated::Content;
use crate::generated::Form;
use crate::json::{Malformed, Text};
use crate::provider_error::ProviderError;
use crate::usage::{Part, Report};
use taximeter_framing::Event;

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
    /// Calls of hosted tools. Other events may tell the same ones.
    pub(crate) calls: Option<Box<Calls>>,
    /// Usage so far.
    pub(crate) usage: Option<Box<Report>>,
    /// Usage so far of single choices, where each has its own.
    pub(crate) choice_usage: Vec<Report>,
    /// The usage object as it stands, where the wire format has it at the top.
    pub(crate) usage_text: Option<Text<'a>>,
    /// The null that stands in its place.
    pub(crate) usage_null: Option<Text<'a>>,
    /// The usage is a running total, that of this choice.
    pub(crate) running_choice: Option<u64>,
    /// Lists of ids of tokens that were generated, as they stand.
    pub(crate) token_ids: Vec<Text<'a>>,
    /// The list of ids of the prompt's tokens, as it stands.
    pub(crate) prompt_token_ids: Option<Text<'a>>,
    /// llama.cpp's counts.
    pub(crate) timings: Option<Box<Report>>,
    /// A usage object and no choice: what an engine sends because usage was asked for.
    pub(crate) is_only_usage: bool,
    /// Members that differ from event to event and say nothing: padding, a sequence number.
    pub(crate) fillers: [Option<Text<'a>>; 2],
    /// The provider failed.
    pub(crate) error: Option<ProviderError>,
    /// It has the form of an answer, whatever it says: it is not searched for an error.
    pub(crate) is_answer: bool,
    /// The provider's own end mark.
    pub(crate) is_end: bool,
    /// It has what was said so far in a shorter form.
    pub(crate) compacts: bool,
    /// Nothing has finished yet, and what will comes in another exchange.
    pub(crate) is_pending: bool,
    /// The usage is the sum of what parts of the answer used.
    pub(crate) sums_usage: bool,
    /// What the texts were read from, where that was condensed.
    pub(crate) condensed: Option<&'a Condensed>,
}

impl<'a> Facts<'a> {
    /// Nothing but an error.
    pub(crate) fn of_error(error: ProviderError) -> Self {
        Self { error: Some(error), ..Self::default() }
    }

    /// The one text that was generated, if that and names, running totals and token ids are all
    /// that is said.
    pub(crate) fn only_text(&self) -> Option<&Text<'a>> {
        let is_running = |usage: &Report| self.running_choice.is_some() && usage.is_valid();
        let says_more = self.usage.as_deref().is_some_and(|usage| !is_running(usage))
            || !self.choice_usage.is_empty()
            || self.prompt_token_ids.is_some()
            || self.timings.is_some()
            || self.calls.is_some()
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
        let is_running = hidden.running_usage && self.running_choice.is_some();
        let usage = self.usage_text.as_ref().filter(|_| is_running);
        let null = self.usage_null.as_ref().filter(|_| hidden.usage_event);
        for ours in usage.into_iter().chain(null) {
            cuts.extend(ours.place_in(data).and_then(|place| Cut::member(data, place)));
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
        self.sums_usage |= report.is_some();
        self.usage = match (self.usage.take(), report) {
            (Some(earlier), Some(report)) => Some(Box::new(earlier.plus(*report))),
            (earlier, report) => earlier.or(report),
        };
    }

    /// Whether it says nothing of an answer, so that it may be an error.
    pub(crate) fn says_nothing(&self) -> bool {
        let says_something = self.is_answer
            || self.error.is_some()
            || self.content.is_any()
            || self.images > 0
            || self.is_end
            || self.is_pending
            || !self.finish_reasons.is_empty()
            || !self.token_ids.is_empty()
            || self.timings.is_some()
            || !self.choice_usage.is_empty()
            || self.usage.as_deref().is_some_and(Report::has_tokens);
        !says_something
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

    /// Whether it says nothing but usage, where the choices in `finished` have finished before.
    pub(crate) fn says_only_usage(&self, finished: impl FnOnce(u64) -> bool) -> bool {
        let says_more =
            self.content.is_any() || self.error.is_some() || !self.finish_reasons.is_empty();
        self.is_only_usage || !says_more && self.running_choice.is_some_and(finished)
    }

    /// Takes note of what the facts were read from, where that was condensed.
    pub(crate) fn read_from(&mut self, condensed: Option<&'a Condensed>) {
        self.condensed = condensed;
        if self.sums_usage && self.lacks_values() {
            // A part of a sum is not the sum.
            self.usage = None;
        }
    }

    /// How much is missing in a text, or in a list of ids, where it was too long to keep.
    pub(crate) fn left_out_of(&self, text: &Text<'_>) -> u64 {
        self.condensed.map_or(0, |condensed| condensed.left_out_of(text))
    }

    /// Whether something is missing that nobody knows: it may be content.
    pub(crate) fn lacks_values(&self) -> bool {
        let mut wholes = self.content.said().filter(|said| said.form == Form::Whole);
        self.condensed.is_some_and(Condensed::lacks_values)
            || wholes.any(|said| self.left_out_of(&said.text) > 0)
    }

    /// Adds calls of hosted tools.
    pub(crate) fn add_calls(&mut self, calls: Calls) {
        if !calls.is_empty() {
            self.calls.get_or_insert_default().add(calls);
        }
    }

    /// Whether it brought generated content. An error's does not count.
    pub(crate) const fn has_content(&self) -> bool {
        self.content.is_any() && self.error.is_none()
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
