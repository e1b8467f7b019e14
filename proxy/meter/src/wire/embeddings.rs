//! `/v1/embeddings`, rerank and score: they read and generate nothing.

use super::error;
use crate::facts::{Facts, Format};
use crate::json::{Malformed, Reader};
use crate::sse::Event;
use crate::usage::Report;

#[derive(Debug)]
pub(super) struct Embeddings;

impl Format for Embeddings {
    fn event<'a>(&self, event: &Event<'a>) -> Result<Facts<'a>, Malformed> {
        self.document(event.data)
    }

    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let mut reader = Reader::new(body);
        // TEI's own routes answer with a bare list.
        if reader.peek() == Some(b'[') {
            reader.skip()?;
            return reader.end().map(|()| facts);
        }
        reader.document(|key, value| {
            match key {
                b"id" => facts.id = value.text()?,
                b"model" => facts.model = value.text()?,
                b"usage" => facts.usage = Report::read(value)?.map(input_only),
                // Cohere
                b"meta" => {
                    let report = Report::read(value)?.filter(|report| !report.is_silent());
                    facts.usage = report.map(input_only).or(facts.usage.take());
                }
                b"error" => facts.error = error::read(value)?,
                _ => value.skip()?,
            }
            Ok(())
        })?;
        Ok(facts)
    }
}

/// Older engines give the total alone; there is no output, and that is known.
fn input_only(mut report: Box<Report>) -> Box<Report> {
    report.input = report.input.or(report.total);
    if report.input.is_some() {
        report.output = report.output.or(Some(0));
    }
    report
}
