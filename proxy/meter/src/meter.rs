//! The meter of one exchange.

use std::time::Instant;

use bytes::{Bytes, BytesMut};

use crate::answer::Answer;
use crate::asking::Hidden;
use crate::blocks::Blocks;
use crate::body::Body;
use crate::cut::{Cut, Trim};
use crate::decode::{DecodeFault, DecodeLimits, Decoder, is_identity};
use crate::dialect::Dialect;
use crate::facts::{Content, Facts, Format, OTHER_ERROR};
use crate::json::Malformed;
use crate::measurement::{Ending, Measurement, StreamEnd};
use crate::passage::{Gate, Passage, Verdict};
use crate::recogniser::Recogniser;
use crate::sniff::{Kind, Sniffer};
use crate::sse::Event;
use crate::template::{Likeness, Template};
use crate::timing::Stopwatch;
use crate::wire::Wire;

/// What is known about an exchange before its answer comes.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Shape of the route.
    pub wire: Wire,
    /// Who answers.
    pub dialect: Dialect,
    /// When the last byte of the request head was read.
    pub started_at: Instant,
    /// What only we asked for: it is taken out.
    pub hidden: Hidden,
}

/// How a stream is cut into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Events,
    /// JSON documents, one a line.
    Lines,
}

/// Watches one answer: bytes and times in, a `Measurement` out.
#[derive(Debug)]
pub struct Meter {
    is_success: bool,
    /// The status says that no body follows.
    is_bodiless: bool,
    kind: Kind,
    sniffer: Sniffer,
    blocks: Blocks,
    gate: Gate,
    /// What to take out of the current event.
    cuts: Vec<Cut>,
    coding: Coding,
    body: Body,
    limits: DecodeLimits,
    listener: Listener,
}

/// How the body is encoded.
#[derive(Debug, Default)]
enum Coding {
    #[default]
    Plain,
    /// Read through a decoder; what passes is the body as it came.
    Encoded(Box<Decoder>),
    /// Passes without being read any further.
    Unread,
}

impl Meter {
    /// A meter that has seen nothing yet.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        Self {
            is_success: true,
            is_bodiless: false,
            kind: Kind::Unsure,
            sniffer: Sniffer::default(),
            blocks: Blocks::new(setup.wire.event_bytes_max()),
            gate: Gate::new(setup.hidden.is_any()),
            cuts: Vec::new(),
            coding: Coding::default(),
            body: Body::default(),
            limits: DecodeLimits::default(),
            listener: Listener {
                format: setup.wire.format(),
                recogniser: Recogniser::new(setup.dialect),
                hidden: setup.hidden,
                nulls_token_ids: setup.dialect.nulls_token_ids(),
                template: Template::default(),
                stopwatch: Stopwatch::new(setup.started_at),
                answer: Answer::default(),
                unheard: false,
            },
        }
    }

    /// The same meter with limits of its own.
    #[must_use]
    pub const fn within(mut self, limits: DecodeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// What the head of the answer said. The bytes have the last word on the type. A body that is
    /// encoded passes as it came and is read through a decoder, so nothing can be taken out of it.
    pub fn on_head(
        &mut self,
        status: u16,
        content_type: Option<&str>,
        content_encoding: Option<&str>,
    ) {
        self.is_success = (200..300).contains(&status);
        self.is_bodiless = matches!(status, 204 | 205);
        self.kind = self.sniffer.declare(content_type);
        let codings = content_encoding.unwrap_or_default();
        if codings.split(',').all(is_identity) {
            return;
        }
        self.coding = Coding::Unread;
        if self.listener.format.is_some() && self.kind != Kind::Opaque {
            match Decoder::new(codings, self.limits) {
                Ok(decoder) => self.coding = Coding::Encoded(Box::new(decoder)),
                Err(_) => self.stop_decoding(),
            }
        }
    }

    /// The headers of the answer, their names in lower case: they may show who answers.
    pub fn on_headers<'h>(&mut self, headers: impl IntoIterator<Item = (&'h str, &'h str)>) {
        self.listener.recogniser.look_at_headers(headers);
    }

    /// Feed one read as it came off the wire. Where reads begin and end carries no meaning for the
    /// measurement. Returns what goes on now, and what waits until the exchange is settled.
    pub fn on_bytes(&mut self, now: Instant, read: Bytes) -> Passage {
        self.listener.stopwatch.read(now);
        if self.is_encoded() {
            return self.on_encoded(read);
        }
        if self.kind == Kind::Unsure {
            self.sniff(&read);
        }
        match self.kind {
            Kind::Unsure | Kind::Events | Kind::Lines => self.on_events(read),
            Kind::Document => {
                if self.listener.format.is_some() {
                    self.body.push(&read, self.limits.bytes_max);
                }
                self.pass(read)
            }
            Kind::Opaque => self.pass(read),
        }
    }

    /// Bytes that are withheld because their event is not whole; at the end of the body they go on.
    /// An unfinished usage event that only we asked for is dropped here too.
    pub fn take_withheld(&mut self) -> Bytes {
        let event = match self.kind {
            Kind::Unsure | Kind::Events | Kind::Lines => self.blocks.close(),
            Kind::Document | Kind::Opaque => None,
        };
        let Some(event) = event else { return self.gate.release() };
        // Half an event is no fault of its own.
        let verdict = self.listener.hear(&event, &mut self.cuts).unwrap_or(Verdict::Pass);
        self.gate.release_last(verdict, Trim { data: event.data, cuts: &self.cuts })
    }

    /// `model` of the answer, once it was said.
    #[must_use]
    pub fn response_model(&self) -> Option<&str> {
        self.listener.answer.model.as_deref()
    }

    /// Events with generated content so far.
    #[must_use]
    pub const fn output_chunks(&self) -> u64 {
        self.listener.stopwatch.output_chunks()
    }

    /// Bytes of generated text that are kept for counting.
    #[must_use]
    pub const fn kept_text_bytes(&self) -> usize {
        self.listener.answer.text.len()
    }

    /// Hands over the generated text that is kept, and keeps it no longer.
    pub fn fold_text(&mut self, fold: impl FnOnce(&str)) {
        let text = &mut self.listener.answer.text;
        fold(text);
        text.clear();
    }

    /// How the answer is cut into events, if it is a stream that one of ours could be added to; the
    /// head's word until bytes have come.
    #[must_use]
    pub fn framing(&self) -> Option<Framing> {
        let kind = match self.kind {
            Kind::Unsure => self.sniffer.declared()?,
            kind => kind,
        };
        match kind {
            _ if self.is_encoded() => None,
            Kind::Events => Some(Framing::Events),
            Kind::Lines => Some(Framing::Lines),
            Kind::Unsure | Kind::Document | Kind::Opaque => None,
        }
    }

    /// Whether nothing can be taken out of this answer or added to it: its body is encoded.
    #[must_use]
    pub const fn is_encoded(&self) -> bool {
        !matches!(self.coding, Coding::Plain)
    }

    /// The client has left, and what still comes is read for its usage alone: it is not sent to
    /// anybody.
    pub const fn client_left(&mut self) {
        self.listener.unheard = true;
    }

    /// What would be measured if the client left now. Output of an answer that is one document is
    /// unknown until its end.
    #[must_use]
    pub fn so_far(&self, now: Instant) -> Measurement {
        let mut listener = self.listener.clone();
        let answer = &mut listener.answer;
        answer.complete();
        answer.has_unread = self.kind == Kind::Document
            || self.blocks.too_long() > 0
            || answer.counts.decode_stopped > 0;
        listener.measure(now, Ending::Cut(StreamEnd::ClientLeft))
    }

    /// Close the exchange; `end` says who ended it. The provider's own end mark outranks `end`.
    #[must_use]
    pub fn finish(mut self, now: Instant, end: StreamEnd) -> Measurement {
        if !self.gate.withholds() {
            self.take_withheld();
        }
        self.listener.answer.complete();
        let is_whole = self.is_whole(end);
        let is_half = self.kind == Kind::Document && (!is_whole || self.listener.unheard);
        let answer = &mut self.listener.answer;
        answer.counts.lines_too_long += self.blocks.too_long();
        let counts = &answer.counts;
        answer.has_unread = is_half || counts.lines_too_long > 0 || counts.decode_stopped > 0;
        answer.counts.usage_invalid = answer.reports.invalid;
        answer.counts.usage_fell = answer.reports.fell;
        let ending = match end {
            left if self.listener.unheard => Ending::Cut(left),
            _ if self.is_success && answer.error.is_some() => Ending::UpstreamError,
            _ if answer.is_over => Ending::Complete,
            StreamEnd::Clean if is_whole || !self.is_success => Ending::Complete,
            StreamEnd::Clean => Ending::Truncated,
            cut => Ending::Cut(cut),
        };
        self.listener.measure(now, ending)
    }

    fn sniff(&mut self, read: &[u8]) {
        self.kind = self.sniffer.look(read);
        self.blocks.are_lines(self.kind == Kind::Lines);
        if self.sniffer.contradicts(self.kind) {
            self.listener.answer.counts.type_mismatch += 1;
        }
    }

    fn on_events(&mut self, read: Bytes) -> Passage {
        let mut crossing = self.gate.cross(&read);
        let mut at = 0;
        while at < read.len()
            && let Some(block) = self.blocks.next(&read, &mut at)
        {
            let heard = block.event.map(|event| self.listener.hear_any(&event, &mut self.cuts));
            let data = block.event.map_or(&[][..], |event| event.data);
            let trim = Trim { data, cuts: &self.cuts };
            crossing.block(&read, block.end, heard.unwrap_or(Verdict::Pass), trim);
        }
        crossing.finish(read)
    }

    /// Reads what can be decoded by now. The end mark is somewhere in the read behind which the
    /// answer is over: all of that read waits.
    fn on_encoded(&mut self, read: Bytes) -> Passage {
        if let Coding::Encoded(mut decoder) = std::mem::replace(&mut self.coding, Coding::Unread) {
            match decoder.feed(&read, &mut |piece| self.on_decoded(piece)) {
                Ok(()) if self.kind == Kind::Opaque => {}
                Ok(()) => self.coding = Coding::Encoded(decoder),
                Err(_) => self.stop_decoding(),
            }
        }
        if self.listener.answer.is_over {
            Passage { forward: Bytes::new(), hold: read }
        } else {
            Passage { forward: read, hold: Bytes::new() }
        }
    }

    fn on_decoded(&mut self, piece: &[u8]) -> Result<(), DecodeFault> {
        if self.kind == Kind::Unsure {
            self.sniff(piece);
        }
        match self.kind {
            Kind::Unsure | Kind::Events | Kind::Lines => {
                let mut at = 0;
                while let Some(block) = self.blocks.next(piece, &mut at) {
                    block.event.map(|event| self.listener.hear_any(&event, &mut self.cuts));
                }
            }
            Kind::Document => {
                self.body.push(&Bytes::copy_from_slice(piece), self.limits.bytes_max);
                self.body.bytes().ok_or(DecodeFault::TooLarge)?;
            }
            Kind::Opaque => {}
        }
        Ok(())
    }

    fn stop_decoding(&mut self) {
        self.coding = Coding::Unread;
        self.listener.answer.counts.decode_stopped += 1;
    }

    fn pass(&mut self, read: Bytes) -> Passage {
        let withheld = self.gate.release();
        let forward = if withheld.is_empty() {
            read
        } else {
            let mut both = BytesMut::from(withheld);
            both.extend_from_slice(&read);
            both.freeze()
        };
        Passage { forward, hold: Bytes::new() }
    }

    /// Whether nothing is missing from an answer that ended without its own mark.
    fn is_whole(&mut self, end: StreamEnd) -> bool {
        let Listener { answer, recogniser, format, .. } = &mut self.listener;
        let Some(format) = format else { return true };
        let is_unread = matches!(self.coding, Coding::Unread);
        match self.kind {
            Kind::Opaque => true,
            Kind::Unsure | Kind::Events | Kind::Lines if is_unread => true,
            Kind::Unsure => self.is_bodiless || self.sniffer.expects_nothing(),
            Kind::Events | Kind::Lines => {
                !answer.finish_reasons.is_empty() || answer.reports.has_final()
            }
            Kind::Document => {
                let Some(body) = self.body.bytes() else {
                    answer.counts.lines_too_long += u32::from(!is_unread);
                    return true;
                };
                let facts = format.document(body);
                if facts.is_err() && end == StreamEnd::Clean && !is_unread {
                    answer.counts.not_json += 1;
                }
                recogniser.look_at(body);
                facts.map(|facts| answer.add(facts)).is_ok() || is_unread
            }
        }
    }
}

/// Hears what events say.
#[derive(Debug, Clone)]
struct Listener {
    format: Option<&'static dyn Format>,
    recogniser: Recogniser,
    hidden: Hidden,
    nulls_token_ids: bool,
    template: Template,
    stopwatch: Stopwatch,
    answer: Answer,
    /// The client has left: content is sent to nobody, and neither timed nor counted.
    unheard: bool,
}

impl Listener {
    /// Hears an event that may be anything; what is not the JSON it should be is counted.
    fn hear_any(&mut self, event: &Event<'_>, cuts: &mut Vec<Cut>) -> Verdict {
        self.hear(event, cuts).unwrap_or_else(|Malformed| {
            let not_json = &mut self.answer.counts.not_json;
            *not_json = not_json.saturating_add(1);
            Verdict::Pass
        })
    }

    /// What becomes of an event, and, if it is to be trimmed, what to take out of it.
    fn hear(&mut self, event: &Event<'_>, cuts: &mut Vec<Cut>) -> Result<Verdict, Malformed> {
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
        if !self.unheard {
            self.stopwatch.event();
        }
        if is_done {
            self.answer.is_over = true;
            return Ok(Verdict::End);
        }
        if !event.is_error
            && let Some(like) = self.template.match_with(event.data, cuts)
        {
            self.hear_like(&like);
            return Ok(if cuts.is_empty() { Verdict::Pass } else { Verdict::Trim });
        }
        cuts.clear();
        let Some(format) = self.format else { return Ok(Verdict::Pass) };
        let mut facts = match format.event(event) {
            // An error may be plain words.
            Err(Malformed) if event.is_error => Facts::default(),
            facts => facts?,
        };
        if event.is_error {
            facts.error.get_or_insert_with(|| OTHER_ERROR.to_owned());
        }
        self.recogniser.look_at(event.data);
        facts.cut(event.data, self.hidden, self.nulls_token_ids, cuts);
        self.template.learn(event.data, &facts, cuts);
        if self.unheard {
            facts.content = Content::default();
            facts.token_ids.clear();
        }
        if facts.has_content() && self.answer.is_news(&facts.content) {
            self.stopwatch.content();
        }
        let is_ours = facts.is_only_usage && self.hidden.usage_event
            || facts.is_only_ids() && self.hidden.token_ids;
        let verdict = match (facts.is_end, is_ours) {
            (true, _) => Verdict::End,
            (false, true) => Verdict::Remove,
            (false, false) if cuts.is_empty() => Verdict::Pass,
            (false, false) => Verdict::Trim,
        };
        self.answer.add(facts);
        Ok(verdict)
    }

    /// Hears an event that is like the one before.
    fn hear_like(&mut self, like: &Likeness<'_>) {
        if !like.text.is_empty() && !self.unheard {
            self.stopwatch.content();
            self.answer.add_text(&like.text);
        }
        if let Some(usage) = like.usage {
            self.answer.run(like.choice, usage);
        }
        if like.ids > 0 && !self.unheard {
            self.answer.add_ids(like.ids);
        }
    }

    fn measure(self, now: Instant, ending: Ending) -> Measurement {
        let mut answer = self.answer;
        let dialect = self.recogniser.dialect();
        if dialect.accepts_continuous_usage() {
            answer.reports.add_up_choices();
        }
        let by_ids = answer.usage_by_ids();
        let images = Some(answer.images).filter(|images| *images > 0).into_iter();
        let is_pending = answer.is_pending && !answer.is_over && answer.finish_reasons.is_empty();
        Measurement {
            ending,
            dialect,
            reported_cost: answer.reports.cost().map(str::to_owned),
            counted_units: images.map(|images| ("images".to_owned(), images.into())).collect(),
            reported: answer.reports.settle(dialect.reasoning()).or(by_ids),
            response_model: answer.model,
            response_id: answer.id,
            service_tier: answer.service_tier,
            finish_reasons: answer.finish_reasons.into_iter().map(|(_, reason)| reason).collect(),
            error_type: answer.error,
            is_pending,
            timing: self.stopwatch.finish(now),
            output_text: answer.text,
            output_text_bytes: answer.text_bytes,
            has_unread_output: answer.has_unread,
            output_kinds: answer.kinds,
            counts: answer.counts,
        }
    }
}

#[cfg(test)]
mod tests;
