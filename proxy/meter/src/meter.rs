//! The meter of one answer.

use std::time::Instant;

use bytes::{Bytes, BytesMut};
use taximeter_json::Condensed;

use crate::answer_reader::{AnswerReader, Setup};
use crate::blocks::Blocks;
use crate::body::Body;
use crate::content::Transcript;
use crate::cut::{Cut, Trim};
use crate::decode::{DecodeFault, Decoder, RATIO_MAX, is_identity};
use crate::delivery::{Delivery, EventFilter, Verdict};
use crate::measurement::{Ending, Measurement, StreamEnd};
use crate::partial::Data;
use crate::sniff::{BodyKind, Sniffer};
use crate::sse::Event;
use crate::usage;

/// Where Gemini says which tier has served.
const SERVICE_TIER: &str = "x-gemini-service-tier";

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
    is_success: bool,
    /// The status says that no body follows.
    is_bodiless: bool,
    kind: BodyKind,
    sniffer: Sniffer,
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
            is_success: true,
            is_bodiless: false,
            kind: BodyKind::Unsure,
            sniffer: Sniffer::new(setup.wire.streams_lists()),
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
        match self.kind {
            kind if kind.is_in_blocks() => self.on_events(read),
            BodyKind::Document => {
                if self.reader.format.is_some() {
                    self.body.push(&read);
                }
                self.pass(read)
            }
            _ => self.pass(read),
        }
    }

    /// Bytes that are withheld because their event is not whole; at the end of the body they go on.
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
        let is_half = self.kind == BodyKind::Document && (!is_whole || self.reader.client_left);
        let answer = &mut self.reader.answer;
        answer.counts.lines_too_long += self.blocks.unread();
        let counts = &answer.counts;
        answer.has_unread = is_half || counts.lines_too_long > 0 || counts.decode_stopped > 0;
        answer.counts.usage_invalid = answer.reports.invalid();
        answer.counts.usage_fell = answer.reports.fell;
        let ending = match end {
            left if self.reader.client_left => Ending::Cut(left),
            _ if self.is_success && answer.error.is_some() => Ending::UpstreamError,
            _ if answer.is_over => Ending::Complete,
            StreamEnd::Clean if is_whole || !self.is_success => Ending::Complete,
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

    fn on_events(&mut self, read: Bytes) -> Delivery {
        let mut filtering = self.filter.start_read(&read);
        let mut at = 0;
        while at < read.len()
            && let Some(block) = self.blocks.next(&read, &mut at)
        {
            note(&mut self.transcript, block.event.as_ref());
            let verdict = block.event.map(|event| self.reader.read_lenient(&event, &mut self.cuts));
            let data = block.event.map_or(&[][..], |event| event.data);
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
        match self.kind {
            kind if kind.is_in_blocks() => {
                let mut at = 0;
                while let Some(block) = self.blocks.next(piece, &mut at) {
                    note(&mut self.transcript, block.event.as_ref());
                    block.event.map(|event| self.reader.read_lenient(&event, &mut self.cuts));
                }
            }
            BodyKind::Document => self.body.push_copy(piece),
            _ => {}
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

    /// Whether nothing is missing from an answer that ended without its own mark.
    fn is_whole(&mut self, end: StreamEnd) -> bool {
        let AnswerReader { answer, detector, format, .. } = &mut self.reader;
        let Some(format) = format else { return true };
        let is_unread = matches!(self.coding, BodyCoding::Unread);
        match self.kind {
            BodyKind::Opaque => true,
            kind if kind.is_in_blocks() && is_unread => true,
            BodyKind::Unsure => self.is_bodiless || self.sniffer.expects_nothing(),
            BodyKind::Events | BodyKind::Lines | BodyKind::Frames | BodyKind::Elements => {
                !answer.finish_reasons.is_empty() || answer.reports.has_final()
            }
            BodyKind::Document => {
                let Data { bytes: body, condensed } = self.body.data();
                let facts = format.document(body);
                if facts.is_err() && end == StreamEnd::Clean && !is_unread {
                    answer.counts.not_json += 1;
                }
                detector.look_at(body);
                if let Some(transcript) = &mut self.transcript {
                    let lacks_text = condensed.is_some_and(Condensed::lacks_text);
                    transcript.lacking(lacks_text).document(body);
                }
                let is_read = facts.map(|mut facts| {
                    facts.read_from(condensed);
                    answer.add(facts);
                });
                is_read.is_ok() || is_unread
            }
        }
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
