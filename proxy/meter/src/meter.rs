//! The meter of one answer.

mod ending;

use std::mem;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use taximeter_json::Condensed;

use crate::answer_reader::{AnswerReader, Setup};
use crate::content::Transcript;
use crate::cut::{Cut, Trim};
use crate::delivery::{Delivery, EventFilter, Verdict};
use crate::measurement::{Ending, Measurement, StreamEnd};
use crate::provider_error::{ProviderError, name as error_name};
use crate::usage;
use crate::wire::Wire;
use taximeter_framing::Blocks;
use taximeter_framing::Body;
use taximeter_framing::Event;
use taximeter_framing::FirstLine;
use taximeter_framing::{BodyKind, Sniffer};
use taximeter_framing::{DecodeFault, Decoder, RATIO_MAX, is_identity};

/// Where Gemini says which tier has served.
const SERVICE_TIER: &str = "x-gemini-service-tier";

/// Header in which LiteLLM says what an answer costs.
const COST: &str = "x-litellm-response-cost";

/// Headers in which AWS says the type of an error, before a colon, and Azure its code.
const ERROR_TYPE: &str = "x-amzn-errortype";
const ERROR_CODE: &str = "x-ms-error-code";

/// How a stream is cut into events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Events,
    /// JSON documents, one a line.
    Lines,
    /// Messages of AWS's event streams.
    Frames,
}

/// Watches one answer: bytes and times in, a `Measurement` out.
#[derive(Debug)]
pub struct Meter {
    wire: Wire,
    is_success: bool,
    /// What the head calls an error, if the answer is one.
    error: ProviderError,
    /// The status says that no body follows.
    is_bodiless: bool,
    kind: BodyKind,
    sniffer: Sniffer,
    /// Of a body that is one document, or many, one a line.
    first_line: FirstLine,
    /// When that line ended.
    first_line_at: Option<Instant>,
    blocks: Blocks,
    filter: EventFilter,
    /// What to take out of the current event.
    cuts: Vec<Cut>,
    coding: BodyCoding,
    body: Body,
    decode_ratio_max: u32,
    reader: AnswerReader,
    /// What it says, where that is kept.
    transcript: Option<Box<Transcript>>,
}

/// How the body is encoded.
#[derive(Debug, Default)]
enum BodyCoding {
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
            wire: setup.wire,
            is_success: true,
            error: ProviderError::default(),
            is_bodiless: false,
            kind: BodyKind::Unsure,
            sniffer: Sniffer::new(setup.wire.streams_lists()),
            first_line: FirstLine::default(),
            first_line_at: None,
            blocks: Blocks::new(),
            filter: EventFilter::new(setup.hidden.is_any()),
            cuts: Vec::new(),
            coding: BodyCoding::default(),
            body: Body::default(),
            decode_ratio_max: RATIO_MAX,
            reader: AnswerReader::new(setup),
            transcript: None,
        }
    }

    /// The same meter, which decodes at most so many bytes per byte of an encoded body.
    #[must_use]
    pub const fn decoding(mut self, ratio_max: u32) -> Self {
        self.decode_ratio_max = ratio_max;
        self
    }

    /// The same meter, which also keeps what the answer says.
    #[must_use]
    pub fn keeping(mut self, transcript: Option<Transcript>) -> Self {
        self.transcript = transcript.map(Box::new);
        self
    }

    /// The same meter, which keeps gaps in fine buckets too where that is asked for.
    #[must_use]
    pub fn with_fine_gaps(mut self, is_asked: bool) -> Self {
        if is_asked {
            self.reader.timing.keep_fine_gaps();
        }
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
        self.coding = BodyCoding::Unread;
        if self.reader.format.is_some() && self.kind != BodyKind::Opaque {
            match Decoder::new(codings, self.decode_ratio_max) {
                Ok(decoder) => self.coding = BodyCoding::Encoded(Box::new(decoder)),
                Err(_) => self.stop_decoding(),
            }
        }
    }

    /// The headers of the answer, their names in lower case: they may show who answers, and how fast
    /// it was to be.
    pub fn on_headers<'h>(&mut self, headers: impl IntoIterator<Item = (&'h str, &'h str)>) {
        for (name, value) in headers {
            self.reader.detector.look_at_header(name, value);
            if name == SERVICE_TIER {
                self.reader.answer.service_tier = Some(usage::name(value));
            } else if name == COST {
                self.reader.answer.asked = usage::asked(value);
            } else if name == ERROR_TYPE {
                let kind = value.split(':').next().and_then(|kind| kind.rsplit('#').next());
                self.error.error_type = kind.and_then(|kind| error_name(kind.as_bytes()));
            } else if name == ERROR_CODE {
                self.error.code = error_name(value.as_bytes());
            }
        }
    }

    /// Feed one read as it came off the wire. Where reads begin and end carries no meaning for the
    /// measurement. Returns what goes on now, and what waits until the exchange is settled.
    pub fn on_bytes(&mut self, now: Instant, read: Bytes) -> Delivery {
        self.reader.timing.read(now);
        if self.is_encoded() {
            return self.on_encoded(read);
        }
        if self.kind == BodyKind::Unsure {
            self.sniff(&read);
        }
        let read = if self.kind == BodyKind::Document && self.reader.format.is_some() {
            match self.on_document(read) {
                ControlFlow::Break(delivery) => return delivery,
                ControlFlow::Continue(lines) => lines,
            }
        } else {
            read
        };
        if self.kind.is_in_blocks() { self.on_events(read) } else { self.pass(read) }
    }

    /// Bytes that are withheld because their event is not whole; at the end of the body they go on,
    /// in front of what is held.
    /// An unfinished usage event that only we asked for is dropped here too.
    pub fn take_withheld(&mut self) -> Bytes {
        let event = if self.kind.is_in_blocks() { self.blocks.close() } else { None };
        let Some(event) = event else { return self.filter.release() };
        note(&mut self.transcript, Some(&event));
        // Half an event is no fault of its own.
        let verdict = self.reader.read_event(&event, &mut self.cuts).unwrap_or(Verdict::Pass);
        self.filter.release_last(verdict, Trim { data: event.data, cuts: &self.cuts })
    }

    /// `model` of the answer, once it was said.
    #[must_use]
    pub fn response_model(&self) -> Option<&str> {
        self.reader.answer.model.as_deref()
    }

    /// Events with generated content so far.
    #[must_use]
    pub const fn output_chunks(&self) -> u64 {
        self.reader.timing.output_chunks()
    }

    /// From the start to the first event with generated content, once that has come.
    #[must_use]
    pub const fn time_to_first_token(&self) -> Option<Duration> {
        self.reader.timing.time_to_first_token()
    }

    /// Bytes of generated text that are kept for counting.
    #[must_use]
    pub const fn kept_text_bytes(&self) -> usize {
        self.reader.answer.output.kept_bytes()
    }

    /// Hands over the generated text that is kept, and keeps it no longer.
    pub fn fold_text(&mut self, fold: impl FnOnce(&str)) {
        self.reader.answer.output.fold(fold);
    }

    /// How the answer is cut into events, if it is a stream that one of ours could be added to; the
    /// head's word until bytes have come.
    #[must_use]
    pub fn framing(&self) -> Option<Framing> {
        let kind = match self.kind {
            BodyKind::Unsure => self.sniffer.declared()?,
            kind => kind,
        };
        match kind {
            _ if self.is_encoded() => None,
            BodyKind::Events => Some(Framing::Events),
            BodyKind::Lines => Some(Framing::Lines),
            BodyKind::Frames => Some(Framing::Frames),
            BodyKind::Unsure | BodyKind::Elements | BodyKind::Document | BodyKind::Opaque => None,
        }
    }

    /// Whether nothing can be taken out of this answer or added to it: its body is encoded.
    #[must_use]
    pub const fn is_encoded(&self) -> bool {
        !matches!(self.coding, BodyCoding::Plain)
    }

    /// The client has left, and what still comes is read for its usage alone: it is not sent to
    /// anybody.
    pub fn client_left(&mut self) {
        self.reader.client_left = true;
        if let Some(transcript) = &mut self.transcript {
            transcript.close();
        }
    }

    /// What would be measured if the client left now. Output of an answer that is one document is
    /// unknown until its end.
    #[must_use]
    pub fn so_far(&self, now: Instant) -> Measurement {
        let mut reader = self.reader.clone();
        let answer = &mut reader.answer;
        answer.complete();
        answer.has_unread = self.kind == BodyKind::Document
            || answer.counts.lines_too_long + self.blocks.unread() > 0
            || answer.counts.decode_stopped > 0;
        reader.measure(now, Ending::Cut(StreamEnd::ClientLeft))
    }

    /// Close the exchange; `end` says who ended it. The provider's own end mark outranks `end`.
    #[must_use]
    pub fn finish(mut self, now: Instant, end: StreamEnd) -> Measurement {
        if !self.filter.withholds() {
            self.take_withheld();
        }
        self.reader.answer.complete();
        let is_whole = self.is_whole(end);
        let is_empty = self.is_empty();
        let is_half = self.kind == BodyKind::Document && (!is_whole || self.reader.client_left);
        let answer = &mut self.reader.answer;
        if answer.error.is_some() || !self.is_success && self.error != ProviderError::default() {
            answer.error =
                Some(answer.error.take().unwrap_or_default().over(mem::take(&mut self.error)));
        }
        answer.counts.lines_too_long += self.blocks.unread();
        let counts = &answer.counts;
        // Something came, and nobody knows what it is.
        let is_unknown = is_empty
            && matches!(self.kind, BodyKind::Document | BodyKind::Opaque)
            && answer.id.is_none()
            && answer.model.is_none()
            && answer.error.is_none();
        answer.has_unread =
            is_half || is_unknown || counts.lines_too_long > 0 || counts.decode_stopped > 0;
        answer.has_unread |= answer.compacts;
        answer.counts.usage_invalid = answer.reports.invalid();
        answer.counts.usage_fell = answer.reports.fell;
        let ending = match end {
            left if self.reader.client_left => Ending::Cut(left),
            _ if self.is_success && answer.error.is_some() => Ending::UpstreamError,
            _ if answer.is_over && !is_empty => Ending::Complete,
            _ if answer.is_over => Ending::Truncated,
            StreamEnd::Clean if is_whole && !is_empty || !self.is_success => Ending::Complete,
            StreamEnd::Clean => Ending::Truncated,
            cut => Ending::Cut(cut),
        };
        Measurement { transcript: self.transcript, ..self.reader.measure(now, ending) }
    }

    fn sniff(&mut self, read: &[u8]) {
        self.kind = self.sniffer.look(read);
        self.blocks.are(self.kind);
        if self.sniffer.contradicts(self.kind) {
            self.reader.answer.counts.type_mismatch += 1;
        }
    }

    /// Reads a body that is one document, as far as anybody can tell. If something may have to be
    /// taken out of it, it waits until that is certain. Continues with what is to be read as lines,
    /// once it is clear that there are several.
    fn on_document(&mut self, read: Bytes) -> ControlFlow<Delivery, Bytes> {
        if self.is_many(&read) {
            let withheld = self.filter.release();
            if withheld.is_empty() {
                self.read_earlier_lines();
                return ControlFlow::Continue(read);
            }
            self.body = Body::default();
            return ControlFlow::Continue([withheld, read].concat().into());
        }
        self.body.push(&read);
        if self.is_success && self.first_line.is_open() && self.filter.withhold(&read) {
            return ControlFlow::Break(Delivery::default());
        }
        if self.filter.hides() {
            self.first_line = FirstLine::IsOfOne;
        }
        ControlFlow::Break(self.pass(read))
    }

    /// Whether the next bytes of a document show that it is the first of many.
    fn is_many(&mut self, read: &[u8]) -> bool {
        if !self.first_line.is_open() {
            return false;
        }
        self.first_line.look(read);
        match self.first_line {
            FirstLine::Behind => {
                self.first_line_at.get_or_insert(self.reader.timing.read_at());
                false
            }
            FirstLine::IsOfMany => {
                let was_contradicted = self.sniffer.contradicts(BodyKind::Document);
                self.kind = BodyKind::Lines;
                self.blocks.are(BodyKind::Lines);
                let is_contradicted = self.sniffer.contradicts(BodyKind::Lines);
                let is_news = is_contradicted && !was_contradicted;
                self.reader.answer.counts.type_mismatch += u32::from(is_news);
                true
            }
            FirstLine::Before | FirstLine::Inside(_) | FirstLine::IsOfOne => false,
        }
    }

    /// Reads the lines that came before it was known that there are several.
    fn read_earlier_lines(&mut self) {
        let now = self.reader.timing.read_at();
        self.reader.timing.read(self.first_line_at.unwrap_or(now));
        let earlier = std::mem::take(&mut self.body);
        let earlier = earlier.data();
        // What a long line lacks is not known to the blocks.
        self.reader.answer.counts.lines_too_long += u32::from(earlier.condensed.is_some());
        self.read_blocks(earlier.bytes);
        self.reader.timing.read(now);
    }

    fn on_events(&mut self, read: Bytes) -> Delivery {
        let mut filtering = self.filter.start_read(&read);
        let mut at = 0;
        while at < read.len()
            && let Some(block) = self.blocks.next(&read, &mut at)
        {
            let event = block.event.as_ref();
            note(&mut self.transcript, event);
            let verdict = event.map(|event| self.reader.read_lenient(event, &mut self.cuts));
            let data = event.map_or(&[][..], |event| event.data);
            let trim = Trim { data, cuts: &self.cuts };
            filtering.block(&read, block.end, verdict.unwrap_or(Verdict::Pass), trim);
        }
        filtering.finish(read)
    }

    /// Reads what can be decoded by now. The end mark is somewhere in the read behind which the
    /// answer is over: all of that read waits.
    fn on_encoded(&mut self, read: Bytes) -> Delivery {
        if let BodyCoding::Encoded(mut decoder) =
            std::mem::replace(&mut self.coding, BodyCoding::Unread)
        {
            let read_all = decoder.feed(&read, &mut |piece| {
                self.on_decoded(piece);
                Ok::<_, DecodeFault>(())
            });
            match read_all {
                Ok(()) if self.kind == BodyKind::Opaque => {}
                Ok(()) => self.coding = BodyCoding::Encoded(decoder),
                Err(_) => self.stop_decoding(),
            }
        }
        if self.reader.answer.is_over {
            Delivery { forward: Bytes::new(), hold: read }
        } else {
            Delivery { forward: read, hold: Bytes::new() }
        }
    }

    fn on_decoded(&mut self, piece: &[u8]) {
        if self.kind == BodyKind::Unsure {
            self.sniff(piece);
        }
        if self.kind == BodyKind::Document && self.is_many(piece) {
            self.read_earlier_lines();
        }
        match self.kind {
            kind if kind.is_in_blocks() => self.read_blocks(piece),
            BodyKind::Document => self.body.push_copy(piece),
            _ => {}
        }
    }

    /// Reads blocks of which nothing is to be taken out.
    fn read_blocks(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while let Some(block) = self.blocks.next(bytes, &mut at) {
            note(&mut self.transcript, block.event.as_ref());
            block.event.map(|event| self.reader.read_lenient(&event, &mut self.cuts));
        }
    }

    fn stop_decoding(&mut self) {
        self.coding = BodyCoding::Unread;
        self.reader.answer.counts.decode_stopped += 1;
    }

    fn pass(&mut self, read: Bytes) -> Delivery {
        let withheld = self.filter.release();
        let forward = if withheld.is_empty() {
            read
        } else {
            let mut both = BytesMut::from(withheld);
            both.extend_from_slice(&read);
            both.freeze()
        };
        Delivery { forward, hold: Bytes::new() }
    }
}

/// Writes down what an event says, where that is kept.
fn note(transcript: &mut Option<Box<Transcript>>, event: Option<&Event<'_>>) {
    if let (Some(transcript), Some(event)) = (transcript, event) {
        let lacks_text = event.condensed.is_some_and(Condensed::lacks_text);
        transcript.lacking(lacks_text).event(event.data);
    }
}

#[cfg(test)]
mod tests;
