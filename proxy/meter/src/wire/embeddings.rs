//! Reads answers of `/v1/embeddings`, rerank, score, classify, pooling and moderations, which
//! generate no output.

use super::error;
use crate::facts::{Facts, Format};
use crate::json::{Malformed, Reader};
use crate::usage::Report;

#[derive(Debug)]
pub(super) struct Embeddings;

impl Format for Embeddings {
    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        let mut reader = Reader::new(body);
        if reader.peek() == Some(b'[') {
            // TEI's own routes answer with a bare list, SGLang's with a list that says what each of
            // its parts used.
            reader.array(|part| part.object(|key, value| meta_info(key, value, &mut facts)))?;
            reader.end()?;
        } else {
            reader.document(|key, value| member(key, value, &mut facts))?;
        }
        facts.usage = facts.usage.map(Report::of_input_only);
        Ok(facts)
    }
}

fn member<'a>(key: &[u8], value: &mut Reader<'a>, facts: &mut Facts<'a>) -> Result<(), Malformed> {
    match key {
        b"id" => facts.id = value.text()?,
        b"model" => facts.model = value.text()?,
        b"usage" => facts.usage = Report::read(value)?,
        // Cohere
        b"meta" => {
            let report = Report::read(value)?.filter(|report| !report.is_empty());
            facts.usage = report.or(facts.usage.take());
        }
        // Gemini
        b"usageMetadata" => facts.usage = Report::read_google(value)?,
        // Ollama
        b"prompt_eval_count" => facts.usage.get_or_insert_default().read_member(key, value)?,
        b"error" => facts.error = error::read(value)?,
        _ => meta_info(key, value, facts)?,
    }
    Ok(())
}

/// SGLang's own routes.
fn meta_info<'a>(
    key: &[u8],
    value: &mut Reader<'a>,
    facts: &mut Facts<'a>,
) -> Result<(), Malformed> {
    if key != b"meta_info" {
        return value.skip();
    }
    let mut report = Box::<Report>::default();
    value.object(|key, value| match key {
        b"prompt_tokens" | b"cached_tokens" => report.read_member(key, value),
        _ => value.skip(),
    })?;
    facts.add_usage(Some(report));
    Ok(())
}
