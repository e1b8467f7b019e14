//! Reads answers of `/v1/ocr`, which the provider charges by the page.

use super::error;
use crate::facts::{Facts, Format};
use crate::json::{Malformed, Reader};
use crate::usage::Report;

#[derive(Debug)]
pub(super) struct Ocr;

impl Format for Ocr {
    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        Reader::new(body).document(|key, value| {
            match key {
                b"model" => facts.model = value.text()?,
                b"usage_info" => value.member(b"pages_processed", |value| {
                    facts.usage = Report::read_only("pages", value)?;
                    Ok(())
                })?,
                b"error" => facts.error = error::read(value)?,
                _ => value.skip()?,
            }
            Ok(())
        })?;
        Ok(facts)
    }
}
