//! Tells whether an answer is whole, and whether it brought anything.

use taximeter_json::Condensed;

use super::{BodyCoding, Meter};
use crate::answer_reader::AnswerReader;
use crate::measurement::StreamEnd;
use crate::wire::Wire;
use taximeter_framing::BodyKind;
use taximeter_framing::Data;

impl Meter {
    /// Whether an answer of success has neither content nor usage, nor tells why.
    pub(super) fn is_empty(&self) -> bool {
        let AnswerReader { answer, timing, format, .. } = &self.reader;
        let is_unread = matches!(self.coding, BodyCoding::Unread)
            || answer.counts.lines_too_long > 0
            || self.blocks.unread() > 0;
        if !self.is_success || self.is_bodiless || format.is_none() || is_unread {
            return false;
        }
        let may_lack_text = self.wire.may_lack_text();
        let has_something = match self.kind {
            BodyKind::Opaque => {
                may_lack_text
                    && self.sniffer.declared() != Some(BodyKind::Document)
                    && !self.sniffer.is_page()
            }
            // What nobody has said is no text.
            BodyKind::Unsure => self.wire == Wire::Transcriptions && self.sniffer.expects_nothing(),
            _ => {
                answer.says_something()
                    || timing.output_chunks() > 0
                    || may_lack_text && answer.has_begun
            }
        };
        !has_something
    }

    /// Whether nothing is missing from an answer that ended without its own mark.
    pub(super) fn is_whole(&mut self, end: StreamEnd) -> bool {
        let AnswerReader { answer, format: Some(_), .. } = &mut self.reader else { return true };
        let is_unread = matches!(self.coding, BodyCoding::Unread);
        match self.kind {
            BodyKind::Opaque => true,
            kind if kind.is_in_blocks() && is_unread => true,
            BodyKind::Unsure => self.is_bodiless || self.sniffer.expects_nothing(),
            BodyKind::Events | BodyKind::Lines | BodyKind::Frames | BodyKind::Elements => {
                answer.is_whole_stream()
            }
            BodyKind::Document => {
                let Data { bytes: body, condensed } = self.body.data();
                let reader = &mut self.reader;
                let is_readable = reader.read_document(body, condensed).is_ok();
                if !is_readable && reader.read_documents(body).is_ok() {
                    return reader.answer.is_whole_stream();
                }
                if !is_readable && end == StreamEnd::Clean && !is_unread {
                    reader.answer.counts.not_json += 1;
                }
                reader.detector.look_at(body);
                if let Some(transcript) = &mut self.transcript {
                    let lacks_text = condensed.is_some_and(Condensed::lacks_text);
                    transcript.lacking(lacks_text).document(body);
                }
                is_readable || is_unread
            }
        }
    }
}
