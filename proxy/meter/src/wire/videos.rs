//! Reads answers of `/v1/videos`: the job, and the length of its video.

use super::error;
use crate::facts::{Facts, Format};
use crate::json::{Malformed, Reader};
use crate::usage::Report;

#[derive(Debug)]
pub(super) struct Videos;

impl Format for Videos {
    fn document<'a>(&self, body: &'a [u8]) -> Result<Facts<'a>, Malformed> {
        let mut facts = Facts::default();
        Reader::new(body).document(|key, value| {
            match key {
                b"id" => facts.id = value.text()?,
                b"model" => facts.model = value.text()?,
                b"seconds" => facts.usage = Report::read_only("video_seconds", value)?,
                b"error" => facts.error = error::read(value)?,
                _ => value.skip()?,
            }
            Ok(())
        })?;
        Ok(facts)
    }
}
