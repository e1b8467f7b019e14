//! Reads answers of `/v1/images/…`.

use super::error;
use crate::facts::{Facts, Format};
use crate::json::{Malformed, Reader};
use crate::usage::Report;

#[derive(Debug)]
pub(super) struct Images;

impl Format for Images {
    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        Reader::new(body).document(|key, value| member(key, value, &mut facts))?;
        Ok(facts)
    }
}

fn member<'a>(key: &[u8], value: &mut Reader<'a>, facts: &mut Facts<'a>) -> Result<(), Malformed> {
    match key {
        b"type" => {
            let kind = value.text()?;
            let is = |word| kind.is_some_and(|kind| kind.is(word));
            facts.is_end = is("image_generation.completed") || is("image_edit.completed");
            facts.images += u64::from(facts.is_end);
        }
        b"b64_json" if value.text()?.is_some_and(|image| !image.is_empty()) => {
            facts.content.begin();
        }
        b"b64_json" => {}
        b"data" => value.array(|image| {
            facts.content.begin();
            facts.images += 1;
            image.skip()
        })?,
        b"model" => facts.model = value.text()?,
        b"usage" => facts.usage = Report::read(value)?.map(Report::paints),
        b"error" => facts.error = error::read(value)?,
        _ => value.skip()?,
    }
    Ok(())
}
