//! Collects what one answer says, event by event.

use taximeter_collections::Gather as _;
use taximeter_pricing::{Flag, Member, Usage};

use crate::calls::Calls;
use crate::facts::{Facts, count_ids};
use crate::generated::Form;
use crate::json::{Reader, Text};
use crate::measurement::{Counts, Kinds, Reported};
use crate::output_text::OutputText;
use crate::provider_error::ProviderError;
use crate::reports::Reports;
use crate::usage::{Report, name};

/// Choices whose finish reason is kept.
const CHOICES_MAX: usize = 128;

/// Facts, gathered.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) id: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) service_tier: Option<String>,
    pub(crate) system_fingerprint: Option<String>,
    /// By choice, in order.
    pub(crate) finish_reasons: Vec<(u64, String)>,
    pub(crate) output: OutputText,
    /// Content may have passed that is not in `output`.
    pub(crate) has_unread: bool,
    pub(crate) kinds: Kinds,
    /// Whole images that were generated.
    pub(crate) images: u64,
    /// Calls of hosted tools.
    pub(crate) calls: Calls,
    pub(crate) reports: Reports,
    /// What the head of the answer says that it costs.
    pub(crate) asked: Option<String>,
    /// The latest running total of a choice, not read yet.
    running: (u64, Vec<u8>),
    /// Ids of tokens that were generated.
    output_ids: Option<u64>,
    /// Ids of the prompt's tokens.
    prompt_ids: Option<u64>,
    /// Something has come in the form of the wire.
    pub(crate) has_begun: bool,
    /// The provider's own end mark was seen.
    pub(crate) is_over: bool,
    /// It has what was said so far in a shorter form.
    pub(crate) compacts: bool,
    /// What will finish comes in another exchange.
    pub(crate) is_pending: bool,
    /// The provider failed.
    pub(crate) error: Option<ProviderError>,
    pub(crate) counts: Counts,
}

impl Answer {
    /// Adds what an event or a document says. Returns whether it brought content that is new.
    pub(crate) fn add(&mut self, facts: Facts<'_>) -> bool {
        if facts.condensed.is_some() {
            self.add_left_out(&facts);
        }
        if let Some(ids) = facts.prompt_token_ids.filter(|_| self.prompt_ids.is_none()) {
            let left_out = facts.left_out_of(&ids);
            self.prompt_ids = count_ids(ids.raw()).map(|kept| kept + left_out);
        }
        self.has_begun = true;
        let mut is_content = false;
        if facts.has_content() {
            let Kinds { reasoning, formed } = facts.content.kinds;
            self.kinds.reasoning |= reasoning;
            self.kinds.formed |= formed;
            is_content = self.output.add(&facts.content);
            if is_content && facts.condensed.is_some() {
                let texts = facts.content.said().filter(|said| said.form != Form::Whole);
                self.output.add_unkept(texts.map(|said| facts.left_out_of(&said.text)).sum());
            }
        }
        keep_first(&mut self.id, facts.id);
        keep_first(&mut self.model, facts.model);
        keep_last(&mut self.service_tier, facts.service_tier);
        keep_first(&mut self.system_fingerprint, facts.system_fingerprint);
        for (choice, reason) in facts.finish_reasons {
            self.finish(choice, &reason);
        }
        for ids in facts.token_ids.iter().filter_map(|ids| count_ids(ids.raw())) {
            self.add_ids(ids);
        }
        self.compacts |= facts.compacts;
        if let Some(mut report) = facts.usage {
            self.read_running();
            self.compacts |= report.has_compaction();
            self.service_tier = report.service_tier.take().or(self.service_tier.take());
            match facts.running_choice {
                Some(choice) => self.reports.add_running(report, choice),
                None => self.reports.add(report),
            }
        }
        for report in facts.choice_usage {
            self.reports.add(Box::new(report));
        }
        // What it has become is encrypted, or stands for itself.
        self.kinds.formed |= self.compacts;
        if let Some(timings) = facts.timings {
            self.reports.add_timings(timings);
        }
        self.images = self.images.saturating_add(facts.images);
        if let Some(calls) = facts.calls {
            self.calls.add(*calls);
        }
        self.error = facts.error.or(self.error.take());
        self.is_over |= facts.is_end;
        self.is_pending |= facts.is_pending;
        is_content
    }

    /// Adds what a condensed event or document lacks of lists of ids, and of what nobody can count.
    fn add_left_out(&mut self, facts: &Facts<'_>) {
        let ids: u64 = facts.token_ids.iter().map(|ids| facts.left_out_of(ids)).sum();
        if ids > 0 {
            self.add_ids(ids);
        }
        let lacks_values = u32::from(facts.lacks_values());
        self.counts.lines_too_long = self.counts.lines_too_long.saturating_add(lacks_values);
    }

    /// Takes together what was kept apart while it came.
    pub(crate) fn complete(&mut self) {
        self.read_running();
        self.drop_false_zero();
    }

    /// Whether a stream without an end mark of its own has come to its end.
    pub(crate) fn is_whole_stream(&self) -> bool {
        !self.finish_reasons.is_empty() || self.reports.has_final()
    }

    /// Whether it has content or usage, or tells why it has none.
    pub(crate) fn says_something(&self) -> bool {
        self.output.bytes() > 0
            || self.kinds.formed
            || self.images > 0
            || self.output_ids.is_some()
            || self.is_pending
            || !self.finish_reasons.is_empty()
            || self.reports.has_tokens()
    }

    /// Takes note of a running total, to be read when it is needed: most are followed by another.
    pub(crate) fn run(&mut self, choice: u64, usage: &[u8]) {
        let (running_choice, running) = &mut self.running;
        *running_choice = choice;
        running.clear();
        running.extend_from_slice(usage);
    }

    /// Reads the running total that was noted last.
    fn read_running(&mut self) {
        let (choice, running) = &mut self.running;
        if running.is_empty() {
            return;
        }
        if let Ok(Some(report)) = Report::read(&mut Reader::new(running)) {
            self.reports.add_running(report, *choice);
        }
        running.clear();
    }

    /// Adds token ids that were generated.
    pub(crate) fn add_ids(&mut self, ids: u64) {
        self.output_ids = Some(self.output_ids.unwrap_or(0).saturating_add(ids));
    }

    /// Usage by the token ids that passed: the engine's own tokens, though not its own sum.
    pub(crate) fn usage_by_ids(&self) -> Option<Reported> {
        // Before the first text no ids are none, behind it they are missing.
        let none = self.prompt_ids.filter(|_| self.output.bytes() == 0).map(|_| 0);
        let usage = Usage {
            input_tokens: self.prompt_ids,
            output_tokens: Some(self.output_ids.or(none)?),
            ..Usage::default()
        };
        let counted = [
            (Member::InputTokens, usage.input_tokens),
            (Member::OutputTokens, usage.output_tokens),
        ];
        let flagged = counted
            .into_iter()
            .filter_map(|(member, tokens)| tokens.map(|_| (member, [Flag::TokenIds].into())));
        Some(Reported { flagged: flagged.gather(), usage, flags: vec![Flag::TokenIds] })
    }

    /// A running total that still says zero although text has passed says nothing, on a stream that
    /// never got to its end (Ollama).
    fn drop_false_zero(&mut self) {
        if !self.is_over && self.finish_reasons.is_empty() && self.output.bytes() > 0 {
            self.reports.drop_zero();
        }
    }

    /// Whether a choice has told why it finished.
    pub(crate) fn has_finished(&self, choice: u64) -> bool {
        self.finish_reasons.binary_search_by_key(&choice, |(choice, _)| *choice).is_ok()
    }

    fn finish(&mut self, choice: u64, reason: &Text<'_>) {
        let reason = name(&reason.decode());
        match self.finish_reasons.binary_search_by_key(&choice, |(choice, _)| *choice) {
            Ok(at) => {
                if let Some((_, earlier)) = self.finish_reasons.get_mut(at) {
                    *earlier = reason;
                }
            }
            Err(at) if self.finish_reasons.len() < CHOICES_MAX => {
                self.finish_reasons.insert(at, (choice, reason));
            }
            Err(_) => {}
        }
    }
}

/// An engine repeats its names in every event; some leave them empty in the first (Azure).
fn keep_first(kept: &mut Option<String>, said: Option<Text<'_>>) {
    if kept.is_none() {
        *kept = said.filter(|said| !said.is_empty()).map(|said| name(&said.decode()));
    }
}

/// The tier that was asked for stands in the first event, the one that was used in the last.
fn keep_last(kept: &mut Option<String>, said: Option<Text<'_>>) {
    if let Some(said) = said.filter(|said| !said.is_empty())
        && !kept.as_ref().is_some_and(|kept| said.is(kept))
    {
        *kept = Some(name(&said.decode()));
    }
}
