//! Reads the events of one answer, one after another, and decides what the client sees of each.

use std::time::Instant;

use taximeter_collections::Gather as _;
use taximeter_json::{Condensed, Nesting};

use crate::answer::Answer;
use crate::asking::Hidden;
use crate::cut::Cut;
use crate::delivery::Verdict;
use crate::dialect::Dialect;
use crate::dialect_detector::DialectDetector;
use crate::facts::{Content, Facts, Format};
use crate::json::Malformed;
use crate::measurement::{Ending, Measurement};
use crate::provider_error::name;
use crate::template::{Template, TemplateMatch};
use crate::timing::TimingRecorder;
use crate::wire::{Wire, error};
use taximeter_framing::Data;
use taximeter_framing::Event;

/// What is known about an exchange before its answer comes.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Shape of the route.
    pub wire: Wire,
    /// Who answers, as far as the configuration says.
    pub dialect: Dialect,
    /// When the last byte of the request head was read.
    pub started_at: Instant,
    /// What only we asked for: it is taken out.
    pub hidden: Hidden,
    /// Whether the request has one prompt. Several answers to it share its tokens.
    pub has_one_prompt: bool,
}

/// Reads the events of one answer, in order.
#[derive(Debug, Clone)]
pub(crate) struct AnswerReader {
    pub(crate) format: Option<&'static dyn Format>,
    dialect: Dialect,
    pub(crate) detector: DialectDetector,
    hidden: Hidden,
    nulls_token_ids: bool,
    template: Template,
    pub(crate) timing: TimingRecorder,
    pub(crate) answer: Answer,
    /// The client has left, so content is neither timed nor counted.
    pub(crate) client_left: bool,
}

impl AnswerReader {
    /// A reader that has read nothing yet.
    pub(crate) fn new(setup: Setup) -> Self {
        Self {
            format: setup.wire.format_of(setup.has_one_prompt),
            dialect: setup.dialect,
            detector: DialectDetector::new(setup.dialect),
            hidden: setup.hidden,
            nulls_token_ids: setup.dialect.nulls_token_ids(),
            template: Template::default(),
            timing: TimingRecorder::new(setup.started_at),
            answer: Answer::default(),
            client_left: false,
        }
    }

    /// Reads an event that may be anything. Counts it where it is not the JSON that it should be.
    pub(crate) fn read_lenient(&mut self, event: &Event<'_>, cuts: &mut Vec<Cut>) -> Verdict {
        self.read_event(event, cuts).unwrap_or_else(|Malformed| {
            let not_json = &mut self.answer.counts.not_json;
            *not_json = not_json.saturating_add(1);
            Verdict::Pass
        })
    }

    /// Reads an event. Returns what becomes of it; `cuts` is what to take out of one that is trimmed.
    pub(crate) fn read_event(
        &mut self,
        event: &Event<'_>,
        cuts: &mut Vec<Cut>,
    ) -> Result<Verdict, Malformed> {
        cuts.clear();
        let is_done = event.data.starts_with(b"[DONE]");
        if self.answer.is_over {
            // Some engines send it behind an end mark of another kind.
            if !is_done {
                let after_done = &mut self.answer.counts.after_done;
                *after_done = after_done.saturating_add(1);
            }
            return Ok(Verdict::Pass);
        }
        if !self.client_left {
            self.timing.event();
        }
        if is_done {
            self.answer.is_over = true;
            return Ok(Verdict::End);
        }
        if !event.is_error
            && let Some(like) = self.template.match_with(event.data, cuts)
        {
            self.read_match(&like);
            return Ok(if cuts.is_empty() { Verdict::Pass } else { Verdict::Trim });
        }
        cuts.clear();
        let Some(format) = self.format else { return Ok(Verdict::Pass) };
        let mut facts = match format.event(event) {
            // An error may be plain words.
            Err(Malformed) if event.is_error => Facts::default(),
            Err(Malformed) => Facts::of_error(error::find(event.data).ok_or(Malformed)?),
            Ok(facts) => facts,
        };
        error::complete(&mut facts, event.data, event.is_error);
        if let (Some(error), Some(kind)) = (&mut facts.error, event.exception) {
            error.error_type = error.error_type.take().or_else(|| name(kind));
        }
        facts.read_from(event.condensed);
        self.detector.look_at(event.data);
        facts.cut(event.data, self.hidden, self.nulls_token_ids, cuts);
        self.template.learn(event.data, &facts, cuts);
        if self.client_left {
            facts.content = Content::default();
            facts.token_ids.clear();
            facts.condensed = None;
        }
        let has_finished = |choice| self.answer.has_finished(choice);
        let is_ours = self.hidden.usage_event && facts.says_only_usage(has_finished)
            || self.hidden.token_ids && facts.is_only_ids();
        let verdict = match (facts.is_end, is_ours) {
            (true, _) => Verdict::End,
            (false, true) => Verdict::Remove,
            (false, false) if cuts.is_empty() => Verdict::Pass,
            (false, false) => Verdict::Trim,
        };
        if self.answer.add(facts) {
            self.timing.content();
        }
        Ok(verdict)
    }

    /// Reads an answer that is one document.
    pub(crate) fn read_document(
        &mut self,
        body: &[u8],
        condensed: Option<&Condensed>,
    ) -> Result<(), Malformed> {
        let Some(format) = self.format else { return Ok(()) };
        let mut facts = match format.document(body) {
            Ok(mut facts) => {
                error::complete(&mut facts, body, false);
                facts
            }
            Err(Malformed) => Facts::of_error(error::find(body).ok_or(Malformed)?),
        };
        facts.read_from(condensed);
        // `{}` and `[]` are nothing yet.
        let has_begun = body.trim_ascii().len() > 2;
        self.answer.add(facts);
        self.answer.has_begun = has_begun;
        Ok(())
    }

    /// Reads documents that came one right behind the other. `Malformed` where they are fewer than
    /// two.
    pub(crate) fn read_documents(&mut self, body: &[u8]) -> Result<(), Malformed> {
        let end = Nesting::new().reach(body, 0).ok_or(Malformed)?;
        let (mut document, mut rest) = body.split_at_checked(end).ok_or(Malformed)?;
        if rest.trim_ascii_start().first() != Some(&b'{') {
            return Err(Malformed);
        }
        loop {
            self.read_lenient(&Event::of(Data::plain(document)), &mut Vec::new());
            rest = rest.trim_ascii_start();
            let Some(end) = Nesting::new().reach(rest, 0) else { return Ok(()) };
            (document, rest) = rest.split_at_checked(end).ok_or(Malformed)?;
        }
    }

    /// Reads an event that is like the one before.
    fn read_match(&mut self, like: &TemplateMatch<'_>) {
        if !like.text.is_empty() && !self.client_left && self.answer.output.add_more(&like.text) {
            self.timing.content();
        }
        if let Some(usage) = like.usage {
            self.answer.run(like.choice, usage);
        }
        if like.ids > 0 && !self.client_left {
            self.answer.add_ids(like.ids);
        }
    }

    pub(crate) fn measure(self, now: Instant, ending: Ending) -> Measurement {
        let mut answer = self.answer;
        answer.output.complete();
        let is_whole = ending == Ending::Complete;
        let mut tools = answer.output.take_tools();
        for (tool, calls) in answer.calls.named(is_whole) {
            *tools.get_mut(tool) += calls;
        }
        if self.dialect.accepts_continuous_usage() {
            answer.reports.add_up_choices();
        }
        let by_ids = answer.usage_by_ids();
        let images = Some(answer.images).filter(|images| *images > 0).into_iter();
        let is_pending = answer.is_pending && !answer.is_over && answer.finish_reasons.is_empty();
        Measurement {
            ending,
            dialect: self.detector.dialect(),
            reported_cost: answer.reports.cost().or(answer.asked),
            counted_units: images.map(|images| ("images".to_owned(), images.into())).gather(),
            calls: answer.reports.untold(answer.calls.units(is_whole), is_whole),
            tools: tools.into_named(),
            is_compaction: answer.compacts,
            passes: answer.calls.passes(is_whole),
            reported: answer.reports.settle(self.dialect.reasoning(), by_ids),
            response_model: answer.model,
            response_id: answer.id,
            service_tier: answer.service_tier,
            system_fingerprint: answer.system_fingerprint,
            finish_reasons: answer.finish_reasons.into_iter().map(|(_, reason)| reason).collect(),
            error: answer.error,
            is_pending,
            timing: self.timing.finish(now),
            output_text_bytes: answer.output.bytes(),
            output_text: answer.output.into_kept(),
            has_unread_output: answer.has_unread,
            output_kinds: answer.kinds,
            counts: answer.counts,
            transcript: None,
        }
    }
}
